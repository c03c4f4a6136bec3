//! An `srun` of its own that needs ports (`--resv-ports`) waits until there are enough of them.
use model::JobKind;

use super::*;
use crate::ports;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    match needed(cluster, job) {
        Some(count) if !ports::are_free_anywhere(cluster, count) => {
            Hold::Wait(Some(Reason::Resources), vec![Wake::Ports, Wake::Partitions])
        }
        _ => Hold::Free,
    }
}

/// A queued one must be looked at when others take the last ports.
pub(crate) fn changes(cluster: &Cluster, job: &Job) -> Option<Wake> {
    needed(cluster, job).map(|_| Wake::Ports)
}

fn needed(cluster: &Cluster, job: &Job) -> Option<u32> {
    let JobKind::Run(step) = &job.spec.kind else { return None };
    let most_tasks = job.spec.size.tasks_per_node.or(job.spec.size.n_tasks).unwrap_or(1);
    Some(ports::wanted(cluster, step, most_tasks)).filter(|count| is_pending(job) && *count > 0)
}
