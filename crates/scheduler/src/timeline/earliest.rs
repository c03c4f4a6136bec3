//! The first mark at which a job fits.
//!
//! Where every node alone could serve is summed up over the marks; only where the sum is enough is a choice tried.
use model::plan::Grant;

use super::{Clock, Interval, Length, Slot};
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::{PoolId, Room};

/// After so many choices that failed although the sums were right, the job is left without a place.
const N_TRIES: u32 = 16;
const N_TRIES_ON_A_NETWORK: u32 = 128;

pub(crate) fn earliest(
    room: &Room,
    clock: &Clock,
    pool: PoolId,
    request: &Request,
    not_before: Slot,
) -> Option<(Slot, Vec<Grant>)> {
    let bounds = pick::bounds(room.partition(pool), request.size)?;
    let mut sums = Sums::new(clock);
    let is_plain = request.is_plain();
    for spot in room.members(pool) {
        if !request.suits_all && !room.spot(*spot).node.suits(request.size) {
            continue;
        }
        match is_plain && room.spot(*spot).uses.promised.is_empty() && !room.closures.bars_ever(*spot, request) {
            true => add_plain(&mut sums, room, *spot, request),
            false => add_exactly(&mut sums, room, clock, *spot, pool, request),
        }
    }
    let n_tasks = request.size.n_tasks.map_or(0, i64::from);
    let mut n_tries = 0;
    // The sums know nothing of the network: where nodes are far apart, more marks must be tried.
    let n_tries_max =
        if Offer::of_spots(room, pool, clock.interval(Slot::NOW, request.length), request).shape().is_some() {
            N_TRIES_ON_A_NETWORK
        } else {
            N_TRIES
        };
    let (mut nodes, mut tasks) = (0, 0);
    for slot in 0..sums.marks.len() {
        let mark = sums.marks[slot];
        nodes += mark.nodes;
        tasks += mark.tasks;
        let slot = Slot(slot as u32);
        // Where the wait for few switches ends, more of them will do.
        let is_new = mark.has_more
            || slot == not_before
            || slot == request.limit_until
            || room.counts.frees_at(&request.counts, slot);
        if slot < not_before || !is_new || nodes < i64::from(bounds.0) || tasks < n_tasks {
            continue;
        }
        let interval = clock.interval(slot, request.length);
        if !room.counts.has(&request.counts, interval, request.reservation) {
            continue;
        }
        let offer = Offer::later(room, pool, interval, request);
        if let Some(grants) = pick::pick(&offer) {
            return Some((slot, grants));
        }
        n_tries += 1;
        if n_tries >= n_tries_max {
            return None;
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
fn add_plain(sums: &mut Sums, room: &Room, spot: crate::room::SpotId, request: &Request) {
    let spot = room.spot(spot);
    let least_cpus = request.least_cpus;
    let least_memory_mb = if room.tracks_memory { request.least_memory_mb } else { 0 };
    let per_task = request.size.n_cpus_per_task();
    let (mut free, whole) = (spot.now, spot.whole);
    let mut counted: Option<i64> = None;
    let mut count = |free: super::Free, at: Slot, sums: &mut Sums| {
        if free.cpus < least_cpus || free.memory_mb < least_memory_mb {
            return;
        }
        let tasks = i64::from(if request.size.overcommit { u32::MAX } else { free.cpus / per_task });
        let before = counted.replace(tasks);
        sums.add(at, i64::from(before.is_none()), tasks - before.unwrap_or(0));
    };
    count(free, Slot::NOW, sums);
    for release in &spot.uses.releases {
        free.cpus = free.cpus.saturating_add(release.cpus).min(whole.cpus);
        free.memory_mb = free.memory_mb.saturating_add(release.memory_mb).min(whole.memory_mb);
        count(free, release.at, sums);
    }
}

/// Any other node is asked at each mark at which its answer may change.
fn add_exactly(
    sums: &mut Sums,
    room: &Room,
    clock: &Clock,
    spot: crate::room::SpotId,
    pool: PoolId,
    request: &Request,
) {
    let uses = &room.spot(spot).uses;
    let mut marks: Vec<Slot> = vec![Slot::NOW];
    marks.extend(uses.held.iter().chain(&uses.promised).map(|one| one.interval.until));
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
        sums.add(mark, nodes, tasks);
        counted = n_tasks;
    }
}

/// The first mark at which a job of that length would run into what begins at `from`.
fn too_late(clock: &Clock, from: Slot, length: Length) -> Slot {
    let Interval { until, .. } = clock.interval(Slot(1), length);
    let n_slots = until.0.saturating_sub(1);
    Slot((from.0 + 1).saturating_sub(n_slots))
}
