//! Switches: a forest whose leaves hold nodes.
mod counts;
mod leaves;
mod pick;
mod plain;
mod pods;
mod tasks;

use std::collections::BTreeMap;
use std::ops::Range;

use model::NodeName;
use model::topology::Topology;

#[derive(Debug, Default)]
pub struct Tree {
    /// In the order of the configuration.
    pub switches: Vec<Switch>,
    /// The leaf switches, those below one switch next to each other. A *leaf* is a place in this list.
    leaves: Vec<u32>,
    /// Of each node.
    leaf_of: Vec<Option<u32>>,
    /// All switches, lower levels first.
    by_level: Vec<u32>,
}

#[derive(Debug, Default)]
pub struct Switch {
    pub name: String,
    /// From the bottom: leaves have 0.
    pub level: u32,
    /// The parent that counts, and all that claim it.
    pub parent: Option<u32>,
    pub parents: Vec<u32>,
    /// As configured, for display.
    pub children: Vec<u32>,
    /// Its own nodes, as configured.
    pub nodes: Vec<u32>,
    pub link_speed: u32,
    /// The leaves below it.
    under: Range<u32>,
}

impl Tree {
    pub(crate) fn new(topology: &Topology, n_nodes: usize, find: &dyn Fn(&NodeName) -> Option<u32>) -> Self {
        let names: BTreeMap<&str, u32> = topology.switches.iter().map(|switch| switch.name.as_str()).zip(0..).collect();
        let mut switches: Vec<Switch> = Vec::with_capacity(topology.switches.len());
        for switch in &topology.switches {
            switches.push(Switch {
                name: switch.name.clone(),
                children: switch.switches.iter().filter_map(|child| names.get(child.as_str()).copied()).collect(),
                nodes: switch.nodes.iter().filter_map(find).collect(),
                link_speed: switch.link_speed.max(1),
                ..Switch::default()
            });
        }
        let mut tree = Tree { switches, ..Tree::default() };
        tree.join();
        tree.set_levels();
        tree.line_up_leaves();
        tree.leaf_of = vec![None; n_nodes];
        let mut by_configuration: Vec<u32> = (0..tree.leaves.len() as u32).collect();
        by_configuration.sort_by_key(|leaf| tree.leaves[*leaf as usize]);
        for leaf in by_configuration {
            for node in &tree.switches[tree.leaves[leaf as usize] as usize].nodes {
                tree.leaf_of[*node as usize].get_or_insert(leaf);
            }
        }
        tree
    }

    /// Each switch learns its parent: the last that claims it, unless that closes a circle.
    fn join(&mut self) {
        for at in 0..self.switches.len() as u32 {
            for child in self.switches[at as usize].children.clone() {
                if self.ancestors(at).any(|above| above == child) {
                    continue;
                }
                let child = &mut self.switches[child as usize];
                child.parents.push(at);
                child.parent = Some(at);
            }
        }
    }

    /// The switch itself and all above it.
    pub(crate) fn ancestors(&self, switch: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(switch), |at| self.switches[*at as usize].parent).take(self.switches.len())
    }

    fn set_levels(&mut self) {
        // No chain is longer than there are switches.
        for _ in 0..self.switches.len() {
            let mut is_settled = true;
            for at in 0..self.switches.len() {
                let least = self.switches[at].level + 1;
                for parent in self.switches[at].parents.clone() {
                    let parent = &mut self.switches[parent as usize];
                    is_settled &= parent.level >= least;
                    parent.level = parent.level.max(least);
                }
            }
            if is_settled {
                break;
            }
        }
        self.by_level = (0..self.switches.len() as u32).collect();
        self.by_level.sort_by_key(|at| self.switches[*at as usize].level);
    }

    fn line_up_leaves(&mut self) {
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.switches.len()];
        for (at, switch) in self.switches.iter().enumerate() {
            if let Some(parent) = switch.parent {
                below[parent as usize].push(at as u32);
            }
        }
        let roots: Vec<u32> =
            (0..self.switches.len() as u32).filter(|at| self.switches[*at as usize].parent.is_none()).collect();
        // Depth first; a switch is met again when all below it are done.
        let mut waiting: Vec<(u32, bool)> = roots.into_iter().rev().map(|root| (root, false)).collect();
        while let Some((at, is_done)) = waiting.pop() {
            let n_leaves = self.leaves.len() as u32;
            let switch = &mut self.switches[at as usize];
            if is_done {
                switch.under.end = n_leaves;
                continue;
            }
            switch.under.start = n_leaves;
            waiting.push((at, true));
            if below[at as usize].is_empty() {
                self.leaves.push(at);
            }
            waiting.extend(below[at as usize].iter().rev().map(|child| (*child, false)));
        }
    }

    /// The leaf that a node is on.
    pub fn leaf_of(&self, node: u32) -> Option<u32> {
        self.leaf_of.get(node as usize).copied().flatten()
    }

    pub fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    pub fn leaf_name(&self, leaf: u32) -> &str {
        &self.switches[self.leaves[leaf as usize] as usize].name
    }

    /// Its place in the configuration.
    pub(crate) fn leaf_order(&self, leaf: u32) -> u32 {
        self.leaves[leaf as usize]
    }

    pub(crate) fn leaf_nodes(&self, leaf: u32) -> &[u32] {
        &self.switches[self.leaves[leaf as usize] as usize].nodes
    }

    pub fn leaf_switch(&self, leaf: u32) -> u32 {
        self.leaves[leaf as usize]
    }

    fn under(&self, switch: u32) -> Range<usize> {
        let under = &self.switches[switch as usize].under;
        under.start as usize..under.end as usize
    }

    /// The leaves below a switch: neighbours among all.
    pub fn leaves_below(&self, switch: u32) -> Range<usize> {
        self.under(switch)
    }

    /// Whether the switch is above a leaf.
    pub fn is_above(&self, switch: u32, leaf: u32) -> bool {
        self.switches[switch as usize].under.contains(&leaf)
    }

    /// The lowest switch above all these leaves.
    pub fn common(&self, leaves: &[u32]) -> Option<u32> {
        let (first, last) = (*leaves.iter().min()?, *leaves.iter().max()?);
        self.ancestors(self.leaves[first as usize]).find(|at| self.is_above(*at, last))
    }

    /// Every node below a switch, as configured.
    pub fn nodes_below(&self, switch: u32) -> Vec<u32> {
        let mut nodes = Vec::new();
        let mut waiting = vec![switch];
        let mut seen = vec![false; self.switches.len()];
        while let Some(at) = waiting.pop() {
            if !std::mem::replace(&mut seen[at as usize], true) {
                nodes.extend(&self.switches[at as usize].nodes);
                waiting.extend(&self.switches[at as usize].children);
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
