//! Which work is under way, done or given up, by home; and who waits for its answer.
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use model::agent::Report;
use model::staging::{Direction, Home, Moved, Removal, StageFailure, StageResult, StageWork};
use tokio::sync::watch;

use super::pools::Pools;
use super::serve::Served;
use super::{ground, work};
use crate::Options;
use crate::table::Agent;

/// How many removed homes are remembered, to refuse orders that come late.
const REMOVED_MAX: usize = 10_000;

pub struct Staging {
    table: Mutex<Table>,
    pub served: Served,
    pub pools: Pools,
}

#[derive(Default)]
pub struct Table {
    pub slots: HashMap<Home, Slot>,
    /// One work or removal at a time for a home: held by the one whose turn it is.
    turns: HashMap<Home, Arc<tokio::sync::Mutex<()>>>,
    removed: HashMap<Home, u32>,
    removed_order: VecDeque<Home>,
}

/// The latest work for one home.
pub struct Slot {
    pub work: Arc<StageWork>,
    pub result: Option<StageResult>,
    /// Orders to answer when it is over.
    numbers: Vec<u64>,
    halt: watch::Sender<bool>,
    /// When and how many bytes, for the rate.
    pub samples: VecDeque<(Instant, u64)>,
    /// The first of all samples, for the average.
    pub first: Option<(Instant, u64)>,
    /// It has failed, and how far it had come is still to be told.
    pub tells_end: bool,
}

impl Staging {
    pub fn new(options: &Options) -> Self {
        Staging { table: Mutex::default(), served: Served::default(), pools: Pools::of(options) }
    }

    pub fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no panic while the staging table is held")
    }
}

impl Table {
    pub fn n_moving(&self) -> u32 {
        self.slots.values().filter(|slot| slot.result.is_none()).count() as u32
    }

    fn turn(&mut self, home: &Home) -> Arc<tokio::sync::Mutex<()>> {
        self.turns.entry(home.clone()).or_default().clone()
    }

    fn is_wanted_after(&self, home: &Home, attempt: u32) -> bool {
        self.slots.get(home).is_some_and(|slot| slot.work.attempt > attempt)
    }

    /// A newer work may have been ordered meanwhile.
    fn forget(&mut self, home: &Home, attempt: u32) {
        if self.is_wanted_after(home, attempt) {
            return;
        }
        self.slots.remove(home);
        self.turns.remove(home);
        if self.removed.insert(home.clone(), attempt).is_none() {
            self.removed_order.push_back(home.clone());
        }
        if self.removed_order.len() > REMOVED_MAX
            && let Some(oldest) = self.removed_order.pop_front()
        {
            self.removed.remove(&oldest);
        }
    }
}

pub fn failed(why: impl Into<String>) -> StageResult {
    StageResult::Failed(StageFailure { why: why.into(), ..Default::default() })
}

fn answer(agent: &Agent, number: u64, result: StageResult) {
    if number != 0 {
        agent.table().report(Report::Staged { number, result });
    }
}

/// Begins work, joins it, or tells again how it ended.
pub fn stage(agent: &Arc<Agent>, number: u64, work: StageWork) {
    let Some(home) = work.home.clone() else { return answer(agent, number, failed("the order names no home")) };
    let mut table = agent.staging.table();
    if table.removed.get(&home).is_some_and(|attempt| *attempt >= work.attempt) {
        drop(table);
        return answer(agent, number, failed("the buffer has been removed"));
    }
    if let Some(slot) = table.slots.get_mut(&home) {
        if slot.work.attempt > work.attempt {
            return tracing::debug!(?home, attempt = work.attempt, "a stale order about a buffer");
        }
        if slot.work.attempt == work.attempt && slot.work.direction == work.direction {
            match slot.result.clone() {
                Some(result) => {
                    drop(table);
                    answer(agent, number, result);
                }
                None => slot.numbers.push(number),
            }
            return;
        }
        slot.halt.send_replace(true);
    }
    let (halt, halted) = watch::channel(false);
    let turn = table.turn(&home);
    let work = Arc::new(work);
    let samples = VecDeque::new();
    let slot =
        Slot { work: work.clone(), result: None, numbers: vec![number], halt, samples, first: None, tells_end: false };
    table.slots.insert(home.clone(), slot);
    drop(table);
    tokio::spawn(carry_out(agent.clone(), home, work, turn, halted));
}

async fn carry_out(
    agent: Arc<Agent>,
    home: Home,
    work: Arc<StageWork>,
    turn: Arc<tokio::sync::Mutex<()>>,
    halted: watch::Receiver<bool>,
) {
    let _turn = turn.lock().await;
    if *halted.borrow() {
        return;
    }
    let Some(result) = work::perform(&agent, &home, &work, halted).await else { return };
    match &result {
        StageResult::Done(moved) => {
            tracing::info!(?home, direction = ?work.direction, files = moved.n_files, bytes = moved.n_bytes, "staged");
        }
        StageResult::Failed(failure) => {
            tracing::warn!(?home, direction = ?work.direction, why = failure.why, "staging failed");
        }
    }
    let mut numbers = Vec::new();
    {
        let mut table = agent.staging.table();
        if let Some(slot) = table.slots.get_mut(&home).filter(|slot| Arc::ptr_eq(&slot.work, &work)) {
            slot.tells_end = matches!(result, StageResult::Failed(_));
            slot.result = Some(result.clone());
            numbers = std::mem::take(&mut slot.numbers);
        }
    }
    numbers.into_iter().for_each(|number| answer(&agent, number, result.clone()));
}

/// Ends what moves there, then removes it; the answer says that nothing of it is left.
pub fn remove(agent: &Arc<Agent>, number: u64, removal: Removal) {
    let Some(home) = removal.home.clone() else { return answer(agent, number, failed("the order names no home")) };
    let turn = {
        let mut table = agent.staging.table();
        if let Some(slot) = table.slots.get(&home).filter(|slot| slot.work.attempt <= removal.attempt) {
            slot.halt.send_replace(true);
        }
        table.turn(&home)
    };
    let agent = agent.clone();
    tokio::spawn(async move {
        let _turn = turn.lock().await;
        // Whose turn comes first is nobody's choice: what was ordered later counts.
        if agent.staging.table().is_wanted_after(&home, removal.attempt) {
            return answer(&agent, number, failed("the buffer is wanted again"));
        }
        let _unread = agent.staging.served.end(&home).await;
        let node = agent.options.node.to_string();
        let (held, root, named) = (agent.clone(), removal.root.clone(), home.clone());
        let removed = tokio::task::spawn_blocking(move || {
            work::end_movers(work::Here::of(&held), &root, &named, u32::MAX)?;
            work::is_the_one(work::Here::of(&held), &root, &named)?;
            ground::remove_home(&root, &named)?;
            work::forget(&root, &named, &node, removal.attempt);
            Ok::<_, String>(())
        });
        let result = match removed.await.map_err(|error| error.to_string()).and_then(|done| done) {
            Ok(()) => {
                tracing::info!(?home, "buffer removed");
                agent.staging.table().forget(&home, removal.attempt);
                StageResult::Done(Moved::default())
            }
            Err(why) => {
                tracing::warn!(?home, why, "a buffer could not be removed");
                failed(why)
            }
        };
        answer(&agent, number, result);
    });
}

/// Another agent has taken over; the directory stays.
pub fn stop_mover(agent: &Arc<Agent>, home: Home, attempt: u32) {
    let turn = {
        let mut table = agent.staging.table();
        if let Some(slot) = table.slots.get(&home) {
            if slot.work.attempt > attempt {
                return;
            }
            slot.halt.send_replace(true);
            table.slots.remove(&home);
        }
        table.turn(&home)
    };
    let agent = agent.clone();
    tokio::spawn(async move {
        let _turn = turn.lock().await;
        let roots: Vec<String> = agent.staging.pools.now().all().map(|pool| pool.root.clone()).collect();
        let _ = tokio::task::spawn_blocking(move || {
            for root in roots {
                if let Err(why) = work::end_movers(work::Here::of(&agent), &root, &home, attempt) {
                    tracing::warn!(?home, why, "a mover could not be ended");
                }
            }
        })
        .await;
    });
}

/// Both ways of a home's work, for those who look at all of it.
pub const DIRECTIONS: [Direction; 2] = [Direction::In, Direction::Out];
