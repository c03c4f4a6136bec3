//! A partition's usable nodes, indexed by what is free of them from now on.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use model::Partition;

use crate::room::SpotId;
use crate::spot::Spot;
use crate::timeline::Slot;
use crate::units::Units;

/// A partition with its usable nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolId(pub u32);

pub(crate) struct Pool<'a> {
    pub partition: &'a Partition,
    /// By CPUs that are free for ever, then weight, then natural order.
    pub by_free: BTreeMap<u32, BTreeSet<(u32, SpotId)>>,
    /// Spots with more than that until a promise begins, by that moment.
    pub until: BTreeMap<Slot, BTreeSet<(u32, SpotId)>>,
    pub n_free_cpus: u64,
    pub members: Vec<SpotId>,
    /// Every node of the partition is usable.
    pub is_complete: bool,
    /// Its nodes by unit, where it has a topology.
    pub units: Option<Units<'a>>,
    pub has_one_weight: bool,
    /// Spots on which something is promised.
    pub promised: BTreeSet<SpotId>,
    /// When running jobs end on its spots, as far as the calendar has been read.
    pub ends: RefCell<Vec<(Slot, SpotId)>>,
    /// The same of spots that this plan has changed.
    pub changed_ends: BTreeSet<(Slot, SpotId)>,
}

impl Pool<'_> {
    pub fn insert(&mut self, id: SpotId, spot: &Spot) {
        let place = (spot.weight, id);
        self.n_free_cpus += u64::from(spot.now.cpus);
        if let Some(units) = &mut self.units {
            units.note(id, spot);
        }
        if !spot.promised.is_empty() {
            self.promised.insert(id);
        }
        if spot.stairs.for_ever > 0 {
            self.by_free.entry(spot.stairs.for_ever).or_default().insert(place);
        }
        for (until, _) in &spot.stairs.steps {
            self.until.entry(*until).or_default().insert(place);
        }
    }

    /// What ends there is not what the calendar knows. An end that is no longer one does no harm.
    pub fn note_ends(&mut self, id: SpotId, spot: &Spot) {
        self.changed_ends.extend(spot.held().releases.iter().map(|release| (release.at, id)));
    }

    pub fn remove(&mut self, id: SpotId, spot: &Spot) {
        let place = (spot.weight, id);
        self.n_free_cpus -= u64::from(spot.now.cpus);
        self.promised.remove(&id);
        drop_from(&mut self.by_free, &spot.stairs.for_ever, &place);
        for (until, _) in &spot.stairs.steps {
            drop_from(&mut self.until, until, &place);
        }
    }
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<(u32, SpotId)>>, key: &K, place: &(u32, SpotId)) {
    let Some(places) = index.get_mut(key) else { return };
    places.remove(place);
    if places.is_empty() {
        index.remove(key);
    }
}
