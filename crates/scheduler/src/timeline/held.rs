//! What is held of one node from now on, and when it is given back.
use std::collections::BTreeSet;

use model::{JobId, Timestamp};

use super::{Slot, Use};

#[derive(Clone, Default)]
pub(crate) struct Held {
    /// The first to end first.
    pub uses: Vec<Use>,
    /// What they give back, and when: all that most questions need, close together.
    pub releases: Vec<Release>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub at: Slot,
    pub cpus: u32,
    pub memory_mb: u64,
}

impl Release {
    fn of(one: &Use) -> Release {
        Release { at: one.interval.until, cpus: one.cpus, memory_mb: one.memory_mb }
    }

    fn join(&mut self, other: &Release) {
        self.cpus = self.cpus.saturating_add(other.cpus);
        self.memory_mb = self.memory_mb.saturating_add(other.memory_mb);
    }
}

impl Held {
    /// Of those that are told in the order in which they end.
    pub fn of(uses: Vec<Use>) -> Held {
        let mut releases: Vec<Release> = Vec::with_capacity(uses.len());
        for release in uses.iter().map(Release::of) {
            match releases.last_mut().filter(|last| last.at == release.at) {
                Some(last) => last.join(&release),
                None => releases.push(release),
            }
        }
        Held { uses, releases }
    }

    pub fn add(&mut self, one: Use) {
        let release = Release::of(&one);
        let at = self.releases.partition_point(|known| known.at < release.at);
        match self.releases.get_mut(at).filter(|known| known.at == release.at) {
            Some(known) => known.join(&release),
            None => self.releases.insert(at, release),
        }
        let at = self.uses.partition_point(|other| other.interval.until <= one.interval.until);
        self.uses.insert(at, one);
    }

    /// As if these had gone.
    pub fn without(&self, gone: &BTreeSet<JobId>) -> Held {
        Held::of(self.uses.iter().filter(|one| !gone.contains(&one.job)).cloned().collect())
    }

    /// The job will be gone sooner than was known.
    pub fn shorten(&mut self, job: JobId, until: Slot, ends_at: Timestamp) {
        let uses = std::mem::take(&mut self.uses);
        self.releases.clear();
        for mut one in uses {
            if one.job == job {
                one.interval.until = one.interval.until.min(until);
                one.ends_at = Some(ends_at);
            }
            self.add(one);
        }
    }
}
