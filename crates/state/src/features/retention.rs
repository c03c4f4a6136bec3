//! A finished job stays visible for MinJobAge, and until history has it.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Done, Some(finished)) = (job.phase, job.finished) else { return Hold::Free };
    let until = finished + cluster.config.controller.min_job_age;
    if cluster.now < until {
        return Hold::Wait(None, vec![Wake::At(until)]);
    }
    if cluster.history.awaits(job.id) { Hold::Wait(None, vec![Wake::Recorded(job.id)]) } else { Hold::Free }
}
