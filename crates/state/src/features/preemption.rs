//! A preempted job has its grace, and then goes.
use super::*;

pub(super) fn end(cluster: &Cluster, job: &Job) -> Hold {
    match job.preempt_ends {
        Some(end) if has_run(job) && cluster.now >= end => Hold::End(Outcome::Preempted, None),
        Some(end) if has_run(job) => Hold::FreeUntil(end),
        Some(_) | None => Hold::Free,
    }
}

/// It is told once, when its grace begins.
pub(super) fn warning(_: &Cluster, job: &Job) -> Hold {
    match (job.phase, job.preempt_ends) {
        (Phase::Running, Some(_)) => need(job, Task::Preempt),
        _ => Hold::Free,
    }
}

fn has_run(job: &Job) -> bool {
    matches!(job.phase, Phase::Running | Phase::Suspended)
}
