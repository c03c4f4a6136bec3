//! How far agents say they are with moving data. Only remembered, never written.
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::buffer::Place;
use model::request::UsedSpace;
use model::staging::{Direction, HeldHome, Home, NodeProgress, Progress};
use model::{Buffer, BufferPhase, JobId, NodeName};
use state::Cluster;
use tokio::sync::watch;

use crate::foreign::Foreign;

/// An agent that says nothing this long about work it has is shown as stalled.
const STALLED_AFTER: Duration = Duration::from_secs(30);

pub struct ProgressTable {
    latest: Mutex<HashMap<(Home, NodeName), (Progress, Instant)>>,
    /// What agents have measured in their directories.
    used: Mutex<HashMap<(Home, NodeName), u64>>,
    changed: watch::Sender<u64>,
    pub foreign: Foreign,
}

impl Default for ProgressTable {
    fn default() -> Self {
        ProgressTable {
            latest: Mutex::default(),
            used: Mutex::default(),
            changed: watch::channel(0).0,
            foreign: Foreign::default(),
        }
    }
}

impl ProgressTable {
    pub fn take(&self, cluster: &Cluster, node: &NodeName, works: Vec<Progress>) {
        let mut latest = self.lock();
        for progress in works {
            if let Some(home) = progress.home.clone() {
                let key = (home, node.clone());
                let progress = latest.get(&key).map_or(progress.clone(), |(before, _)| onward(before, progress));
                latest.insert(key, (progress, Instant::now()));
            }
        }
        latest.retain(|(home, node), _| match home {
            Home::Job { job, epoch, access } => cluster.buffer(*job).is_some_and(|buffer| {
                let is_it = |it: &Place| it.access == *access && buffer.epoch_of(it) == *epoch && it.node == *node;
                buffer.places.iter().any(is_it)
            }),
            Home::Persistent { name } => cluster.persistent(name).is_some(),
        });
        drop(latest);
        self.changed.send_modify(|count| *count += 1);
    }

    /// What is known of the job's buffer, node by node.
    pub fn of(&self, cluster: &Cluster, job: JobId) -> Vec<NodeProgress> {
        let Some(buffer) = cluster.buffer(job) else { return Vec::new() };
        let latest = self.lock();
        let mut found = Vec::new();
        for place in &buffer.places {
            let home = buffer.home(place);
            if let Some((progress, heard)) = latest.get(&(home, place.node.clone())) {
                let is_stalled = !place.is_done && place.failure.is_empty() && heard.elapsed() > STALLED_AFTER;
                let mut progress = progress.clone();
                if is_over(buffer.phase, place, progress.direction) {
                    // The last word of it may have been said before its end.
                    (progress.n_files, progress.n_bytes) = (progress.n_files_total, progress.n_bytes_total);
                }
                found.push(NodeProgress { node: place.node.clone(), progress, is_stalled });
            }
            let is_told =
                |one: &NodeProgress| Some(one.progress.direction) == direction(buffer.phase) && one.node == place.node;
            if is_silent(buffer, place) && !found.iter().any(is_told) {
                let home = Some(buffer.home(place));
                let direction = direction(buffer.phase).unwrap_or_default();
                let progress = Progress { home, attempt: buffer.attempt, direction, ..Default::default() };
                found.push(NodeProgress { node: place.node.clone(), progress, is_stalled: true });
            }
        }
        found
    }

    /// What an agent has measured replaces what it had.
    pub fn measured(&self, node: &NodeName, homes: &[HeldHome]) {
        let mut used = self.used.lock().expect("nobody panics while holding this lock");
        used.retain(|(_, on), _| on != node);
        let known = homes.iter().filter(|held| held.used_bytes > 0).filter_map(|held| Some((held.home.clone()?, held)));
        used.extend(known.map(|(home, held)| ((home, node.clone()), held.used_bytes)));
    }

    /// What buffers really hold: of each job, and of each persistent buffer.
    pub fn used(&self) -> Vec<UsedSpace> {
        let used = self.used.lock().expect("nobody panics while holding this lock");
        let mut sums: BTreeMap<(JobId, String), u64> = BTreeMap::new();
        for ((home, _), bytes) in used.iter() {
            let key = match home {
                Home::Job { job, .. } => (*job, String::new()),
                Home::Persistent { name } => (JobId::default(), name.clone()),
            };
            let sum: &mut u64 = sums.entry(key).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        sums.into_iter().map(|((job, name), used_bytes)| UsedSpace { job, name, used_bytes }).collect()
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(Home, NodeName), (Progress, Instant)>> {
        self.latest.lock().expect("nobody panics while holding this lock")
    }
}

/// A mover that takes over from one that died counts from the beginning; what the other had done is done.
fn onward(before: &Progress, now: Progress) -> Progress {
    let is_same = (before.attempt, before.direction) == (now.attempt, now.direction);
    if !is_same {
        return now;
    }
    let n_files_total = if now.n_files_total == 0 { before.n_files_total } else { now.n_files_total };
    let n_bytes_total = if now.n_bytes_total == 0 { before.n_bytes_total } else { now.n_bytes_total };
    let furthest = |before: u64, now: u64, total: u64| if total == 0 { now } else { now.max(before).min(total) };
    Progress {
        n_files: furthest(before.n_files, now.n_files, n_files_total),
        n_bytes: furthest(before.n_bytes, now.n_bytes, n_bytes_total),
        n_files_total,
        n_bytes_total,
        ..now
    }
}

/// Nothing was ever heard of what should be moved there for a while.
fn is_silent(buffer: &Buffer, place: &Place) -> bool {
    let is_open = !place.is_done && !place.is_unwanted && place.failure.is_empty() && buffer.failure.is_empty();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let is_late = now > Duration::from_micros(buffer.since.0) + STALLED_AFTER;
    is_open && direction(buffer.phase).is_some() && !buffer.plugin.is_external() && is_late
}

/// Where data goes in this phase.
fn direction(phase: BufferPhase) -> Option<Direction> {
    match phase {
        BufferPhase::StagingIn | BufferPhase::PreRun | BufferPhase::Revoked => Some(Direction::In),
        BufferPhase::StagingOut => Some(Direction::Out),
        _ => None,
    }
}

/// Everything has been moved in this direction.
fn is_over(phase: BufferPhase, place: &Place, direction: Direction) -> bool {
    let is_moving = self::direction(phase) == Some(direction);
    let is_past = match direction {
        Direction::In => place.is_staged,
        Direction::Out => phase == BufferPhase::TearingDown,
    };
    if is_moving { place.is_done } else { is_past }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_over_from_a_mover_that_died_does_not_begin_at_nothing() {
        let told = |attempt, n_bytes, n_bytes_total| Progress { attempt, n_bytes, n_bytes_total, ..Default::default() };
        let seen = |before: Progress, now: Progress| {
            let shown = onward(&before, now);
            (shown.n_bytes, shown.n_bytes_total)
        };
        assert_eq!(seen(told(1, 30, 100), told(1, 0, 0)), (30, 100), "it still counts");
        assert_eq!(seen(told(1, 30, 100), told(1, 20, 100)), (30, 100));
        assert_eq!(seen(told(1, 30, 100), told(1, 40, 100)), (40, 100));
        assert_eq!(seen(told(1, 30, 100), told(1, 5, 20)), (20, 20), "there is less than it was");
        assert_eq!(seen(told(1, 30, 100), told(2, 0, 0)), (0, 0), "another try");
    }
}
