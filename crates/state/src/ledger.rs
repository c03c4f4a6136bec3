//! Who holds which resources. The only writer of `Node::used`, `Node::jobs`, and of a job's allocation.
use model::gres::{GresRequest, GresUnits};
use model::node::Used;
use model::plan::{Grant, Start};
use model::{Allocation, CpuSet, JobId, JobSpec, Node, NodeShare};

use crate::Cluster;

/// The grants are there to be taken, and are what the job asked for.
pub(crate) fn fits(cluster: &Cluster, spec: &JobSpec, start: &Start) -> bool {
    let (min, max) = spec.size.node_bounds();
    let n_nodes = start.nodes.len() as u32;
    let distinct = start.nodes.windows(2).all(|pair| pair[0].node != pair[1].node);
    distinct
        && (min..=max).contains(&n_nodes)
        && spec.size.nodes.iter().all(|name| start.nodes.iter().any(|grant| grant.node == *name))
        && start.nodes.iter().all(|grant| match cluster.nodes.get(&grant.node) {
            Some(node) => node_has(cluster, node, spec, start, grant),
            None => false,
        })
}

fn node_has(cluster: &Cluster, node: &Node, spec: &JobSpec, start: &Start, grant: &Grant) -> bool {
    let memory_fits = !cluster.config.scheduler.tracks_memory || grant.memory_mb <= node.free_memory_mb();
    node.is_usable()
        && node.exclusive_job.is_none()
        && (!start.is_exclusive || node.jobs.is_empty())
        && 0 < grant.n_cpus
        && grant.n_cpus <= node.free_cpus()
        && memory_fits
        && node.suits(&spec.size)
        && node.has_free_gres(&spec.size.gres)
}

/// Gives the job what the plan granted; picks the CPUs and units, lowest first.
pub(crate) fn hold(cluster: &mut Cluster, id: JobId, start: &Start) {
    let spec = cluster.jobs[&id].spec.clone();
    let mut shares = Vec::with_capacity(start.nodes.len());
    for grant in &start.nodes {
        let node = cluster.node_mut(grant.node.as_str());
        let cpus = lowest_free(node, grant.n_cpus);
        let gres: Vec<GresUnits> = spec.size.gres.iter().flat_map(|request| pick_units(node, request)).collect();
        cpus.iter().for_each(|cpu| node.used.cpus.insert(cpu));
        node.used.memory_mb += grant.memory_mb;
        node.used.gres.extend(gres.iter().cloned());
        node.jobs.insert(id);
        if start.is_exclusive {
            node.exclusive_job = Some(id);
        }
        let n_tasks = grant.n_tasks;
        shares.push(NodeShare { node: grant.node.clone(), cpus, memory_mb: grant.memory_mb, gres, n_tasks });
    }
    cluster.job_mut(id).allocation = Allocation { nodes: shares, is_exclusive: start.is_exclusive };
}

/// Takes back what the job holds; its allocation stays readable.
pub(crate) fn free(cluster: &mut Cluster, id: JobId) {
    let now = cluster.now;
    let allocation = cluster.jobs[&id].allocation.clone();
    for share in &allocation.nodes {
        let node = cluster.node_mut(share.node.as_str());
        share.cpus.iter().for_each(|cpu| node.used.cpus.remove(cpu));
        node.used.memory_mb -= share.memory_mb;
        for held in &share.gres {
            let at = node.used.gres.iter().position(|used| used == held).expect("what a job holds is in use");
            node.used.gres.remove(at);
        }
        node.jobs.remove(&id);
        node.last_busy = Some(now);
        if node.exclusive_job == Some(id) {
            node.exclusive_job = None;
        }
        if node.is_removed && node.jobs.is_empty() {
            cluster.nodes.remove(&share.node);
        }
    }
}

/// What the jobs together hold of a node; `check` compares it with the node's own record.
pub(crate) fn recount(cluster: &Cluster, node: &Node) -> Used {
    let mut used = Used::default();
    for job in cluster.jobs().filter(|job| job.holds_nodes()) {
        for share in job.allocation.nodes.iter().filter(|share| share.node == node.name) {
            share.cpus.iter().for_each(|cpu| used.cpus.insert(cpu));
            used.memory_mb += share.memory_mb;
            used.gres.extend(share.gres.iter().cloned());
        }
    }
    used
}

fn lowest_free(node: &Node, n_cpus: u32) -> CpuSet {
    let mut picked = CpuSet::default();
    let free = (0..node.config.cpus).filter(|cpu| !node.used.cpus.contains(*cpu));
    free.take(n_cpus as usize).for_each(|cpu| picked.insert(cpu));
    picked
}

/// Units of each kind are held apart, so that they show as `gpu:a100:2`.
fn pick_units(node: &Node, request: &GresRequest) -> Vec<GresUnits> {
    let mut kinds: Vec<&str> =
        node.config.gres.iter().filter(|gres| gres.name == request.name).map(|gres| gres.kind.as_str()).collect();
    kinds.dedup();
    let mut wanted = request.count;
    let mut picked = Vec::new();
    for kind in kinds.into_iter().filter(|kind| request.kind.is_empty() || request.kind == *kind) {
        let free = match kind {
            "" => node.free_gres(&request.name, ""),
            kind => node.free_gres(&request.name, kind),
        };
        let mut units = CpuSet::default();
        free.iter().take(wanted as usize).for_each(|unit| units.insert(unit));
        wanted -= units.len();
        if units.len() > 0 {
            picked.push(GresUnits { name: request.name.clone(), kind: kind.to_string(), units });
        }
    }
    picked
}
