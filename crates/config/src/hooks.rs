//! `[hooks]`: the programs that the site runs around jobs.
use model::config::Config;
use model::hooks::{HookFlags, HooksConfig};
use model::time::Span;

use crate::section::Section;

pub(crate) fn read(mut section: Section, config: &mut Config) {
    let hooks = &mut config.hooks;
    for (key, programs) in [
        ("prolog", &mut hooks.prolog),
        ("epilog", &mut hooks.epilog),
        ("controller_prolog", &mut hooks.controller_prolog),
        ("controller_epilog", &mut hooks.controller_epilog),
    ] {
        let read = section.read(key, "one absolute path or pattern, or a list of them", |item| {
            let list: Vec<String> = match item.as_str() {
                Some(one) => vec![one.into()],
                None => item.as_array()?.iter().map(|one| one.as_str().map(String::from)).collect::<Option<_>>()?,
            };
            list.iter().all(|path| path.starts_with('/')).then_some(list)
        });
        *programs = read.unwrap_or_default();
    }
    for (key, program) in [("task_prolog", &mut hooks.task_prolog), ("task_epilog", &mut hooks.task_epilog)] {
        let read = section
            .read(key, "an absolute path", |item| item.as_str().filter(|path| path.starts_with('/')).map(String::from));
        *program = read.unwrap_or_default();
    }
    let expected =
        "a list of \"alloc\", \"contain\", \"no_hold\", \"serial\", \"force_requeue\", \"no_hold_on_failure\"";
    let words = section.read("flags", expected, |item| {
        let words = item.as_array()?.iter().map(|one| one.as_str().map(String::from)).collect::<Option<Vec<_>>>()?;
        words.iter().all(|word| FLAGS.iter().any(|(name, _)| name == word)).then_some(words)
    });
    for word in words.unwrap_or_default() {
        let (_, flag) = FLAGS.iter().find(|(name, _)| *name == word).expect("all words are known");
        *flag(&mut hooks.flags) = true;
    }
    let expected = "a list of \"all_partitions\", \"require_timelimit\" and absolute paths of scripts";
    let asked = section.read("job_submit", expected, |item| {
        let words = item.as_array()?.iter().map(|one| one.as_str().map(String::from)).collect::<Option<Vec<_>>>()?;
        let is_known = |word: &String| word.starts_with('/') || HooksConfig::JOB_SUBMIT.contains(&word.as_str());
        words.iter().all(is_known).then_some(words)
    });
    hooks.job_submit = asked.unwrap_or_default();
    for (key, timeout) in [
        ("prolog_timeout", &mut hooks.prolog_timeout),
        ("epilog_timeout", &mut hooks.epilog_timeout),
        ("job_submit_timeout", &mut hooks.job_submit_timeout),
    ] {
        let mut span = Span(0);
        section.seconds(key, &mut span);
        *timeout = (span.0 > 0).then_some(span);
    }
    if let Err(why) = complete(&mut hooks.flags) {
        section.notes.add(section.at, why);
    }
    section.finish();
    config.accounting.has_extern |= config.hooks.flags.contain;
}

type Flag = fn(&mut HookFlags) -> &mut bool;

pub(crate) const FLAGS: &[(&str, Flag)] = &[
    ("alloc", |flags| &mut flags.alloc),
    ("contain", |flags| &mut flags.contain),
    ("no_hold", |flags| &mut flags.no_hold),
    ("serial", |flags| &mut flags.serial),
    ("force_requeue", |flags| &mut flags.force_requeue),
    ("no_hold_on_failure", |flags| &mut flags.no_hold_on_failure),
];

/// What some flags imply, and what cannot be together.
pub(crate) fn complete(flags: &mut HookFlags) -> Result<(), &'static str> {
    flags.alloc |= flags.contain || flags.no_hold;
    if flags.contain && flags.no_hold { Err("the flags Contain and NoHold cannot be together") } else { Ok(()) }
}
