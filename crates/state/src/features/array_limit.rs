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

/// A queued task must be looked at when others of its array take the last slots.
pub(crate) fn slots(cluster: &Cluster, job: &Job) -> Option<Wake> {
    let array = cluster.arrays.get(&job.array_id()?)?;
    (is_pending(job) && array.limit.is_some()).then_some(Wake::ArraySlot(array.id))
}
