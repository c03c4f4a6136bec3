//! When a disk that was full has room again, what waited for it is looked at anew.
use std::sync::Arc;

use journal::DiskRoom;
use model::{Caller, Command};

use crate::door::Door;

pub async fn run(door: Arc<Door>) {
    let mut room = door.room();
    loop {
        if room.wait_for(|room| *room != DiskRoom::Ample).await.is_err() {
            return;
        }
        if room.wait_for(|room| *room == DiskRoom::Ample).await.is_err() {
            return;
        }
        // Plans that were refused meanwhile are made again when the state changes.
        if let Err(refusal) = door.propose(Caller::SYSTEM, Command::Tick).await {
            tracing::warn!(?refusal, "a tick was not written");
        }
    }
}
