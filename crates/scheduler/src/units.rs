//! The nodes of a partition by leaf switch or base block, and what is free of each: enough to see in a moment how many of a
//! unit's nodes may serve a job, however many units there are.
use std::cell::RefCell;
use std::collections::BTreeMap;

use topology::Shape;

use crate::room::SpotId;
use crate::spot::Spot;
use crate::timeline::Slot;

/// What a job wants of every node it gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Each {
    /// All of it.
    Whole,
    /// So many CPUs.
    Cpus(u32),
}

pub(crate) struct Units<'a> {
    shape: &'a Shape,
    /// Where each unit begins among the places, and where the last ends.
    begins: Vec<u32>,
    /// Who is in a place: unit for unit, in natural order.
    spots: Vec<SpotId>,
    /// CPUs that are free for ever.
    free: Vec<u32>,
    /// Nobody has anything of it, now or later.
    is_idle: Vec<bool>,
    /// By spot; none for those outside.
    places: Vec<Option<u32>>,
    /// What has been counted, kept right as nodes change.
    counts: RefCell<BTreeMap<Each, Vec<u32>>>,
}

/// More different sizes than this are counted anew each time.
const N_COUNTED: usize = 64;

impl<'a> Units<'a> {
    /// `members` in natural order.
    pub fn new(shape: &'a Shape, members: &[SpotId], spots: &[Spot]) -> Self {
        let n_units = shape.n_units();
        let mut own: Vec<Vec<SpotId>> = vec![Vec::new(); n_units];
        for id in members {
            if let Some(unit) = shape.unit_of(spots[*id as usize].node.rank) {
                own[unit as usize].push(*id);
            }
        }
        let mut begins = Vec::with_capacity(n_units + 1);
        let mut places = vec![None; spots.len()];
        let mut all: Vec<SpotId> = Vec::with_capacity(members.len());
        for unit in own {
            begins.push(all.len() as u32);
            for id in unit {
                places[id as usize] = Some(all.len() as u32);
                all.push(id);
            }
        }
        begins.push(all.len() as u32);
        let n = all.len();
        Units {
            shape,
            begins,
            spots: all,
            free: vec![0; n],
            is_idle: vec![false; n],
            places,
            counts: RefCell::default(),
        }
    }

    pub fn note(&mut self, id: SpotId, spot: &Spot) {
        let Some(place) = self.places[id as usize] else { return };
        let stairs = &spot.stairs;
        let is_idle = spot.is_empty && stairs.steps.is_empty() && stairs.for_ever == spot.node.config.cpus;
        let (place, free) = (place as usize, stairs.for_ever);
        let before = (self.is_idle[place], self.free[place]);
        (self.is_idle[place], self.free[place]) = (is_idle, free);
        if before == (is_idle, free) {
            return;
        }
        let Some(unit) = self.shape.unit_of(spot.node.rank) else { return };
        for (each, counts) in self.counts.get_mut() {
            let (had, has) = (serves(*each, before.0, before.1), serves(*each, is_idle, free));
            let count = &mut counts[unit as usize];
            *count = *count + u32::from(has) - u32::from(had);
        }
    }

    fn count_all(&self, each: Each) -> Vec<u32> {
        let serving = |place: u32| u32::from(self.has(place, each));
        self.begins.windows(2).map(|range| (range[0]..range[1]).map(serving).sum()).collect()
    }

    /// How many nodes of each unit have that much from now until then; memory and the like are not looked at.
    pub fn count<'s, 'n: 's>(
        &self,
        each: Each,
        until: Slot,
        promised: impl Iterator<Item = (SpotId, &'s Spot<'n>)>,
    ) -> Vec<u32> {
        let mut known = self.counts.borrow_mut();
        if known.len() >= N_COUNTED {
            known.clear();
        }
        let mut counts = known.entry(each).or_insert_with(|| self.count_all(each)).clone();
        for (id, spot) in promised {
            let place = self.places[id as usize].filter(|place| !self.has(*place, each));
            if place.is_some()
                && has_until(spot, each, until)
                && let Some(unit) = self.shape.unit_of(spot.node.rank)
            {
                counts[unit as usize] += 1;
            }
        }
        counts
    }

    /// Those of a unit, the nodes that others use first.
    pub fn of<'s, 'n: 's>(
        &self,
        unit: u32,
        each: Each,
        until: Slot,
        spot: impl Fn(SpotId) -> &'s Spot<'n>,
    ) -> Vec<SpotId> {
        let range = self.begins[unit as usize]..self.begins[unit as usize + 1];
        let has_room = |place: &u32| {
            let spot = spot(self.spots[*place as usize]);
            self.has(*place, each) || (!spot.promised.is_empty() && has_until(spot, each, until))
        };
        let mut own: Vec<SpotId> = range.filter(has_room).map(|place| self.spots[place as usize]).collect();
        own.sort_by_key(|id| spot(*id).is_empty);
        own
    }

    fn has(&self, place: u32, each: Each) -> bool {
        serves(each, self.is_idle[place as usize], self.free[place as usize])
    }
}

fn serves(each: Each, is_idle: bool, free: u32) -> bool {
    match each {
        Each::Whole => is_idle,
        Each::Cpus(n) => free >= n,
    }
}

/// Before something that is promised begins.
fn has_until(spot: &Spot, each: Each, until: Slot) -> bool {
    match each {
        Each::Whole => {
            let is_free = spot.is_empty && spot.now.cpus == spot.node.config.cpus;
            is_free && spot.promised.iter().all(|one| one.interval.from >= until)
        }
        Each::Cpus(n) => spot.stairs.step_for(until).is_some_and(|(_, level)| level >= n),
    }
}
