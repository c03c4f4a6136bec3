//! What associations have, with what this pass has started, held against their limits.
//!
//! ```text
//! association ──above──▶ association ──above──▶ nobody
//! ```
//! What limits an association, and all above it, is one line of a table that is made when accounts change; what it has is one of another,
//! copied from the counts. A job of one of many thousand users costs a look at each; those above are looked at all the time.
use std::hint::black_box;

use model::accounts::{AssociationId, EachJob, Terse, Together};
use model::{Job, Partition, Reason};
use state::Cluster;
use state::limits::{Gist, Headroom, Verdict, Want, each};

use super::place;
use super::qualities::{Asker, Before as QualitiesBefore, Qualities, Terms};

pub(super) struct Headrooms<'a> {
    cluster: &'a Cluster,
    /// By number.
    associations: &'a [Terse],
    togethers: &'a [Together],
    eachs: &'a [EachJob],
    /// By number; empty until somebody asks.
    has: Vec<Gist>,
    /// What is left to those that limit more than jobs, CPUs and memory, and where it is to be found.
    rooms: Vec<Headroom>,
    room_of: Vec<Option<u32>>,
    qualities: Qualities<'a>,
    /// What there was before what is only supposed.
    before: Option<Before>,
}

const NOBODY: Asker = Asker { user: 0, account: 0 };

#[derive(Default)]
struct Before {
    has: Vec<(AssociationId, Gist)>,
    rooms: Vec<(u32, Headroom)>,
    qualities: QualitiesBefore,
}

impl<'a> Headrooms<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let accounts = cluster.accounts();
        Headrooms {
            cluster,
            associations: accounts.all_tersely(),
            togethers: accounts.togethers(),
            eachs: accounts.eachs(),
            has: Vec::new(),
            rooms: Vec::new(),
            room_of: Vec::new(),
            qualities: Qualities::new(cluster),
            before: None,
        }
    }

    pub fn fetch_association(&self, id: AssociationId) {
        // Nobody has asked about any yet.
        if let Some(has) = self.has.get(id as usize) {
            black_box((has.jobs, self.associations.get(id as usize).map(|one| one.together)));
        }
    }

    pub fn fetch_user(&self, id: AssociationId) {
        if !self.has.is_empty() && !self.qualities.are_plain {
            self.qualities.fetch_user(self.associations.get(id as usize).map_or(0, |one| one.user));
        }
    }

    /// Whether a limit keeps the job from having that, as far as it is known here.
    pub fn verdict<'j>(&mut self, job: &'a Job, partition: &'a Partition, want: impl FnOnce() -> Want<'j>) -> Verdict {
        let Some(terms) = self.qualities.terms(job, partition) else { return Verdict::Unsaid };
        let Some(own) = self.known(job.association) else { return Verdict::Unsaid };
        if self.qualities.are_plain && own.together == 0 && own.above == 0 && own.lets_any {
            return self.jobs_left(job.association, own, &terms);
        }
        let want = want();
        match self.qualities.verdict(&terms, job, asker(own), &want) {
            Verdict::Passes => (),
            other => return other,
        }
        match self.of_association(job.association, &terms, &want) {
            // What it says may be what is not asked.
            Verdict::Refused(_) if terms.decides_more => Verdict::Unsaid,
            verdict => verdict,
        }
    }

    /// In the order of the rules.
    fn of_association(&mut self, id: AssociationId, terms: &Terms, want: &Want) -> Verdict {
        let mut next = id;
        loop {
            match self.of_jobs_together(next, want) {
                Verdict::Passes => next = self.associations[next as usize].above,
                other => return other,
            }
            if next == 0 {
                break;
            }
        }
        let own = &self.associations[id as usize];
        match self.jobs_left(id, own, terms) {
            Verdict::Passes if !own.lets_any => each::verdict(&self.eachs[own.each as usize], want),
            other => other,
        }
    }

    fn of_jobs_together(&mut self, id: AssociationId, want: &Want) -> Verdict {
        let together = match self.associations[id as usize].together {
            0 => return Verdict::Passes,
            together => &self.togethers[together as usize],
        };
        if !together.is_plain() {
            let room = self.room(id, together);
            return room.map_or(Verdict::Unsaid, |room| self.rooms[room as usize].verdict(want));
        }
        let has = &self.has[id as usize];
        match has.certainly_leaves(together, want) {
            true => Verdict::Passes,
            false => Headroom::beside(together, has).verdict(want),
        }
    }

    /// Whether another job of the association's own may run.
    fn jobs_left(&self, id: AssociationId, own: &Terse, terms: &Terms) -> Verdict {
        match self.has[id as usize].jobs >= own.max_jobs && !terms.decides_jobs {
            true => Verdict::Refused(Reason::AssocMaxJobsLimit),
            false => Verdict::Passes,
        }
    }

    /// The priority below which no place is kept for the job; None: others have a word in it.
    pub fn min_priority(&mut self, job: &'a Job, partition: &'a Partition) -> Option<u32> {
        let terms = self.qualities.terms(job, partition)?;
        let own = self.known(job.association)?;
        Some(terms.min_priority.or(self.eachs[own.each as usize].min_priority).unwrap_or(0))
    }

    /// The job starts and has that.
    pub fn take(&mut self, job: &'a Job, partition: &'a Partition, want: Want<'a>) {
        let is_plain = self.qualities.terms(job, partition).is_some_and(|terms| !terms.is_weighed);
        let want = if is_plain { want } else { want.weighed() };
        let own = if job.association == 0 { None } else { self.known(job.association) };
        let noted = self.before.as_mut().map(|before| &mut before.qualities);
        self.qualities.take(job, partition, own.map_or(NOBODY, asker), &want, noted);
        if own.is_none() {
            return;
        }
        let mut next = job.association;
        while next != 0 {
            let one = &self.associations[next as usize];
            let together = &self.togethers[one.together as usize];
            let room = if together.is_plain() { None } else { self.room(next, together) };
            if let Some(before) = &mut self.before {
                before.has.push((next, self.has[next as usize]));
                before.rooms.extend(room.map(|room| (room, self.rooms[room as usize])));
            }
            self.has[next as usize].add(&want);
            if let Some(room) = room {
                self.rooms[room as usize].take(&want);
            }
            next = one.above;
        }
    }

    /// What is taken from here on is only supposed to be.
    pub fn suppose(&mut self) {
        self.before = Some(Before::default());
    }

    pub fn forget_what_was_supposed(&mut self) {
        let Some(Before { has, rooms, qualities }) = self.before.take() else { return };
        self.qualities.put_back(qualities);
        has.into_iter().rev().for_each(|(at, before)| self.has[at as usize] = before);
        rooms.into_iter().rev().for_each(|(at, before)| self.rooms[at as usize] = before);
    }

    /// None: only the rules know.
    fn known(&mut self, id: AssociationId) -> Option<&'a Terse> {
        if self.has.is_empty() {
            self.has = self.cluster.tally().copy_of_associations(self.associations.len());
        }
        self.associations.get(id as usize).filter(|one| one.is_whole)
    }

    /// Where what is left to the association is.
    fn room(&mut self, id: AssociationId, together: &Together) -> Option<u32> {
        let place = place(&mut self.room_of, self.cluster, id);
        if place.is_none() {
            let left = Headroom::of(self.cluster, id, together)?;
            *place = Some(self.rooms.len() as u32);
            self.rooms.push(left);
        }
        *place
    }
}

fn asker(one: &Terse) -> Asker {
    Asker { user: one.user, account: one.account }
}
