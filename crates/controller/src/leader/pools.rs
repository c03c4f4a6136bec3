//! Agents are told which burst buffer pools they have, when they register and whenever that changes.
use std::sync::Arc;

use model::agent::{NodePools, Order};
use model::pool::{BurstBufferConfig, Pool};
use model::{Config, NodeName};
use state::Cluster;

use crate::agents::Agents;
use crate::machine::Published;

/// What the agent of this node should know.
pub fn order(cluster: &Cluster, node: &NodeName) -> Order {
    let config = native(cluster).cloned().unwrap_or_default();
    let of_node = |pool: &Pool| Pool { root: Config::for_node(&pool.root, node.as_str()), ..pool.clone() };
    let pools = config.pools.iter().map(of_node).collect();
    Order::Pools(Box::new(NodePools { pools, measure_interval: config.measure_interval }))
}

fn native(cluster: &Cluster) -> Option<&BurstBufferConfig> {
    cluster.config().burst_buffer.as_ref().filter(|config| !config.plugin.is_external())
}

pub async fn run(published: Published, agents: Arc<Agents>) {
    let mut changes = published.changes();
    let mut told = native(&published.now()).cloned();
    loop {
        let cluster = changes.borrow_and_update().clone();
        if native(&cluster) != told.as_ref() {
            for node in agents.connected() {
                agents.send(&node, order(&cluster, &node));
            }
            told = native(&cluster).cloned();
        }
        let is_other = |newer: &Arc<Cluster>| !Arc::ptr_eq(newer.config(), cluster.config());
        if changes.wait_for(is_other).await.is_err() {
            return;
        }
    }
}
