//! Who holds, or is promised, what of one node, and from when to when.
use std::collections::BTreeMap;

use model::gres::GresUnits;
use model::node::Tenancy;
use model::{Job, JobId, Timestamp};

use super::{Held, Interval, Release, Slot};

#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub job: JobId,
    pub interval: Interval,
    /// Its end to the second, where `interval` is rounded.
    pub ends_at: Option<Timestamp>,
    pub cpus: u32,
    pub memory_mb: u64,
    pub gres: Vec<GresUnits>,
    pub uid: u32,
    /// Keeps other users away.
    pub is_alone: bool,
}

impl Use {
    /// Everything.
    pub fn whole(job: &Job, interval: Interval, ends_at: Option<Timestamp>) -> Use {
        Use {
            job: job.id,
            interval,
            ends_at,
            cpus: u32::MAX,
            memory_mb: u64::MAX,
            gres: Vec::new(),
            uid: job.spec.uid,
            is_alone: true,
        }
    }
}

/// What is left of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Free {
    pub cpus: u32,
    pub memory_mb: u64,
}

impl Free {
    /// With what is given back, of a node that has `whole`.
    pub fn plus(self, release: &Release, whole: Free) -> Free {
        Free {
            cpus: self.cpus.saturating_add(release.cpus).min(whole.cpus),
            memory_mb: self.memory_mb.saturating_add(release.memory_mb).min(whole.memory_mb),
        }
    }
}

/// All that is known of one node.
#[derive(Clone, Copy)]
pub(crate) struct Uses<'s> {
    /// From now on.
    pub held: &'s Held,
    /// From a later mark on.
    pub promised: &'s [Use],
}

impl<'s> Uses<'s> {
    pub fn during(self, interval: Interval) -> impl Iterator<Item = &'s Use> {
        self.held.uses.iter().chain(self.promised).filter(move |one| one.interval.overlaps(interval))
    }

    /// The least that is free at any time of the interval, of a node that has `whole`.
    pub fn free_over(self, whole: Free, interval: Interval) -> Free {
        let begins = self.promised.iter().map(|one| one.interval.from);
        let later = begins.filter(|from| interval.from < *from && *from < interval.until);
        // What is held now only ever gets less, so more is used only where a promise begins.
        std::iter::once(interval.from).chain(later).fold(whole, |least, at| {
            let free = self.free_at(whole, at);
            Free { cpus: least.cpus.min(free.cpus), memory_mb: least.memory_mb.min(free.memory_mb) }
        })
    }

    pub fn free_at(self, whole: Free, at: Slot) -> Free {
        let mut free = whole;
        let held = self.held.releases.iter().rev().take_while(|release| release.at > at);
        let held = held.map(|release| (release.cpus, release.memory_mb));
        let promised = self.promised.iter().filter(|one| one.interval.from <= at && at < one.interval.until);
        for (cpus, memory_mb) in held.chain(promised.map(|one| (one.cpus, one.memory_mb))) {
            free.cpus = free.cpus.saturating_sub(cpus);
            free.memory_mb = free.memory_mb.saturating_sub(memory_mb);
        }
        free
    }

    /// Units that somebody has at some time of the interval: a job keeps its units from begin to end.
    pub fn gres_over(self, interval: Interval) -> Vec<GresUnits> {
        self.during(interval).flat_map(|one| one.gres.iter().cloned()).collect()
    }

    pub fn users_over(self, interval: Interval) -> BTreeMap<u32, Tenancy> {
        let mut users: BTreeMap<u32, Tenancy> = BTreeMap::new();
        for one in self.during(interval) {
            let tenancy = users.entry(one.uid).or_default();
            tenancy.n_jobs += 1;
            tenancy.n_alone += u32::from(one.is_alone);
        }
        users
    }
}
