//! `--begin`: not before that moment.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    match job.spec.begin {
        Some(begin) if is_pending(job) && cluster.now < begin => {
            Hold::Wait(Some(Reason::BeginTime), vec![Wake::At(begin)])
        }
        _ => Hold::Free,
    }
}
