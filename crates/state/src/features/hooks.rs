//! The site's own programs around a job: it is configuring until its prologs have ended, and completing until its epilogs have.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let hooks = &cluster.config.hooks;
    let is_wanted = |task: Task| match task {
        Task::ControllerProlog => !hooks.controller_prolog.is_empty(),
        // Otherwise it runs on each node when something is launched there.
        Task::Prolog => !hooks.prolog.is_empty() && hooks.flags.alloc && !hooks.flags.no_hold,
        // Also where there is only a prolog: its record on the node goes with the run.
        Task::Epilog => hooks.on_nodes() && !job.alive,
        Task::ControllerEpilog => !hooks.controller_epilog.is_empty() && !job.allocation.nodes.is_empty(),
        _ => false,
    };
    let tasks: &[Task] = match job.phase {
        Phase::Starting => &[Task::ControllerProlog, Task::Prolog],
        Phase::Ending => &[Task::Epilog],
        Phase::Finishing => &[Task::ControllerEpilog],
        Phase::Pending | Phase::Running | Phase::Suspended | Phase::Done => &[],
    };
    let next = tasks.iter().find(|task| is_wanted(**task) && !job.done.contains(task));
    next.map_or(Hold::Free, |task| Hold::Do(*task))
}

/// `NoHold`: the nodes that run nothing yet are prepared while the job goes on.
pub(super) fn hold_none(cluster: &Cluster, job: &Job) -> Hold {
    let hooks = &cluster.config.hooks;
    let is_wanted = !hooks.prolog.is_empty() && hooks.flags.alloc && hooks.flags.no_hold;
    if is_wanted && job.phase == Phase::Running { need(job, Task::Prolog) } else { Hold::Free }
}
