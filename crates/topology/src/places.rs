//! Nodes whose place is given by themselves: `Topology=name:unit[,name:unit]`, with a path of switches where some are new.
use std::fmt;

use model::NodeName;
use model::topology::{Block, Switch, Topology, TopologyKind};

/// The text names a topology or a unit that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced(pub String);

impl fmt::Display for Misplaced {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("Requested topology configuration is not available")
    }
}

/// Whether nodes can be put where the text says.
pub fn check_place(topologies: &[Topology], n_nodes: usize, text: &str) -> Result<(), Misplaced> {
    for place in places(text) {
        let misplaced = || Misplaced(place.to_string());
        let (name, path) = place.split_once(':').ok_or_else(misplaced)?;
        let topology = topologies.iter().find(|topology| topology.name == name).ok_or_else(misplaced)?;
        let mut tried = topology.clone();
        cut(&mut tried, n_nodes, &[]);
        if !put(&mut tried, path, &NodeName::from("x")) {
            return Err(misplaced());
        }
    }
    Ok(())
}

/// The topologies with these nodes where they say they are, and nowhere else.
pub(crate) fn with_moved(topologies: &[Topology], nodes: &[NodeName], moved: &[(NodeName, String)]) -> Vec<Topology> {
    let mut topologies = topologies.to_vec();
    for topology in topologies.iter_mut().filter(|_| !moved.is_empty()) {
        cut(topology, nodes.len(), nodes);
        let is_moved = |name: &NodeName| moved.iter().any(|(other, _)| other == name);
        topology.switches.iter_mut().for_each(|switch| switch.nodes.retain(|name| !is_moved(name)));
        topology.blocks.iter_mut().for_each(|block| block.nodes.retain(|name| !is_moved(name)));
    }
    for (name, text) in moved {
        for (wanted, path) in places(text).filter_map(|place| place.split_once(':')) {
            // A place that a new configuration no longer has leaves the node outside.
            if let Some(topology) = topologies.iter_mut().find(|topology| topology.name == wanted) {
                put(topology, path, name);
            }
        }
    }
    topologies
}

fn places(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|place| !place.is_empty())
}

/// Blocks that are cut from all nodes become named ones, so that nodes can be moved between them.
fn cut(topology: &mut Topology, n_nodes: usize, nodes: &[NodeName]) {
    let size = topology.cut as usize;
    if size == 0 {
        return;
    }
    topology.cut = 0;
    for at in 0..n_nodes.div_ceil(size) {
        let own = nodes.get(at * size..((at + 1) * size).min(nodes.len())).unwrap_or_default();
        topology.blocks.push(Block { name: format!("block{at:03}"), nodes: own.to_vec() });
    }
}

/// Puts the node into the last unit of the path; switches that are missing below an existing one are made.
fn put(topology: &mut Topology, path: &str, node: &NodeName) -> bool {
    let units: Vec<&str> = path.split(':').collect();
    let last = *units.last().expect("a split has one part");
    match topology.kind {
        TopologyKind::Flat => false,
        TopologyKind::Block => match topology.blocks.iter_mut().find(|block| block.name == last) {
            Some(block) => {
                block.nodes.push(node.clone());
                true
            }
            None => false,
        },
        TopologyKind::Tree => {
            let find = |topology: &Topology, name: &str| topology.switches.iter().position(|known| known.name == name);
            let n_known = units.iter().take_while(|unit| find(topology, unit).is_some()).count();
            if n_known == 0 || units[n_known..].iter().any(|unit| unit.is_empty() || find(topology, unit).is_some()) {
                return false;
            }
            let mut at = find(topology, units[n_known - 1]).expect("counted as known");
            if n_known < units.len() && !topology.switches[at].nodes.is_empty() {
                return false;
            }
            for unit in &units[n_known..] {
                topology.switches[at].switches.push(unit.to_string());
                topology.switches.push(Switch { name: unit.to_string(), ..Switch::default() });
                at = topology.switches.len() - 1;
            }
            let is_leaf = topology.switches[at].switches.is_empty();
            if is_leaf {
                topology.switches[at].nodes.push(node.clone());
            }
            is_leaf
        }
    }
}
