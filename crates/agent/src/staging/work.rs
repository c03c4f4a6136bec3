//! One work from its record to its result: the mover is started, or joined if an earlier agent has started it, watched, and ended
//! when it is called off or takes too long.
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::buffer::TransferKind;
use model::staging::{Direction, Home, Moved, StageFailure, StageResult, StageWork};
use model::time::Span;
use tokio::sync::watch;

use super::record::{Papers, Record, boot_id};
use super::table::{DIRECTIONS, failed};
use super::{errand, fetch, ground, group};
use crate::supervisor::Identity;
use crate::table::Agent;
use crate::{leftovers, sys};

const KILL_AFTER: Duration = Duration::from_secs(5);
/// Nobody tells when a mover has said who it is.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A mover that dies without a word is started again so often.
const STARTS_MAX: u32 = 6;
const EXECUTABLE: &str = "/proc/self/exe";

/// Whose movers, and below which cgroup they are.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    node: &'a str,
    cgroup: Option<&'a Path>,
}

impl<'a> Here<'a> {
    pub fn of(agent: &'a Agent) -> Self {
        Here { node: agent.options.node.as_str(), cgroup: agent.cgroup.as_deref() }
    }
}

enum Begun {
    Over(StageResult),
    Moving(Mover),
    /// The machine had no process to spare; the next try may find one.
    Unstarted(String),
}

/// Our child, or that of an agent before us.
struct Mover {
    papers: Papers,
    child: Option<Child>,
    started_secs: u64,
}

/// None: it was called off, and there is nobody to tell.
pub async fn perform(
    agent: &Arc<Agent>,
    home: &Home,
    work: &Arc<StageWork>,
    mut halted: watch::Receiver<bool>,
) -> Option<StageResult> {
    let mut pause = Duration::from_secs(1);
    let mut trouble = "the mover ended several times without a result".to_owned();
    // Each peer has one chance; then the sources are read.
    let mut peers = work.peers.iter();
    for _ in 0..STARTS_MAX as usize + work.peers.len() {
        let peer = match peers.next() {
            Some(peer) => fetch::open(agent, home, work, peer)
                .await
                .map_err(|why| tracing::info!(?home, node = %peer.node, why, "a peer does not give the data"))
                .ok(),
            None => None,
        };
        let (held, named, wanted) = (agent.clone(), home.clone(), work.clone());
        let begun = tokio::task::spawn_blocking(move || begin(&held, &named, &wanted, peer)).await;
        let mover = match begun.map_err(|error| error.to_string()).and_then(|begun| begun) {
            Ok(Begun::Moving(mover)) => mover,
            Ok(Begun::Over(result)) => return Some(result),
            Ok(Begun::Unstarted(why)) => {
                tracing::warn!(?home, why, "it is tried again");
                trouble = why;
                rest(&mut pause, &mut halted).await?;
                continue;
            }
            Err(why) => return Some(conclude(agent, home, work, failed(why))),
        };
        let (papers, started_secs) = (mover.papers.clone(), mover.started_secs);
        let ended = attend(work, mover, &mut halted).await;
        sweep(agent, home, work).await;
        if *halted.borrow() {
            clean(agent, home, work).await;
            return None;
        }
        if ended == Ended::TooLate {
            clean(agent, home, work).await;
            let limit = work.timeout.0 / 1_000_000;
            return Some(conclude(agent, home, work, failed(format!("not finished after {limit} seconds"))));
        }
        let status = papers.status();
        if let Some(result) = status.as_ref().and_then(|status| result_of(status, started_secs)) {
            return Some(conclude(agent, home, work, result));
        }
        if let Some(outcome) = status.and_then(|status| status.outcome)
            && outcome.ending == mover::Ending::Parted
        {
            let why = outcome.warnings.last().cloned().unwrap_or_default();
            tracing::info!(?home, why, "a peer did not give all of the data");
            continue;
        }
        tracing::warn!(?home, "a mover has ended without a result; another goes on");
        rest(&mut pause, &mut halted).await?;
    }
    Some(conclude(agent, home, work, failed(trouble)))
}

/// None: it was called off meanwhile.
async fn rest(pause: &mut Duration, halted: &mut watch::Receiver<bool>) -> Option<()> {
    tokio::select! {
        _ = tokio::time::sleep(*pause) => {}
        _ = halted.wait_for(|is_halted| *is_halted) => return None,
    }
    *pause *= 2;
    Some(())
}

/// Blocks. What is on the disk decides whether there is something to do.
fn begin(agent: &Agent, home: &Home, work: &StageWork, peer: Option<UnixStream>) -> Result<Begun, String> {
    let node = agent.options.node.as_str();
    let papers = Papers::new(&work.root, home, node, work.direction);
    let known = papers.read().filter(|record| record.work.attempt == work.attempt);
    if let Some(record) = &known {
        // After a crash of the machine what was staged in may not be there any more: the mover looks.
        let is_sure = record.boot == boot_id() || work.direction == Direction::Out;
        if let Some(result) = record.result.clone().filter(|_| is_sure) {
            return Ok(Begun::Over(result));
        }
    }
    let started_secs = known.as_ref().map_or_else(now_secs, |record| record.started_secs);
    if papers.has_mover() {
        if known.is_some() {
            return Ok(Begun::Moving(Mover { papers, child: None, started_secs }));
        }
        end_movers(Here::of(agent), &work.root, home, u32::MAX)?;
    }
    match work.direction {
        Direction::In => {
            let is_limited = ground::make_home(&work.root, home, work.uid, work.gid, work.capacity_bytes)?;
            tracing::debug!(?home, is_limited, "home is there");
            if matches!(home, Home::Job { .. }) {
                papers.set_aside();
            }
        }
        Direction::Out if ground::has_home(&work.root, home) => {
            papers.take_over(&work.root, home);
        }
        Direction::Out => return Err(format!("{} is not there", home.directory(&work.root))),
    }
    ground::open_root(&work.root)?;
    let identity = Identity::look_up(work.uid, work.gid, &work.user);
    let (n_workers, bandwidth) = share(agent, work);
    let order = errand::order(work, home, node, &identity, n_workers)?;
    let order = mover::Order { bytes_per_sec: bandwidth, ..order };
    let mark = ground::mark(&work.root, home);
    let record = Record { work: work.clone(), started_secs, result: None, boot: boot_id(), mark, node: node.into() };
    papers.write(&record).map_err(|error| format!("cannot write the record: {error}"))?;
    if order.transfers.is_empty() && order.commands.is_empty() {
        let result = StageResult::Done(Moved::default());
        let _ = papers.write(&Record { result: Some(result.clone()), ..record });
        return Ok(Begun::Over(result));
    }
    let files = papers.files().map_err(|error| format!("cannot make the mover's files: {error}"))?;
    // Only what fills the home and nothing else is the same wherever it comes from.
    let is_mirrored = order.commands.is_empty() && order.fences.len() == 1 && work.direction == Direction::In;
    let files = mover::Files { peer: peer.filter(|_| is_mirrored), ..files };
    let group = group::make(agent.cgroup.as_deref(), home, work.direction);
    let joins = group.as_ref().map(|group| group.path().join("cgroup.procs"));
    Ok(match mover::process::start(Path::new(EXECUTABLE), &order, files, false, joins.as_deref()) {
        Ok(child) => Begun::Moving(Mover { papers, child: Some(child), started_secs }),
        Err(error) => Begun::Unstarted(format!("cannot start a mover: {error}")),
    })
}

/// The agent's workers and bandwidth are shared by the movers there are when one starts.
fn share(agent: &Agent, work: &StageWork) -> (u32, Option<u64>) {
    let n_moving = agent.staging.table().n_moving().max(1);
    let usual = std::thread::available_parallelism().map_or(1, |count| count.get() as u32 * 2).min(16);
    let all = if work.n_workers > 0 { work.n_workers } else { usual };
    let bandwidth = (work.bandwidth_bytes > 0).then(|| (work.bandwidth_bytes / u64::from(n_moving)).max(1));
    ((all / n_moving).max(1), bandwidth)
}

#[derive(PartialEq, Eq)]
enum Ended {
    ByItself,
    CalledOff,
    TooLate,
}

/// Returns when no process of the mover is left.
async fn attend(work: &StageWork, mover: Mover, halted: &mut watch::Receiver<bool>) -> Ended {
    let Mover { papers, child, started_secs } = mover;
    let waited = papers.clone();
    let mut gone = tokio::task::spawn_blocking(move || match child {
        Some(mut child) => drop(child.wait()),
        None => drop(waited.journal().and_then(|journal| mover::process::wait_gone(&journal))),
    });
    let elapsed = now_secs().saturating_sub(started_secs);
    let left = match work.timeout.0 {
        0 => Duration::from_secs(u32::MAX.into()),
        micros => Duration::from_micros(micros).saturating_sub(Duration::from_secs(elapsed)),
    };
    let why = tokio::select! {
        _ = &mut gone => return Ended::ByItself,
        _ = halted.wait_for(|is_halted| *is_halted) => Ended::CalledOff,
        _ = tokio::time::sleep(left) => Ended::TooLate,
    };
    let until = tokio::time::Instant::now() + KILL_AFTER;
    while tokio::time::Instant::now() < until && !signal(&papers, libc::SIGTERM) {
        if tokio::time::timeout(LOOK_EVERY, &mut gone).await.is_ok() {
            return why;
        }
    }
    while tokio::time::timeout_at(until, &mut gone).await.is_err() {
        signal(&papers, libc::SIGKILL);
        if tokio::time::timeout(KILL_AFTER, &mut gone).await.is_ok() {
            break;
        }
    }
    why
}

/// To the mover and whatever it has started. Only while its journal is locked is the number its own; one that is so young that it
/// has not said who it is will be found at the next try. Says whether it was.
fn signal(papers: &Papers, signal: i32) -> bool {
    if !papers.has_mover() {
        return false;
    }
    let pid = papers.status().map(|status| status.pid).filter(|pid| *pid > 1);
    pid.inspect(|pid| sys::kill(-(*pid as i32), signal)).is_some()
}

/// What commands have started and left behind.
async fn sweep(agent: &Arc<Agent>, home: &Home, work: &Arc<StageWork>) {
    let (agent, home, work) = (agent.clone(), home.clone(), work.clone());
    let _ = tokio::task::spawn_blocking(move || sweep_now(Here::of(&agent), &home, &work)).await;
}

fn sweep_now(here: Here, home: &Home, work: &StageWork) {
    let group = group::find(here.cgroup, home, work.direction);
    let has_commands = work.transfers.iter().any(|transfer| transfer.kind == TransferKind::Command);
    let mark = errand::mark(&work.root, home, here.node);
    let until = std::time::Instant::now() + KILL_AFTER;
    let is_clear = || {
        let is_unmarked = !has_commands || leftovers::kill(&mark, None);
        is_unmarked && group.as_ref().is_none_or(group::clear)
    };
    while !is_clear() && std::time::Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Unfinished files of a mover that had no time to remove them.
async fn clean(agent: &Arc<Agent>, home: &Home, work: &Arc<StageWork>) {
    let (node, home, work) = (agent.options.node.to_string(), home.clone(), work.clone());
    let _ = tokio::task::spawn_blocking(move || clean_now(&home, &work, &node)).await;
}

fn clean_now(home: &Home, work: &StageWork, node: &str) {
    let papers = Papers::new(&work.root, home, node, work.direction);
    let was_orderly = papers.status().is_some_and(|status| status.outcome.is_some());
    if was_orderly || papers.has_mover() {
        return;
    }
    let identity = Identity::look_up(work.uid, work.gid, &work.user);
    let Ok(order) = errand::order(work, home, node, &identity, 1) else { return };
    let cleaner =
        papers.files().and_then(|files| mover::process::start(Path::new(EXECUTABLE), &order, files, true, None));
    match cleaner {
        Ok(mut cleaner) => drop(cleaner.wait()),
        Err(error) => tracing::warn!(?home, %error, "unfinished files of a mover may be left"),
    }
}

/// Blocks until no mover of an attempt up to this one is left for the home, and no unfinished file outside it.
pub fn end_movers(here: Here, root: &str, home: &Home, attempt: u32) -> Result<(), String> {
    let node = here.node;
    for direction in DIRECTIONS {
        let papers = Papers::new(root, home, node, direction);
        let Some(record) = papers.read().filter(|record| record.work.attempt <= attempt) else { continue };
        let started = std::time::Instant::now();
        let mut signal_next = libc::SIGTERM;
        while papers.has_mover() {
            signal(&papers, signal_next);
            if started.elapsed() > KILL_AFTER {
                signal_next = libc::SIGKILL;
            }
            if started.elapsed() > 12 * KILL_AFTER {
                return Err("a mover does not end: it hangs in the kernel".into());
            }
            // Nobody tells when a process that is not our child has gone, and we must not wait for ever.
            std::thread::sleep(Duration::from_millis(10));
        }
        sweep_now(here, home, &record.work);
        if record.result.is_none() {
            clean_now(home, &record.work, node);
        }
    }
    Ok(())
}

/// What lies where the home was made is that home, and nothing that somebody has put in its place.
pub fn is_the_one(here: Here, root: &str, home: &Home) -> Result<(), String> {
    let Some(found) = ground::mark(root, home) else { return Ok(()) };
    let boot = boot_id();
    let records = Papers::all(root, home).into_iter().filter_map(|papers| papers.read());
    let is_it = |record: Record| {
        let in_same_life = record.node == here.node && record.boot == boot;
        record.mark.map(|made| made.is_same(found, in_same_life))
    };
    let told: Vec<bool> = records.filter_map(is_it).collect();
    match told.is_empty() || told.contains(&true) {
        true => Ok(()),
        false => Err(format!("{} is not the directory that was made: it is left alone", home.directory(root))),
    }
}

/// A home that is gone: its records go, also those of other agents that share the pool.
pub fn forget(root: &str, home: &Home, node: &str, attempt: u32) {
    for direction in DIRECTIONS {
        Papers::new(root, home, node, direction).remove();
    }
    Papers::left(root, home, attempt).iter().for_each(Papers::remove);
}

/// When a node is cleared for good: its movers go with its jobs.
pub fn end_all(options: &crate::Options, cgroup: Option<&Path>) {
    let here = Here { node: options.node.as_str(), cgroup };
    for pool in &options.pools {
        for home in ground::homes(&pool.root) {
            if let Err(why) = end_movers(here, &pool.root, &home, u32::MAX) {
                tracing::warn!(?home, why, "a mover could not be ended");
            }
        }
    }
}

fn result_of(status: &mover::Status, started_secs: u64) -> Option<StageResult> {
    let outcome = status.outcome.as_ref()?;
    let moved = Moved {
        n_files: status.snapshot.files_done,
        n_bytes: status.snapshot.bytes_done,
        n_skipped: status.snapshot.files_skipped,
        took: took(status, started_secs),
        warnings: outcome.warnings.clone(),
        ..Default::default()
    };
    match outcome.ending {
        mover::Ending::Done => Some(StageResult::Done(moved)),
        mover::Ending::Failed => {
            let why = outcome.errors.first().cloned().unwrap_or_else(|| "unknown error".into());
            Some(StageResult::Failed(StageFailure {
                why,
                n_more: outcome.n_errors.saturating_sub(1),
                moved,
                ..Default::default()
            }))
        }
        // By somebody else than us: as good as a crash.
        mover::Ending::Cancelled | mover::Ending::Parted => None,
    }
}

/// All lives of the mover together, when there were several.
fn took(status: &mover::Status, started_secs: u64) -> Span {
    let own = status.snapshot.elapsed_millis * 1000;
    let all = now_secs().saturating_sub(started_secs + 1) * 1_000_000;
    Span(own.max(all))
}

fn conclude(agent: &Agent, home: &Home, work: &StageWork, result: StageResult) -> StageResult {
    let papers = Papers::new(&work.root, home, agent.options.node.as_str(), work.direction);
    let begun = papers.read().unwrap_or_else(|| Record { started_secs: now_secs(), ..Record::default() });
    let record = Record { work: work.clone(), result: Some(result.clone()), boot: boot_id(), ..begun };
    if let Err(error) = papers.write(&record) {
        tracing::debug!(?home, %error, "the result of a work is not kept");
    }
    result
}

fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
