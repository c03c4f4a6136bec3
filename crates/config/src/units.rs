//! What of a configuration can only be known when its network is: partitions that name switches or blocks, and the order of nodes.
use std::collections::BTreeMap;

use ::topology::Network;
use model::{Config, NodeName, hostlist};

/// A list of nodes that must wait until the network is known (`switch{rack01},n7`).
pub(crate) fn names_units(list: &str) -> bool {
    list.contains('{')
}

/// Gives such partitions their nodes, and all nodes their order; what is wrong comes back.
pub(crate) fn settle(config: &mut Config) -> Vec<String> {
    if config.topology.ranks_by_unit {
        sort_nodes(config);
    }
    if !config.partitions.iter().any(|partition| names_units(&partition.nodes_text)) {
        return Vec::new();
    }
    let network = Network::new(config, &[]);
    let mut problems = Vec::new();
    for partition in config.partitions.iter_mut().filter(|partition| names_units(&partition.nodes_text)) {
        let names = match network.expand(&partition.nodes_text) {
            Ok(names) => names,
            Err(error) => {
                problems.push(format!("partition {}: {error}", partition.name));
                continue;
            }
        };
        let is_unknown = |name: &&String| !config.nodes.iter().any(|node| node.name.as_str() == name.as_str());
        if let Some(unknown) = names.iter().find(is_unknown) {
            problems.push(format!("partition {}: there is no node {unknown}", partition.name));
        }
        partition.nodes = names.into_iter().map(NodeName::from).collect();
        partition.nodes.sort_by(|one, other| hostlist::natural_cmp(one.as_str(), other.as_str()));
        partition.nodes.dedup();
        partition.nodes_text = hostlist::compress(&partition.nodes);
    }
    problems
}

/// `SwitchAsNodeRank`: the order of all nodes is that of the units of the cluster's own topology; those in none come last.
fn sort_nodes(config: &mut Config) {
    let network = Network::new(config, &[]);
    let Some(shape) = network.shape("") else { return };
    let unit_of = |node: usize| shape.unit_of(node as u32).unwrap_or(u32::MAX);
    let places: BTreeMap<NodeName, u32> =
        config.nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), unit_of(at))).collect();
    config.nodes.sort_by(|one, other| {
        let natural = || hostlist::natural_cmp(one.name.as_str(), other.name.as_str());
        places[&one.name].cmp(&places[&other.name]).then_with(natural)
    });
}
