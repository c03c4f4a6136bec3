//! How far agents say they are with moving data. Only remembered, never written.
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use model::buffer::Place;
use model::request::UsedSpace;
use model::staging::{Direction, HeldHome, Home, NodeProgress, Progress};
use model::{BufferPhase, JobId, NodeName};
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
                latest.insert((home, node.clone()), (progress, Instant::now()));
            }
        }
        latest.retain(|(home, node), _| match home {
            Home::Job { job, epoch, access } => cluster.buffer(*job).is_some_and(|buffer| {
                buffer.epoch == *epoch
                    && buffer.places.iter().any(|place| place.access == *access && place.node == *node)
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
            let home = Home::Job { job, epoch: buffer.epoch, access: place.access };
            if let Some((progress, heard)) = latest.get(&(home, place.node.clone())) {
                let is_stalled = !place.is_done && heard.elapsed() > STALLED_AFTER;
                let mut progress = progress.clone();
                if is_over(buffer.phase, place, progress.direction) {
                    // The last word of it may have been said before its end.
                    (progress.n_files, progress.n_bytes) = (progress.n_files_total, progress.n_bytes_total);
                }
                found.push(NodeProgress { node: place.node.clone(), progress, is_stalled });
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
            *sums.entry(key).or_default() += bytes;
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

/// Everything has been moved in this direction.
fn is_over(phase: BufferPhase, place: &Place, direction: Direction) -> bool {
    let is_moving = match direction {
        Direction::In => matches!(phase, BufferPhase::StagingIn | BufferPhase::PreRun | BufferPhase::Revoked),
        Direction::Out => phase == BufferPhase::StagingOut,
    };
    let is_past = match direction {
        Direction::In => place.is_staged,
        Direction::Out => phase == BufferPhase::TearingDown,
    };
    if is_moving { place.is_done } else { is_past }
}
