//! `scontrol shutdown`: ends the controller, and the agents of all nodes unless only the controller is named.
use std::time::Duration;

use tokio::time::{Instant, sleep};
use wire::{CallError, Controller};

use super::{Reply, asking};

/// A controller that has been told to end may still write what it holds.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Returns when nobody answers any more.
pub fn shutdown(rest: &[String]) -> Reply {
    let ends_agents = match rest.first().map(|word| word.to_ascii_lowercase()).as_deref() {
        None => true,
        Some("slurmctld" | "controller") => false,
        Some(_) => return Reply::failed(&format!("invalid shutdown argument:{}", rest[0])),
    };
    asking("slurm_shutdown error", async |controller, cluster| {
        match controller.shutdown(ends_agents).await {
            Ok(()) => {}
            Err(refused @ CallError::Refused(_)) => return Err(refused),
            // It may have gone before its answer was through.
            Err(_) => {}
        }
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            let Ok(mut again) = Controller::connect(&cluster.controller_socket).await else {
                return Ok(Reply::default());
            };
            if again.ping().await.is_err() {
                return Ok(Reply::default());
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(Reply::failed("slurm_shutdown error: the controller still answers"))
    })
}
