//! `[jobs]`: what a site decides for all jobs; and the same in a slurm.conf.
use model::TaskSet;
use model::job_rules::JobRules;

use crate::section::Section;
use crate::slurm::values::{Notes, Values};

const CODES: &str = "exit codes such as \"1-9,18\"";

pub(crate) fn read(mut section: Section, rules: &mut JobRules) {
    let mut codes = |key| section.read(key, CODES, |item| codes(item.as_str()?)).unwrap_or_default();
    rules.requeue_exit = codes("requeue_exit");
    rules.requeue_exit_hold = codes("requeue_exit_hold");
    section.number("max_requeues", 0..=u32::MAX, &mut rules.max_requeues);
    section.number("requeue_delay", 0..=u32::MAX, &mut rules.requeue_delay_secs);
    section.flag("appends_output", &mut rules.appends_output);
    section.word("mail_domain", &mut rules.mail_domain);
    section.flag("users_delete_reservations", &mut rules.users_delete_reservations);
    section.flag("users_set_triggers", &mut rules.users_set_triggers);
    section.number("accounting_interval", 0..=u32::MAX, &mut rules.accounting_secs);
    let expected = "a number of bytes up to 512 MiB";
    let bytes = section.read("max_script_bytes", expected, |item| script_bytes(item.as_integer()?));
    rules.max_script_bytes = bytes.unwrap_or(rules.max_script_bytes);
    section.finish();
}

/// As large as Slurm lets it be.
fn script_bytes(bytes: i64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|bytes| *bytes <= 512 << 20)
}

/// At the top of the file, where commands look.
pub(crate) fn read_top(top: &mut Section, rules: &mut JobRules) {
    let mut kills = u32::from(rules.kill_on_bad_exit);
    top.number("kill_on_bad_exit", 0..=1, &mut kills);
    rules.kill_on_bad_exit = kills == 1;
    let mut spares = u32::from(rules.may_spare);
    top.number("may_spare_cores", 0..=1, &mut spares);
    rules.may_spare = spares == 1;
    top.number("srun_wait", 0..=u32::MAX, &mut rules.wait_secs);
}

/// What a slurm.conf says.
pub(crate) fn read_slurm(values: &Values, rules: &mut JobRules, notes: &Notes) {
    let codes = |key| values.read(key, CODES, notes, codes).unwrap_or_default();
    rules.requeue_exit = codes("RequeueExit");
    rules.requeue_exit_hold = codes("RequeueExitHold");
    let number = |key| values.number(key, 0..=u32::MAX, notes);
    rules.max_requeues = number("MaxBatchRequeue").unwrap_or(rules.max_requeues);
    rules.requeue_delay_secs = credential_secs(values, notes) + 1;
    rules.appends_output = number("JobFileAppend").unwrap_or(0) > 0;
    rules.mail_domain = values.text("MailDomain").unwrap_or_default().to_string();
    rules.kill_on_bad_exit = number("KillOnBadExit").unwrap_or(0) > 0;
    rules.wait_secs = number("WaitTime").unwrap_or(0);
    rules.may_spare = values.flag("AllowSpecResourcesUsage", notes).unwrap_or(false);
    let expected = "seconds, or a list such as task=30,energy=0";
    let secs = values.read("JobAcctGatherFrequency", expected, notes, |text| Some(frequency(text)?.unwrap_or(30)));
    rules.accounting_secs = secs.unwrap_or(30);
    if let Some(pair) = values.get("SchedulerParameters") {
        for bytes in pair.value.split(',').filter_map(|word| word.trim().strip_prefix("max_script_size=")) {
            match bytes.parse().ok().and_then(script_bytes) {
                Some(bytes) => rules.max_script_bytes = bytes,
                None => notes.wrong(&pair.at, format!("`max_script_size` must be bytes up to 512 MiB, not {bytes:?}")),
            }
        }
        for secs in pair.value.split(',').filter_map(|word| word.trim().strip_prefix("requeue_delay=")) {
            match secs.parse() {
                Ok(secs) => rules.requeue_delay_secs = secs,
                Err(_) => notes.wrong(&pair.at, format!("`requeue_delay` must be a number of seconds, not {secs:?}")),
            }
        }
    }
    let Some(pair) = values.get("SlurmctldParameters") else { return };
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.to_lowercase().as_str() {
            "user_resv_delete" => rules.users_delete_reservations = true,
            "allow_user_triggers" => rules.users_set_triggers = true,
            other if crate::call_limit::is_slurm_word(other) => (),
            _ => notes.warn(&pair.at, format!("SlurmctldParameters={word} has no effect here")),
        }
    }
}

/// `AuthInfo=cred_expire=SECONDS`: how long Slurm's credentials last, and so how long a requeued job has to wait.
fn credential_secs(values: &Values, notes: &Notes) -> u32 {
    let mut secs = 120;
    let Some(pair) = values.get("AuthInfo") else { return secs };
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.strip_prefix("cred_expire=").map(|text| text.parse().ok().filter(|secs| (5..=86_400).contains(secs)))
        {
            None => notes.warn(&pair.at, format!("AuthInfo={word} has no effect here")),
            Some(None) => notes.wrong(&pair.at, format!("`AuthInfo`: {word} must be 5 to 86400 seconds")),
            Some(Some(given)) => secs = given,
        }
    }
    secs
}

fn codes(text: &str) -> Option<TaskSet> {
    if text.is_empty() {
        return Some(TaskSet::default());
    }
    let (codes, limit) = model::ranges::parse_array(text).ok()?;
    (limit.is_none() && codes.last().is_some_and(|last| last < 256)).then_some(codes)
}

/// How often what tasks use is looked at, in seconds; none if the list is about other things. The outer none: it makes no sense.
pub(crate) fn frequency(text: &str) -> Option<Option<u32>> {
    let mut of_tasks = None;
    for word in text.split(',').map(str::trim) {
        match word.split_once('=') {
            None => of_tasks = Some(word.parse().ok()?),
            Some((kind, secs)) if kind.eq_ignore_ascii_case("task") => of_tasks = Some(secs.parse().ok()?),
            Some((_, secs)) => drop(secs.parse::<u32>().ok()?),
        }
    }
    Some(of_tasks)
}
