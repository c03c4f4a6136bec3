//! `--deadline`: a job that could not end by then, however short it were, is not started any more.
use super::*;
use model::spec::TimeLimit;
use model::time::{Span, Timestamp};

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let Some(deadline) = job.spec.deadline.filter(|_| is_pending(job)) else { return Hold::Free };
    let least = job.spec.time_min.and_then(TimeLimit::span).unwrap_or(Span(0));
    let last_start = Timestamp(deadline.0.saturating_sub(least.0));
    if cluster.now < last_start {
        return Hold::FreeUntil(last_start);
    }
    Hold::End(Outcome::Deadline, Some(Reason::DeadLine))
}
