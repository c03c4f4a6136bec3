//! Who must make room: the smallest set of running jobs whose going is shown to let a more important one start.
//!
//! ```text
//! the job finds no place ──▶ would it, without all who give way to it? ──▶ no: nobody goes
//!      └──▶ without one of them? without two? … the lowest and youngest first ──▶ told; their places become the job's promise
//! ```
use std::cmp::Reverse;
use std::collections::BTreeSet;

use model::partition::PreemptMode;
use model::plan::{Grant, Preemption};
use model::{Job, JobId, Timestamp};
use state::Cluster;
use state::preemption::{self, Terms};

use super::Pass;
use super::together::Ways;
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::PoolId;
use crate::timeline::Slot;

/// So many sets are tried for the smallest; after that, fewer and fewer of the lowest.
const N_TRIES: usize = 64;

/// So many jobs are made room for in one pass: the next event brings the next pass.
const N_MADE_ROOM_FOR: u32 = 32;

/// Behind so many that go before nobody, there will hardly be one that does.
const N_LOW: u32 = 128;

/// Jobs that run, and who of them has been told to go.
#[derive(Default)]
pub(super) struct Preemptees<'a> {
    is_on: bool,
    /// None until somebody asks.
    running: Option<Vec<&'a Job>>,
    told: BTreeSet<JobId>,
    /// For whom somebody already makes room.
    made_room_for: BTreeSet<JobId>,
    n_tried: u32,
    /// The lowest rank of those that run.
    lowest: u32,
    /// Jobs in a row that go before nobody.
    n_low: u32,
}

impl<'a> Preemptees<'a> {
    pub fn new(cluster: &Cluster) -> Preemptees<'a> {
        let is_on = cluster.config().scheduler.preemption.is_on() || preemption::reservations_preempt(cluster);
        Preemptees { is_on, ..Default::default() }
    }

    /// Somebody might still be told to go.
    pub fn may_help(&self) -> bool {
        self.is_on && self.n_tried < N_MADE_ROOM_FOR && self.n_low < N_LOW
    }

    pub fn makes_room_for(&self, job: JobId) -> bool {
        self.made_room_for.contains(&job)
    }

    fn load(&mut self, cluster: &'a Cluster) {
        if self.running.is_some() {
            return;
        }
        let holders: BTreeSet<JobId> = cluster.nodes().flat_map(|node| node.jobs.iter().copied()).collect();
        let holders: Vec<&'a Job> = holders.iter().filter_map(|id| cluster.job(*id)).map(|job| &**job).collect();
        let leaving = holders.iter().filter(|job| job.preempt_ends.is_some());
        // Room for a component is room for the whole.
        let whole = |id: JobId| cluster.job(id).and_then(|job| job.het.as_ref()).map_or(id, |het| het.leader);
        self.made_room_for = leaving.filter_map(|job| job.preempted_by).map(whole).collect();
        self.lowest = holders.iter().map(|job| preemption::rank(cluster, job)).min().unwrap_or(u32::MAX);
        let may = |job: &&Job| preemption::may_be_told(job) || preemption::may_stand_still(job);
        self.running = Some(holders.into_iter().filter(may).collect());
    }
}

/// What becomes of those who give way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// They are cancelled, or wait again.
    Going,
    /// They keep all but their CPUs, and go on afterwards.
    StandingStill,
}

impl How {
    fn is_meant_by(self, terms: &Terms) -> bool {
        (terms.mode == PreemptMode::Suspend) == (self == How::StandingStill)
    }

    fn may_be_asked(self, job: &Job) -> bool {
        match self {
            How::Going => preemption::may_be_told(job),
            How::StandingStill => preemption::may_stand_still(job),
        }
    }
}

/// Jobs that go together: one, or the components of one.
pub(super) struct Victim<'a> {
    jobs: Vec<&'a Job>,
    terms: Terms,
    /// Who goes before them: the job that needs the room, or a component of it.
    by: JobId,
}

/// Who is to start in the place of others.
#[derive(Clone, Copy)]
pub(super) enum Trial<'t, 'a> {
    One(PoolId, &'t Request<'a>),
    /// All components of a heterogeneous job.
    Whole(&'t [Ways<'a>]),
}

impl Victim<'_> {
    fn ids(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().map(|job| job.id)
    }
}

impl<'a> Pass<'a> {
    /// Whoever has a claim and does not start, though nobody is on the way out for it, waits its turn again.
    pub(super) fn looked_at_claimant(&mut self, job: &'a Job) {
        self.preemptees.load(self.cluster);
        let leader = job.het.as_ref().map_or(job.id, |het| het.leader);
        let is_started = self.allowance.starts().iter().any(|start| start.job == job.id);
        if !is_started && !self.preemptees.makes_room_for(leader) {
            self.plan.forfeits.push(job.id);
        }
    }

    /// Tells those to go in whose place the job can start, if there are any.
    pub(super) fn make_room(&mut self, pools: &[PoolId], requests: &[Request<'a>]) {
        if !self.preemptees.may_help() {
            return;
        }
        self.preemptees.load(self.cluster);
        let Some(job) = requests.first().map(|request| request.job) else { return };
        if self.preemptees.made_room_for.contains(&job.id) {
            return;
        }
        let is_low = |pool: &&PoolId| {
            !preemption::goes_before_some(self.cluster, job, self.room.partition(**pool), self.preemptees.lowest)
        };
        if pools.iter().all(|pool| is_low(&pool)) {
            self.preemptees.n_low += 1;
            return;
        }
        self.preemptees.n_low = 0;
        for pool in pools {
            let victims = self.victims(*pool, job, How::Going);
            if victims.is_empty() {
                continue;
            }
            self.preemptees.n_tried += 1;
            for request in requests {
                if let Some(chosen) = self.fewest(Trial::One(*pool, request), &victims, How::Going) {
                    return self.tell(job.id, chosen);
                }
            }
        }
    }

    /// As `make_room`, for all components at once.
    pub(super) fn make_room_for_whole(&mut self, leader: JobId, wanted: &[Ways<'a>]) {
        if !self.preemptees.may_help() {
            return;
        }
        self.preemptees.load(self.cluster);
        if self.preemptees.made_room_for.contains(&leader) {
            return;
        }
        let lowest = self.preemptees.lowest;
        let mut victims: Vec<Victim<'a>> = Vec::new();
        for (pools, requests) in wanted {
            let Some(job) = requests.first().map(|request| request.job) else { return };
            for pool in pools {
                if !preemption::goes_before_some(self.cluster, job, self.room.partition(*pool), lowest) {
                    continue;
                }
                for victim in self.victims(*pool, job, How::Going) {
                    if !victims.iter().any(|known| known.jobs[0].id == victim.jobs[0].id) {
                        victims.push(victim);
                    }
                }
            }
        }
        if victims.is_empty() {
            self.preemptees.n_low += 1;
            return;
        }
        (self.preemptees.n_low, self.preemptees.n_tried) = (0, self.preemptees.n_tried + 1);
        sort(self.cluster, &mut victims);
        if let Some(chosen) = self.fewest(Trial::Whole(wanted), &victims, How::Going) {
            self.tell(leader, chosen);
        }
    }

    /// Nodes for the job on CPUs of others, who stand still instead.
    pub(super) fn fits_instead(&mut self, pool: PoolId, request: &Request<'a>) -> Option<(Vec<Grant>, Vec<JobId>)> {
        let job = request.job;
        if !self.preemptees.may_help() || request.size.network.owns_units || job.het.is_some() {
            return None;
        }
        self.preemptees.load(self.cluster);
        if !preemption::goes_before_some(self.cluster, job, self.room.partition(pool), self.preemptees.lowest) {
            return None;
        }
        let victims = self.victims(pool, job, How::StandingStill);
        let Some(chosen) = self.fewest(Trial::One(pool, request), &victims, How::StandingStill) else {
            self.preemptees.n_tried += u32::from(!victims.is_empty());
            return None;
        };
        let parks: BTreeSet<JobId> = chosen.iter().flat_map(|victim| victim.ids()).collect();
        let grants = self.fits_over(pool, request, 1, &parks)?;
        // Whoever stands still for one job is not asked by another before the next plan.
        self.preemptees.told.extend(&parks);
        Some((grants, parks.into_iter().collect()))
    }

    fn tell(&mut self, job: JobId, chosen: Vec<&Victim<'a>>) {
        self.room.look_ahead();
        self.preemptees.made_room_for.insert(job);
        for victim in chosen {
            let gone_at = self.cluster.now() + victim.terms.grace;
            for one in &victim.jobs {
                self.preemptees.told.insert(one.id);
                self.plan.preemptions.push(Preemption { job: one.id, attempt: one.attempt, by: victim.by });
                self.room.shorten(one, gone_at, &self.clock);
            }
        }
    }

    /// Who would give way to the job in that partition, the first to go first.
    fn victims(&mut self, pool: PoolId, job: &Job, how: How) -> Vec<Victim<'a>> {
        let (cluster, partition) = (self.cluster, self.room.partition(pool));
        let members: BTreeSet<u32> = self.room.members(pool).iter().copied().collect();
        let mut victims = Vec::new();
        let mut first_due: Option<Timestamp> = None;
        for one in self.preemptees.running.as_deref().unwrap_or_default() {
            let is_leader = one.het.as_ref().is_none_or(|het| het.is_leader());
            if self.preemptees.told.contains(&one.id) || !is_leader {
                continue;
            }
            let Some(terms) = preemption::terms(cluster, job, partition, one) else { continue };
            if !how.is_meant_by(&terms) || (how == How::StandingStill && one.het.is_some()) {
                continue;
            }
            let ids = one.het.as_ref().map_or(vec![one.id], |het| het.ids.clone());
            let jobs: Vec<&Job> = ids.iter().filter_map(|id| cluster.job(*id)).map(|job| &**job).collect();
            let jobs: Vec<&Job> = jobs.into_iter().filter(|job| job.holds_nodes()).collect();
            let gives_way = |one: &&Job| {
                let alike = preemption::terms(cluster, job, partition, one);
                how.may_be_asked(one) && alike.is_some_and(|other| how.is_meant_by(&other))
            };
            let helps = |one: &&Job| {
                let mut spots = one.allocation.names().filter_map(|name| self.room.find(name));
                spots.any(|spot| members.contains(&spot)) || !one.licenses.is_empty()
            };
            if !jobs.iter().all(gives_way) || !jobs.iter().any(helps) {
                continue;
            }
            if terms.exempt_until > cluster.now() {
                first_due = Some(first_due.map_or(terms.exempt_until, |due| due.min(terms.exempt_until)));
                continue;
            }
            victims.push(Victim { jobs, terms, by: job.id });
        }
        if let Some(due) = first_due {
            self.look_again(due);
        }
        sort(cluster, &mut victims);
        victims
    }

    /// The job would start now if these had gone, or stood still.
    fn starts_without(&mut self, trial: Trial<'_, 'a>, gone: &[&Victim<'a>], how: How) -> bool {
        let gone: BTreeSet<JobId> = gone.iter().flat_map(|victim| victim.ids()).collect();
        let (pool, request) = match trial {
            Trial::One(pool, request) => (pool, request),
            Trial::Whole(wanted) => {
                let lifted = self.room.lift(&gone);
                let found = self.all_apart(wanted, &gone);
                self.room.restore(lifted);
                return found.is_some_and(|found| self.limit_on_one(&found).is_none());
            }
        };
        let interval = self.clock.interval(Slot::NOW, request.length);
        if how == How::StandingStill {
            let found = self.fits_over(pool, request, 1, &gone);
            return found.is_some_and(|grants| self.is_allowed(pool, request, &grants));
        }
        if !self.room.counts.has_without(&request.counts, interval, request.reservation, &gone) {
            return false;
        }
        let lifted = self.room.lift(&gone);
        let found = pick::pick(&Offer::now(&self.room, pool, interval.until, request));
        self.room.restore(lifted);
        found.is_some_and(|grants| self.is_allowed(pool, request, &grants))
    }

    /// No limit keeps the job from having these.
    fn is_allowed(&mut self, pool: PoolId, request: &Request<'a>, grants: &[Grant]) -> bool {
        self.allowance.refusal_of(request.job, self.room.partition(pool), grants, None).is_none()
    }

    fn fewest<'v>(&mut self, trial: Trial<'_, 'a>, victims: &'v [Victim<'a>], how: How) -> Option<Vec<&'v Victim<'a>>> {
        let all: Vec<&Victim> = victims.iter().collect();
        if all.is_empty() || !self.starts_without(trial, &all, how) {
            return None;
        }
        if !self.cluster.config().scheduler.preemption.strict_order {
            let mut n_left = N_TRIES;
            for size in 1..all.len() {
                let n_sets = binomial(all.len(), size);
                if n_sets > n_left {
                    break;
                }
                n_left -= n_sets;
                for set in sets(all.len(), size) {
                    let some: Vec<&Victim> = set.iter().map(|at| all[*at]).collect();
                    if self.starts_without(trial, &some, how) {
                        return Some(some);
                    }
                }
            }
        }
        Some(self.lowest(trial, all, how))
    }

    /// As few of the lowest as will do, and of those nobody who need not go.
    fn lowest<'v>(&mut self, trial: Trial<'_, 'a>, mut chosen: Vec<&'v Victim<'a>>, how: How) -> Vec<&'v Victim<'a>> {
        let (mut too_few, mut enough) = (0, chosen.len());
        while too_few + 1 < enough {
            let middle = too_few.midpoint(enough);
            match self.starts_without(trial, &chosen[..middle], how) {
                true => enough = middle,
                false => too_few = middle,
            }
        }
        chosen.truncate(enough);
        // Whole stretches are spared at once where they can be, so that many cost few tries.
        let mut stretch = chosen.len().div_ceil(2);
        while stretch > 0 {
            let mut end = chosen.len();
            while end > 0 {
                let begin = end.saturating_sub(stretch);
                let mut fewer = chosen.clone();
                fewer.drain(begin..end);
                if !fewer.is_empty() && self.starts_without(trial, &fewer, how) {
                    chosen = fewer;
                }
                end = begin.min(chosen.len());
            }
            stretch = if stretch == 1 { 0 } else { stretch.div_ceil(2) };
        }
        chosen
    }
}

fn sort(cluster: &Cluster, victims: &mut [Victim]) {
    let rules = &cluster.config().scheduler.preemption;
    victims.sort_by_cached_key(|victim| {
        let job = victim.jobs[0];
        let importance = if rules.youngest_first { 0 } else { job.priority };
        (preemption::rank(cluster, job), importance, Reverse(job.started), job.priority, Reverse(job.id))
    });
}

fn binomial(n: usize, k: usize) -> usize {
    (0..k).fold(1_usize, |product, at| product.saturating_mul(n - at) / (at + 1))
}

/// All choices of `size` out of `n`, those of the first ones first.
fn sets(n: usize, size: usize) -> Vec<Vec<usize>> {
    let mut all = vec![(0..size).collect::<Vec<usize>>()];
    while let Some(last) = all.last() {
        // The rightmost that can still move on, with all after it close behind.
        let Some(at) = (0..size).rev().find(|at| last[*at] < n - size + *at) else { break };
        let mut next = last.clone();
        let from = next[at] + 1;
        next[at..].iter_mut().enumerate().for_each(|(step, place)| *place = from + step);
        all.push(next);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_tried_once_the_first_ones_first() {
        assert_eq!(sets(3, 2), [[0, 1], [0, 2], [1, 2]]);
        assert_eq!(sets(5, 3).len(), binomial(5, 3));
        assert_eq!((binomial(64, 1), binomial(11, 2)), (64, 55));
    }
}
