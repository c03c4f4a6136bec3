//! Partitions made, changed and taken away while the cluster runs.
use model::partition_field::Field;
use model::update::PartitionChanges;
use model::{Caller, Config, NodeName, Partition, Reject, Reply};

use super::{Answer, config, node};
use crate::Cluster;

pub(crate) fn create(cluster: &mut Cluster, by: Caller, name: &str, fields: &[Field]) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.@+".contains(c));
    if !is_word || cluster.config.partition(name).is_some() {
        return Err(Reject::NoSuchPartition);
    }
    let mut config = (*cluster.config).clone();
    config.partitions.push(Partition { name: name.into(), min_nodes: 1, ..Partition::blank() });
    change(cluster, config, name, fields)
}

pub(crate) fn update(cluster: &mut Cluster, by: Caller, name: &str, changes: &PartitionChanges) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    if cluster.config.partition(name).is_none() {
        return Err(Reject::NoSuchPartition);
    }
    let state = changes.state.map(Field::State);
    let fields: Vec<Field> = state.into_iter().chain(changes.fields.iter().cloned()).collect();
    let mut config = (*cluster.config).clone();
    if let Some(topology) = &changes.topology {
        let is_known = topology.is_empty() || config.topologies.iter().any(|known| known.name == *topology);
        let partition = config.partitions.iter_mut().find(|partition| partition.name == name);
        let (true, Some(partition)) = (is_known, partition) else { return Err(Reject::NoSuchTopology) };
        partition.topology.clone_from(topology);
    }
    change(cluster, config, name, &fields)
}

/// A partition goes when no job is in it any more.
pub(crate) fn delete(cluster: &mut Cluster, by: Caller, name: &str) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    if cluster.config.partition(name).is_none() {
        return Err(Reject::NoSuchPartition);
    }
    let is_in_it = |partitions: &[String]| partitions.iter().any(|one| one == name);
    let uses = cluster.jobs().any(|job| {
        let waits = job.phase == model::Phase::Pending && is_in_it(&job.spec.partitions);
        waits || job.holds_nodes() && job.partition == name
    });
    if uses || cluster.reservations().any(|reservation| reservation.partition == name) {
        return Err(Reject::PartitionInUse);
    }
    let mut config = (*cluster.config).clone();
    config.partitions.retain(|partition| partition.name != name);
    config::adopt(cluster, config);
    node::configure_partitions(cluster);
    Ok(Reply::Ok)
}

fn change(cluster: &mut Cluster, mut config: Config, name: &str, fields: &[Field]) -> Answer {
    let all: Vec<NodeName> = config.nodes.iter().map(|node| node.name.clone()).collect();
    let at = config.partitions.iter().position(|partition| partition.name == name).expect("callers look it up first");
    let mut partition = config.partitions[at].clone();
    for field in fields {
        check(cluster, &config, field)?;
        partition.set(field.clone(), &mut all.iter().cloned());
    }
    let has_limits_crossed = partition.max_nodes.is_some_and(|most| most < partition.min_nodes);
    if has_limits_crossed {
        return Err(Reject::TooManyNodes);
    }
    if partition.is_default {
        config.partitions.iter_mut().for_each(|other| other.is_default = false);
    }
    config.partitions[at] = partition;
    config::adopt(cluster, config);
    node::configure_partitions(cluster);
    Ok(Reply::Ok)
}

fn check(cluster: &Cluster, config: &Config, field: &Field) -> Result<(), Reject> {
    match field {
        Field::Nodes(change) => match change.named().iter().find(|name| !cluster.nodes.contains_key(*name)) {
            Some(unknown) => Err(Reject::NoSuchNode(unknown.to_string())),
            None => Ok(()),
        },
        Field::Alternate(name) if !name.is_empty() && config.partition(name).is_none() => Err(Reject::NoSuchPartition),
        Field::Qos(name) if !name.is_empty() && !cluster.accounts.qos.contains_key(name) => Err(Reject::InvalidQos),
        _ => Ok(()),
    }
}
