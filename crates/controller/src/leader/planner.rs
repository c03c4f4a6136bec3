//! Plans whenever the state has changed. What time alone changes is a deadline of the state, whose tick is a change like any other.
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Caller, Command, JobId, Plan, Reply};
use scheduler::Outlook;
use state::Cluster;

use crate::door::Door;
use crate::machine::Published;

/// Plans larger than this are cut, so that one entry never holds up the log for long.
const STARTS_PER_ENTRY: usize = 1000;

/// So few jobs and nodes are planned faster than the work is handed to another thread.
const SHORT_QUEUE: usize = 64;

const BACKFILL: &str = model::loudness::DebugFlag::Backfill.target();

/// So often in a row a plan may come too late. One that the state refuses for ever must not be made for ever.
const N_IN_VAIN: u32 = 3;
const REST: Duration = Duration::from_secs(1);

pub async fn run(door: Arc<Door>, published: Published) {
    let mut changes = published.changes();
    let (mut stopped_at, mut n_in_vain) = (None, 0);
    loop {
        let cluster = changes.borrow_and_update().clone();
        if cluster.n_queued() + cluster.n_to_stage() > 0
            && let Some(outlook) = plan(&door, &published, cluster, None).await
        {
            stopped_at = stopped_at.or(outlook.stopped_at);
            n_in_vain = outlook.refused.map_or(0, |_| n_in_vain + 1);
            if let (Some(job), true) = (outlook.refused, n_in_vain > N_IN_VAIN) {
                tracing::error!(%job, "a job is to start again and again, and the state does not let it");
                tokio::time::sleep(REST).await;
            }
        }
        // Those far behind have their turn too: where the last pass stopped the next goes on, whatever happens in between.
        while let Some(after) = stopped_at.take() {
            let cluster = published.now();
            if !cluster.job(after).is_some_and(|job| cluster.is_eligible(job)) {
                break;
            }
            let Some(outlook) = plan(&door, &published, cluster, Some(after)).await else { break };
            stopped_at = outlook.stopped_at;
            if changes.has_changed().unwrap_or(true) {
                break;
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// What is left of an outlook when its plan has been adopted.
struct Adopted {
    stopped_at: Option<JobId>,
    /// The first to start, where the state let none of them.
    refused: Option<JobId>,
}

/// One pass, adopted.
async fn plan(door: &Door, published: &Published, cluster: Arc<Cluster>, stopped_at: Option<JobId>) -> Option<Adopted> {
    let begun = Instant::now();
    let Outlook { plan, stopped_at, .. } = look(cluster.clone(), stopped_at).await?;
    let n_backfilled = n_backfilled(&cluster, &plan);
    let (n_starts, n_preempted) = (plan.starts.len(), plan.preemptions.len());
    tracing::debug!(target: BACKFILL, n_queued = cluster.n_queued(), n_starts, n_backfilled, n_preempted, took = ?begun.elapsed());
    published.statistics.planned(door.now(), begun.elapsed(), cluster.n_queued(), n_backfilled);
    published.statistics.placed(&cluster, &plan);
    let refused = adopt(door, plan).await;
    Some(Adopted { stopped_at, refused })
}

/// Starts of jobs that stand behind one that stays.
fn n_backfilled(cluster: &Cluster, plan: &Plan) -> u64 {
    let started: BTreeSet<JobId> = plan.starts.iter().map(|start| start.job).collect();
    if started.is_empty() {
        return 0;
    }
    let behind = cluster.queue().skip_while(|job| started.contains(&job.id));
    behind.filter(|job| started.contains(&job.id)).count() as u64
}

/// A short queue is planned at once; a long one where it keeps nobody else waiting.
async fn look(cluster: Arc<Cluster>, stopped_at: Option<JobId>) -> Option<Outlook> {
    let pass = move |cluster: &Cluster| match stopped_at {
        None => scheduler::look(cluster),
        Some(after) => scheduler::look_behind(cluster, after),
    };
    let is_short = cluster.n_queued() <= SHORT_QUEUE && cluster.n_nodes() <= SHORT_QUEUE;
    let planned = match is_short {
        true => catch_unwind(AssertUnwindSafe(|| pass(&cluster))).map_err(|_| "it panicked".to_string()),
        false => tokio::task::spawn_blocking(move || pass(&cluster)).await.map_err(|error| error.to_string()),
    };
    planned.inspect_err(|why| tracing::error!(why, "the scheduler failed on this state")).ok()
}

/// The first of the starts, if the state took none of them.
async fn adopt(door: &Door, mut plan: Plan) -> Option<JobId> {
    let (first, mut n_taken) = (plan.starts.first().map(|start| start.job), 0);
    while plan != Plan::default() {
        let rest = plan.starts.split_off(plan.starts.len().min(STARTS_PER_ENTRY));
        let part = std::mem::take(&mut plan);
        for one in &part.stage_preemptions {
            tracing::info!("Preempting stage-in of JobId={} for JobId={}", one.job, one.by);
        }
        match door.propose(Caller::SYSTEM, Command::AdoptPlan(part)).await {
            Ok(Reply::Adopted { n_started, .. }) => n_taken += n_started,
            Ok(_) => (),
            Err(refusal) => {
                tracing::warn!(?refusal, "a plan was not adopted");
                return None;
            }
        }
        plan.starts = rest;
    }
    first.filter(|_| n_taken == 0)
}
