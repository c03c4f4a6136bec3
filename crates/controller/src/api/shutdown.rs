//! `scontrol shutdown`: the agents first, if they are meant, then all controllers, by the way that SIGTERM takes.
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::agent::Order;

use super::Api;
use crate::members;

/// How long agents have to go; one that does not is left behind.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The answer has gone out by then; a call that is not answered would be made again, to the next controller.
const BEFORE_ABORT: Duration = Duration::from_millis(100);

/// `scontrol abort`: as a crash would be.
pub fn abort() {
    tokio::spawn(async {
        tokio::time::sleep(BEFORE_ABORT).await;
        tracing::error!("an administrator has this controller abort");
        std::process::abort();
    });
}

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
