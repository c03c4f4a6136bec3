//! What the network has to say about jobs: which topology places them, where they may be, and whom they keep away.
use std::collections::BTreeSet;

use model::fit;
use model::plan::Start;
use model::spec::Size;
use model::topology::TopologyKind;
use model::{Job, JobId, JobSpec, NodeName, Partition, Reject};
use topology::{Ask, Candidate, Network, Shape};

use crate::Cluster;

impl Cluster {
    /// The topologies of the cluster, over its nodes in the order of their ranks.
    pub fn network(&self) -> &Network {
        self.network.get_or_init(|| {
            let place = |name: &NodeName| {
                let node = self.nodes.get(name)?;
                node.topology.clone().or_else(|| node.config.topology.clone())
            };
            let names = self.config.nodes.iter().map(|node| &node.name);
            let moved = names.filter_map(|name| Some((name.clone(), place(name)?))).collect::<Vec<_>>();
            Network::new(&self.config, &moved)
        })
    }
}

/// The topology by which the partition places such jobs; none: all nodes are alike to them.
pub fn shape_for<'c>(cluster: &'c Cluster, partition: &Partition, size: &Size) -> Option<&'c Shape> {
    if cluster.config.topologies.is_empty() || size.contiguous {
        return None;
    }
    let shape = cluster.network().shape(&partition.topology)?;
    let wish = &size.network;
    let asks = wish.topology.is_some() || wish.n_switches > 0 || wish.segment > 0 || wish.owns_units;
    let applies = match wish.topology {
        Some(kind) => kind != TopologyKind::Flat,
        None => asks || !cluster.config.topology.only_on_request,
    };
    (applies && shape.kind() != TopologyKind::Flat).then_some(shape)
}

/// The unit of a node, where the job is placed by the network.
pub(crate) fn unit_for(cluster: &Cluster, job: &Job, name: &NodeName) -> Option<u32> {
    let shape = shape_for(cluster, cluster.config.partition(&job.partition)?, &job.spec.size)?;
    shape.unit_of(cluster.nodes.get(name)?.rank)
}

/// What the job asks of the picker, for so many nodes.
pub fn network_ask(size: &Size, (min, max): (u32, u32)) -> Ask {
    let wish = &size.network;
    Ask {
        min_nodes: min,
        max_nodes: max,
        n_nodes: size.n_nodes_wanted((min, max)),
        n_tasks: size.n_tasks,
        most_leaves: None,
        most_level: wish.most_level.filter(|_| !wish.level_is_preferred),
        segment: wish.segment,
        spreads: wish.spreads_segments,
        consolidates: wish.consolidates_segments,
    }
}

/// Names of units in lists of nodes (`switch{s4}`) become their nodes.
pub(crate) fn with_units(cluster: &Cluster, mut spec: JobSpec) -> Result<JobSpec, Reject> {
    for list in [&mut spec.size.nodes, &mut spec.size.excluded] {
        if !list.iter().any(|name| name.as_str().contains('{')) {
            continue;
        }
        let mut names: Vec<NodeName> = Vec::new();
        for name in list.iter() {
            let found = cluster.network().expand(name.as_str());
            let found = found.map_err(|_| Reject::NoSuchNode(name.to_string()))?;
            names.extend(found.into_iter().map(NodeName::from));
        }
        names.sort();
        names.dedup();
        *list = names;
    }
    settle_named(cluster, &mut spec);
    Ok(spec)
}

/// On blocks, a job of several segments chooses among the nodes it names; any other must have them all.
pub(crate) fn settle_named(cluster: &Cluster, spec: &mut JobSpec) {
    let is_on_blocks = |name: &String| {
        let partition = cluster.config.partition(name)?;
        Some(shape_for(cluster, partition, &spec.size)?.kind() == TopologyKind::Block)
    };
    let is_segmented = spec.size.network.is_segmented(spec.size.min_nodes);
    let chooses = is_segmented && spec.partitions.iter().all(|name| is_on_blocks(name).unwrap_or(false));
    let size = &mut spec.size;
    let (from, to) = match chooses {
        true => (&mut size.nodes, &mut size.network.among),
        false => (&mut size.network.among, &mut size.nodes),
    };
    if !from.is_empty() {
        *to = std::mem::take(from);
    }
}

/// Every partition of the job has the network it asks for, and its nodes can be cut into its segments.
pub(crate) fn admits(cluster: &Cluster, spec: &JobSpec) -> Result<(), Reject> {
    let wish = &spec.size.network;
    if let Some(kind) = wish.topology.filter(|kind| *kind != TopologyKind::Flat) {
        let has = |name: &String| {
            let partition = cluster.config.partition(name)?;
            Some(cluster.network().shape(&partition.topology)?.kind() == kind)
        };
        if !spec.partitions.iter().all(|name| has(name).unwrap_or(false)) {
            return Err(Reject::NoSuchTopology);
        }
    }
    if spec.size.nodes.len() > 1 && spec.partitions.iter().all(|name| are_apart(cluster, name, &spec.size)) {
        return Err(Reject::NoSuchTopology);
    }
    let (min, _) = spec.size.node_bounds();
    let unroll = cluster.config.topology.max_size_unroll;
    let n_sizes = spec.size.max_nodes.map_or(1, |max| max.saturating_sub(min) + 1);
    let is_on_blocks = |name: &String| {
        let partition = cluster.config.partition(name)?;
        Some(shape_for(cluster, partition, &spec.size)?.kind() == TopologyKind::Block)
    };
    if 0 < unroll
        && unroll <= n_sizes
        && n_sizes > 1
        && spec.partitions.iter().all(|name| is_on_blocks(name) == Some(true))
    {
        return Err(Reject::TooManyNodes);
    }
    let n_named = wish.among.iter().collect::<BTreeSet<_>>().len() as u32;
    if 0 < n_named && n_named < min {
        return Err(Reject::NoSuchTopology);
    }
    if wish.segment > 0 && min > wish.segment && !min.is_multiple_of(wish.segment) {
        return Err(Reject::TooManyNodes);
    }
    Ok(())
}

/// The nodes that the job names have no common switch in this partition, and need one.
fn are_apart(cluster: &Cluster, partition: &str, size: &Size) -> bool {
    let Some(partition) = cluster.config.partition(partition) else { return false };
    let Some(shape) = shape_for(cluster, partition, size) else { return false };
    if shape.kind() != TopologyKind::Tree || (cluster.config.topology.is_optional && !size.network.needs_switch()) {
        return false;
    }
    let mut ranks: Vec<u32> = size.nodes.iter().filter_map(|name| Some(cluster.nodes.get(name)?.rank)).collect();
    ranks.sort_unstable();
    let candidates: Vec<Candidate> =
        ranks.into_iter().map(|node| Candidate { node, n_tasks: 1, ..Candidate::default() }).collect();
    shape.pick(&cluster.config.topology, &candidates, &Ask::nodes(candidates.len() as u32)).is_err()
}

/// With nothing else running, these nodes would have a place for the job.
pub(crate) fn could_place(
    cluster: &Cluster,
    shape: &Shape,
    size: &Size,
    bounds: (u32, u32),
    nodes: &[fit::Candidate],
) -> bool {
    let rules = &cluster.config.topology;
    if rules.is_optional && shape.kind() == TopologyKind::Tree && !size.network.needs_switch() {
        return size.choose(bounds, nodes).is_some();
    }
    let candidate = |one: &fit::Candidate| Candidate {
        node: one.rank,
        n_tasks: one.n_tasks,
        is_required: one.is_required,
        ..Candidate::default()
    };
    let candidates: Vec<Candidate> = nodes.iter().map(candidate).collect();
    let has_required = candidates.iter().filter(|one| one.is_required).count() >= size.nodes.len();
    has_required && shape.pick(rules, &candidates, &network_ask(size, bounds)).is_ok()
}

/// The nodes are where the job may be: below one switch, or within the blocks its size allows, segment for segment.
pub(crate) fn allows(cluster: &Cluster, partition: &Partition, spec: &JobSpec, start: &Start) -> bool {
    let Some(shape) = shape_for(cluster, partition, &spec.size) else { return true };
    if spec.size.network.owns_units && !are_units_free(cluster, shape, start) {
        return false;
    }
    let rules = &cluster.config.topology;
    let is_optional = rules.is_optional && shape.kind() == TopologyKind::Tree && !spec.size.network.needs_switch();
    if start.nodes.len() < 2 || is_optional {
        return true;
    }
    let mut candidates: Vec<Candidate> = Vec::with_capacity(start.nodes.len());
    for grant in &start.nodes {
        let Some(node) = cluster.nodes.get(&grant.node) else { return false };
        candidates.push(Candidate { node: node.rank, n_tasks: 1, ..Candidate::default() });
    }
    candidates.sort_unstable_by_key(|candidate| candidate.node);
    let n_nodes = candidates.len() as u32;
    let wanted = Ask { n_tasks: None, n_nodes, ..network_ask(&spec.size, (n_nodes, n_nodes)) };
    shape.pick(rules, &candidates, &wanted).is_ok()
}

/// Nobody runs in the units of these nodes.
fn are_units_free(cluster: &Cluster, shape: &Shape, start: &Start) -> bool {
    let units = start.nodes.iter().filter_map(|grant| shape.unit_of(cluster.nodes.get(&grant.node)?.rank));
    let mut nodes = units.flat_map(|unit| shape.unit_nodes(unit)).map(|node| cluster.network().name(*node));
    spares_units(cluster, shape)
        || nodes
            .all(|name| cluster.nodes.get(name).is_none_or(|node| node.jobs.is_empty() && node.blocked_by.is_none()))
}

/// On a tree, units are owned by nobody unless the site says so.
pub fn spares_units(cluster: &Cluster, shape: &Shape) -> bool {
    shape.kind() == TopologyKind::Tree && !cluster.config.topology.exclusive_leaves
}

/// The rest of the units that the job touches is closed to others.
pub(crate) fn close_units(cluster: &mut Cluster, id: JobId, partition: &str) {
    let job = &cluster.jobs[&id];
    if !job.spec.size.network.owns_units {
        return;
    }
    let Some(partition) = cluster.config.partition(partition) else { return };
    let Some(shape) = shape_for(cluster, partition, &job.spec.size) else { return };
    if spares_units(cluster, shape) {
        return;
    }
    let own = |name: &NodeName| job.allocation.share(name.as_str()).is_some();
    let units = job.allocation.names().filter_map(|name| shape.unit_of(cluster.nodes.get(name)?.rank));
    let mut rest: Vec<NodeName> = units
        .flat_map(|unit| shape.unit_nodes(unit))
        .map(|node| cluster.network().name(*node).clone())
        .filter(|name| !own(name) && cluster.nodes.contains_key(name))
        .collect();
    rest.sort();
    rest.dedup();
    for name in rest {
        cluster.node_mut(name.as_str()).blocked_by = Some(id);
    }
}

pub(crate) fn open_units(cluster: &mut Cluster, id: JobId, spec: &JobSpec) {
    if !spec.size.network.owns_units {
        return;
    }
    let closed: Vec<NodeName> =
        cluster.nodes.values().filter(|node| node.blocked_by == Some(id)).map(|node| node.name.clone()).collect();
    for name in closed {
        cluster.node_mut(name.as_str()).blocked_by = None;
    }
}
