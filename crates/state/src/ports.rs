//! Ports that a step has for itself on each of its nodes while it lives (`srun --resv-ports`, MpiParams).
use std::collections::BTreeSet;

use model::step::Mpi;
use model::{NodeName, NodeShare, Reject, StepSpec};

use crate::Cluster;

/// How many the step needs where `most_tasks` is the most that any of its nodes runs.
fn wanted(cluster: &Cluster, spec: &StepSpec, most_tasks: u32) -> u32 {
    match (spec.n_ports, spec.mpi) {
        (Some(count), _) => count,
        (None, Mpi::Pmi2) => cluster.config.mpi_ports.map_or(0, |range| range.count().min(most_tasks + 1)),
        (None, Mpi::None | Mpi::Pmix) => 0,
    }
}

/// The step may have to wait for ports that others hold.
pub fn may_have_ports(cluster: &Cluster, spec: &StepSpec) -> bool {
    wanted(cluster, spec, u32::MAX - 1) > 0
}

/// Free ones for a step on these nodes. They go round, so that one that was just given back is not soon given out again.
pub(crate) fn choose<'a>(
    cluster: &Cluster,
    spec: &StepSpec,
    shares: impl Iterator<Item = &'a NodeShare> + Clone,
) -> Result<Vec<u16>, Reject> {
    let most_tasks = shares.clone().map(|share| share.n_tasks).max().unwrap_or(0);
    let count = wanted(cluster, spec, most_tasks);
    if count == 0 {
        return Ok(Vec::new());
    }
    let range = cluster.config.mpi_ports.filter(|range| range.count() >= count).ok_or(Reject::TooManyPorts)?;
    let taken = taken_on(cluster, shares.map(|share| &share.node));
    let after_last = range.all().filter(|port| *port > cluster.last_port);
    let round = after_last.chain(range.all().filter(|port| *port <= cluster.last_port));
    let free: Vec<u16> = round.filter(|port| !taken.contains(port)).take(count as usize).collect();
    if free.len() == count as usize { Ok(free) } else { Err(Reject::PortsInUse) }
}

/// So many are free on every node there is.
pub(crate) fn are_free_anywhere(cluster: &Cluster, count: u32) -> bool {
    let Some(range) = cluster.config.mpi_ports.filter(|_| count > 0) else { return count == 0 };
    let taken: BTreeSet<u16> = live_ports(cluster.steps.values().map(|step| &**step)).collect();
    range.all().filter(|port| !taken.contains(port)).count() >= count as usize
}

fn taken_on<'a>(cluster: &Cluster, nodes: impl Iterator<Item = &'a NodeName>) -> BTreeSet<u16> {
    let nodes: BTreeSet<&NodeName> = nodes.collect();
    let jobs: BTreeSet<_> =
        nodes.iter().filter_map(|name| cluster.nodes.get(*name)).flat_map(|node| &node.jobs).collect();
    let steps = jobs.into_iter().flat_map(|job| cluster.steps_of(*job)).map(|step| -> &model::Step { step });
    live_ports(steps.filter(|step| step.shares.iter().any(|share| nodes.contains(&share.node)))).collect()
}

fn live_ports<'a>(steps: impl Iterator<Item = &'a model::Step>) -> impl Iterator<Item = u16> {
    steps.filter(|step| step.is_live()).flat_map(|step| &step.ports).copied()
}
