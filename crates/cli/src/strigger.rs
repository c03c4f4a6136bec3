//! `strigger`: programs that are to run when something happens.
use model::trigger::{About, Trigger, TriggerFilter, TriggerKind};
use model::{Command, JobId, NodeName, hostlist};
use wire::CallError;

use crate::context::block_on;
use crate::getopt::{Flag, Operands, Parsed, Value, flag, parse};
use crate::output::print;
use crate::trouble::{Trouble, connect, text};
use crate::{users, version};

pub const FLAGS: &[Flag] = &[
    flag("backup_slurmctld_assumed_control", Some('C'), Value::None),
    flag("backup_slurmctld_failure", Some('B'), Value::None),
    flag("backup_slurmctld_resumed_operation", Some('c'), Value::None),
    flag("burst_buffer", None, Value::None),
    flag("clear", None, Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("down", Some('d'), Value::None),
    flag("drained", Some('D'), Value::None),
    flag("draining", None, Value::None),
    flag("fail", Some('F'), Value::None),
    flag("fini", Some('f'), Value::None),
    flag("flags", None, Value::Required),
    flag("front_end", None, Value::None),
    flag("get", None, Value::None),
    flag("help", None, Value::None),
    flag("id", Some('i'), Value::Required),
    flag("idle", Some('I'), Value::None),
    flag("jobid", Some('j'), Value::Required),
    flag("node", Some('n'), Value::Optional),
    flag("noheader", Some('N'), Value::None),
    flag("offset", Some('o'), Value::Required),
    flag("primary_database_failure", Some('h'), Value::None),
    flag("primary_database_resumed_operation", Some('H'), Value::None),
    flag("primary_slurmctld_acct_buffer_full", Some('e'), Value::None),
    flag("primary_slurmctld_failure", Some('a'), Value::None),
    flag("primary_slurmctld_resumed_control", Some('b'), Value::None),
    flag("primary_slurmctld_resumed_operation", Some('A'), Value::None),
    flag("primary_slurmdbd_failure", Some('g'), Value::None),
    flag("primary_slurmdbd_resumed_operation", Some('G'), Value::None),
    flag("program", Some('p'), Value::Required),
    flag("quiet", Some('Q'), Value::None),
    flag("reconfig", Some('r'), Value::None),
    flag("resume", Some('R'), Value::None),
    flag("set", None, Value::None),
    flag("time", Some('t'), Value::None),
    flag("up", Some('u'), Value::None),
    flag("usage", None, Value::None),
    flag("user", None, Value::Required),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
];

/// Slurm has it; there are no front ends here.
const REFUSED: &[&str] = &["front_end"];

pub const HELP: &str = "\
Usage: strigger [--set | --get | --clear] [OPTIONS]
      --set           create a trigger: have a program run when something happens
      --get           get trigger information: what is set
      --clear         delete a trigger

What may happen:
  -u, --up            a node is back in service from DOWN
  -d, --down          a node goes DOWN
  -D, --drained       a node is DRAINED
      --draining      a node is DRAINING: jobs are left on it
  -R, --resume        a node is resumed
  -F, --fail          a node is expected to FAIL
  -I, --idle          a node stays IDLE for the time of --offset
  -t, --time          a job reaches its time limit (with --jobid)
  -f, --fini          a job has ended (with --jobid)
  -r, --reconfig      the configuration is read again
      --burst_buffer  something goes wrong with a burst buffer
  -a, --primary_slurmctld_failure
                      the first controller leads no more
  -A, --primary_slurmctld_resumed_operation
                      the first controller works again
  -b, --primary_slurmctld_resumed_control
                      the first controller leads again
  -C, --backup_slurmctld_assumed_control
                      another controller leads

What may be set and never happens here:
  -B, --backup_slurmctld_failure, -c, --backup_slurmctld_resumed_operation,
  -e, --primary_slurmctld_acct_buffer_full, -g, --primary_slurmdbd_failure,
  -G, --primary_slurmdbd_resumed_operation, -h, --primary_database_failure,
  -H, --primary_database_resumed_operation

To whom, when and what:
  -j, --jobid=#       this job, or its nodes
  -n, --node[=host]   these nodes; all, if none are named
  -o, --offset=#      so many seconds after it happens; negative: before
  -p, --program=path  the program to run; it is told the job's id or the nodes
      --flags=perm    it stays when it has run
  -i, --id=#          a trigger's number
      --user          those of a user, by name or number

  -M, --clusters=name this cluster's name
  -N, --noheader      no line of titles
  -Q, --quiet         says nothing of what did not matter
  -v, --verbose       print detailed event logging

Help options:
      --help          this text
      --usage         a short text
  -V, --version       the version
";

const USAGE: &str = "Usage: strigger [--set | --get | --clear | --version] [-aAbBcCdDefFgGhHiIjnNopQrRtuv]\n";

/// Slurm's own list, with what is refused here by name.
const NO_TRIGGER: &str = "You must specify a trigger (--down, --up, --reconfig, --time, --fini, --burst_buffer,
--primary_slurmctld_failure,
--primary_slurmctld_resumed_operation,
--primary_slurmctld_resumed_control,
--primary_slurmctld_acct_buffer_full,
--backup_slurmctld_failure,
--backup_slurmctld_resumed_operation,
--backup_slurmctld_as_ctrl,
--primary_slurmdbd_failure,
--primary_slurmdbd_resumed_operation,
--primary_database_failure, or 
--primary_database_resumed_operation)
";

const TITLES: &str = "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM\n";

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("strigger: {problem}\nTry \"strigger --help\" for more information");
            return 1;
        }
    };
    if parsed.has("help") || parsed.has("usage") {
        print(if parsed.has("help") { HELP } else { USAGE });
        return 0;
    }
    if parsed.has("version") {
        print(&version::line());
        return 0;
    }
    match read(&parsed, users::uid_of) {
        Ok(wish) => carry_out(&parsed, wish),
        Err(lines) => {
            lines.iter().for_each(|line| eprintln!("strigger: error: {line}"));
            1
        }
    }
}

/// What is wanted.
#[derive(Debug, PartialEq)]
enum Wish {
    Set(Box<Trigger>),
    Get { filter: TriggerFilter, kinds: Vec<TriggerKind>, nodes: Vec<NodeName> },
    Clear(TriggerFilter),
}

fn read(parsed: &Parsed, uid_of: impl Fn(&str) -> Option<u32>) -> Result<Wish, Vec<String>> {
    let one = |line: &str| vec![line.to_string()];
    if let Some(refused) = REFUSED.iter().find(|name| parsed.has(name)) {
        return Err(one(&format!("--{refused} is not supported")));
    }
    if let Some(cluster) = parsed.value("clusters")
        && !crate::context::cluster().is_ok_and(|own| own.cluster_name == cluster)
    {
        return Err(one(&format!("'{cluster}' can't be reached now, or it is an invalid entry for --cluster.")));
    }
    let kinds: Vec<TriggerKind> = TriggerKind::ALL.iter().copied().filter(|kind| parsed.has(kind.word())).collect();
    let number = |name: &str| match parsed.value(name) {
        None => Ok(None),
        Some(text) => text.parse::<u32>().map(Some).map_err(|_| one(&format!("Invalid {name} {text}"))),
    };
    let (id, job) = (number("id")?, number("jobid")?.map(JobId));
    let uid = match parsed.value("user") {
        None => None,
        Some(name) => {
            let uid = name.parse().ok().or_else(|| uid_of(name));
            Some(uid.ok_or_else(|| one(&format!("Invalid user {name}")))?)
        }
    };
    let is_permanent = match parsed.value("flags") {
        None => false,
        Some(word) if word.eq_ignore_ascii_case("perm") => true,
        Some(word) => return Err(one(&format!("Invalid flags {word}"))),
    };
    let nodes = match parsed.value("node") {
        None => Vec::new(),
        Some(list) => hostlist::expand(list).map_err(|_| one(&format!("Invalid node {list}")))?,
    };
    let nodes: Vec<NodeName> = nodes.into_iter().map(NodeName::from).collect();
    let filter = TriggerFilter { id, job, uid };
    let modes = [parsed.has("set"), parsed.has("get"), parsed.has("clear")];
    match modes {
        [true, false, false] => (),
        [false, true, false] => return Ok(Wish::Get { filter, kinds, nodes }),
        [false, false, true] if filter == TriggerFilter::default() => {
            return Err(one("You must specify a --id, --jobid, or --user to clear"));
        }
        [false, false, true] => return Ok(Wish::Clear(filter)),
        _ => return Err(one("You must use exactly one of the following options: --set, --get or --clear")),
    }
    if kinds.is_empty() {
        return Err(one(NO_TRIGGER));
    }
    for kind in kinds.iter().filter(|kind| kind.never_happens()) {
        eprintln!("strigger: warning: --{} never happens on this cluster", kind.word());
    }
    let Some(program) = parsed.value("program") else { return Err(one("You must specify a --program value")) };
    if job.is_none() && kinds.iter().any(|kind| kind.about() == About::Job) {
        return Err(one("You must specify a --jobid value"));
    }
    check_program(program).map_err(|why| one(&why))?;
    let offset_secs: i64 = match parsed.value("offset").map(str::parse) {
        None => 0,
        Some(Ok(secs)) if (-32_000..=32_000).contains(&secs) => secs,
        Some(_) => return Err(one("The --offset parameter must be between +/-32000")),
    };
    let program = program.to_string();
    Ok(Wish::Set(Box::new(Trigger { kinds, job, nodes, offset_secs, program, is_permanent, ..Trigger::default() })))
}

fn check_program(program: &str) -> Result<(), String> {
    if !program.starts_with('/') {
        return Err("The --program value must start with \"/\"".into());
    }
    let path = program.split_whitespace().next().unwrap_or(program);
    match std::fs::metadata(path) {
        Err(_) => Err("Invalid --program value, file not found".into()),
        Ok(found) if !found.is_file() => Err("Invalid --program value, not regular file".into()),
        Ok(_) => Ok(()),
    }
}

fn carry_out(parsed: &Parsed, wish: Wish) -> i32 {
    let is_quiet = parsed.has("quiet");
    let said = |text: String| {
        if parsed.has("verbose") && !is_quiet {
            eprintln!("strigger: {text}")
        }
    };
    let outcome = block_on(async {
        let (_, mut controller) = connect().await?;
        match wish {
            Wish::Set(trigger) => {
                let (uid, gid) = (users::own_uid(), users::own_gid());
                let trigger = Box::new(Trigger { uid, gid, ..*trigger });
                let done = controller.command(Command::SetTrigger { trigger }).await;
                Ok::<i32, Trouble>(told("slurm_set_trigger", done.map(|_| said("trigger set".into())), false))
            }
            Wish::Get { filter, kinds, nodes } => {
                let all = controller.triggers().await?;
                said(format!("Read {} trigger records", all.len()));
                let shown = show(&all, &filter, &kinds, &nodes);
                print(&if parsed.has("noheader") || shown.is_empty() { shown } else { format!("{TITLES}{shown}") });
                Ok(0)
            }
            Wish::Clear(filter) => {
                let text = match &filter {
                    TriggerFilter { job: Some(job), .. } => format!("triggers for job {job} cleared"),
                    TriggerFilter { uid: Some(uid), .. } => format!("triggers for user {uid} cleared"),
                    TriggerFilter { id, .. } => format!("trigger {} cleared", id.unwrap_or_default()),
                };
                let done = controller.command(Command::ClearTriggers { filter }).await;
                Ok(told("slurm_clear_trigger", done.map(|_| said(text)), is_quiet))
            }
        }
    });
    match outcome {
        Ok(code) => code,
        Err(Trouble::NoCluster(text)) => {
            eprintln!("strigger: error: {text}");
            1
        }
        Err(Trouble::Call(text)) => {
            eprintln!("slurm_get_triggers: {text}");
            1
        }
    }
}

fn told(what: &str, done: Result<(), CallError>, is_quiet: bool) -> i32 {
    match done {
        Ok(()) => 0,
        Err(_) if is_quiet => 0,
        Err(error) => {
            eprintln!("{what}: {}", text(&error));
            1
        }
    }
}

/// One line a trigger, as Slurm has them.
fn show(all: &[Trigger], filter: &TriggerFilter, kinds: &[TriggerKind], nodes: &[NodeName]) -> String {
    let fits = |trigger: &&Trigger| {
        filter.fits(trigger)
            && (kinds.is_empty() || kinds.iter().any(|kind| trigger.kinds.contains(kind)))
            && (nodes.is_empty() || trigger.nodes.iter().any(|node| nodes.contains(node)))
    };
    let line = |trigger: &Trigger| {
        let id = match trigger.job {
            Some(job) => job.to_string(),
            None if trigger.nodes.is_empty() => "*".into(),
            None => hostlist::compress(trigger.nodes.iter().map(|node| node.as_str())),
        };
        let kind = trigger.kinds.first().map_or("unknown", |kind| kind.word());
        let flags = if trigger.is_permanent { "PERM" } else { "" };
        format!(
            "{:>7} {:<9} {id:>7} {kind:<35} {:>6} {:<8} {flags:<5} {}\n",
            trigger.id,
            trigger.resource(),
            trigger.offset_secs,
            trigger.user,
            trigger.program
        )
    };
    all.iter().filter(fits).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(line: &str) -> Result<Wish, String> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let parsed = parse(FLAGS, Operands::Mixed, &words)?;
        read(&parsed, |name| (name == "ada").then_some(1000)).map_err(|lines| lines.join("\n"))
    }

    #[test]
    fn what_is_wanted_is_read_as_slurm_reads_it() {
        let Ok(Wish::Set(trigger)) = wish("--set -j 12 -t -o -60 -p /bin/true") else { panic!("a trigger") };
        assert_eq!(
            (trigger.job, trigger.offset_secs, &trigger.kinds[..]),
            (Some(JobId(12)), -60, &[TriggerKind::Time][..])
        );
        let Ok(Wish::Set(trigger)) = wish("--set -nn[1-2] -d -u --flags=PERM -p /bin/true") else {
            panic!("a trigger")
        };
        assert_eq!((trigger.nodes.len(), trigger.is_permanent, trigger.kinds.len()), (2, true, 2));
        let Ok(Wish::Set(trigger)) = wish("--set -g -p /bin/true") else { panic!("a trigger") };
        assert_eq!((trigger.kinds[0].word(), trigger.resource()), ("primary_slurmdbd_failure", "slurmdbd"));
        assert_eq!(
            wish("--clear --user=ada"),
            Ok(Wish::Clear(TriggerFilter { uid: Some(1000), ..Default::default() }))
        );
    }

    #[test]
    fn mistakes_are_told_in_slurms_words() {
        for (line, told) in [
            ("--get --set", "You must use exactly one of the following options: --set, --get or --clear"),
            ("--clear", "You must specify a --id, --jobid, or --user to clear"),
            ("--set -d", "You must specify a --program value"),
            ("--set -t -p /bin/true", "You must specify a --jobid value"),
            ("--set -d -p true", "The --program value must start with \"/\""),
            ("--set -d -p /nowhere", "Invalid --program value, file not found"),
            ("--set -d -p /tmp", "Invalid --program value, not regular file"),
            ("--set -d -p /bin/true -o 99999", "The --offset parameter must be between +/-32000"),
            ("--set -d -p /bin/true --flags=x", "Invalid flags x"),
            ("--get --user=nobody-here", "Invalid user nobody-here"),
            ("--set --front_end -p /bin/true", "--front_end is not supported"),
        ] {
            assert_eq!(wish(line), Err(told.to_string()), "{line}");
        }
    }

    #[test]
    fn triggers_are_shown_in_slurms_columns() {
        let job = Trigger {
            id: 123,
            job: Some(JobId(1235)),
            kinds: vec![TriggerKind::Time],
            offset_secs: -600,
            user: "joe".into(),
            program: "/home/bob/clean_up".into(),
            ..Trigger::default()
        };
        let shown = show(&[job], &TriggerFilter::default(), &[], &[]);
        let line =
            "    123 job          1235 time                                  -600 joe            /home/bob/clean_up\n";
        assert_eq!(shown, line);
    }
}
