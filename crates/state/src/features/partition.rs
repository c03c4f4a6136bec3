//! The rules of the job's partitions: it waits while none of them would take it as it is.
use model::Partition;

use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    if !is_pending(job) {
        return Hold::Free;
    }
    let refusals = job.spec.partitions.iter().map(|name| match cluster.config.partition(name) {
        Some(partition) => refusal(partition, job),
        None => Some(Reason::PartitionConfig),
    });
    let mut first = None;
    for refusal in refusals {
        match refusal {
            None => return Hold::Free,
            Some(reason) => first = first.or(Some(reason)),
        }
    }
    Hold::Wait(first.or(Some(Reason::PartitionConfig)), vec![Wake::Partitions])
}

/// Why the partition would not start the job now, whatever is free.
pub fn refusal(partition: &Partition, job: &Job) -> Option<Reason> {
    let (min_nodes, _) = job.spec.size.node_bounds();
    let too_long =
        match (job.spec.time_limit.and_then(|limit| limit.span()), partition.max_time.and_then(|max| max.span())) {
            (Some(wanted), Some(most)) => wanted > most,
            (None, Some(_)) => job.spec.time_limit.is_some(),
            (_, None) => false,
        };
    if too_long {
        return Some(Reason::PartitionTimeLimit);
    }
    let most_nodes = partition.max_nodes.unwrap_or(u32::MAX).min(partition.nodes.len() as u32);
    let too_many = min_nodes > most_nodes;
    let too_few = job.spec.size.max_nodes.is_some_and(|most| most < partition.min_nodes);
    if too_many || too_few {
        return Some(Reason::PartitionNodeLimit);
    }
    match partition.state {
        model::partition::PartitionState::Inactive => Some(Reason::PartitionInactive),
        state if !state.starts_jobs() => Some(Reason::PartitionDown),
        _ => None,
    }
}
