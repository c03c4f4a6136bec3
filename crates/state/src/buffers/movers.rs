//! Which agent works for a shared space: one that answers, the least busy of a few.
use model::buffer::{BufferRequest, Place};
use model::node::NodePhase;
use model::pool::{Pool, PoolKind};
use model::staging::Access;
use model::{JobId, Node, NodeName};

use super::life;
use crate::Cluster;

/// Looking at all nodes of a large cluster for the least busy one is not worth it.
const N_LOOKED_AT: usize = 16;

/// The pool whose agents work for the job: that of its shared space, or of the first shared pool.
fn pool<'a>(cluster: &'a Cluster, request: &BufferRequest) -> Option<&'a Pool> {
    let config = cluster.config.burst_buffer.as_ref()?;
    if let Some(space) = request.spaces.iter().find(|space| space.access == Access::Shared) {
        return config.pool(&space.pool);
    }
    config.default_pool().into_iter().chain(&config.pools).find(|pool| pool.kind == PoolKind::Shared)
}

/// The place for what the job has in common with nobody's node; none if no agent can work for it now.
pub(crate) fn shared_place(cluster: &Cluster, request: &BufferRequest, job: JobId) -> Option<Place> {
    let pool = pool(cluster, request)?;
    let node = choose_for(cluster, pool, job.0 as usize)?;
    let (pool, root) = (pool.name.clone(), pool.root.clone());
    Some(Place { access: Access::Shared, node, pool, root, ..Default::default() })
}

/// `seed` spreads the work over large clusters.
pub(crate) fn choose_for(cluster: &Cluster, pool: &Pool, seed: usize) -> Option<NodeName> {
    if cluster.config.burst_buffer.as_ref().is_some_and(|config| config.plugin.is_external()) {
        return Some(NodeName::default());
    }
    let load = |node: &NodeName| {
        let range = (node.clone(), JobId(0))..=(node.clone(), JobId(u32::MAX));
        cluster.buffer_places.range(range).count()
    };
    let is_able = |node: &Node| {
        let report = node.machine.pools.iter().find(|report| report.pool == pool.name);
        can_work(node) && report.is_none_or(|report| report.problem.is_empty())
    };
    let able: Vec<&NodeName> = match pool.movers.is_empty() {
        true => {
            let start = seed % cluster.nodes.len().max(1);
            let round = cluster.nodes.values().skip(start).chain(cluster.nodes.values().take(start));
            round.filter(|node| is_able(node)).take(N_LOOKED_AT).map(|node| &node.name).collect()
        }
        false => pool.movers.iter().filter(|name| cluster.nodes.get(*name).is_some_and(|node| is_able(node))).collect(),
    };
    able.into_iter().min_by_key(|name| load(name)).cloned()
}

pub(crate) fn has_mover(cluster: &Cluster, pool: &str) -> bool {
    let pool = cluster.config.burst_buffer.as_ref().and_then(|config| config.pool(pool));
    pool.is_some_and(|pool| choose_for(cluster, pool, 0).is_some())
}

fn can_work(node: &Node) -> bool {
    node.answers && !node.is_removed && matches!(node.phase, NodePhase::Up | NodePhase::Clearing)
}

/// Work of an agent that does not answer is given to another, if there is one; says whether it was.
pub(crate) fn relieve(cluster: &mut Cluster, id: JobId) -> bool {
    let buffer = cluster.buffers[&id].clone();
    if buffer.plugin.is_external() {
        return false;
    }
    let Some(at) = buffer.places.iter().position(|place| place.access == Access::Shared) else { return false };
    let answers = |name: &NodeName| cluster.nodes.get(name).is_some_and(|node| node.answers);
    if answers(&buffer.places[at].node) {
        return false;
    }
    let config = cluster.config.clone();
    // One that is configured no more is seen by whoever saw it before.
    let lost = Pool { name: buffer.places[at].pool.clone(), ..Default::default() };
    let pool = config.burst_buffer.as_ref().and_then(|config| config.pool(&lost.name)).unwrap_or(&lost);
    let Some(other) = choose_for(cluster, pool, id.0 as usize) else { return false };
    life::unindex(cluster, id);
    let job = cluster.job_mut(id);
    job.n_buffer_orders += 1;
    let attempt = job.n_buffer_orders;
    let buffer = life::buffer_mut(cluster, id);
    buffer.attempt = attempt;
    buffer.places[at].node = other;
    life::index(cluster, id);
    true
}
