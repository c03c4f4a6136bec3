//! The order in which waiting jobs are looked at.
use std::iter::Peekable;
use std::sync::Arc;

use imbl::OrdSet;
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
        let others = self.in_order(&self.queue).filter(|key| !self.has_claim(key.job));
        first.into_iter().chain(others.map(|key| &self.jobs[&key.job]))
    }

    /// Others were told to make room for it, and it has not had that room yet.
    pub fn has_claim(&self, id: JobId) -> bool {
        self.claims.contains(&id)
    }

    fn in_order<'a>(&'a self, keys: &'a OrdSet<QueueKey>) -> impl Iterator<Item = &'a QueueKey> {
        let first_growing = QueueKey { grows: true, before_tier: 0, before_priority: 0, job: JobId(0) };
        let steady = keys.range(..first_growing).peekable();
        let growing = keys.range(first_growing..).peekable();
        self.merged(steady, growing)
    }

    /// Of two rows that are in order, the one that they make together.
    fn merged<'a>(
        &'a self,
        mut one: Peekable<impl Iterator<Item = &'a QueueKey>>,
        mut other: Peekable<impl Iterator<Item = &'a QueueKey>>,
    ) -> impl Iterator<Item = &'a QueueKey> {
        std::iter::from_fn(move || match (one.peek(), other.peek()) {
            (Some(first), Some(second)) if self.rank(second) < self.rank(first) => other.next(),
            (Some(_), _) => one.next(),
            (None, _) => other.next(),
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

    /// Jobs that only wait to have their burst buffers filled, the most important first. When `pools_are_full` says so, those
    /// that ask something of a shared pool are passed over, without a look at each.
    pub fn staging_queue(&self, pools_are_full: impl Fn() -> bool) -> impl Iterator<Item = &Arc<Job>> {
        let mut pooled = self.in_order(&self.staging_queue);
        let pooled = std::iter::from_fn(move || if pools_are_full() { None } else { pooled.next() });
        let unpooled = self.in_order(&self.unpooled_staging_queue);
        self.merged(pooled.peekable(), unpooled.peekable()).map(|key| &self.jobs[&key.job])
    }

    pub fn n_to_stage(&self) -> usize {
        self.staging_queue.len() + self.unpooled_staging_queue.len()
    }

    pub fn n_queued(&self) -> usize {
        self.queue.len()
    }

    pub fn is_eligible(&self, job: &Job) -> bool {
        job.phase == Phase::Pending && self.queue.contains(&self.queue_key(job))
    }

    /// Waits for nothing but the scheduler's word to have its burst buffer filled.
    pub fn may_be_staged(&self, job: &Job) -> bool {
        let key = self.queue_key(job);
        job.phase == Phase::Pending && (self.staging_queue.contains(&key) || self.unpooled_staging_queue.contains(&key))
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
