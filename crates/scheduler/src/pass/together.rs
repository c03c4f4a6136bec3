//! Heterogeneous jobs: all components start in one plan, each on nodes of its own, or none does.
use std::collections::BTreeSet;

use model::plan::{ExpectedStart, Grant};
use model::spec::Size;
use model::{HetPlace, Job, JobId, NodeName, Reason, Start, hostlist};

use super::Pass;
use super::share::Way;
use crate::counts::Wanted;
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::PoolId;
use crate::timeline::{self, Slot};

/// So often components may move each other to a later time before nobody is promised anything.
const N_MOVES: u32 = 16;

/// Where one component may run, and in which ways: with other licences where it has the choice, the best first.
pub(super) type Ways<'a> = (Vec<PoolId>, Vec<Request<'a>>);

/// What one component would get.
pub(super) struct Found<'a> {
    pool: PoolId,
    request: Request<'a>,
    grants: Vec<Grant>,
}

impl<'a> Pass<'a> {
    /// Looks at the whole when the turn of its first component comes.
    pub(super) fn consider_whole(&mut self, het: &'a HetPlace) {
        if !self.wholes.insert(het.leader) {
            return;
        }
        let cluster = self.cluster;
        let eligible =
            |id: &JobId| cluster.job(*id).filter(|job| cluster.is_eligible(job)).map(|job| -> &'a Job { job });
        // One that is held, or waits for something else, keeps the others.
        let Some(components) = het.ids.iter().map(eligible).collect::<Option<Vec<&'a Job>>>() else { return };
        let wanted = components.iter().map(|job| self.wanted(job)).collect::<Option<Vec<_>>>();
        let Some(wanted): Option<Vec<Ways<'a>>> = wanted else { return };
        let is_behind = |pools: &Vec<PoolId>| pools.iter().any(|pool| self.reasons.is_blocked(*pool));
        let may_pass =
            self.cluster.config().scheduler.backfill.is_on || !wanted.iter().any(|(pools, _)| is_behind(pools));
        let found = self.all_apart(&wanted, &BTreeSet::new()).filter(|_| may_pass);
        if let Some((job, reason)) = found.as_ref().and_then(|found| self.limit_on_one(found)) {
            for component in &components {
                let own = if component.id == job { reason } else { Reason::Priority };
                self.stays_for(component, own);
            }
            return;
        }
        match found {
            Some(found) => {
                for Found { pool, request, grants } in found {
                    self.place(pool, &request, None, grants, Way::default());
                }
            }
            None => self.keep(het.leader, &wanted),
        }
    }

    /// All components stay: each has its reason, others may make room for them, and they are promised room at one time.
    fn keep(&mut self, leader: JobId, wanted: &[Ways<'a>]) {
        for (pools, requests) in wanted {
            self.reasons.of_blocked(&self.room, &self.clock, &requests[..1], pools, &mut self.plan);
        }
        for (pools, requests) in wanted {
            let waits = self.waits(requests[0].job, pools);
            self.goes_on_waiting(requests[0].job, &waits);
        }
        self.make_room_for_whole(leader, wanted);
        let may_promise = self.depth.may_promise() || self.preemptees.makes_room_for(leader);
        let has_place = may_promise && self.may_all_be_promised(wanted) && self.promise_whole(wanted);
        let waiting = wanted.iter().map(|(_, requests)| requests[0].job);
        for job in waiting.filter(|job| !has_place && job.expected_start.is_some()) {
            self.plan.expected_starts.push(ExpectedStart { job: job.id, ..Default::default() });
        }
    }

    fn may_all_be_promised(&mut self, wanted: &[Ways<'a>]) -> bool {
        wanted.iter().all(|(pools, requests)| {
            let partition = pools.first().map(|pool| self.room.partition(*pool));
            self.allowance.may_be_promised(requests[0].job, partition)
        })
    }

    /// Keeps places for all of them at the first moment when all can be had, so that none of them waits for another in vain.
    fn promise_whole(&mut self, wanted: &[Ways<'a>]) -> bool {
        self.depth.looked_ahead();
        self.room.look_ahead();
        let Some((slot, found)) = self.first_time_for_all(wanted) else { return false };
        let leader = wanted[0].1[0].job;
        if slot == self.clock.end() && !self.has_lost_patience(leader) {
            return false;
        }
        let free_from = |one: &Found| self.room.free_from(&one.grants, slot, &self.clock);
        let at = found.iter().map(free_from).max().filter(|_| slot < self.clock.end());
        for Found { pool, request, grants } in found {
            self.room.give(pool, &grants, &request, self.clock.interval(slot, request.length));
            self.stage_on(request.job, at, &grants);
            let nodes = hostlist::compress(grants.iter().map(|grant| grant.node.as_str()));
            let nodes = if at.is_some() { nodes } else { String::new() };
            let job = request.job;
            if job.expected_start != at || job.expected_nodes != nodes {
                self.plan.expected_starts.push(ExpectedStart { job: job.id, at, nodes });
            }
        }
        true
    }

    /// Whoever is found a place later than the others moves them all there, until nobody moves any more.
    fn first_time_for_all(&self, wanted: &[Ways<'a>]) -> Option<(Slot, Vec<Found<'a>>)> {
        let mut not_before = Slot(1);
        for _ in 0..N_MOVES {
            let (slot, found) = self.all_from(wanted, not_before)?;
            if slot == not_before {
                return Some((slot, found));
            }
            not_before = slot;
        }
        None
    }

    /// Places for one after the other from that mark on, no node twice; and the last of the marks they begin at.
    fn all_from(&self, wanted: &[Ways<'a>], not_before: Slot) -> Option<(Slot, Vec<Found<'a>>)> {
        let (mut found, mut taken, mut counts, mut last) = (Vec::new(), Vec::new(), Vec::<Wanted>::new(), not_before);
        for (pools, requests) in wanted {
            let request = &requests[0];
            add(&mut counts, &request.counts);
            let mut size = Size::clone(request.size);
            size.excluded.extend_from_slice(&taken);
            let apart = Request { counts: counts.clone(), ..request.with_size(&size) };
            let place = |pool: &PoolId| {
                let (slot, grants) = timeline::earliest(&self.room, &self.clock, *pool, &apart, not_before)?;
                Some((slot, *pool, grants))
            };
            let (slot, pool, grants): (Slot, PoolId, Vec<Grant>) =
                pools.iter().filter_map(place).min_by_key(|(slot, ..)| *slot)?;
            last = last.max(slot);
            taken.extend(grants.iter().map(|grant| grant.node.clone()));
            found.push(Found { pool, request: request.clone(), grants });
        }
        Some((last, found))
    }

    /// The first component that a limit keeps, the others being counted, and that limit.
    pub(super) fn limit_on_one(&mut self, found: &[Found<'a>]) -> Option<(JobId, Reason)> {
        self.allowance.suppose();
        let mut refusal = None;
        for Found { pool, request, grants } in found {
            let partition = self.room.partition(*pool);
            if let Some(reason) = self.allowance.refusal_of(request.job, partition, grants, None) {
                refusal = Some((request.job.id, reason));
                break;
            }
            let (job, nodes) = (request.job.id, grants.clone());
            let start = Start { job, partition: partition.name.clone(), nodes, ..Default::default() };
            self.allowance.started(request.job, partition, start);
        }
        self.allowance.forget_what_was_supposed();
        refusal
    }

    /// None if it may not run in its reservation now.
    fn wanted(&mut self, job: &'a Job) -> Option<Ways<'a>> {
        let pools = self.pools(job);
        self.room.look_for(&job.spec.size);
        let mut requests = Request::all(self.cluster, &self.room.closures, job);
        self.waits(job, &pools).put_into(&mut requests);
        let reservation = Request::waiting(&requests)?.reservation;
        requests.retain(|request| request.reservation == reservation);
        Some((pools, requests))
    }

    /// Places for all of them now, no node twice; as if these had gone before.
    pub(super) fn all_apart(&self, wanted: &[Ways<'a>], gone: &BTreeSet<JobId>) -> Option<Vec<Found<'a>>> {
        let (mut found, mut taken, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (pools, requests) in wanted {
            let (pool, request, grants) = requests.iter().find_map(|request| {
                let mut counts: Vec<Wanted> = counts.clone();
                add(&mut counts, &request.counts);
                pools
                    .iter()
                    .find_map(|pool| Some((*pool, request, self.apart(*pool, request, &taken, (&counts, gone))?)))
            })?;
            add(&mut counts, &request.counts);
            taken.extend(grants.iter().map(|grant| grant.node.clone()));
            found.push(Found { pool, request: request.clone(), grants });
        }
        Some(found)
    }

    /// Nodes for one component besides those that are taken.
    fn apart(
        &self,
        pool: PoolId,
        request: &Request,
        taken: &[NodeName],
        (counts, gone): (&[Wanted], &BTreeSet<JobId>),
    ) -> Option<Vec<Grant>> {
        let interval = self.clock.interval(Slot::NOW, request.length);
        if !self.room.counts.has_without(counts, interval, request.reservation, gone) {
            return None;
        }
        let mut size = Size::clone(request.size);
        size.excluded.extend_from_slice(taken);
        pick::pick(&Offer::now(&self.room, pool, interval.until, request).with_size(&size))
    }
}

/// Adds what one more component needs to what the others need.
fn add(counts: &mut Vec<Wanted>, more: &[Wanted]) {
    for one in more {
        match counts.iter_mut().find(|known| known.name == one.name) {
            Some(known) => known.count += one.count,
            None => counts.push(one.clone()),
        }
    }
}
