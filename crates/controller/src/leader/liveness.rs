//! Notices nodes that have gone silent. Heartbeats stay in memory; only *lost* is a command.
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Caller, Command, NodeName};

use crate::agents::Agents;
use crate::door::Door;
use crate::machine::Published;

pub async fn run(door: Arc<Door>, published: Published, agents: Arc<Agents>) {
    // Agents have the whole time-out to come back after the controller itself was away.
    let since = Instant::now();
    loop {
        let cluster = published.now();
        let limit = Duration::from_micros(cluster.config().controller.node_timeout.0);
        let silent: Vec<NodeName> = cluster
            .nodes()
            .filter(|node| node.answers)
            .filter(|node| agents.last_heard(&node.name).unwrap_or(since).elapsed() > limit)
            .map(|node| node.name.clone())
            .collect();
        for node in silent {
            tracing::warn!(%node, "the node does not answer");
            // A refusal means somebody else has noticed, or the log has stopped.
            let _ = door.propose(Caller::SYSTEM, Command::NodeLost { node }).await;
        }
        tokio::time::sleep((limit / 10).clamp(Duration::from_millis(100), Duration::from_secs(5))).await;
    }
}
