//! What the pools of this agent hold, and what else is in them: told at each registration, every ten minutes, and when it has
//! changed by much.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::agent::Report;
use model::pool::{Pool, PoolKind, PoolReport};
use model::staging::{HeldHome, Home, Inventory};
use model::time::Span;

use super::ground;
use super::record::Papers;
use super::table::DIRECTIONS;
use crate::table::Agent;

/// What the controller was told last.
#[derive(Default)]
pub struct Told {
    inventory: Inventory,
    over: HashSet<Home>,
}

/// Right after a registration, and now and then.
pub fn send(agent: &Arc<Agent>) {
    if agent.staging.pools.now().all().next().is_none() {
        return;
    }
    let agent = agent.clone();
    tokio::task::spawn_blocking(move || {
        let (inventory, _) = survey(&agent);
        agent.table().report(Report::Inventory(inventory));
    });
}

/// What has changed by much is told at once: a home above its capacity, foreign files, how full homes are.
pub async fn measure(agent: &Arc<Agent>, told: &mut Told) {
    let held = agent.clone();
    let Ok((inventory, over)) = tokio::task::spawn_blocking(move || survey(&held)).await else { return };
    for home in over.iter().filter(|home| !told.over.contains(home)) {
        tracing::warn!(?home, "a buffer holds more than its capacity");
    }
    if over != told.over || differs(&told.inventory, &inventory) {
        agent.table().report(Report::Inventory(inventory.clone()));
        *told = Told { inventory, over };
    }
}

/// By more than a hundredth of what there is, or nothing foreign is there any more.
fn differs(before: &Inventory, now: &Inventory) -> bool {
    let is_far = |before: u64, now: u64, of: u64| before.abs_diff(now) > of / 100;
    let is_alone = |report: &PoolReport| report.available_bytes + report.held_bytes >= report.total_bytes;
    let known: HashMap<&str, &PoolReport> = before.pools.iter().map(|report| (report.pool.as_str(), report)).collect();
    let pools = now.pools.iter().any(|report| {
        known.get(report.pool.as_str()).is_none_or(|known| {
            known.problem != report.problem
                || is_far(known.total_bytes, report.total_bytes, known.total_bytes)
                || is_far(known.available_bytes, report.available_bytes, report.total_bytes)
                || is_far(known.held_bytes, report.held_bytes, report.total_bytes)
                || (is_alone(report) && !is_alone(known))
        })
    });
    let used: HashMap<_, u64> = before.homes.iter().map(|held| (&held.home, held.used_bytes)).collect();
    let is_news = |held: &HeldHome| {
        let before = used.get(&held.home).copied().unwrap_or(0);
        is_far(before, held.used_bytes, before.max(held.used_bytes))
    };
    pools || now.homes.iter().any(is_news)
}

/// Everything there is, and the homes that hold more than they may.
fn survey(agent: &Agent) -> (Inventory, HashSet<Home>) {
    let (mut inventory, mut over) = (Inventory::default(), HashSet::new());
    let known = agent.staging.pools.now();
    for pool in known.all() {
        // What is written meanwhile is counted as free rather than as foreign.
        let mut report = ground::report(pool);
        for home in ground::homes(&pool.root) {
            let found = look(agent, pool, home.clone());
            report.held_bytes += found.held.used_bytes + found.notes_bytes;
            if found.capacity_bytes > 0 && found.held.used_bytes > found.capacity_bytes {
                over.insert(home);
            }
            inventory.homes.push(found.held);
        }
        if known.pools.contains(pool) {
            inventory.pools.push(report);
        }
    }
    (inventory, over)
}

struct Found {
    held: HeldHome,
    /// What it may hold.
    capacity_bytes: u64,
    /// What this agent has noted of it: nobody else's either.
    notes_bytes: u64,
}

/// In a shared pool each agent measures only what it has worked for.
fn look(agent: &Agent, pool: &Pool, home: Home) -> Found {
    let papers = DIRECTIONS.map(|way| Papers::new(&pool.root, &home, agent.options.node.as_str(), way));
    let records: Vec<_> = papers.iter().filter_map(|papers| papers.read()).collect();
    let is_measured = pool.kind == PoolKind::Node || !records.is_empty();
    let held = HeldHome {
        attempt: records.iter().map(|record| record.work.attempt).max().unwrap_or_default(),
        is_moving: papers.iter().any(|papers| papers.has_mover()),
        used_bytes: if is_measured { ground::used_bytes(&pool.root, &home) } else { 0 },
        age: Span(ground::age(&pool.root, &home).as_micros() as u64),
        pool: pool.name.clone(),
        root: pool.root.clone(),
        home: Some(home),
    };
    Found {
        held,
        capacity_bytes: records.iter().map(|record| record.work.capacity_bytes).max().unwrap_or_default(),
        notes_bytes: papers.iter().map(Papers::used_bytes).sum(),
    }
}
