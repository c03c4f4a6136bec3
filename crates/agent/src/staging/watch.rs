//! What the controller is told unasked: how far the movers are, and what there is.
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::agent::Report;
use model::pool::PoolReport;
use model::staging::Progress;

use super::ground;
use super::record::Papers;
use super::survey::{self, Told};
use crate::table::Agent;

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
const INVENTORY_EVERY: Duration = Duration::from_secs(600);
const RATE_OVER: Duration = Duration::from_secs(10);
/// A file system that does not answer must not hold up the registration.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// For as long as the agent lives.
pub async fn watch(agent: Arc<Agent>) {
    let mut known = agent.staging.pools.changes();
    if known.wait_for(|known| !known.pools.is_empty()).await.is_err() {
        return std::future::pending().await;
    }
    known.mark_unchanged();
    let mut progress = tokio::time::interval(PROGRESS_EVERY);
    progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first one goes with the registration.
    let mut inventory = tokio::time::interval_at(tokio::time::Instant::now() + INVENTORY_EVERY, INVENTORY_EVERY);
    let every = || agent.staging.pools.now().measure_every;
    let mut measure_at = tokio::time::Instant::now() + every();
    let mut told = Told::default();
    loop {
        tokio::select! {
            _ = progress.tick() => report_progress(&agent),
            _ = inventory.tick() => survey::send(&agent),
            // What there is in new pools is told at once.
            Ok(()) = known.changed() => measure_at = tokio::time::Instant::now(),
            _ = tokio::time::sleep_until(measure_at) => {
                let started = Instant::now();
                survey::measure(&agent, &mut told).await;
                // Large trees are measured less often.
                measure_at = tokio::time::Instant::now() + every().max(20 * started.elapsed());
            }
        }
    }
}

/// One message for all movers.
fn report_progress(agent: &Agent) {
    let node = agent.options.node.as_str();
    let mut table = agent.staging.table();
    let mut works = Vec::new();
    for (home, slot) in table.slots.iter_mut().filter(|(_, slot)| slot.result.is_none() || slot.tells_end) {
        let has_ended = std::mem::take(&mut slot.tells_end);
        let papers = Papers::new(&slot.work.root, home, node, slot.work.direction);
        let Some(status) = papers.status() else { continue };
        let snapshot = status.snapshot;
        let now = Instant::now();
        let sample = (now, snapshot.bytes_done);
        let first = *slot.first.get_or_insert(sample);
        slot.samples.push_back(sample);
        while slot.samples.front().is_some_and(|(at, _)| now - *at > RATE_OVER) {
            slot.samples.pop_front();
        }
        let is_counted = snapshot.phase != mover::Phase::Planning;
        works.push(Progress {
            home: Some(home.clone()),
            attempt: slot.work.attempt,
            direction: slot.work.direction,
            n_files: snapshot.files_done,
            n_files_total: if is_counted { snapshot.files_total } else { 0 },
            n_bytes: snapshot.bytes_done,
            n_bytes_total: if is_counted { snapshot.bytes_total } else { 0 },
            bytes_per_second: slot.samples.front().filter(|_| !has_ended).map_or(0, |oldest| rate(*oldest, sample)),
            average_bytes_per_second: rate(first, sample),
            n_retries: snapshot.retries,
            error: snapshot.note,
        });
    }
    drop(table);
    if !works.is_empty() {
        agent.table().report(Report::Progress { works });
    }
}

fn rate((first_at, first): (Instant, u64), (last_at, last): (Instant, u64)) -> u64 {
    let secs = (last_at - first_at).as_secs_f64();
    if secs <= 0.0 { 0 } else { (last.saturating_sub(first) as f64 / secs) as u64 }
}

/// The pools as the controller is told at each registration.
pub async fn pool_reports(agent: &Arc<Agent>) -> Vec<PoolReport> {
    let known = agent.staging.pools.now();
    let looked_at = known.clone();
    let asked = tokio::task::spawn_blocking(move || looked_at.pools.iter().map(ground::report).collect());
    match tokio::time::timeout(REPORT_PATIENCE, asked).await {
        Ok(Ok(reports)) => reports,
        _ => {
            let silent = |pool: &model::pool::Pool| PoolReport {
                pool: pool.name.clone(),
                problem: format!("{} does not answer", pool.root),
                ..PoolReport::default()
            };
            known.pools.iter().map(silent).collect()
        }
    }
}
