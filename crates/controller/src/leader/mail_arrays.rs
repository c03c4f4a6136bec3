//! Mails about arrays as a whole: one when the first task begins, one when the last has ended, however many do at once.
use std::collections::HashMap;
use std::fmt;

use model::spec::MailKind;
use model::{Job, JobId, Outcome};
use state::Cluster;

use super::mail_words::MailScope;

/// How many arrays are remembered before those that are gone are looked for.
const REMEMBERED: usize = 256;

/// What was told of which array. Lost with the lead: the next leader goes by the state alone.
#[derive(Default)]
pub struct ArrayMails {
    known: HashMap<JobId, ArrayNews>,
    looked_at: usize,
}

#[derive(Default)]
struct ArrayNews {
    has_begun: bool,
    is_requeued: bool,
    has_ended: bool,
    ends: ArrayEnds,
}

impl ArrayMails {
    /// What is to be told of the array when this happens to one of its tasks, and as which kind of news.
    pub fn news(&mut self, cluster: &Cluster, id: JobId, job: &Job, kind: MailKind) -> Option<(MailScope, MailKind)> {
        let known = self.known.entry(id).or_default();
        let is_over = cluster.array(id).is_none_or(|array| array.is_over());
        let kind = match kind {
            MailKind::Begin => {
                let began_before = |task: &Job| task.started.is_some_and(|at| Some(at) < job.started);
                let is_first = !std::mem::replace(&mut known.has_begun, true) && !tasks(cluster, id).any(began_before);
                is_first.then_some(kind)
            }
            MailKind::Requeue => {
                (known.has_ended, known.ends.has_requeued) = (false, true);
                (!std::mem::replace(&mut known.is_requeued, true)).then_some(kind)
            }
            MailKind::TimeLimit50 | MailKind::TimeLimit80 | MailKind::TimeLimit90 => Some(kind),
            MailKind::End | MailKind::Fail => {
                known.ends.add(job);
                let is_last = is_over && !std::mem::replace(&mut known.has_ended, is_over);
                is_last.then(|| {
                    tasks(cluster, id).for_each(|task| known.ends.add(task));
                    let asked = job.spec.mail.as_ref().is_some_and(|mail| mail.kinds.contains(&MailKind::Fail));
                    if asked && known.ends.has_failed() { MailKind::Fail } else { MailKind::End }
                })
            }
            MailKind::InvalidDependency | MailKind::TimeLimit | MailKind::StageOut => is_over.then_some(kind),
        };
        kind.map(|kind| (MailScope::Array(id, known.ends.clone()), kind))
    }

    pub fn forget_gone(&mut self, cluster: &Cluster) {
        if self.known.len() > self.looked_at.max(REMEMBERED) {
            self.known.retain(|array, _| cluster.array(*array).is_some());
            self.looked_at = 2 * self.known.len();
        }
    }
}

fn tasks(cluster: &Cluster, array: JobId) -> impl Iterator<Item = &Job> {
    let ids = cluster.named(&array.into()).unwrap_or_default();
    ids.into_iter().filter_map(|id| cluster.job(id)).map(|task| &**task)
}

/// How the tasks of an array have ended, as a summary has it.
#[derive(Clone, Debug, Default)]
pub struct ArrayEnds {
    /// The lowest and the highest code of those that ended by themselves.
    codes: Option<(u8, u8)>,
    signal: u8,
    has_requeued: bool,
}

/// What a task counts as that was ended from outside.
const KILLED: u8 = 9;

impl ArrayEnds {
    fn add(&mut self, job: &Job) {
        self.has_requeued |= job.restarts > 0;
        let signal = match job.outcome {
            None => return,
            Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Deadline | Outcome::Preempted) => KILLED,
            Some(_) => job.exit.signal,
        };
        match (signal, self.codes) {
            (0, None) => self.codes = Some((job.exit.code, job.exit.code)),
            (0, Some((min, max))) => self.codes = Some((min.min(job.exit.code), max.max(job.exit.code))),
            (signal, _) => self.signal = self.signal.max(signal),
        }
    }

    fn has_failed(&self) -> bool {
        self.codes.is_some_and(|(_, max)| max > 0)
    }

    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut told = Vec::new();
        if self.signal > 0 {
            told.push(("SLURM_JOB_TERM_SIGNAL_MAX", self.signal.to_string()));
        }
        if let Some((min, max)) = self.codes.filter(|(_, max)| self.signal == 0 || *max > 0) {
            told.push(("SLURM_JOB_EXIT_CODE_MIN", min.to_string()));
            told.push(("SLURM_JOB_EXIT_CODE_MAX", max.to_string()));
        }
        told
    }
}

impl fmt::Display for ArrayEnds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = self.codes.unwrap_or_default();
        match (self.signal, min == max) {
            (0, true) => write!(out, "{}, ExitCode [{min}-{max}]", if max == 0 { "COMPLETED" } else { "FAILED" })?,
            (signal, true) if max == 0 => write!(out, "Mixed, MaxSignal [{signal}]")?,
            (_, true) => write!(out, "Mixed, MaxExitCode [{max}]")?,
            (_, false) => write!(out, "Mixed, ExitCode [{min}-{max}]")?,
        }
        if self.has_requeued { out.write_str(", with requeued tasks") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ExitStatus;

    /// Codes, and signals as `-9`; `x` was cancelled, `t` ran out of time. Recorded beside a Slurm 22.05.
    fn check(tasks: &str, expected: &str) {
        let mut ends = ArrayEnds::default();
        for task in tasks.split(' ') {
            let (outcome, exit) = match (task, task.strip_prefix('-')) {
                ("x", _) => (Outcome::Cancelled, ExitStatus::SUCCESS),
                ("t", _) => (Outcome::Timeout, ExitStatus::SUCCESS),
                (_, Some(signal)) => (Outcome::Failed, ExitStatus::signaled(signal.parse().unwrap())),
                (code, None) => (Outcome::Failed, ExitStatus::exited(code.parse().unwrap())),
            };
            ends.add(&Job { outcome: Some(outcome), exit, ..Default::default() });
        }
        let word = if ends.has_failed() { "Failed" } else { "Ended" };
        assert_eq!(format!("{word}, {ends}"), expected, "{tasks}");
    }

    #[test]
    fn array_summary_is_in_slurms_words() {
        check("0 0 0", "Ended, COMPLETED, ExitCode [0-0]");
        check("3 3", "Failed, FAILED, ExitCode [3-3]");
        check("0 1 2 3", "Failed, Mixed, ExitCode [0-3]");
        check("0 -9 0", "Ended, Mixed, MaxSignal [9]");
        check("-9 -9", "Ended, Mixed, MaxSignal [9]");
        check("-15 -10", "Ended, Mixed, MaxSignal [15]");
        check("3 -9 0", "Failed, Mixed, ExitCode [0-3]");
        check("-15 3", "Failed, Mixed, MaxExitCode [3]");
        check("3 3 x", "Failed, Mixed, MaxExitCode [3]");
        check("x 0 x", "Ended, Mixed, MaxSignal [9]");
        check("t t", "Ended, Mixed, MaxSignal [9]");
        check("x x", "Ended, Mixed, MaxSignal [9]");
    }
}
