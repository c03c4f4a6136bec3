//! An `srun` of its own that asks for ports (`--resv-ports`) waits until there are enough of them. What MPI has without asking holds up
//! nobody.
use model::JobKind;

use super::*;
use crate::ports;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    match needed(job) {
        Some(count) if !ports::are_free_anywhere(cluster, count) => {
            Hold::Wait(Some(Reason::Resources), vec![Wake::Ports, Wake::Partitions])
        }
        _ => Hold::Free,
    }
}

/// A queued one must be looked at when others take the last ports.
pub(crate) fn changes(job: &Job) -> Option<Wake> {
    needed(job).map(|_| Wake::Ports)
}

fn needed(job: &Job) -> Option<u32> {
    let JobKind::Run(step) = &job.spec.kind else { return None };
    step.n_ports.filter(|count| is_pending(job) && *count > 0)
}
