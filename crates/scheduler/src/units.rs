//! The nodes of a partition by leaf switch or base block, and what is free of each: enough to see in a moment how many of a
//! unit's nodes may serve a job, however many units there are.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

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
    /// By place: unit for unit, in natural order.
    members: Vec<Member>,
    /// By spot; none for those outside.
    places: Vec<Option<u32>>,
    /// What has been counted, kept right as nodes change.
    counts: RefCell<BTreeMap<Each, Tally>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Member {
    spot: SpotId,
    /// CPUs that are free for ever.
    free: u32,
    /// Nobody has anything of it, now or later.
    is_idle: bool,
    is_in_use: bool,
    is_promised: bool,
}

impl Member {
    fn serves(&self, each: Each) -> bool {
        match each {
            Each::Whole => self.is_idle,
            Each::Cpus(n) => self.free >= n,
        }
    }
}

/// How many nodes of each unit serve.
struct Tally {
    of: Vec<u32>,
    /// The same number, how the unit is preferred, and the unit.
    by_number: BTreeSet<(u32, u32, u32)>,
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
        let mut all: Vec<Member> = Vec::with_capacity(members.len());
        for unit in own {
            begins.push(all.len() as u32);
            for spot in unit {
                places[spot as usize] = Some(all.len() as u32);
                all.push(Member { spot, free: 0, is_idle: false, is_in_use: false, is_promised: false });
            }
        }
        begins.push(all.len() as u32);
        Units { shape, begins, members: all, places, counts: RefCell::default() }
    }

    pub fn note(&mut self, id: SpotId, spot: &Spot) {
        let Some(place) = self.places[id as usize] else { return };
        let stairs = &spot.stairs;
        let is_idle = spot.is_empty && stairs.steps.is_empty() && stairs.for_ever == spot.node.config.cpus;
        let (is_in_use, is_promised) = (!spot.is_empty, !spot.promised.is_empty());
        let now = Member { spot: id, free: stairs.for_ever, is_idle, is_in_use, is_promised };
        let before = std::mem::replace(&mut self.members[place as usize], now);
        if (before.is_idle, before.free) == (now.is_idle, now.free) {
            return;
        }
        let Some(unit) = self.shape.unit_of(spot.node.rank) else { return };
        for (each, tally) in self.counts.get_mut() {
            let (had, has) = (before.serves(*each), now.serves(*each));
            if had != has {
                let number = tally.of[unit as usize] + u32::from(has) - u32::from(had);
                let preference = self.shape.preference(unit);
                tally.by_number.remove(&(tally.of[unit as usize], preference, unit));
                tally.by_number.insert((number, preference, unit));
                tally.of[unit as usize] = number;
            }
        }
    }

    fn count_all(&self, each: Each) -> Tally {
        let n_serving = |unit: u32| self.of_unit(unit).iter().filter(|member| member.serves(each)).count() as u32;
        let of: Vec<u32> = (0..self.begins.len() as u32 - 1).map(n_serving).collect();
        let by_number = of.iter().zip(0..).map(|(number, unit)| (*number, self.shape.preference(unit), unit)).collect();
        Tally { of, by_number }
    }

    fn of_unit(&self, unit: u32) -> &[Member] {
        &self.members[self.begins[unit as usize] as usize..self.begins[unit as usize + 1] as usize]
    }

    /// Nodes that serve from now until then, though not for ever: so many in these units.
    pub fn until<'s, 'n: 's>(
        &self,
        each: Each,
        until: Slot,
        promised: impl Iterator<Item = (SpotId, &'s Spot<'n>)>,
    ) -> BTreeMap<u32, u32> {
        let mut more = BTreeMap::new();
        for (id, spot) in promised {
            let place = self.places[id as usize].filter(|place| !self.members[*place as usize].serves(each));
            if place.is_some()
                && has_until(spot, each, until)
                && let Some(unit) = self.shape.unit_of(spot.node.rank)
            {
                *more.entry(unit).or_default() += 1;
            }
        }
        more
    }

    /// How many nodes of each unit serve; memory and the like are not looked at.
    pub fn count(&self, each: Each, more: &BTreeMap<u32, u32>) -> Vec<u32> {
        self.with_tally(each, |tally| {
            let mut counts = tally.of.clone();
            more.iter().for_each(|(unit, n)| counts[*unit as usize] += n);
            counts
        })
    }

    /// The unit with the least room of those that have room for `n`, where that is the best place.
    pub fn tightest(&self, each: Each, more: &BTreeMap<u32, u32>, n: u32) -> Option<u32> {
        if !self.shape.keeps_in_one_unit(n) {
            return None;
        }
        self.with_tally(each, |tally| {
            let mut plain = tally.by_number.range((n, 0, 0)..).filter(|(.., unit)| !more.contains_key(unit));
            let changed =
                more.iter().map(|(unit, n)| (tally.of[*unit as usize] + n, self.shape.preference(*unit), *unit));
            let best = changed.filter(|(number, ..)| *number >= n).chain(plain.next().copied()).min();
            best.map(|(.., unit)| unit)
        })
    }

    fn with_tally<T>(&self, each: Each, ask: impl FnOnce(&Tally) -> T) -> T {
        let mut known = self.counts.borrow_mut();
        if known.len() >= N_COUNTED && !known.contains_key(&each) {
            known.clear();
        }
        ask(known.entry(each).or_insert_with(|| self.count_all(each)))
    }

    /// Those of a unit, the nodes that others use first.
    pub fn of<'s, 'n: 's>(
        &self,
        unit: u32,
        each: Each,
        until: Slot,
        spot: impl Fn(SpotId) -> &'s Spot<'n>,
    ) -> impl Iterator<Item = SpotId> {
        let serves = move |member: &&Member| {
            member.serves(each) || (member.is_promised && has_until(spot(member.spot), each, until))
        };
        let own: Vec<Member> = self.of_unit(unit).iter().filter(serves).copied().collect();
        let (in_use, others): (Vec<Member>, Vec<Member>) = own.into_iter().partition(|member| member.is_in_use);
        in_use.into_iter().chain(others).map(|member| member.spot)
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
