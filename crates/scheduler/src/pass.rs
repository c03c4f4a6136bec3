//! One pass over the queue.
use std::collections::BTreeSet;

use model::plan::{ExpectedStart, Grant, WaitReason};
use model::spec::{Size, TimeLimit};
use model::time::Span;
use model::{Job, JobId, NodeName, Plan, Reason, Start, Timestamp, hostlist};
use state::Cluster;

use self::preempt::Preemptees;
use self::share::Way;
use crate::Outlook;
use crate::ahead::Ahead;
use crate::allowance::Allowance;
use crate::depth::Depth;
use crate::failed::{Failed, Seeker};
use crate::order::Order;
use crate::pick::{self, Offer};
use crate::reasons::Reasons;
use crate::request::Request;
use crate::room::{PoolId, Room};
use crate::timeline::{self, Clock, Length, Slot};

mod glance;
mod narrow;
mod nearness;
mod preempt;
mod share;
mod together;

/// For so many jobs a pass works out when time lifts the limit that keeps them; the others are looked at again after a while.
const N_LIMITS_FORESEEN: u32 = 64;
const LOOK_AGAIN_AT_LIMITS: Span = Span::from_secs(600);

/// No deadline is nearer than this, so that no two plans chase each other.
const LEAST_WAIT: Span = Span::from_secs(1);

/// Once nothing is free and nothing more is promised, only the heads of the queue can still need another reason.
const N_LOOKED_AT_WHEN_FULL: u32 = 128;

pub(crate) struct Pass<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) clock: Clock,
    order: Order<'a>,
    pub(crate) room: Room<'a>,
    failed: Failed<'a>,
    /// Those that found no place even beside others.
    failed_beside: Failed<'a>,
    reasons: Reasons<'a>,
    pub(crate) depth: Depth,
    pub(crate) allowance: Allowance<'a>,
    /// The limit that what was found for the job would break.
    refused: Option<Reason>,
    /// The heterogeneous jobs that this pass has looked at.
    wholes: BTreeSet<JobId>,
    pub(crate) plan: Plan,
    look_again_at: Option<Timestamp>,
    n_limits_foreseen: u32,
    preemptees: Preemptees<'a>,
    /// The level at which jobs of a size could be if nothing else ran, where they wait for that.
    levels: Vec<(PoolId, &'a Size, Option<u32>)>,
}

impl<'a> Pass<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let backfill = &cluster.config().scheduler.backfill;
        let clock = Clock::of(cluster);
        Pass {
            cluster,
            clock,
            order: Order::new(cluster),
            room: Room::new(cluster, &clock),
            failed: Failed::default(),
            failed_beside: Failed::default(),
            reasons: Reasons::new(cluster),
            depth: Depth::new(backfill),
            allowance: Allowance::new(cluster),
            refused: None,
            wholes: BTreeSet::new(),
            plan: Plan::default(),
            look_again_at: None,
            n_limits_foreseen: 0,
            preemptees: Preemptees::new(cluster),
            levels: Vec::new(),
        }
    }

    /// Looks at so many jobs as one pass may; at those behind `stopped_at`, if another has looked so far already.
    pub fn run(mut self, stopped_at: Option<JobId>) -> Outlook {
        let mut n_when_full = 0;
        let mut being_staged = crate::staging::being_staged(self.cluster);
        let mut n_left = self.cluster.config().scheduler.depth;
        let (mut is_before, mut last, mut stops_at) = (stopped_at.is_some(), None, None);
        let mut queue = Ahead::new(self.cluster.queue());
        while let Some(job) = queue.next(&self.allowance) {
            if is_before {
                is_before = stopped_at != Some(job.id);
                // Nothing but what they keep from others matters here.
                if job.expected_start.is_none() && job.reason != Some(Reason::Resources) {
                    continue;
                }
            } else if n_left == 0 {
                stops_at = last;
                break;
            } else {
                n_left -= 1;
                last = Some(job.id);
            }
            while being_staged.last().is_some_and(|first| self.cluster.queue_key(first) < self.cluster.queue_key(job)) {
                self.keep_a_place(being_staged.pop().expect("just seen"));
            }
            if self.room.is_full() && !self.depth.may_promise() && !self.may_start_when_full() {
                n_when_full += 1;
                if n_when_full > N_LOOKED_AT_WHEN_FULL {
                    break;
                }
            }
            if !self.stays_as_it_is(job) {
                self.consider_any(job);
            }
            if self.cluster.has_claim(job.id) {
                self.looked_at_claimant(job);
            }
        }
        self.stage();
        self.plan.starts = self.allowance.into_starts();
        let is_sooner = |at: &Timestamp| self.cluster.plan_due().is_none_or(|due| *at < due);
        self.plan.look_again = self.look_again_at.filter(is_sooner);
        Outlook { plan: self.plan, look_again_at: self.look_again_at, stopped_at: stops_at }
    }

    fn consider_any(&mut self, job: &'a Job) {
        match &job.het {
            Some(het) => self.consider_whole(het),
            None => self.consider(job),
        }
    }

    /// Starts what may start of the job; if something stays, says why, and when it will start.
    fn consider(&mut self, job: &'a Job) {
        let pools = self.pools(job);
        let (mut pools, refusal) = self.within_limits(job, pools);
        if let Some(reason) = refusal {
            return self.stays_for(job, reason);
        }
        self.room.look_for(&job.spec.size);
        let waits = self.waits(job, &pools);
        let mut requests = Request::all(self.cluster, &self.room.closures, job);
        waits.put_into(&mut requests);
        let Some(request) = Request::waiting(&requests) else { return };
        let is_behind = pools.iter().any(|pool| self.reasons.is_blocked(*pool));
        let may_try = !is_behind || self.depth.may_try_behind(job, &pools);
        let (mut stays, mut may_start) = (true, false);
        for task in self.order.tasks(job) {
            may_start = true;
            stays = !(may_try && requests.iter().any(|request| self.start(&pools, request, task)));
            if let Some(reason) = self.refused.take() {
                return self.stays_for(job, reason);
            }
            if stays {
                break;
            }
            self.order.started(job);
            if job.waiting_tasks.is_none() {
                return;
            }
            // Tasks that are left may be too many for a limit.
            let (within, refusal) = self.within_limits(job, pools);
            if let Some(reason) = refusal {
                return self.stays_for(job, reason);
            }
            pools = within;
        }
        if !stays {
            return;
        }
        if may_start && may_try {
            self.goes_on_waiting(job, &waits);
        }
        self.reasons.of_blocked(&self.room, &self.clock, &requests, &pools, &mut self.plan);
        if may_start && may_try {
            self.make_room(&pools, &requests);
        }
        let partition = pools.first().map(|pool| self.room.partition(*pool));
        let may_promise = self.may_promise(job) && self.allowance.may_be_promised(job, partition);
        let has_place = may_start && may_try && may_promise && self.promise(&pools, &request);
        if !has_place && job.expected_start.is_some() {
            self.plan.expected_starts.push(ExpectedStart { job: job.id, ..Default::default() });
        }
    }

    /// Whoever is made room for keeps that room.
    fn may_promise(&self, job: &Job) -> bool {
        self.depth.may_promise() || self.preemptees.makes_room_for(job.id)
    }

    /// Those of the partitions in which no limit of accounts keeps the job; if there is none, the limit of the first.
    pub(crate) fn within_limits(&mut self, job: &'a Job, pools: Vec<PoolId>) -> (Vec<PoolId>, Option<Reason>) {
        let mut first = None;
        let mut within = Vec::with_capacity(pools.len());
        for pool in pools {
            match self.allowance.refusal(job, self.room.partition(pool)) {
                None => within.push(pool),
                Some(reason) => first = first.or(Some(reason)),
            }
        }
        let refusal = first.filter(|_| within.is_empty());
        (within, refusal)
    }

    /// A limit keeps the job: it has no place in the future, and holds up nobody.
    fn stays_for(&mut self, job: &'a Job, reason: Reason) {
        if job.reason != Some(reason) || !job.reason_text.is_empty() {
            let text = String::new();
            self.plan.reasons.push(WaitReason { job: job.id, reason: Some(reason), text, expected_start: None });
        }
        if job.expected_start.is_some() {
            self.plan.expected_starts.push(ExpectedStart { job: job.id, ..Default::default() });
        }
        self.waits_for_a_limit(job, reason);
    }

    /// Limits on time are lifted by time; all others by something that happens.
    pub(crate) fn waits_for_a_limit(&mut self, job: &'a Job, reason: Reason) {
        if !reason.is_limit_on_time() {
            return;
        }
        self.n_limits_foreseen += 1;
        if self.n_limits_foreseen > N_LIMITS_FORESEEN {
            return self.look_again(self.cluster.now() + LOOK_AGAIN_AT_LIMITS);
        }
        let cluster = self.cluster;
        for partition in job.spec.partitions.iter().filter_map(|name| cluster.config().partition(name)) {
            if let Some(at) = self.allowance.lifted_at(job, partition) {
                self.look_again(at);
            }
        }
    }

    /// The job's partitions that would take it now.
    pub(crate) fn pools(&mut self, job: &'a Job) -> Vec<PoolId> {
        let cluster = self.cluster;
        let partitions = job.spec.partitions.iter().filter_map(|name| cluster.config().partition(name));
        let taking = partitions.filter(|partition| state::partition_refusal(cluster, partition, job).is_none());
        taking.map(|partition| self.room.pool(self.cluster, partition)).collect()
    }

    fn seeker(&self, pool: PoolId, request: &Request) -> Seeker {
        let uid = self.room.has_lone_users.then_some(request.spec().uid);
        let mut closed = request.closed.clone();
        // Whoever needs room on the nodes' disks fails for reasons of its own.
        closed.extend(request.needs_disk().then_some(u32::MAX - request.job.id.0));
        Seeker { pool, uid, closed, limit_until: request.limit_until, level: request.level_limit(pool) }
    }

    /// Starts the job, or one task of it, in the first of its partitions where it fits.
    fn start(&mut self, pools: &[PoolId], request: &Request<'a>, task: Option<u32>) -> bool {
        let passes = self.cluster.config().scheduler.backfill.is_on;
        for pool in pools {
            if !passes && self.reasons.is_blocked(*pool) {
                continue;
            }
            if let Some(grants) = self.fits_now(*pool, request) {
                let grants = match self.breaks_limit(*pool, request, &grants, None) {
                    false => Some(grants),
                    true => self.within_fewer(*pool, request, &grants),
                };
                let Some(grants) = grants else { continue };
                self.place(*pool, request, task, grants, Way::default());
                return true;
            }
            if let Some((shorter, grants)) = self.fits_shortened(*pool, request) {
                let time_limit = shorter.length.0.map(|span| TimeLimit::Secs(span.secs()));
                if self.breaks_limit(*pool, request, &grants, time_limit) {
                    continue;
                }
                self.place(*pool, &shorter, task, grants, Way { time_limit, ..Way::default() });
                return true;
            }
            if let Some(grants) = self.fits_beside(*pool, request) {
                if self.breaks_limit(*pool, request, &grants, None) {
                    continue;
                }
                self.place(*pool, request, task, grants, Way { shares_cpus: true, ..Way::default() });
                return true;
            }
        }
        if self.refused.is_some() {
            return false;
        }
        for pool in pools.iter().filter(|pool| passes || !self.reasons.is_blocked(**pool)).copied().collect::<Vec<_>>()
        {
            if let Some((grants, parks)) = self.fits_instead(pool, request) {
                self.place(pool, request, task, grants, Way { parks, ..Way::default() });
                return true;
            }
        }
        false
    }

    /// What was found may be more than what was asked for.
    fn breaks_limit(
        &mut self,
        pool: PoolId,
        request: &Request<'a>,
        grants: &[Grant],
        limit: Option<TimeLimit>,
    ) -> bool {
        let partition = self.room.partition(pool);
        self.refused = self.allowance.refusal_of(request.job, partition, grants, limit);
        self.refused.is_some()
    }

    pub(crate) fn fits_now(&mut self, pool: PoolId, request: &Request<'a>) -> Option<Vec<Grant>> {
        let seeker = self.seeker(pool, request);
        if self.failed.earliest(&seeker, request) > Slot::NOW {
            return None;
        }
        let interval = self.clock.interval(Slot::NOW, request.length);
        if !self.room.counts.has(&request.counts, interval, request.reservation) {
            return None;
        }
        let grants = pick::pick(&Offer::now(&self.room, pool, interval.until, request));
        if grants.is_none() {
            self.failed.remember(&seeker, request, Slot(1));
        }
        grants
    }

    /// With less time, but no less than `--time-min`, it may end before somebody else's promise begins. It gets as much time as there is.
    fn fits_shortened(&mut self, pool: PoolId, request: &Request<'a>) -> Option<(Request<'a>, Vec<Grant>)> {
        let least = request.spec().time_min?;
        let mut shorter = Request { length: Length::of(Some(least)), ..request.clone() };
        let grants = self.fits_now(pool, &shorter)?;
        let begins = grants.iter().filter_map(|grant| self.room.find(&grant.node));
        let begins = begins.flat_map(|spot| self.room.spot(spot).promised.iter().map(|one| one.interval.from));
        let mut begins: Vec<Slot> = begins.collect();
        begins.sort_unstable_by_key(|slot| std::cmp::Reverse(*slot));
        begins.dedup();
        // The latest mark until which it would keep the same nodes.
        for begin in begins {
            let minutes = (self.clock.time(begin) - self.cluster.now()).secs() / 60;
            let longer =
                Request { length: Length(Some(model::time::Span::from_secs(minutes * 60))), ..request.clone() };
            let is_better = longer.length.is_at_least(shorter.length) && request.length.is_at_least(longer.length);
            if !is_better {
                continue;
            }
            let interval = self.clock.interval(Slot::NOW, longer.length);
            if let Some(grants) = pick::pick(&Offer::now(&self.room, pool, interval.until, &longer)) {
                shorter = longer;
                return Some((shorter, grants));
            }
        }
        Some((shorter, grants))
    }

    fn place(&mut self, pool: PoolId, request: &Request<'a>, task: Option<u32>, nodes: Vec<Grant>, way: Way) {
        let interval = self.clock.interval(Slot::NOW, request.length);
        self.room.give(pool, &nodes, request, interval);
        let partition = self.room.partition(pool).name.clone();
        let is_exclusive = request.size.wants_whole_nodes();
        let reservation = request.reservation.to_string();
        let job = request.job.id;
        let Way { time_limit, shares_cpus, parks } = way;
        let has_choice = request.spec().licenses.any_is_enough;
        let license = request.counts.first().filter(|_| has_choice).map(|one| one.name.clone()).unwrap_or_default();
        let start =
            Start { job, task, partition, nodes, is_exclusive, time_limit, reservation, license, shares_cpus, parks };
        if request.needs_disk() {
            let nodes: Vec<NodeName> = start.nodes.iter().map(|grant| grant.node.clone()).collect();
            self.room.take_disk(request.job, &nodes);
        }
        self.allowance.started(request.job, self.room.partition(pool), start);
    }

    /// Keeps a place for the job in the future, where it can start first.
    fn promise(&mut self, pools: &[PoolId], request: &Request<'a>) -> bool {
        let Some((at, grants)) = self.find_place(pools, request) else { return false };
        let job = request.job;
        self.stage_on(job, at, &grants);
        let nodes = hostlist::compress(grants.iter().map(|grant| grant.node.as_str()));
        let nodes = if at.is_some() { nodes } else { String::new() };
        if job.expected_start != at || job.expected_nodes != nodes {
            self.plan.expected_starts.push(ExpectedStart { job: job.id, at, nodes });
        }
        true
    }

    /// The first place the job can have, which nobody after it can take; and when that is, if anybody knows.
    /// What frees that place happens, and gives another plan: no deadline is needed.
    pub(crate) fn find_place(
        &mut self,
        pools: &[PoolId],
        request: &Request<'a>,
    ) -> Option<(Option<Timestamp>, Vec<Grant>)> {
        let may_find = |pool: &PoolId| self.failed.earliest(&self.seeker(*pool, request), request) < Slot::NEVER;
        if !pools.iter().any(may_find) {
            return None;
        }
        self.depth.looked_ahead();
        self.room.look_ahead();
        let mut best: Option<(Slot, PoolId, Vec<Grant>)> = None;
        for pool in pools {
            let seeker = self.seeker(*pool, request);
            let earliest = self.failed.earliest(&seeker, request);
            let not_before = earliest.max(Slot(1));
            let found = match not_before {
                Slot::NEVER => None,
                _ => timeline::earliest(&self.room, &self.clock, *pool, request, not_before),
            };
            // Whoever only keeps a place for later (its data is on its way) has not tried to start now.
            if earliest > Slot::NOW {
                self.failed.remember(&seeker, request, found.as_ref().map_or(Slot::NEVER, |(slot, _)| *slot));
            }
            if let Some((slot, grants)) = found
                && best.as_ref().is_none_or(|(first, ..)| slot < *first)
            {
                best = Some((slot, *pool, grants));
            }
        }
        let (slot, pool, grants) = best?;
        if slot == self.clock.end() && !self.has_lost_patience(request.job) {
            return None;
        }
        // At the end of the window stand those of whom nobody knows when.
        let at = (slot < self.clock.end()).then(|| self.room.free_from(&grants, slot, &self.clock));
        self.room.give(pool, &grants, request, self.clock.interval(slot, request.length));
        Some((at, grants))
    }

    /// Whoever waits for jobs that may run for ever lets others pass, but not for ever.
    pub(crate) fn has_lost_patience(&mut self, job: &Job) -> bool {
        let since = job.eligible.unwrap_or(job.submitted);
        let until = since + self.cluster.config().scheduler.backfill.patience;
        if self.cluster.now() < until {
            self.look_again(until);
            return false;
        }
        true
    }

    pub(crate) fn look_again(&mut self, at: Timestamp) {
        let at = at.max(self.cluster.now() + LEAST_WAIT);
        self.look_again_at = Some(self.look_again_at.map_or(at, |other| other.min(at)));
    }
}
