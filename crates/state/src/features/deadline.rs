//! `--deadline`: a job that has not started by then never will.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    match job.spec.deadline {
        Some(deadline) if is_pending(job) && cluster.now < deadline => Hold::FreeUntil(deadline),
        Some(_) if is_pending(job) => Hold::End(Outcome::Deadline, Some(Reason::DeadLine)),
        _ => Hold::Free,
    }
}
