//! Sleeps until the state's next deadline and proposes a tick.
use std::sync::Arc;
use std::time::Duration;

use model::{Caller, Command};

use crate::door::{Door, Refusal};
use crate::machine::Published;

/// Somebody may have set the machine's clock meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

pub async fn run(door: Arc<Door>, published: Published) {
    let mut changes = published.changes();
    loop {
        let deadline = changes.borrow_and_update().next_deadline();
        let wait = deadline.map_or(LOOK_AGAIN, |deadline| Duration::from_micros((deadline - door.now()).0));
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait.min(LOOK_AGAIN)), if deadline.is_some() => {
                if deadline.is_some_and(|deadline| door.now() < deadline) {
                    continue;
                }
                if let Err(Refusal::NotWritten(why)) = door.propose(Caller::SYSTEM, Command::Tick).await {
                    tracing::warn!(why, "a tick was not written");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}
