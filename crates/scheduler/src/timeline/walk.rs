//! The first mark at which a job fits, for those who ask for CPUs and memory only: from release to release, no further than needed.
//!
//! Most nodes are full until something on them ends. So the search begins with those that have room now, and then follows the
//! pool's calendar of releases; a cluster of ten thousand nodes is not looked at to place a job on four.
use std::collections::BTreeMap;

use model::plan::Grant;

use super::earliest::{Search, Tried, add_exactly, tasks_in};
use super::{Free, Slot};
use crate::pick::Offer;
use crate::room::SpotId;

#[derive(Default)]
struct Sums {
    nodes: i64,
    tasks: i64,
    /// Tasks counted of each node, by spot; zero for those that have no room yet.
    counted: Vec<i64>,
    candidates: Vec<SpotId>,
}

impl Sums {
    /// True: there is more room than before.
    fn count(&mut self, spot: SpotId, tasks: i64) -> bool {
        let counted = &mut self.counted[spot as usize];
        if *counted == 0 {
            self.nodes += 1;
            self.candidates.push(spot);
        }
        let more = tasks - std::mem::replace(counted, tasks);
        self.tasks += more;
        more > 0
    }
}

pub(super) fn walk(search: &mut Search) -> Option<(Slot, Vec<Grant>)> {
    let Search { room, clock, pool, request, .. } = *search;
    let suits = |spot: SpotId| request.suits_all || room.spot(spot).node.suits(request.size);
    let mut sums = Sums { counted: vec![0; room.n_spots()], ..Default::default() };
    // Nodes with promises get freer and fuller; each is asked for itself.
    let mut marks: BTreeMap<Slot, (i64, i64)> = search.own_marks().map(|slot| (slot, (0, 0))).into();
    for spot in room.promised(pool).iter().copied().filter(|spot| suits(*spot)) {
        sums.candidates.push(spot);
        add_exactly(room, clock, spot, pool, request, |at, nodes, tasks| {
            let mark = marks.entry(at).or_default();
            *mark = (mark.0 + nodes, mark.1 + tasks);
        });
    }
    let is_plain = |spot: SpotId| !room.promised(pool).contains(&spot) && suits(spot);
    for spot in room.free_for_ever(pool, request.least_cpus).filter(|spot| is_plain(*spot)) {
        if let Some(tasks) = tasks_in(room, request, room.spot(spot).now) {
            sums.count(spot, tasks);
        }
    }
    let mut events = room.ends(pool).peekable();
    let mut slot = Slot::NOW;
    loop {
        let mut is_new = slot == Slot::NOW;
        while let Some((_, spot)) = events.next_if(|(at, _)| *at <= slot) {
            if is_plain(spot)
                && let Some(tasks) = tasks_in(room, request, free_at(search, spot, slot))
            {
                is_new |= sums.count(spot, tasks);
            }
        }
        if let Some((nodes, tasks)) = marks.remove(&slot) {
            sums.nodes += nodes;
            sums.tasks += tasks;
            is_new |= nodes > 0 || tasks > 0 || search.own_marks().contains(&slot);
        }
        if is_new {
            let offer = |interval| Offer::later_among(room, pool, interval, request, &sums.candidates);
            match search.try_at(slot, sums.nodes, sums.tasks, offer) {
                Tried::Found(slot, grants) => return Some((slot, grants)),
                Tried::NotYet => (),
                Tried::GivenUp => return None,
            }
        }
        let next = [events.peek().map(|(at, _)| *at), marks.keys().next().copied()];
        slot = next.into_iter().flatten().min().filter(|slot| *slot <= clock.end())?;
    }
}

/// What is free of a node without promises at that mark.
fn free_at(search: &Search, spot: SpotId, slot: Slot) -> Free {
    let spot = search.room.spot(spot);
    let over = spot.held().releases.iter().take_while(|release| release.at <= slot);
    over.fold(spot.now, |free, release| free.plus(release, spot.whole))
}
