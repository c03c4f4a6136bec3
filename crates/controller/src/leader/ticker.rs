//! Sleeps until the state's next deadline and proposes a tick.
use std::sync::Arc;
use std::time::Duration;

use model::{Caller, Command};

use crate::door::{Door, Refusal};
use crate::machine::Published;

pub async fn run(door: Arc<Door>, published: Published) {
    let mut changes = published.changes();
    loop {
        let deadline = changes.borrow_and_update().next_deadline();
        let wait = match deadline {
            Some(deadline) => Duration::from_micros((deadline - door.now()).0),
            None => Duration::from_secs(3600),
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(wait), if deadline.is_some() => {
                if let Err(Refusal::NotWritten(why)) = door.propose(Caller::SYSTEM, Command::Tick).await {
                    tracing::warn!(why, "a tick was not written");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}
