//! A job that has run as long as it may is ended. Suspended time does not count.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Running, Some(end)) = (job.phase, last_moment(cluster, job)) else { return Hold::Free };
    if cluster.now < end {
        return Hold::FreeUntil(end);
    }
    Hold::End(Outcome::Timeout, Some(Reason::TimeLimit))
}

/// OverTimeLimit lets a job run on past its limit, but not past the end of its reservation. The partition's own goes before the cluster's.
fn last_moment(cluster: &Cluster, job: &Job) -> Option<Timestamp> {
    let partition = cluster.config.partition(&job.partition).and_then(|partition| partition.over_time_limit);
    let by_limit = match partition.or(cluster.config.scheduler.over_time_limit) {
        None => job.end_by_limit(),
        Some(more) => job.end_by_limit().zip(more.span()).map(|(end, more)| end + more),
    };
    by_limit.into_iter().chain(job.must_end_by).min()
}
