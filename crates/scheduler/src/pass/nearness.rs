//! How long a job waits for a better place in the network than it could have now.
use model::{Job, Timestamp};

use super::Pass;
use crate::pick::{self, Offer};
use crate::request::{LevelLimit, Request};
use crate::room::PoolId;
use crate::timeline::Slot;

/// More sizes than this are worked out again.
const N_LEVELS_KNOWN: usize = 64;

/// What a job waits for, and until when; none of it once its time is over.
#[derive(Default)]
pub(super) struct Waits {
    /// For few switches.
    limit_until: Slot,
    /// For a low common switch, in each partition.
    levels: Vec<LevelLimit>,
    deadlines: Vec<Timestamp>,
}

impl Waits {
    pub fn are_over(&self) -> bool {
        self.deadlines.is_empty()
    }

    pub fn put_into(&self, requests: &mut [Request]) {
        for request in requests {
            request.limit_until = self.limit_until;
            request.levels.clone_from(&self.levels);
        }
    }
}

impl<'a> Pass<'a> {
    /// Counted from the first time the job is looked at.
    pub(super) fn waits(&mut self, job: &'a Job, pools: &[PoolId]) -> Waits {
        let (wish, now) = (&job.spec.size.network, self.cluster.now());
        let most = self.cluster.config().topology.max_switch_wait();
        let since = job.switch_wait_since.unwrap_or(now);
        let mut waits = Waits::default();
        if wish.n_switches > 0 {
            let deadline = since + wish.switch_wait.map_or(most, |wait| wait.min(most));
            if deadline > now {
                waits.limit_until = self.clock.slot(deadline);
                waits.deadlines.push(deadline);
            }
        }
        for pool in pools {
            let (level, wait) = match (wish.most_level, self.room.partition(*pool).topology_wait) {
                (Some(level), _) if wish.level_is_preferred => (level, most),
                (None, Some(wait)) if since + wait > now => match self.lowest_level(*pool, job) {
                    Some(level) => (level, wait),
                    None => continue,
                },
                _ => continue,
            };
            let deadline = since + wait;
            if deadline > now {
                waits.levels.push(LevelLimit { pool: *pool, level, until: self.clock.slot(deadline) });
                waits.deadlines.push(deadline);
            }
        }
        waits
    }

    /// The job stays: its clock runs, and time alone may give it another place.
    pub(super) fn goes_on_waiting(&mut self, job: &Job, waits: &Waits) {
        waits.deadlines.iter().for_each(|deadline| self.look_again(*deadline));
        if !waits.are_over() && job.switch_wait_since.is_none() {
            self.plan.switch_waits.push(job.id);
        }
    }

    /// The level of the switch below which the job would be if nothing else ran.
    fn lowest_level(&mut self, pool: PoolId, job: &'a Job) -> Option<u32> {
        let size = &job.spec.size;
        if let Some((.., level)) = self.levels.iter().find(|(known, of, _)| *known == pool && *of == size) {
            return *level;
        }
        let requests = Request::all(self.cluster, &self.room.closures, job);
        let request = requests.first()?;
        let interval = self.clock.interval(Slot::NOW, request.length);
        let level = pick::lowest_level(&Offer::of_spots(&self.room, pool, interval, request));
        if self.levels.len() < N_LEVELS_KNOWN {
            self.levels.push((pool, size, level));
        }
        level
    }
}
