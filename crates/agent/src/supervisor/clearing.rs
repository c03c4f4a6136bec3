//! All processes of a run: signalling them, and making sure that none is left.
use std::time::Duration;

use crate::cgroup::Cgroup;
use crate::processes::Heed;
use crate::{processes, sys};

/// How often, and how soon again, a freeze looks for processes that still run.
const STOP_WALKS: u32 = 100;
const WALK_PAUSE: Duration = Duration::from_millis(1);

pub struct Charge {
    pub cgroup: Option<Cgroup>,
    /// A child that serves the run and is no part of it.
    pub servant: Option<i32>,
}

impl Charge {
    pub fn signal(&self, signal: i32) {
        self.members().into_iter().for_each(|pid| sys::kill(pid, signal));
    }

    /// SIGTSTP to all, if any of them has an answer of its own to it. Whether there is one, so that it is waited for.
    /// (By itself the signal stops nobody: each run has a session of its own.)
    pub fn ask_to_stop(&self) -> bool {
        let members = self.members();
        let is_heard = members.iter().any(|pid| processes::heed(*pid, libc::SIGTSTP) == Heed::Own);
        if is_heard {
            members.into_iter().for_each(|pid| sys::kill(pid, libc::SIGTSTP));
        }
        is_heard
    }

    /// SIGKILL to everything there is now. What is born meanwhile is found by the next call.
    pub fn kill(&self) {
        if let Some(cgroup) = &self.cgroup {
            // A frozen process dies when it thaws.
            cgroup.thaw();
            cgroup.kill();
        }
        self.descendants().for_each(|pid| sys::kill(pid, libc::SIGKILL));
    }

    /// Stopped first, so that others see it (state `T`); then frozen, so that nothing can run before the thaw.
    /// What is forked meanwhile is found by the next walk; one that cannot stop yet is left to the freezer.
    pub fn freeze(&self) {
        for _ in 0..STOP_WALKS {
            let running: Vec<i32> = self.members().into_iter().filter(|pid| !processes::stands_still(*pid)).collect();
            if running.is_empty() {
                break;
            }
            running.into_iter().for_each(|pid| sys::kill(pid, libc::SIGSTOP));
            std::thread::sleep(WALK_PAUSE);
        }
        let Some(cgroup) = &self.cgroup else { return };
        cgroup.freeze();
        for _ in 0..STOP_WALKS {
            if cgroup.is_frozen() {
                return;
            }
            std::thread::sleep(WALK_PAUSE);
        }
    }

    pub fn thaw(&self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.thaw();
        }
        self.signal(libc::SIGCONT);
    }

    /// Whether the cgroup, if any, is empty; asked when this process has no children.
    pub fn is_empty(&self) -> bool {
        self.cgroup.as_ref().is_none_or(Cgroup::is_empty)
    }

    pub fn members(&self) -> Vec<i32> {
        match &self.cgroup {
            Some(cgroup) => cgroup.processes(),
            None => self.descendants().collect(),
        }
    }

    fn descendants(&self) -> impl Iterator<Item = i32> {
        processes::descendants(own_pid()).into_iter().filter(|pid| Some(*pid) != self.servant)
    }
}

fn own_pid() -> i32 {
    std::process::id() as i32
}
