//! Ending what is left of a run that has no supervisor any more.
use crate::cgroup::Cgroup;
use crate::{processes, sys};

/// Kills what carries the run's environment entry, and its cgroup. Says whether nothing was left.
pub fn kill(entry: &str, cgroup: Option<&Cgroup>) -> bool {
    let marked = processes::marked(entry);
    marked.iter().for_each(|pid| sys::kill(*pid, libc::SIGKILL));
    let is_empty = cgroup.is_none_or(|cgroup| {
        cgroup.thaw();
        cgroup.kill();
        cgroup.is_empty()
    });
    marked.is_empty() && is_empty
}
