//! What there is to draw: units of the network with their nodes, who is on them, and how broken up the free ones are.
use std::collections::BTreeMap;

use model::request::NodeView;
use model::{Config, Job, JobId, Timestamp, hostlist};
use topology::{Form, Network, Shape};

/// One topology as it stands now.
pub struct Scene {
    pub cluster_name: String,
    pub topology: String,
    pub kind: &'static str,
    pub units: Vec<Unit>,
    /// Switches above the leaves, or blocks of blocks: from the bottom up.
    pub groups: Vec<Group>,
    pub jobs: Vec<JobMark>,
    pub now: Timestamp,
}

/// A leaf switch or base block.
pub struct Unit {
    pub name: String,
    pub cells: Vec<Cell>,
    /// When all its nodes will be free, as far as is known.
    pub free_at: Option<Timestamp>,
}

pub struct Group {
    pub name: String,
    pub level: u32,
    pub units: std::ops::Range<usize>,
}

#[derive(Clone)]
pub struct Cell {
    pub node: String,
    pub state: String,
    pub job: Option<JobId>,
    pub is_free: bool,
}

pub struct JobMark {
    pub id: JobId,
    pub name: String,
    pub user: String,
    pub nodes: String,
    pub n_units: usize,
}

impl Scene {
    pub fn new(config: &Config, nodes: &[NodeView], jobs: &[Job], now: Timestamp, name: &str) -> Result<Self, String> {
        let network = crate::network::of(config, nodes);
        let shape = match (network.shape(name), name) {
            (Some(shape), _) => shape,
            (None, "") => return Err("this cluster has no topology; see docs/topology.md".into()),
            (None, name) => return Err(format!("there is no topology {name}")),
        };
        let views: BTreeMap<&str, &NodeView> = nodes.iter().map(|view| (view.node.name.as_str(), view)).collect();
        let running: BTreeMap<JobId, &Job> =
            jobs.iter().filter(|job| job.holds_nodes()).map(|job| (job.id, job)).collect();
        let unit = |own: &[u32], name: &str| {
            let cells: Vec<Cell> = own.iter().map(|node| cell(network.name(*node).as_str(), &views)).collect();
            let ends = own.iter().filter_map(|node| views.get(network.name(*node).as_str()));
            let ends = ends.flat_map(|view| &view.node.jobs).map(|id| running.get(id).and_then(|job| job.end_time()));
            let free_at = ends.collect::<Option<Vec<Timestamp>>>().map(|ends| ends.into_iter().max().unwrap_or(now));
            Unit { name: name.into(), cells, free_at }
        };
        let (units, groups) = match &shape.form {
            Form::Flat { .. } => {
                let all: Vec<u32> = (0..network.n_nodes() as u32).collect();
                (vec![unit(&all, "all nodes")], Vec::new())
            }
            Form::Tree(tree) => {
                let units = (0..tree.n_leaves() as u32).map(|leaf| unit(shape.unit_nodes(leaf), tree.leaf_name(leaf)));
                let inner = (0..tree.switches.len() as u32).filter(|at| tree.switches[*at as usize].level > 0);
                let group = |at: u32| Group {
                    name: tree.switches[at as usize].name.clone(),
                    level: tree.switches[at as usize].level,
                    units: tree.leaves_below(at),
                };
                (units.collect(), inner.map(group).collect::<Vec<Group>>())
            }
            Form::Blocks(blocks) => {
                let units = blocks.list.iter().map(|block| unit(&block.nodes, &block.name));
                let group = |(level, units): (u32, std::ops::Range<usize>)| {
                    let names = blocks.list[units.clone()].iter().map(|block| block.name.as_str());
                    Group { name: hostlist::compress_in_order(names), level, units }
                };
                (units.collect(), blocks.aggregates().into_iter().map(group).collect())
            }
        };
        let mut groups = groups;
        groups.sort_by_key(|group| group.level);
        let jobs = running.values().map(|job| mark(job, &network, shape)).collect();
        Ok(Scene {
            cluster_name: config.cluster_name.clone(),
            topology: shape.name.clone(),
            kind: shape.kind().word(),
            units,
            groups,
            jobs,
            now,
        })
    }

    pub fn n_nodes(&self) -> usize {
        self.units.iter().map(|unit| unit.cells.len()).sum()
    }

    pub fn n_free(&self) -> usize {
        self.units.iter().map(Unit::n_free).sum()
    }

    /// How much of what is free lies in units that are in part busy: 0 is whole, 1 is all in pieces.
    pub fn fragmentation(&self) -> f64 {
        let broken = self.units.iter().filter(|unit| !unit.is_whole()).map(Unit::n_free).sum::<usize>();
        if self.n_free() == 0 { 0.0 } else { broken as f64 / self.n_free() as f64 }
    }

    /// The unit with the most free nodes.
    pub fn largest(&self) -> Option<&Unit> {
        self.units.iter().rev().max_by_key(|unit| unit.n_free()).filter(|unit| unit.n_free() > 0)
    }

    /// The broken unit that will be whole first.
    pub fn next_whole(&self) -> Option<(&Unit, u64)> {
        let broken = self.units.iter().filter(|unit| !unit.is_whole() && !unit.cells.is_empty());
        let known = broken.filter_map(|unit| Some((unit, (unit.free_at? - self.now).secs())));
        known
            .filter(|(unit, _)| unit.cells.iter().all(|cell| cell.is_free || cell.job.is_some()))
            .min_by_key(|(_, secs)| *secs)
    }

    /// A letter for each job: pictures are readable without colour.
    pub fn letter(&self, id: JobId) -> char {
        let at = self.jobs.iter().position(|job| job.id == id).unwrap_or(0);
        char::from(b'A' + (at % 26) as u8)
    }

    pub fn colour(&self, id: JobId) -> usize {
        self.jobs.iter().position(|job| job.id == id).unwrap_or(0)
    }
}

impl Unit {
    pub fn n_free(&self) -> usize {
        self.cells.iter().filter(|cell| cell.is_free).count()
    }

    pub fn is_whole(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_free)
    }
}

fn cell(name: &str, views: &BTreeMap<&str, &NodeView>) -> Cell {
    let Some(view) = views.get(name) else {
        return Cell { node: name.into(), state: "unknown".into(), job: None, is_free: false };
    };
    let state = view.state().word();
    let is_free = state == "idle";
    Cell { node: name.into(), job: view.node.jobs.first().copied(), is_free, state }
}

fn mark(job: &Job, network: &Network, shape: &Shape) -> JobMark {
    let mut units: Vec<Option<u32>> =
        job.allocation.names().map(|name| network.find(name.as_str()).and_then(|node| shape.unit_of(node))).collect();
    units.sort_unstable();
    units.dedup();
    JobMark {
        id: job.id,
        name: job.spec.name.clone(),
        user: job.spec.user.clone(),
        nodes: hostlist::compress(job.allocation.names().map(|name| name.as_str())),
        n_units: units.len(),
    }
}
