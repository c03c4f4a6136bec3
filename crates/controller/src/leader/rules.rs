//! New rules count when every controller knows them; until then all judge by those they have in common.
use std::sync::Arc;
use std::time::Duration;

use model::{Caller, Command};
use state::rules::LATEST;

use crate::door::{Door, Refusal};
use crate::leading::Ground;
use crate::members;

/// Controllers of an earlier release are being restarted, one after the other.
const PAUSE: Duration = Duration::from_secs(5);

/// Ends when the rules of this release count, or somebody else leads.
pub async fn run(ground: Arc<Ground>, door: Arc<Door>) {
    let mut told = Vec::new();
    while ground.published.now().rules() < LATEST {
        let members = members::view(&ground.journal, &ground.connections, &ground.own).await.members;
        let behind: Vec<u64> = members.iter().filter(|member| member.rules < LATEST).map(|member| member.id).collect();
        if behind.is_empty() && adopt(&door).await.is_ok() {
            return;
        }
        if behind != told {
            tracing::info!(controllers = ?behind, "new rules wait until these controllers answer, and are of this release");
            told = behind;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

pub async fn adopt(door: &Door) -> Result<(), Refusal> {
    door.propose(Caller::SYSTEM, Command::AdoptRules { edition: LATEST }).await?;
    tracing::info!(edition = LATEST, "the rules of this release count");
    Ok(())
}
