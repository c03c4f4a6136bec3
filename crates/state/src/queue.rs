//! The order in which waiting jobs are looked at.
use std::sync::Arc;

use model::{Job, JobId, Phase, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Cluster;

/// Higher than any priority, so that keys are never negative.
const ORIGIN: i64 = i64::MAX / 2;

/// The order in which the scheduler looks at jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueKey {
    /// Jobs whose age counts, all alike: among them the order never changes. They stand apart, after the others.
    #[serde(default)]
    grows: bool,
    before_tier: u32,
    /// For those that grow: as if now were the beginning of time, in thousandths.
    before_priority: u64,
    pub job: JobId,
}

impl Cluster {
    /// Jobs that only wait for the scheduler, in the order in which they are looked at: first those that others have made
    /// room for, or whoever stands before them would take it and they would have gone in vain; then the most important.
    pub fn queue(&self) -> impl Iterator<Item = &Arc<Job>> {
        let claimants = self.claims.iter().filter_map(|id| self.jobs.get(id)).filter(|job| self.is_eligible(job));
        let mut first: Vec<&Arc<Job>> = claimants.collect();
        first.sort_by_key(|job| self.rank(&self.queue_key(job)));
        first.into_iter().chain(self.by_importance().filter(|job| !self.has_claim(job.id)))
    }

    /// Others were told to make room for it, and it has not had that room yet.
    pub fn has_claim(&self, id: JobId) -> bool {
        self.claims.contains(&id)
    }

    fn by_importance(&self) -> impl Iterator<Item = &Arc<Job>> {
        let first_growing = QueueKey { grows: true, before_tier: 0, before_priority: 0, job: JobId(0) };
        let mut steady = self.queue.range(..first_growing).peekable();
        let mut growing = self.queue.range(first_growing..).peekable();
        std::iter::from_fn(move || {
            let next = match (steady.peek(), growing.peek()) {
                (Some(one), Some(other)) if self.rank(other) < self.rank(one) => growing.next(),
                (Some(_), _) => steady.next(),
                (None, _) => growing.next(),
            }?;
            Some(&self.jobs[&next.job])
        })
    }

    /// Comparable at this moment, whether or not the priority grows.
    fn rank(&self, key: &QueueKey) -> (u32, i64, JobId) {
        let thousandths = match key.grows {
            false => (i64::from(u32::MAX) - key.before_priority as i64) * 1000,
            true => (ORIGIN - key.before_priority as i64) + self.grown_by(self.now),
        };
        (key.before_tier, -thousandths, key.job)
    }

    /// What age has added since the beginning of time, in thousandths.
    fn grown_by(&self, at: Timestamp) -> i64 {
        let weights = &self.config.scheduler.priority;
        let max_age = i128::from(weights.max_age.secs().max(1));
        (i128::from(weights.weight_age) * 1000 * i128::from(at.secs()) / max_age) as i64
    }

    /// Jobs that only wait to have their burst buffers filled, the most important first.
    pub fn staging_queue(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.staging_queue.iter().map(|key| &self.jobs[&key.job])
    }

    pub fn n_to_stage(&self) -> usize {
        self.staging_queue.len()
    }

    pub fn n_queued(&self) -> usize {
        self.queue.len()
    }

    pub fn is_eligible(&self, job: &Job) -> bool {
        job.phase == Phase::Pending && self.queue.contains(&self.queue_key(job))
    }

    /// Waits for nothing but the scheduler's word to have its burst buffer filled.
    pub fn may_be_staged(&self, job: &Job) -> bool {
        job.phase == Phase::Pending && self.staging_queue.contains(&self.queue_key(job))
    }

    /// Where the job stands, or would stand, in the queue.
    pub fn queue_key(&self, job: &Job) -> QueueKey {
        let partitions = job.spec.partitions.iter().filter_map(|name| self.config.partition(name));
        let tier = partitions.map(|partition| partition.priority_tier).max().unwrap_or(0);
        let before_priority = match model::priority::born(&self.config, job).filter(|_| job.priority_grows) {
            None => u64::from(u32::MAX - job.priority),
            Some(born) => (ORIGIN - (job.priority_base * 1000 - self.grown_by(born))) as u64,
        };
        QueueKey { grows: job.priority_grows, before_tier: u32::MAX - tier, before_priority, job: job.id }
    }
}
