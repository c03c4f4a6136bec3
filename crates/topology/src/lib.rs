//! Which nodes are near to each other, and which of those that are free a job should get. Pure: sets in, sets out.
//!
//! ```text
//! model::Topology ──Network::new──▶ Shape ─┬─ pick ──▶ the nodes for a job     (scheduler, spur topo place)
//!   (switches, blocks)                     ├─ pick on a given set: is it allowed?  (state, when a plan is adopted)
//!                                          └─ units, addresses, lines           (hostlists, environment, scontrol)
//! ```
mod address;
mod ask;
mod blocks;
mod lines;
mod places;
mod tree;
mod units;

use std::collections::BTreeMap;

use model::topology::{Topology, TopologyKind, TopologyRules};
use model::{Config, NodeName, hostlist};

pub use address::Address;
pub use ask::{Ask, Candidate, Unfit};
pub use blocks::Blocks;
pub use lines::{Selection, Unmatched};
pub use places::{Misplaced, check_place};
pub use tree::Tree;
pub use units::UnknownUnit;

/// Every topology of a cluster, over its nodes in the order of their ranks.
#[derive(Debug, Default)]
pub struct Network {
    nodes: Vec<NodeName>,
    index: BTreeMap<NodeName, u32>,
    pub shapes: Vec<Shape>,
}

/// One topology, ready to be asked.
#[derive(Debug)]
pub struct Shape {
    pub name: String,
    pub is_default: bool,
    pub form: Form,
}

#[derive(Debug)]
pub enum Form {
    Flat { alpha_step_rank: bool },
    Tree(Tree),
    Blocks(Blocks),
}

/// All nodes in the order of their ranks: that of their names, or of their units where the configuration wants that.
pub fn in_order(config: &Config) -> Vec<NodeName> {
    let mut nodes: Vec<NodeName> = config.nodes.iter().map(|node| node.name.clone()).collect();
    // The file was read so that its nodes are in that order.
    if !config.topology.ranks_by_unit {
        nodes.sort_by(|a, b| hostlist::natural_cmp(a.as_str(), b.as_str()));
        nodes.dedup();
    }
    nodes
}

impl Network {
    /// The network of a configuration; `moved` are nodes whose place is not as the topologies say.
    pub fn new(config: &Config, moved: &[(NodeName, String)]) -> Self {
        Self::over(in_order(config), &config.topologies, moved)
    }

    /// As `new`, for these nodes in their order.
    pub fn over(nodes: Vec<NodeName>, topologies: &[Topology], moved: &[(NodeName, String)]) -> Self {
        let index: BTreeMap<NodeName, u32> = nodes.iter().cloned().zip(0..).collect();
        let topologies = places::with_moved(topologies, &nodes, moved);
        let n_nodes = nodes.len();
        let find = |name: &NodeName| index.get(name).copied();
        let shape = |topology: &Topology| Shape {
            name: topology.name.clone(),
            is_default: topology.is_default,
            form: match topology.kind {
                TopologyKind::Flat => Form::Flat { alpha_step_rank: topology.alpha_step_rank },
                TopologyKind::Tree => Form::Tree(Tree::new(topology, n_nodes, &find)),
                TopologyKind::Block => Form::Blocks(Blocks::new(topology, n_nodes, &find)),
            },
        };
        let shapes = topologies.iter().map(shape).collect();
        Network { nodes, index, shapes }
    }

    pub fn name(&self, node: u32) -> &NodeName {
        &self.nodes[node as usize]
    }

    pub fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The topology of that name; without a name the default one.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        match name {
            "" => self.shapes.iter().find(|shape| shape.is_default).or(self.shapes.first()),
            name => self.shapes.iter().find(|shape| shape.name == name),
        }
    }

    /// A list as users read it.
    pub(crate) fn list(&self, nodes: impl IntoIterator<Item = u32>) -> String {
        hostlist::compress(nodes.into_iter().map(|node| self.name(node).as_str()))
    }
}

impl Shape {
    pub fn kind(&self) -> TopologyKind {
        match &self.form {
            Form::Flat { .. } => TopologyKind::Flat,
            Form::Tree(_) => TopologyKind::Tree,
            Form::Blocks(_) => TopologyKind::Block,
        }
    }

    /// The best nodes for the job among the candidates, as places in their list, rising. Candidates are in the order of nodes.
    pub fn pick(&self, rules: &TopologyRules, candidates: &[Candidate], ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let mut chosen = match &self.form {
            Form::Flat { .. } => ask::in_order(candidates, ask),
            Form::Tree(tree) => tree.pick(rules, candidates, ask),
            Form::Blocks(blocks) => blocks.pick(rules, candidates, ask),
        }?;
        chosen.sort_unstable();
        Ok(chosen)
    }

    /// How many leaf switches or base blocks there are.
    pub fn n_units(&self) -> usize {
        match &self.form {
            Form::Flat { .. } => 0,
            Form::Tree(tree) => tree.n_leaves(),
            Form::Blocks(blocks) => blocks.list.len(),
        }
    }

    /// The best nodes where all are alike: how many of each unit, when so many are free.
    pub fn choose(&self, free: &[u32], ask: &Ask) -> Option<Vec<(u32, u32)>> {
        match &self.form {
            Form::Flat { .. } => None,
            Form::Tree(tree) => tree.choose(free, ask),
            Form::Blocks(blocks) => blocks.choose(free, ask.n_nodes),
        }
    }

    /// The level of the lowest switch above these nodes; blocks have none.
    pub fn common_level(&self, nodes: impl Iterator<Item = u32>) -> Option<u32> {
        let Form::Tree(tree) = &self.form else { return None };
        let leaves: Vec<u32> = nodes.map(|node| tree.leaf_of(node)).collect::<Option<_>>()?;
        tree.common(&leaves).map(|switch| tree.switches[switch as usize].level)
    }

    /// The fewest units that could hold so many nodes, if all were free.
    pub fn fewest_units(&self, n: u32) -> u32 {
        let mut sizes: Vec<u32> = (0..self.n_units() as u32).map(|unit| self.unit_nodes(unit).len() as u32).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let (mut held, mut n_units) = (0, 0);
        for size in sizes {
            if held >= n {
                break;
            }
            (held, n_units) = (held + size, n_units + 1);
        }
        n_units
    }

    /// Units and what is made of them, each as its units, those of the lowest level first.
    fn neighbourhoods(&self) -> Vec<(u32, std::ops::Range<usize>)> {
        let mut larger: Vec<(u32, std::ops::Range<usize>)> = match &self.form {
            Form::Flat { .. } => Vec::new(),
            Form::Tree(tree) => {
                let inner = (0..tree.switches.len() as u32).map(|at| (tree.switches[at as usize].level, at));
                inner.filter(|(level, _)| *level > 0).map(|(level, at)| (level, tree.leaves_below(at))).collect()
            }
            Form::Blocks(blocks) => blocks.aggregates(),
        };
        larger.sort_by_key(|(level, _)| *level);
        (0..self.n_units()).map(|unit| (0, unit..unit + 1)).chain(larger).collect()
    }

    /// Those of the nodes that are near to each other, as places in their list: of one unit, then of one of the next larger kind, the
    /// fewest first; never fewer than `least`.
    pub fn near_each_other(&self, nodes: &[u32], least: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
        let mut by_unit: Vec<Vec<usize>> = vec![Vec::new(); self.n_units()];
        for (place, node) in nodes.iter().enumerate() {
            if let Some(unit) = self.unit_of(*node) {
                by_unit[unit as usize].push(place);
            }
        }
        let n_in = |units: &std::ops::Range<usize>| by_unit[units.clone()].iter().map(Vec::len).sum::<usize>();
        let mut found = self.neighbourhoods();
        found.retain(|(_, units)| n_in(units) >= least);
        found.sort_by_key(|(level, units)| (*level, n_in(units)));
        found.into_iter().map(move |(_, units)| by_unit[units].concat())
    }

    /// The nodes of all units, small and large, that are not wholly free, and the busy nodes besides: Slurm's measure of how broken
    /// up a cluster is.
    pub fn fragmentation(&self, is_free: impl Fn(u32) -> bool) -> u64 {
        let own: Vec<(u64, u64)> = (0..self.n_units() as u32)
            .map(|unit| {
                let nodes = self.unit_nodes(unit);
                (nodes.len() as u64, nodes.iter().filter(|node| !is_free(**node)).count() as u64)
            })
            .collect();
        let size = |(_, units): (u32, std::ops::Range<usize>)| {
            let (n_nodes, n_busy) = own[units].iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            if n_busy > 0 { n_nodes } else { 0 }
        };
        let n_busy: u64 = own.iter().map(|(_, n_busy)| n_busy).sum();
        self.neighbourhoods().into_iter().map(size).sum::<u64>() + n_busy
    }

    /// So many nodes go into one unit whenever one has room for them; of those that do, into the one with the least room.
    pub fn keeps_in_one_unit(&self, n: u32) -> bool {
        match &self.form {
            Form::Flat { .. } => false,
            Form::Tree(_) => true,
            Form::Blocks(blocks) => n <= blocks.base,
        }
    }

    /// Of units that are equal otherwise, the one with the least is taken.
    pub fn preference(&self, unit: u32) -> u32 {
        match &self.form {
            Form::Flat { .. } => unit,
            Form::Tree(tree) => tree.leaf_order(unit),
            Form::Blocks(_) => u32::MAX - unit,
        }
    }

    /// The leaf switch or base block that a node is in: its number among those of the topology.
    pub fn unit_of(&self, node: u32) -> Option<u32> {
        match &self.form {
            Form::Flat { .. } => None,
            Form::Tree(tree) => tree.leaf_of(node),
            Form::Blocks(blocks) => blocks.block_of(node),
        }
    }

    pub fn unit_name(&self, node: u32) -> Option<&str> {
        match &self.form {
            Form::Flat { .. } => None,
            Form::Tree(tree) => tree.leaf_of(node).map(|leaf| tree.leaf_name(leaf)),
            Form::Blocks(blocks) => blocks.block_of(node).map(|block| blocks.list[block as usize].name.as_str()),
        }
    }

    /// The nodes of a unit by its number.
    pub fn unit_nodes(&self, unit: u32) -> &[u32] {
        match &self.form {
            Form::Flat { .. } => &[],
            Form::Tree(tree) => tree.leaf_nodes(unit),
            Form::Blocks(blocks) => &blocks.list[unit as usize].nodes,
        }
    }

    /// The order of a node in the network: its unit in the order of the configuration, then its own place.
    pub fn rank(&self, node: u32) -> (u32, u32) {
        match &self.form {
            Form::Flat { .. } => (0, node),
            Form::Tree(tree) => (tree.leaf_of(node).map_or(u32::MAX, |leaf| tree.leaf_order(leaf)), node),
            Form::Blocks(blocks) => (blocks.block_of(node).unwrap_or(u32::MAX), node),
        }
    }
}
