//! The first mark at which a job fits.
//!
//! Where every node alone could serve is summed up over the marks; only where the sum is enough is a choice tried.
use model::plan::Grant;

use super::{Clock, Free, Interval, Length, Slot};
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::{PoolId, Room, SpotId};

/// After so many choices that failed although the sums were right, the job is left without a place.
const N_TRIES: u32 = 16;
const N_TRIES_ON_A_NETWORK: u32 = 128;

/// The first place from `not_before` on, and when.
pub(crate) fn earliest(
    room: &Room,
    clock: &Clock,
    pool: PoolId,
    request: &Request,
    not_before: Slot,
) -> Option<(Slot, Vec<Grant>)> {
    let bounds = pick::bounds(room, pool, request.job, request.size)?;
    // The sums know nothing of the network, nor of kinds: where nodes are far apart or differ, more marks must be tried.
    let has_shape = Offer::of_spots(room, pool, clock.interval(Slot::NOW, request.length), request).shape().is_some();
    let is_picky = has_shape || !request.size.feature_sets.is_empty();
    let n_tries_left = if is_picky { N_TRIES_ON_A_NETWORK } else { N_TRIES };
    let mut search = Search { room, clock, pool, request, not_before, min_nodes: bounds.0.into(), n_tries_left };
    let is_walked = request.is_plain() && request.closed.is_empty() && request.counts.is_empty();
    if is_walked { super::walk::walk(&mut search) } else { scan(&mut search) }
}

/// What is looked for, and how often a choice may still fail.
pub(super) struct Search<'s, 'a> {
    pub room: &'s Room<'a>,
    pub clock: &'s Clock,
    pub pool: PoolId,
    pub request: &'s Request<'s>,
    not_before: Slot,
    min_nodes: i64,
    n_tries_left: u32,
}

pub(super) enum Tried {
    Found(Slot, Vec<Grant>),
    /// Not here.
    NotYet,
    GivenUp,
}

impl<'s, 'a> Search<'s, 'a> {
    /// Marks at which a choice may succeed though no node got freer: where the search begins, and where the wait for few
    /// switches ends and more of them will do.
    pub fn own_marks(&self) -> [Slot; 3] {
        let level_until = self.request.level_limit(self.pool).map_or(self.not_before, |(_, until)| until);
        [self.not_before, self.request.limit_until, level_until]
    }

    /// Tries a choice, if so many nodes and tasks are enough.
    pub fn try_at(
        &mut self,
        slot: Slot,
        nodes: i64,
        tasks: i64,
        offer: impl FnOnce(Interval) -> Offer<'s, 'a>,
    ) -> Tried {
        let n_tasks = self.request.size.n_tasks.map_or(0, i64::from);
        if slot < self.not_before || nodes < self.min_nodes || tasks < n_tasks {
            return Tried::NotYet;
        }
        let interval = self.clock.interval(slot, self.request.length);
        if !self.room.counts.has(&self.request.counts, interval, self.request.reservation) {
            return Tried::NotYet;
        }
        if let Some(grants) = pick::pick(&offer(interval)) {
            return Tried::Found(slot, grants);
        }
        self.n_tries_left -= 1;
        if self.n_tries_left == 0 { Tried::GivenUp } else { Tried::NotYet }
    }
}

/// Looks at every node and every mark.
fn scan(search: &mut Search) -> Option<(Slot, Vec<Grant>)> {
    let Search { room, clock, pool, request, .. } = *search;
    let mut sums = Sums::new(clock);
    let is_plain = request.is_plain();
    for spot in room.members(pool) {
        if !request.suits_all && !room.spot(*spot).node.suits(request.size) {
            continue;
        }
        match is_plain && room.spot(*spot).promised.is_empty() && !room.closures.bars_ever(*spot, request) {
            true => add_plain(&mut sums, room, *spot, request),
            false => add_exactly(room, clock, *spot, pool, request, |at, nodes, tasks| sums.add(at, nodes, tasks)),
        }
    }
    let (mut nodes, mut tasks) = (0, 0);
    for slot in 0..sums.marks.len() {
        let mark = sums.marks[slot];
        nodes += mark.nodes;
        tasks += mark.tasks;
        let slot = Slot(slot as u32);
        let is_new = mark.has_more || search.own_marks().contains(&slot) || room.counts.frees_at(&request.counts, slot);
        if !is_new {
            continue;
        }
        match search.try_at(slot, nodes, tasks, |interval| Offer::later(room, pool, interval, request)) {
            Tried::Found(slot, grants) => return Some((slot, grants)),
            Tried::NotYet => (),
            Tried::GivenUp => return None,
        }
    }
    None
}

/// How many nodes could serve, and how many tasks they take, told as differences from mark to mark.
struct Sums {
    marks: Vec<Mark>,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    nodes: i64,
    tasks: i64,
    has_more: bool,
}

impl Sums {
    fn new(clock: &Clock) -> Sums {
        Sums { marks: vec![Mark::default(); clock.n_slots as usize + 1] }
    }

    fn add(&mut self, at: Slot, nodes: i64, tasks: i64) {
        if let Some(mark) = self.marks.get_mut(at.0 as usize) {
            mark.nodes += nodes;
            mark.tasks += tasks;
            mark.has_more |= nodes > 0 || tasks > 0;
        }
    }
}

/// A node where nothing is promised only gets freer: CPUs and memory are summed up as its jobs end.
fn add_plain(sums: &mut Sums, room: &Room, spot: SpotId, request: &Request) {
    let spot = room.spot(spot);
    let mut free = spot.now;
    let mut counted: Option<i64> = None;
    let mut count = |free: Free, at: Slot, sums: &mut Sums| {
        let Some(tasks) = tasks_in(room, request, free) else { return };
        let before = counted.replace(tasks);
        sums.add(at, i64::from(before.is_none()), tasks - before.unwrap_or(0));
    };
    count(free, Slot::NOW, sums);
    for release in &spot.held().releases {
        free = free.plus(release, spot.whole);
        count(free, release.at, sums);
    }
}

/// How many tasks of a plain request go into so much; none if it is too little for any.
pub(super) fn tasks_in(room: &Room, request: &Request, free: Free) -> Option<i64> {
    let least_memory_mb = if room.tracks_memory { request.least_memory_mb } else { 0 };
    if free.cpus < request.least_cpus || free.memory_mb < least_memory_mb {
        return None;
    }
    Some(i64::from(if request.size.overcommit { u32::MAX } else { free.cpus / request.size.n_cpus_per_task() }))
}

/// Any other node is asked at each mark at which its answer may change.
pub(super) fn add_exactly(
    room: &Room,
    clock: &Clock,
    spot: SpotId,
    pool: PoolId,
    request: &Request,
    mut add: impl FnMut(Slot, i64, i64),
) {
    let uses = room.spot(spot).uses();
    let mut marks: Vec<Slot> = vec![Slot::NOW];
    marks.extend(uses.held.uses.iter().chain(uses.promised).map(|one| one.interval.until));
    let begins = uses.promised.iter().map(|one| one.interval.from);
    marks.extend(begins.map(|from| too_late(clock, from, request.length)));
    for closed in room.closures.intervals(spot, request) {
        marks.extend([closed.until, too_late(clock, closed.from, request.length)]);
    }
    marks.retain(|mark| mark.0 <= clock.n_slots);
    marks.sort_unstable();
    marks.dedup();
    let mut counted: Option<u32> = None;
    for mark in marks {
        let offer = Offer::of_spots(room, pool, clock.interval(mark, request.length), request);
        let n_tasks = offer.n_tasks_fitting(spot);
        let nodes = i64::from(n_tasks.is_some()) - i64::from(counted.is_some());
        let tasks = n_tasks.map_or(0, i64::from) - counted.map_or(0, i64::from);
        add(mark, nodes, tasks);
        counted = n_tasks;
    }
}

/// The first mark at which a job of that length would run into what begins at `from`.
fn too_late(clock: &Clock, from: Slot, length: Length) -> Slot {
    let Interval { until, .. } = clock.interval(Slot(1), length);
    let n_slots = until.0.saturating_sub(1);
    Slot((from.0 + 1).saturating_sub(n_slots))
}
