//! How far the tasks of a step have come, and what there is to say about their ends.
use std::ffi::CStr;
use std::time::{Duration, Instant};

use model::{ExitStatus, TaskSet};

/// Ends that come together are told together.
const GATHER: Duration = Duration::from_millis(100);

/// Signals with which a step is ended from outside.
const FORCED: [u8; 2] = [libc::SIGKILL as u8, libc::SIGTERM as u8];

/// The tasks of one step by rank.
#[derive(Debug, Default)]
pub struct Tasks {
    ends: Vec<Option<ExitStatus>>,
    /// Ends that have not been told yet, by node.
    untold: Vec<Untold>,
    first_end: Option<Instant>,
    /// The same end again is not worth another word.
    is_brief: bool,
    told: Option<ExitStatus>,
}

#[derive(Debug)]
struct Untold {
    node: String,
    ranks: TaskSet,
    exit: ExitStatus,
    since: Instant,
}

impl Tasks {
    pub fn new(n_tasks: u32) -> Self {
        Tasks { ends: vec![None; n_tasks as usize], ..Tasks::default() }
    }

    /// With SLURM_SRUN_REDUCE_TASK_EXIT_MSG, ends alike that follow each other are told once.
    pub fn brief(self, is_brief: bool) -> Self {
        Tasks { is_brief, ..self }
    }

    /// A task has ended. False if that was known.
    pub fn ended(&mut self, node: &str, rank: u32, exit: ExitStatus, now: Instant) -> bool {
        match self.ends.get_mut(rank as usize) {
            Some(end @ None) => *end = Some(exit),
            _ => return false,
        }
        self.first_end.get_or_insert(now);
        if exit.is_success() {
            return true;
        }
        match self.untold.iter_mut().find(|untold| untold.node == node && untold.exit == exit) {
            Some(untold) => {
                untold.ranks.insert(rank);
            }
            None => {
                let mut ranks = TaskSet::new();
                ranks.insert(rank);
                self.untold.push(Untold { node: node.to_string(), ranks, exit, since: now });
            }
        }
        true
    }

    pub fn all_ended(&self) -> bool {
        self.ends.iter().all(Option::is_some)
    }

    pub fn first_end(&self) -> Option<Instant> {
        self.first_end
    }

    /// When ends that are gathered should be told.
    pub fn tell_at(&self) -> Option<Instant> {
        self.untold.iter().map(|untold| untold.since + GATHER).min()
    }

    /// `n1: tasks 0-3: Exited with exit code 3`, for all that have been gathered long enough.
    pub fn tell(&mut self, until: Instant) -> Vec<String> {
        let (due, later): (Vec<Untold>, Vec<Untold>) =
            std::mem::take(&mut self.untold).into_iter().partition(|untold| untold.since + GATHER <= until);
        self.untold = later;
        self.lines(&due)
    }

    pub fn tell_all(&mut self) -> Vec<String> {
        let due = std::mem::take(&mut self.untold);
        self.lines(&due)
    }

    fn lines(&mut self, due: &[Untold]) -> Vec<String> {
        let mut lines = Vec::new();
        for untold in due {
            let before = self.told.replace(untold.exit);
            if !self.is_brief || before != Some(untold.exit) {
                lines.push(untold.line());
            }
        }
        lines
    }

    /// Forgets what has not been told: the user wanted these ends.
    pub fn keep_quiet(&mut self) {
        self.untold.clear();
    }

    /// The highest of the tasks' codes.
    pub fn code(&self) -> i32 {
        self.ends.iter().flatten().map(|exit| i32::from(exit.shell_code())).max().unwrap_or(0)
    }

    /// A task was ended by a signal that no program gives itself by accident.
    pub fn any_forced(&self) -> bool {
        self.ends.iter().flatten().any(|exit| FORCED.contains(&exit.signal))
    }

    /// `StepId=1.0 tasks 0,2: running`, one line a state.
    pub fn status(&self, step: &str) -> Vec<String> {
        let with = |ended: bool| {
            let mut ranks = TaskSet::new();
            for (rank, _) in self.ends.iter().enumerate().filter(|(_, end)| end.is_some() == ended) {
                ranks.insert(rank as u32);
            }
            ranks
        };
        let line = |(ranks, word): (TaskSet, &str)| {
            (!ranks.is_empty()).then(|| format!("StepId={step} {}: {word}", named(&ranks)))
        };
        [(with(false), "running"), (with(true), "exited")].into_iter().filter_map(line).collect()
    }
}

impl Untold {
    fn line(&self) -> String {
        format!("{}: {}: {}", self.node, named(&self.ranks), describe(self.exit))
    }
}

/// `task 3`, `tasks 0-2,5`
fn named(ranks: &TaskSet) -> String {
    if ranks.len() == 1 { format!("task {ranks}") } else { format!("tasks {ranks}") }
}

pub(super) fn describe(exit: ExitStatus) -> String {
    match exit.signal {
        _ if exit == ExitStatus::OUT_OF_MEMORY => "Out Of Memory".to_owned(),
        0 => format!("Exited with exit code {}", exit.code),
        signal => {
            // SAFETY: the pointer is to a text of the C library that lasts until the next call; it is copied at once.
            let text = unsafe { CStr::from_ptr(libc::strsignal(signal.into())) };
            text.to_string_lossy().into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_by_node_and_kind() {
        let now = Instant::now();
        let mut tasks = Tasks::new(6);
        for (node, rank, exit) in [
            ("n1", 0, ExitStatus::exited(3)),
            ("n1", 2, ExitStatus::exited(3)),
            ("n2", 5, ExitStatus::exited(3)),
            ("n1", 3, ExitStatus::exited(3)),
            ("n1", 1, ExitStatus::signaled(9)),
        ] {
            assert!(tasks.ended(node, rank, exit, now));
        }
        assert!(!tasks.ended("n1", 0, ExitStatus::SUCCESS, now), "a second word about a task changes nothing");
        assert_eq!(tasks.status("7.0"), ["StepId=7.0 task 4: running", "StepId=7.0 tasks 0-3,5: exited"]);
        assert!(tasks.tell(now).is_empty());
        let told = tasks.tell(now + GATHER);
        let expected =
            ["n1: tasks 0,2-3: Exited with exit code 3", "n2: task 5: Exited with exit code 3", "n1: task 1: Killed"];
        assert_eq!(told, expected);
        assert!(tasks.any_forced() && !tasks.all_ended());
        assert_eq!(tasks.code(), 137);
    }

    #[test]
    fn ends_alike_may_be_told_once() {
        let now = Instant::now();
        let mut tasks = Tasks::new(4).brief(true);
        for (node, rank, code) in [("n1", 0, 3), ("n2", 1, 3), ("n3", 2, 4)] {
            tasks.ended(node, rank, ExitStatus::exited(code), now);
        }
        let expected = ["n1: task 0: Exited with exit code 3", "n3: task 2: Exited with exit code 4"];
        assert_eq!(tasks.tell_all(), expected);
        tasks.ended("n4", 3, ExitStatus::exited(4), now);
        assert!(tasks.tell_all().is_empty());
    }
}
