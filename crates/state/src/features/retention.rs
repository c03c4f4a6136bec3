//! A finished job stays visible for MinJobAge.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Done, Some(finished)) = (job.phase, job.finished) else { return Hold::Free };
    let until = finished + cluster.config.controller.min_job_age;
    if cluster.now < until { Hold::Wait(None, vec![Wake::At(until)]) } else { Hold::Free }
}
