//! Most of a long queue waits for its turn and goes on doing so: a glance is enough to see that.
use model::{Job, Reason};

use super::Pass;
use crate::pick;
use crate::room::PoolId;

impl<'a> Pass<'a> {
    /// A closer look would neither start the job, nor keep a place for it, nor find another reason for it to wait.
    pub(super) fn stays_as_it_is(&mut self, job: &'a Job) -> bool {
        if let Some(reason) = job.reason.filter(|_| self.is_kept_by_the_same_limit(job)) {
            self.waits_for_a_limit(job, reason);
            return true;
        }
        let waits_its_turn = job.reason == Some(Reason::Priority) && job.reason_text.is_empty();
        if !waits_its_turn || job.expected_start.is_some() || self.depth.may_promise() {
            return false;
        }
        let size = &job.spec.size;
        if pick::least_cpus(size, size.node_bounds().0) <= self.room.n_free_cpus_of_all() {
            return false;
        }
        // What else could be the reason.
        let is_plain = job.het.is_none()
            && size.nodes.is_empty()
            && !size.network.needs_switch()
            && job.spec.licenses.is_empty()
            && job.spec.reservations.is_empty();
        if !is_plain || !self.room.closures.is_empty() || self.may_start_when_full() {
            return false;
        }
        let pools = self.pools(job);
        let waits_there = |pool: &PoolId| {
            self.reasons.is_blocked(*pool)
                && self.room.is_complete(*pool)
                && self.allowance.lets(job, self.room.partition(*pool))
        };
        !pools.is_empty() && pools.iter().all(waits_there)
    }

    /// The limit that kept the job from its only partition keeps it still; of the future nothing was promised to it.
    fn is_kept_by_the_same_limit(&mut self, job: &'a Job) -> bool {
        let (Some(reason), [partition]) = (job.reason, job.spec.partitions.as_slice()) else { return false };
        if !reason.is_limit() || !job.reason_text.is_empty() || job.expected_start.is_some() || job.het.is_some() {
            return false;
        }
        let Some(partition) = self.cluster.config().partition(partition) else { return false };
        state::partition_refusal(self.cluster, partition, job).is_none()
            && self.allowance.refusal(job, partition) == Some(reason)
    }
}
