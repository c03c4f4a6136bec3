//! Most of a long queue waits for its turn and goes on doing so: a glance is enough to see that.
use model::{Job, Reason};

use super::Pass;
use crate::pick;
use crate::room::PoolId;

impl<'a> Pass<'a> {
    /// A closer look would neither start the job, nor keep a place for it, nor find another reason for it to wait.
    pub(super) fn stays_as_it_is(&mut self, job: &'a Job) -> bool {
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
}
