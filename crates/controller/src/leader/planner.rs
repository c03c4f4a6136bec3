//! Plans whenever something has changed; there is no tick to wait for.
use std::sync::Arc;

use model::{Caller, Command, Plan};

use crate::door::Door;
use crate::machine::Published;

/// Plans larger than this are cut, so that one entry never holds up the log for long.
const STARTS_PER_ENTRY: usize = 1000;

pub async fn run(door: Arc<Door>, published: Published) {
    let mut changes = published.changes();
    loop {
        let cluster = changes.borrow_and_update().clone();
        if cluster.n_queued() > 0 {
            let planned = tokio::task::spawn_blocking(move || scheduler::plan(&cluster)).await;
            match planned {
                Ok(plan) => adopt(&door, plan).await,
                Err(error) => tracing::error!(%error, "the scheduler failed on this state"),
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn adopt(door: &Door, mut plan: Plan) {
    while !plan.starts.is_empty() || !plan.reasons.is_empty() {
        let rest = plan.starts.split_off(plan.starts.len().min(STARTS_PER_ENTRY));
        let part = Plan { starts: plan.starts, reasons: std::mem::take(&mut plan.reasons) };
        if let Err(refusal) = door.propose(Caller::SYSTEM, Command::AdoptPlan(part)).await {
            tracing::warn!(?refusal, "a plan was not adopted");
            return;
        }
        plan.starts = rest;
    }
}
