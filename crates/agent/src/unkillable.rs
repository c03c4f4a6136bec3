//! Runs that do not end when they are told to: the agent kills them over the head of their supervisor, and at last gives them up.
//!
//! ```text
//!  order ── kill_wait, GRACE ──▶ all processes of the run ── GRACE ──▶ its supervisor too ── unkillable_timeout ──▶ given up:
//!  the run counts as ended, and the node is drained with the numbers of what is left.
//! ```
use std::sync::Arc;
use std::time::Duration;

use model::ExitStatus;
use model::command::Exited;
use model::time::Span;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::cgroup::Cgroup;
use crate::protocol::RunId;
use crate::supervisor::TAG;
use crate::table::Agent;
use crate::{processes, run, spool, sys};

/// How long a supervisor may take beyond the kill wait, and how long its run may take beyond that.
const GRACE: Duration = Duration::from_secs(5);
const STRIKE_EVERY: Duration = Duration::from_secs(1);
/// Of the processes that are left, so many are named.
const NAMED_MAX: usize = 8;

/// Sees that a run which was told to end does.
pub fn enforce(agent: &Arc<Agent>, id: RunId, kill_wait: Span) {
    let (tell, ended) = oneshot::channel();
    let slot = match agent.table().runs.get_mut(&id) {
        Some(entry) if !entry.has_ended && !entry.is_being_ended => {
            entry.is_being_ended = true;
            entry.on_end.push(tell);
            entry.slot
        }
        Some(_) | None => return,
    };
    tokio::spawn(watch(agent.clone(), id, slot, kill_wait, ended));
}

async fn watch(agent: Arc<Agent>, id: RunId, slot: u32, kill_wait: Span, mut ended: oneshot::Receiver<()>) {
    let patience = Duration::from_micros(kill_wait.0) + GRACE;
    if tokio::time::timeout(patience, &mut ended).await.is_ok() {
        return;
    }
    tracing::warn!(%id, "the run does not end: its processes are killed without its supervisor");
    let begun = Instant::now();
    let mut left = Vec::new();
    let mut striking = None;
    loop {
        let (held, spares_supervisor) = (agent.clone(), begun.elapsed() < GRACE);
        let mut struck = striking
            .take()
            .unwrap_or_else(|| tokio::task::spawn_blocking(move || strike(&held, id, slot, spares_supervisor)));
        if tokio::time::timeout(STRIKE_EVERY, &mut ended).await.is_ok() {
            return;
        }
        // A look at a process can hang with it; there is one such look at a time.
        match tokio::time::timeout(STRIKE_EVERY, &mut struck).await {
            Ok(struck) => left = struck.unwrap_or_default(),
            Err(_) => striking = Some(struck),
        }
        if agent.table().runs.get(&id).is_none_or(|entry| entry.has_ended) {
            return;
        }
        if begun.elapsed() >= agent.options.unkillable_timeout {
            tracing::error!(%id, ?left, "the run cannot be ended");
            let exited = given_up(&agent, id, slot, &left);
            return agent.table().note_exit(slot, exited);
        }
    }
}

/// SIGKILL to all that there is; gives what was there. Nothing is born meanwhile into a cgroup that is frozen.
fn strike(agent: &Agent, id: RunId, slot: u32, spares_supervisor: bool) -> Vec<i32> {
    let cgroup = agent.cgroup.as_ref().and_then(|parent| Cgroup::open(parent, &spool::slot_name(slot)).ok());
    let record = agent.spool.read(slot).ok().flatten().filter(|record| record.run == id && record.result.is_none());
    let supervisor = record.and_then(|record| record.pid).map(|pid| pid as i32).filter(|pid| is_supervisor(*pid));
    cgroup.iter().for_each(Cgroup::freeze);
    let mut pids: Vec<i32> = cgroup.iter().flat_map(Cgroup::processes).collect();
    pids.extend(supervisor.into_iter().flat_map(processes::descendants));
    pids.extend(processes::marked(&format!("{TAG}={}", agent.tag(id))));
    pids.extend(supervisor.filter(|_| !spares_supervisor));
    pids.sort_unstable();
    pids.dedup();
    pids.iter().for_each(|pid| sys::kill(*pid, libc::SIGKILL));
    cgroup.iter().for_each(Cgroup::thaw);
    pids
}

fn is_supervisor(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "spurstepd")
}

/// The result of a run of which something is left that nothing can end.
pub fn given_up(agent: &Agent, id: RunId, slot: u32, left: &[i32]) -> Exited {
    let exited = run::conclude(agent, slot, id, ExitStatus::signaled(libc::SIGKILL as u8), None);
    Exited { drained_for: reason(left), ..exited }
}

/// `Kill task failed`, as Slurm says it of such a node, and of which processes.
pub fn reason(left: &[i32]) -> String {
    let named: Vec<String> = left.iter().take(NAMED_MAX).map(i32::to_string).collect();
    let more = if left.len() > NAMED_MAX { ",..." } else { "" };
    match named.is_empty() {
        true => model::agent::KILL_FAILED.to_owned(),
        false => format!("{} (processes {}{more})", model::agent::KILL_FAILED, named.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_names_the_first_processes() {
        assert_eq!(reason(&[]), "Kill task failed");
        assert_eq!(reason(&[7, 12]), "Kill task failed (processes 7,12)");
        let many: Vec<i32> = (1..20).collect();
        assert_eq!(reason(&many), "Kill task failed (processes 1,2,3,4,5,6,7,8,...)");
    }
}
