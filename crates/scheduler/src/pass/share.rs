//! Places beside others: on CPUs that jobs share, and on CPUs of jobs that stand still instead.
use std::collections::BTreeSet;

use model::JobId;
use model::plan::Grant;
use model::spec::TimeLimit;

use super::Pass;
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::PoolId;
use crate::timeline::Slot;

/// How a job starts, where that is not the usual way.
#[derive(Default)]
pub(super) struct Way {
    /// Shorter than asked.
    pub time_limit: Option<TimeLimit>,
    pub shares_cpus: bool,
    /// Who stands still for it.
    pub parks: Vec<JobId>,
}

impl<'a> Pass<'a> {
    /// Where CPUs are shared, or jobs stand still for others, a full cluster still takes jobs.
    pub(super) fn may_start_when_full(&self) -> bool {
        use model::partition::OverSubscribe::{Force, Yes};
        let shares = |partition: &model::Partition| matches!(partition.oversubscribe, Yes(2..) | Force(2..));
        self.preemptees.may_help() || self.cluster.config().partitions.iter().any(shares)
    }

    /// On CPUs that others hold and share, the least shared first.
    pub(super) fn fits_beside(&mut self, pool: PoolId, request: &Request<'a>) -> Option<Vec<Grant>> {
        let most = state::sharing::degree(self.room.partition(pool), request.size);
        let seeker = self.seeker(pool, request);
        if most < 2 || request.size.network.owns_units || self.failed_beside.earliest(&seeker, request) > Slot::NOW {
            return None;
        }
        let found = (2..=most).find_map(|most| self.fits_over(pool, request, most, &BTreeSet::new()));
        if found.is_none() {
            self.failed_beside.remember(&seeker, request, Slot(1));
        }
        found
    }

    /// With up to `most` jobs on a CPU, and these standing still.
    pub(super) fn fits_over(
        &self,
        pool: PoolId,
        request: &Request<'a>,
        most: u32,
        parks: &BTreeSet<JobId>,
    ) -> Option<Vec<Grant>> {
        let interval = self.clock.interval(Slot::NOW, request.length);
        if !self.room.counts.has(&request.counts, interval, request.reservation) {
            return None;
        }
        let overs = pick::overs(&self.room, pool, most, parks);
        pick::pick(&Offer::over(&self.room, pool, interval.until, request, &overs))
    }
}
