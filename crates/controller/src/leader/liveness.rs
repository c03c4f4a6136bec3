//! Notices nodes that have gone silent. Heartbeats stay in memory; only *lost* is a command.
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::node::NodePhase;
use model::{Caller, Command, NodeName};
use state::Cluster;

use crate::agents::Agents;
use crate::door::Door;
use crate::machine::Published;

/// So many heartbeats may an agent miss whose node an administrator has set down.
const N_HEARTBEATS_WHEN_DOWN: u32 = 3;

pub async fn run(door: Arc<Door>, published: Published, agents: Arc<Agents>) {
    // Agents have the whole time-out to come back after the controller itself was away.
    let since = Instant::now();
    loop {
        let cluster = published.now();
        let limit = Duration::from_micros(cluster.config().controller.node_timeout.0);
        let limit_when_down = Duration::from_micros(cluster.config().agent.heartbeat.0) * N_HEARTBEATS_WHEN_DOWN;
        let silent: Vec<NodeName> = cluster
            .nodes()
            .filter(|node| node.answers)
            .filter(|node| {
                // Nobody waits for the processes of a node that was set down when its agent is away, too.
                let patience = if node.phase == NodePhase::Down { limit.min(limit_when_down) } else { limit };
                agents.last_heard(&node.name).unwrap_or(since).elapsed() > patience
            })
            .map(|node| node.name.clone())
            .collect();
        for node in silent {
            tracing::warn!(%node, "the node does not answer");
            // A refusal means somebody else has noticed, or the log has stopped.
            let _ = door.propose(Caller::SYSTEM, Command::NodeLost { node }).await;
        }
        close_unregistered(&published.now(), &agents);
        tokio::time::sleep((limit / 10).clamp(Duration::from_millis(100), Duration::from_secs(5))).await;
    }
}

/// A stream stands only while its node answers as far as the log knows. After a loss that was none, or when a node has been taken
/// out of the configuration and put back, its agent must come again.
fn close_unregistered(cluster: &Cluster, agents: &Agents) {
    let is_registered = |node: &NodeName| cluster.node(node.as_str()).is_some_and(|node| node.answers);
    for node in agents.connected().iter().filter(|node| !is_registered(node)) {
        tracing::info!(%node, "the agent must register again");
        agents.close(node);
    }
}
