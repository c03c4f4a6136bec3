//! A job that has run as long as it may is ended. Suspended time does not count.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Running, Some(end)) = (job.phase, job.end_time()) else { return Hold::Free };
    if cluster.now < end {
        return Hold::FreeUntil(end);
    }
    Hold::End(Outcome::Timeout, Some(Reason::TimeLimit))
}
