//! `--array=…%4`: no more tasks at once than that.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (true, Some(array)) = (is_pending(job), job.array_id()) else { return Hold::Free };
    match cluster.arrays.get(&array) {
        Some(entity) if entity.n_may_start() == 0 => {
            Hold::Wait(Some(Reason::JobArrayTaskLimit), vec![Wake::ArraySlot(array)])
        }
        _ => Hold::Free,
    }
}
