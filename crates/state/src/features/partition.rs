//! The rules of the job's partitions: it waits while none of them would take it as it is.
use model::partition::PartitionState;
use model::spec::{Memory, Size};
use model::{JobSpec, Partition};

use super::*;
use crate::access;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    if !is_pending(job) {
        return Hold::Free;
    }
    let refusals = job.spec.partitions.iter().map(|name| match cluster.config.partition(name) {
        Some(partition) => refusal(cluster, partition, job),
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
pub fn refusal(cluster: &Cluster, partition: &Partition, job: &Job) -> Option<Reason> {
    let spec = &job.spec;
    if let Some(reason) = access::by_account(partition, spec).or_else(|| limit(cluster, partition, spec)) {
        return Some(reason);
    }
    if partition.requires_reservation && spec.reservations.is_empty() {
        return Some(Reason::Reservation);
    }
    match partition.state {
        PartitionState::Inactive => Some(Reason::PartitionInactive),
        state if !state.starts_jobs() => Some(Reason::PartitionDown),
        _ => None,
    }
}

/// The limit of the partition that the job breaks.
pub(crate) fn limit(cluster: &Cluster, partition: &Partition, spec: &JobSpec) -> Option<Reason> {
    // A QOS may lift limits of the partition.
    let lifts = |flag: &str| cluster.accounts.qos.get(&spec.qos).is_some_and(|qos| qos.has_flag(flag));
    let (min_nodes, _) = spec.size.node_bounds();
    let wanted = spec.time_limit;
    let too_long = match (wanted.and_then(|limit| limit.span()), partition.max_time.and_then(|max| max.span())) {
        (Some(wanted), Some(most)) => wanted > most,
        (None, Some(_)) => wanted.is_some(),
        (_, None) => false,
    };
    if too_long && !lifts("PartitionTimeLimit") {
        return Some(Reason::PartitionTimeLimit);
    }
    if exceeds_memory(partition, &spec.size) {
        return Some(Reason::MaxMemPerLimit);
    }
    let (fewest, most) = nodes_allowed(cluster, partition, &spec.qos);
    if min_nodes > most || spec.size.max_nodes.is_some_and(|wanted| wanted < fewest) {
        return Some(Reason::PartitionNodeLimit);
    }
    // It may, but there are not so many.
    let is_told_as_limit = cluster.rules() >= 3;
    let reason = if is_told_as_limit { Reason::PartitionNodeLimit } else { Reason::PartitionConfig };
    (min_nodes > partition.nodes.len() as u32).then_some(reason)
}

/// The fewest and the most nodes that jobs of that QOS may have in the partition: a QOS may lift its limits.
pub fn nodes_allowed(cluster: &Cluster, partition: &Partition, qos: &str) -> (u32, u32) {
    let (fewest, most) = (partition.min_nodes, partition.max_nodes.unwrap_or(u32::MAX));
    if fewest <= 1 && most == u32::MAX {
        return (fewest, most);
    }
    let qos = cluster.accounts.qos.get(qos);
    let lifts = |flag: &str| qos.is_some_and(|qos| qos.has_flag(flag));
    let fewest = if lifts("PartitionMinNodes") { 0 } else { fewest };
    (fewest, if lifts("PartitionMaxNodes") { u32::MAX } else { most })
}

/// More memory than jobs of the partition may have. A limit for each CPU also bounds what is asked for a node, by its CPUs.
fn exceeds_memory(partition: &Partition, size: &Size) -> bool {
    let per_node = partition.max_memory_per_node_mb;
    let per_cpu = partition.max_memory_per_cpu_mb;
    let n_cpus = u64::from(size.cpus_for(size.n_tasks_each().unwrap_or(1)));
    match size.memory {
        Memory::Default | Memory::PerGpuMb(_) | Memory::WholeNode => false,
        Memory::PerNodeMb(wanted) => {
            per_node.is_some_and(|most| wanted > most)
                || per_cpu.is_some_and(|most| wanted > most.saturating_mul(n_cpus))
        }
        Memory::PerCpuMb(wanted) => {
            per_cpu.is_some_and(|most| wanted > most)
                || per_node.is_some_and(|most| wanted.saturating_mul(n_cpus) > most)
        }
    }
}
