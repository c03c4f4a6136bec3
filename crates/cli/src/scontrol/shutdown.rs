//! `scontrol shutdown`: ends all controllers, and the agents of all nodes unless only the controller is named.
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use wire::CallError;
use wire::long_path::SocketPath;

use super::{Reply, asking};

/// A controller that has been told to end may still write what it holds.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// `scontrol abort`: the leading controller ends as if it had crashed.
pub fn abort() -> Reply {
    asking("slurm_shutdown error", async |controller, _| {
        controller.abort().await?;
        Ok(Reply::default())
    })
}

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
            // It may have gone before its answer was through.
            Err(CallError::Broken(_) | CallError::Unreachable { .. }) => {}
            Err(refused @ (CallError::Refused(_) | CallError::Other(_))) => return Err(refused),
        }
        if cluster.controller_socket.authority.is_some() {
            return Ok(Reply::default());
        }
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            if !cluster.controller_socket.all().any(answers) {
                return Ok(Reply::default());
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(Reply::failed("slurm_shutdown error: the controller still answers"))
    })
}

fn answers(socket: &Path) -> bool {
    SocketPath::of(socket).is_ok_and(|path| UnixStream::connect(path).is_ok())
}
