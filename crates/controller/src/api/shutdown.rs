//! `scontrol shutdown`: the agents first, if they are meant, then all controllers, by the way that SIGTERM takes.
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::agent::Order;

use super::Api;
use crate::members;

/// How long agents have to go; one that does not is left behind.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Returns at once, so that whoever asked gets an answer.
pub fn begin(api: &Api, ends_agents: bool) {
    let (agents, ends_all) = (api.agents.clone(), api.ends_all.clone());
    let (journal, connections) = (api.journal.clone(), api.connections.clone());
    tokio::spawn(async move {
        if ends_agents {
            for node in agents.connected() {
                agents.send(&node, Order::Stop);
            }
            let gone = async {
                while agents.n_connected() > 0 {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            if tokio::time::timeout(PATIENCE, gone).await.is_err() {
                tracing::warn!(nodes = ?agents.connected(), "these agents did not end");
            }
        }
        ends_all.store(true, Ordering::Relaxed);
        members::end_others(&journal, &connections).await;
        // SAFETY: a plain system call on this very process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    });
}
