//! Where a node is, in the words of its environment: `SLURM_TOPOLOGY_ADDR` and `SLURM_TOPOLOGY_ADDR_PATTERN`.
use model::hostlist;

use crate::{Form, Network, Shape, Tree};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub address: String,
    pub pattern: String,
}

impl Network {
    pub fn address(&self, shape: Option<&Shape>, node: &str) -> Address {
        let found = self.find(node);
        let units = match (shape.map(|shape| &shape.form), found) {
            (Some(Form::Tree(tree)), Some(at)) if tree.leaf_of(at).is_some() => tree_units(tree, at),
            (Some(Form::Blocks(blocks)), Some(at)) => {
                let block = blocks.block_of(at).map(|block| blocks.list[block as usize].name.clone());
                block.into_iter().map(|name| ("block", name)).collect()
            }
            _ => Vec::new(),
        };
        let mut address: Vec<&str> = units.iter().map(|(_, name)| name.as_str()).collect();
        let mut pattern: Vec<&str> = units.iter().map(|(word, _)| *word).collect();
        address.push(node);
        pattern.push("node");
        Address { address: address.join("."), pattern: pattern.join(".") }
    }
}

/// The switches above the node, one part a level of the whole tree.
fn tree_units(tree: &Tree, node: u32) -> Vec<(&'static str, String)> {
    let levels = tree.switches.iter().map(|switch| switch.level).max().unwrap_or(0);
    let mut above: Vec<u32> = tree.leaf_of(node).map(|leaf| tree.leaf_switch(leaf)).into_iter().collect();
    let mut next = 0;
    while let Some(at) = above.get(next).copied() {
        for parent in &tree.switches[at as usize].parents {
            if !above.contains(parent) {
                above.push(*parent);
            }
        }
        next += 1;
    }
    let on = |level: u32| {
        let names = above.iter().map(|at| &tree.switches[*at as usize]).filter(|switch| switch.level == level);
        hostlist::compress(names.map(|switch| switch.name.as_str()))
    };
    (0..=levels).rev().map(|level| ("switch", on(level))).collect()
}
