//! What associations have, with what this pass has started, held against their limits.
//!
//! ```text
//! association ──above──▶ association ──above──▶ nobody
//! ```
//! All that is asked of an association for a job stands in one line of a table: a job of one of many thousand users costs one look at
//! it, and those above are looked at all the time.
use std::collections::BTreeMap;

use model::accounts::{AssociationId, EachJob, Together};
use model::{Job, Partition, Reason};
use state::Cluster;
use state::limits::{Gist, Headroom, Party, Verdict, Want, each};

use super::qualities::{Asker, Before as QualitiesBefore, Qualities, Terms};

pub(super) struct Headrooms<'a> {
    cluster: &'a Cluster,
    togethers: &'a [Together],
    /// By number.
    own: Vec<Own>,
    n_known: usize,
    /// Of those that limit more than jobs, CPUs and memory; the first limits nothing.
    rooms: Vec<Headroom>,
    /// What is said of each job; the first says nothing.
    eachs: Vec<Said>,
    /// Which of these an association's own word and the one above it come to.
    merged: BTreeMap<(u32, u32), u32>,
    qualities: Qualities<'a>,
    /// What there was before what is only supposed.
    before: Option<Before>,
}

#[derive(Clone, Copy)]
struct Own {
    has: Gist,
    /// What it says of its jobs together; 0: nothing.
    together: u32,
    /// What is left, where it says more than can be seen from what it has; 0: it does not.
    room: u32,
    /// The next above it that says something of jobs together; 0: nobody.
    above: AssociationId,
    each: u32,
    /// How many of its own jobs may run; `u32::MAX`: any number.
    max_jobs: u32,
    asker: Asker,
}

const NOBODY: Asker = Asker { user: 0, account: 0 };
const NO_ASSOCIATION: Own = Own {
    has: Gist { cpus: 0, memory_mb: 0, jobs: 0, is_unsure: false },
    together: 0,
    room: 0,
    above: 0,
    each: 0,
    max_jobs: u32::MAX,
    asker: NOBODY,
};
/// It has not been looked up.
const UNKNOWN: Own = Own { above: AssociationId::MAX, ..NO_ASSOCIATION };

struct Said {
    each: EachJob,
    lets_any: bool,
}

#[derive(Default)]
struct Before {
    own: Vec<(AssociationId, Own)>,
    rooms: Vec<(u32, Headroom)>,
    qualities: QualitiesBefore,
}

/// To look one up takes as long as to read so many in a row.
const IN_A_ROW: usize = 8;

impl<'a> Headrooms<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Headrooms {
            cluster,
            togethers: cluster.accounts().togethers(),
            own: Vec::new(),
            n_known: 0,
            rooms: vec![Headroom::ALL],
            eachs: vec![Said { each: EachJob::default(), lets_any: true }],
            merged: BTreeMap::new(),
            qualities: Qualities::new(cluster),
            before: None,
        }
    }

    /// Whether a limit keeps the job from having that, as far as it is known here.
    pub fn verdict<'j>(&mut self, job: &'a Job, partition: &'a Partition, want: impl FnOnce() -> Want<'j>) -> Verdict {
        let Some(terms) = self.qualities.terms(job, partition) else { return Verdict::Unsaid };
        let own = match job.association {
            0 => NO_ASSOCIATION,
            id => match self.own(id) {
                Some(own) => own,
                None => return Verdict::Unsaid,
            },
        };
        if self.qualities.are_plain && own.together == 0 && own.above == 0 && own.each == 0 {
            return jobs_left(&own, &terms);
        }
        let want = want();
        match self.qualities.verdict(&terms, job, own.asker, &want) {
            Verdict::Passes => (),
            other => return other,
        }
        match self.of_association(&own, &terms, &want) {
            // What it says may be what is not asked.
            Verdict::Refused(_) if terms.decides_more => Verdict::Unsaid,
            verdict => verdict,
        }
    }

    /// In the order of the rules.
    fn of_association(&self, own: &Own, terms: &Terms, want: &Want) -> Verdict {
        let mut next = own;
        loop {
            match self.of_jobs_together(next, want) {
                Verdict::Passes if next.above == 0 => break,
                Verdict::Passes => next = &self.own[next.above as usize],
                other => return other,
            }
        }
        let said = &self.eachs[own.each as usize];
        match jobs_left(own, terms) {
            Verdict::Passes if !said.lets_any => each::verdict(&said.each, want),
            other => other,
        }
    }

    fn of_jobs_together(&self, one: &Own, want: &Want) -> Verdict {
        match (one.together, one.room) {
            (0, _) => Verdict::Passes,
            (together, 0) => {
                let together = &self.togethers[together as usize];
                match one.has.certainly_leaves(together, want) {
                    true => Verdict::Passes,
                    false => Headroom::beside(together, &one.has).verdict(want),
                }
            }
            (_, room) => self.rooms[room as usize].verdict(want),
        }
    }

    /// The priority below which no place is kept for the job; None: others have a word in it.
    pub fn min_priority(&mut self, job: &'a Job, partition: &'a Partition) -> Option<u32> {
        let terms = self.qualities.terms(job, partition)?;
        let of_association = match job.association {
            0 => None,
            id => {
                let own = self.own(id)?;
                self.eachs[own.each as usize].each.min_priority
            }
        };
        Some(terms.min_priority.or(of_association).unwrap_or(0))
    }

    /// The job starts and has that.
    pub fn take(&mut self, job: &'a Job, partition: &'a Partition, want: Want<'a>) {
        let is_plain = self.qualities.terms(job, partition).is_some_and(|terms| !terms.is_weighed);
        let want = if is_plain { want } else { want.weighed() };
        let own = self.own(job.association);
        let noted = self.before.as_mut().map(|before| &mut before.qualities);
        self.qualities.take(job, partition, own.map_or(NOBODY, |own| own.asker), &want, noted);
        if own.is_none() {
            return;
        }
        let mut next = job.association;
        while next != 0 {
            let one = &mut self.own[next as usize];
            if let Some(before) = &mut self.before {
                before.own.push((next, *one));
                before.rooms.push((one.room, self.rooms[one.room as usize]));
            }
            one.has.add(&want);
            if one.room != 0 {
                self.rooms[one.room as usize].take(&want);
            }
            next = one.above;
        }
    }

    /// What is taken from here on is only supposed to be.
    pub fn suppose(&mut self) {
        self.before = Some(Before::default());
    }

    pub fn forget_what_was_supposed(&mut self) {
        let Some(Before { own, rooms, qualities }) = self.before.take() else { return };
        self.qualities.put_back(qualities);
        own.into_iter().rev().for_each(|(at, before)| self.own[at as usize] = before);
        rooms.into_iter().rev().for_each(|(at, before)| self.rooms[at as usize] = before);
    }

    fn own(&mut self, id: AssociationId) -> Option<Own> {
        match self.own.get(id as usize) {
            Some(own) if own.above != UNKNOWN.above => Some(*own),
            _ => self.look_up(id),
        }
    }

    fn look_up(&mut self, id: AssociationId) -> Option<Own> {
        if self.own.is_empty() {
            self.own.resize(self.cluster.accounts().last_association as usize + 1, UNKNOWN);
        }
        self.n_known += 1;
        // Whoever asks about so many has all of them read.
        if self.n_known == self.own.len().div_ceil(IN_A_ROW)
            && let Some(all) = self.cluster.tally().of_associations()
        {
            for (id, has) in all.leaves().flatten().enumerate().skip(1) {
                self.note(id as AssociationId, *has);
            }
            return self.own.get(id as usize).filter(|own| own.above != UNKNOWN.above).copied();
        }
        let tally = self.cluster.tally();
        let has = match tally.of_associations() {
            Some(all) => all.get(id as usize).copied(),
            None => tally.count(Party::Association(id)).map(Gist::of),
        };
        self.note(id, has.unwrap_or_default())
    }

    fn note(&mut self, id: AssociationId, has: Gist) -> Option<Own> {
        if self.own.get(id as usize)?.above != UNKNOWN.above {
            return Some(self.own[id as usize]);
        }
        let terse = self.cluster.accounts().terse(id)?;
        let parent = if terse.parent == 0 { NO_ASSOCIATION } else { self.own(terse.parent)? };
        let together = &self.togethers[terse.together as usize];
        let room = match together.is_plain() {
            true => 0,
            false => {
                self.rooms.push(Headroom::of(self.cluster, id, together)?);
                self.rooms.len() as u32 - 1
            }
        };
        let each = self.merged(terse.each, parent.each);
        let own = Own {
            has,
            together: terse.together,
            room,
            above: if parent.together != 0 { terse.parent } else { parent.above },
            each,
            max_jobs: terse.max_jobs.or(self.eachs[each as usize].each.max_jobs).unwrap_or(u32::MAX),
            asker: Asker { user: terse.user, account: terse.account },
        };
        self.own[id as usize] = own;
        Some(own)
    }

    /// What is said of each job by one that says this, below one that says that.
    fn merged(&mut self, own: u32, above: u32) -> u32 {
        if own == 0 {
            return above;
        }
        let (eachs, said) = (&mut self.eachs, self.cluster.accounts().eachs());
        *self.merged.entry((own, above)).or_insert_with(|| {
            let each = said[own as usize].or(&eachs[above as usize].each);
            eachs.push(Said { each, lets_any: each::lets_any(&each) });
            eachs.len() as u32 - 1
        })
    }
}

/// Whether another job of the association's own may run.
fn jobs_left(own: &Own, terms: &Terms) -> Verdict {
    match own.has.jobs >= own.max_jobs && !terms.decides_jobs {
        true => Verdict::Refused(Reason::AssocMaxJobsLimit),
        false => Verdict::Passes,
    }
}
