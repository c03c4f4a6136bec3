//! Plans whenever something has changed; there is no tick to wait for.
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Caller, Command, JobId, Plan};
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
        let begun = Instant::now();
        if cluster.n_queued() + cluster.n_to_stage() > 0
            && let Some(outlook) = look(cluster.clone()).await
        {
            let n_backfilled = n_backfilled(&cluster, &outlook.plan);
            published.statistics.planned(door.now(), begun.elapsed(), cluster.n_queued(), n_backfilled);
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

/// Starts of jobs that stand behind one that stays.
fn n_backfilled(cluster: &Cluster, plan: &Plan) -> u64 {
    let started: BTreeSet<JobId> = plan.starts.iter().map(|start| start.job).collect();
    if started.is_empty() {
        return 0;
    }
    let behind = cluster.queue().skip_while(|job| started.contains(&job.id));
    behind.take(cluster.config().scheduler.depth as usize).filter(|job| started.contains(&job.id)).count() as u64
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
