//! How deep into the queue: how many jobs are promised a place, and how many of a user's or a partition's jobs may pass others.
use std::collections::BTreeMap;

use model::Job;
use model::config::BackfillConfig;

use crate::room::PoolId;

pub(crate) struct Depth {
    n_promises_left: u32,
    max_per_user: Option<u32>,
    max_per_pool: Option<u32>,
    by_user: BTreeMap<u32, u32>,
    by_pool: BTreeMap<PoolId, u32>,
}

impl Depth {
    pub fn new(config: &BackfillConfig) -> Depth {
        Depth {
            n_promises_left: if config.is_on { config.n_reservations } else { 0 },
            max_per_user: config.max_jobs_per_user,
            max_per_pool: config.max_jobs_per_partition,
            by_user: BTreeMap::new(),
            by_pool: BTreeMap::new(),
        }
    }

    pub fn may_promise(&self) -> bool {
        self.n_promises_left > 0
    }

    /// A look into the future is dear, so it counts whether or not it finds a place.
    pub fn looked_ahead(&mut self) {
        self.n_promises_left -= 1;
    }

    /// Counts a job that is looked at behind others which wait.
    pub fn may_try_behind(&mut self, job: &Job, pools: &[PoolId]) -> bool {
        let is_over = |n: Option<&u32>, most: Option<u32>| most.is_some_and(|most| n.copied().unwrap_or(0) >= most);
        if is_over(self.by_user.get(&job.spec.uid), self.max_per_user)
            || pools.iter().any(|pool| is_over(self.by_pool.get(pool), self.max_per_pool))
        {
            return false;
        }
        if self.max_per_user.is_some() {
            *self.by_user.entry(job.spec.uid).or_default() += 1;
        }
        if self.max_per_pool.is_some() {
            pools.iter().for_each(|pool| *self.by_pool.entry(*pool).or_default() += 1);
        }
        true
    }
}
