//! A component of a heterogeneous job does not outlive the others.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    if job.het.is_none() {
        return Hold::Free;
    }
    match crate::het::end_of_the_others(cluster, job) {
        Some((outcome, reason)) => Hold::End(outcome, reason),
        None => Hold::Free,
    }
}
