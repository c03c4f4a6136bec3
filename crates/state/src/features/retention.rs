//! A finished job stays visible for MinJobAge, and until history has it; the task with its array's own number as long as any other.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Done, Some(finished)) = (job.phase, job.finished) else { return Hold::Free };
    let until = finished + cluster.config.controller.min_job_age;
    if cluster.now < until {
        return Hold::Wait(None, vec![Wake::At(until)]);
    }
    // Whoever names the array means it.
    if let Some(array) = cluster.arrays.get(&job.id).filter(|array| array.n_records() > 1) {
        return Hold::Wait(None, vec![Wake::ArrayShrunk(array.id)]);
    }
    if cluster.history.awaits(job.id) { Hold::Wait(None, vec![Wake::Recorded(job.id)]) } else { Hold::Free }
}
