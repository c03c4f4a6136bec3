//! Nodes that no file names: an administrator creates them, or they come by themselves; they are part of every configuration
//! until they are deleted.
use model::config::NamedNode;
use model::node::{Machine, NodeConfig};
use model::{NodeName, Reject, Reply};

use super::{Answer, node, trust};
use crate::Cluster;
use crate::derived::Derived;

/// `scontrol create NodeName=…`
pub(super) fn create(cluster: &mut Cluster, names: &[NodeName], config: &NodeConfig) -> Answer {
    if let Some(known) = names.iter().find(|name| cluster.nodes.contains_key(*name)) {
        return Err(Reject::InvalidValue(format!("NodeName: {known} exists already")));
    }
    if config.cpus == 0 {
        return Err(Reject::InvalidValue("CPUs".into()));
    }
    if let Some(place) = &config.topology {
        has_place(cluster, place)?;
    }
    let nodes: Vec<NamedNode> =
        names.iter().map(|name| NamedNode { name: name.clone(), config: config.clone() }).collect();
    trust::add_nodes(cluster, &nodes);
    names.iter().for_each(|name| node::changed(cluster, name));
    Ok(Reply::Ok)
}

/// `scontrol delete NodeName=…`: all of them or none.
pub(super) fn delete(cluster: &mut Cluster, names: &[NodeName]) -> Answer {
    for name in names {
        let Some(node) = cluster.nodes.get(name) else { return Err(Reject::NoSuchNode(name.to_string())) };
        if !cluster.joined.contains_key(name) {
            return Err(Reject::InvalidNodeState);
        }
        let is_reserved = cluster.reservations.values().any(|reservation| reservation.nodes.contains(name));
        if !node.jobs.is_empty() || is_reserved {
            return Err(Reject::NodesBusy(name.to_string()));
        }
    }
    trust::take_nodes(cluster, names);
    Ok(Reply::Ok)
}

/// An agent says what its node is, where nobody else does.
pub(super) fn come(cluster: &mut Cluster, name: &NodeName, machine: &Machine) {
    let is_known = cluster.nodes.get(name).is_some_and(|node| !node.is_removed);
    let Some(config) = machine.dynamic.as_deref().filter(|_| !is_known) else { return };
    // Where it would be counts by itself, below.
    let config = NodeConfig { topology: None, ..config.clone() };
    trust::add_nodes(cluster, &[NamedNode { name: name.clone(), config }]);
}

/// Where an agent says that it is counts when the node is new, unless an administrator has said something else; and when the
/// machine has been started anew.
pub(super) fn settle_place(cluster: &mut Cluster, name: &NodeName, machine: &Machine, is_restarted: bool) {
    let Some(place) = &machine.topology else { return };
    let node = &cluster.nodes[name];
    let is_new = node.registered.is_none() && node.topology.is_none();
    if !(is_new || is_restarted) || node.topology.as_ref() == Some(place) || has_place(cluster, place).is_err() {
        return;
    }
    cluster.node_mut(name.as_str()).topology = Some(place.clone());
    cluster.network = Derived::default();
}

pub(super) fn has_place(cluster: &Cluster, place: &str) -> Result<(), Reject> {
    let found = topology::check_place(&cluster.config.topologies, cluster.config.nodes.len(), place);
    found.map_err(|_| Reject::NoSuchTopology)
}
