//! Has nodes checked by the site's own program, again and again. When a node was checked last is nobody's business but this loop's.
use std::sync::Arc;
use std::time::Duration;

use model::NodeName;
use model::agent::Order;
use state::Cluster;

use crate::agents::Agents;
use crate::machine::Published;

/// How often those that are to be checked over the interval are looked at.
const PIECES: u32 = 20;

pub async fn run(published: Published, agents: Arc<Agents>) {
    let mut changes = published.changes();
    loop {
        let config = published.now().config().clone();
        let health = &config.health;
        let interval = Duration::from_micros(health.check_interval.0);
        if health.check.is_empty() || interval.is_zero() || health.checks_at_start_only {
            // Until it is configured.
            if changes.wait_for(|cluster| !Arc::ptr_eq(cluster.config(), &config)).await.is_err() {
                return;
            }
            continue;
        }
        let n_pieces = if health.spreads_checks { PIECES } else { 1 };
        for piece in 0..n_pieces {
            tokio::time::sleep(interval / n_pieces).await;
            let cluster = published.now();
            for node in due(&cluster, &agents).into_iter().skip(piece as usize).step_by(n_pieces as usize) {
                agents.send(&node, order(&cluster));
            }
        }
    }
}

/// What an agent is sent to have its node checked.
pub fn order(cluster: &Cluster) -> Order {
    Order::Check { program: cluster.config().health.check.clone() }
}

fn due(cluster: &Cluster, agents: &Agents) -> Vec<NodeName> {
    let mut connected = agents.connected();
    connected.sort_unstable();
    let concerns = |name: &NodeName| {
        let node = cluster.node(name.as_str());
        node.is_some_and(|node| cluster.config().health.concerns(&cluster.node_view(node)))
    };
    connected.retain(concerns);
    connected
}
