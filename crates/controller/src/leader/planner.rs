//! Plans whenever something has changed; there is no tick to wait for.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use model::{Caller, Command, Plan};
use scheduler::Outlook;
use state::Cluster;

use crate::door::Door;
use crate::machine::Published;

/// Plans larger than this are cut, so that one entry never holds up the log for long.
const STARTS_PER_ENTRY: usize = 1000;

/// So few jobs and nodes are planned faster than the work is handed to another thread.
const SHORT_QUEUE: usize = 64;

const A_LONG_TIME: Duration = Duration::from_secs(3600);

pub async fn run(door: Arc<Door>, published: Published) {
    let mut changes = published.changes();
    loop {
        let cluster = changes.borrow_and_update().clone();
        let mut look_again_at = None;
        if cluster.n_queued() + cluster.n_to_stage() > 0
            && let Some(outlook) = look(cluster).await
        {
            look_again_at = outlook.look_again_at;
            adopt(&door, outlook.plan).await;
        }
        let until = look_again_at.map_or(A_LONG_TIME, |at| Duration::from_micros((at - door.now()).0));
        // Time alone may give another plan; what happens meanwhile gives one at once.
        if let Ok(Err(_)) = tokio::time::timeout(until, changes.changed()).await {
            return;
        }
    }
}

/// A short queue is planned at once; a long one where it keeps nobody else waiting.
async fn look(cluster: Arc<Cluster>) -> Option<Outlook> {
    let is_short = cluster.n_queued() <= SHORT_QUEUE && cluster.n_nodes() <= SHORT_QUEUE;
    let planned = match is_short {
        true => catch_unwind(AssertUnwindSafe(|| scheduler::look(&cluster))).map_err(|_| "it panicked".to_string()),
        false => {
            tokio::task::spawn_blocking(move || scheduler::look(&cluster)).await.map_err(|error| error.to_string())
        }
    };
    planned.inspect_err(|why| tracing::error!(why, "the scheduler failed on this state")).ok()
}

async fn adopt(door: &Door, mut plan: Plan) {
    while plan != Plan::default() {
        let rest = plan.starts.split_off(plan.starts.len().min(STARTS_PER_ENTRY));
        let part = std::mem::take(&mut plan);
        if let Err(refusal) = door.propose(Caller::SYSTEM, Command::AdoptPlan(part)).await {
            tracing::warn!(?refusal, "a plan was not adopted");
            return;
        }
        plan.starts = rest;
    }
}
