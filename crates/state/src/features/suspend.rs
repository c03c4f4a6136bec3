//! Freezes every process of a suspended job, and lets them go on afterwards.
use super::*;

pub(super) fn hold(_: &Cluster, job: &Job) -> Hold {
    match job.phase {
        Phase::Suspended => need(job, Task::Stop),
        Phase::Running if job.is_frozen => need(job, Task::Continue),
        _ => Hold::Free,
    }
}
