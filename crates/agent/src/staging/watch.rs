//! What the controller is told unasked: how far the movers are, which homes there are, and when one has outgrown its capacity.
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::agent::Report;
use model::pool::PoolReport;
use model::staging::{HeldHome, Home, Inventory, Progress};

use super::ground;
use super::record::Papers;
use super::table::DIRECTIONS;
use crate::table::Agent;

const PROGRESS_EVERY: Duration = Duration::from_secs(1);
const INVENTORY_EVERY: Duration = Duration::from_secs(600);
const MEASURE_EVERY: Duration = Duration::from_secs(30);
const RATE_OVER: Duration = Duration::from_secs(10);
/// A file system that does not answer must not hold up the registration.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// For as long as the agent lives.
pub async fn watch(agent: Arc<Agent>) {
    if agent.options.pools.is_empty() {
        return std::future::pending().await;
    }
    let mut progress = tokio::time::interval(PROGRESS_EVERY);
    progress.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first one goes with the registration.
    let mut inventory = tokio::time::interval_at(tokio::time::Instant::now() + INVENTORY_EVERY, INVENTORY_EVERY);
    let mut measure_at = tokio::time::Instant::now() + MEASURE_EVERY;
    let mut over = HashSet::new();
    loop {
        tokio::select! {
            _ = progress.tick() => report_progress(&agent),
            _ = inventory.tick() => send_inventory(&agent),
            _ = tokio::time::sleep_until(measure_at) => {
                let started = Instant::now();
                measure(&agent, &mut over).await;
                // Large trees are measured less often.
                measure_at = tokio::time::Instant::now() + MEASURE_EVERY.max(20 * started.elapsed());
            }
        }
    }
}

/// One message for all movers.
fn report_progress(agent: &Agent) {
    let node = agent.options.node.as_str();
    let mut table = agent.staging.table();
    let mut works = Vec::new();
    for (home, slot) in table.slots.iter_mut().filter(|(_, slot)| slot.result.is_none()) {
        let papers = Papers::new(&slot.work.root, home, node, slot.work.direction);
        let Some(status) = papers.status() else { continue };
        let snapshot = status.snapshot;
        let now = Instant::now();
        slot.samples.push_back((now, snapshot.bytes_done));
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
            bytes_per_second: rate(&slot.samples),
            n_retries: snapshot.retries,
            error: snapshot.note,
        });
    }
    drop(table);
    if !works.is_empty() {
        agent.table().report(Report::Progress { works });
    }
}

fn rate(samples: &std::collections::VecDeque<(Instant, u64)>) -> u64 {
    let (Some((first_at, first)), Some((last_at, last))) = (samples.front(), samples.back()) else { return 0 };
    let secs = (*last_at - *first_at).as_secs_f64();
    if secs <= 0.0 { 0 } else { (last.saturating_sub(*first) as f64 / secs) as u64 }
}

/// Right after a registration, and now and then.
pub fn send_inventory(agent: &Arc<Agent>) {
    if agent.options.pools.is_empty() {
        return;
    }
    let agent = agent.clone();
    tokio::task::spawn_blocking(move || {
        let inventory = Inventory { homes: held(&agent, true), pools: reports(&agent.options) };
        agent.table().report(Report::Inventory(inventory));
    });
}

fn held(agent: &Agent, is_measured: bool) -> Vec<HeldHome> {
    let node = agent.options.node.as_str();
    let mut found = Vec::new();
    for pool in &agent.options.pools {
        for home in ground::homes(&pool.root) {
            let papers = DIRECTIONS.map(|direction| Papers::new(&pool.root, &home, node, direction));
            let attempts = papers.iter().filter_map(|papers| papers.read()).map(|record| record.work.attempt);
            found.push(HeldHome {
                attempt: attempts.max().unwrap_or_default(),
                is_moving: papers.iter().any(|papers| papers.has_mover()),
                used_bytes: if is_measured { ground::used_bytes(&pool.root, &home) } else { 0 },
                pool: pool.name.clone(),
                root: pool.root.clone(),
                home: Some(home),
            });
        }
    }
    found
}

fn reports(options: &crate::Options) -> Vec<PoolReport> {
    options.pools.iter().map(ground::report).collect()
}

/// The pools as the controller is told at each registration.
pub async fn pool_reports(agent: &Arc<Agent>) -> Vec<PoolReport> {
    let options = agent.options.clone();
    let asked = tokio::task::spawn_blocking(move || reports(&options));
    match tokio::time::timeout(REPORT_PATIENCE, asked).await {
        Ok(Ok(reports)) => reports,
        _ => {
            let silent = |pool: &model::pool::Pool| PoolReport {
                pool: pool.name.clone(),
                problem: format!("{} does not answer", pool.root),
                ..PoolReport::default()
            };
            agent.options.pools.iter().map(silent).collect()
        }
    }
}

/// A home above its capacity is told at once, and once; so is that it no longer is.
async fn measure(agent: &Arc<Agent>, over: &mut HashSet<Home>) {
    let held = agent.clone();
    let Ok(found) = tokio::task::spawn_blocking(move || over_capacity(&held)).await else { return };
    let is_news = found != *over;
    for home in found.iter().filter(|home| !over.contains(home)) {
        tracing::warn!(?home, "a buffer holds more than its capacity");
    }
    *over = found;
    if is_news {
        send_inventory(agent);
    }
}

fn over_capacity(agent: &Agent) -> HashSet<Home> {
    let node = agent.options.node.as_str();
    let mut found = HashSet::new();
    for pool in &agent.options.pools {
        for home in ground::homes(&pool.root) {
            let records = DIRECTIONS.iter().filter_map(|way| Papers::new(&pool.root, &home, node, *way).read());
            let capacity = records.map(|record| record.work.capacity_bytes).max().unwrap_or_default();
            if capacity > 0 && ground::used_bytes(&pool.root, &home) > capacity {
                found.insert(home);
            }
        }
    }
    found
}
