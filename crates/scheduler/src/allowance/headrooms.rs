//! What is left of the limits of all associations, with what this pass has started taken off.
//!
//! ```text
//! association ──own──▶ level ──above──▶ level ──above──▶ nothing
//! ```
//! Only who limits something has a level: most users are found in a table of a few bytes each, and share the level of their account.
use std::collections::BTreeMap;

use model::accounts::{AssociationId, EachJob, Terse};
use model::{Job, Partition, Reason};
use state::Cluster;
use state::limits::{Count, Headroom, Party, Verdict, Want, each};

use super::qualities::{Asker, Qualities, Terms};

pub(super) struct Headrooms<'a> {
    cluster: &'a Cluster,
    /// By number.
    own: Vec<Own>,
    counts: Counted<'a>,
    /// The first limits nothing.
    levels: Vec<Level>,
    /// What is said of each job below a level; the first says nothing.
    eachs: Vec<Said>,
    /// Which of these an association's own word and the one above it come to.
    merged: BTreeMap<(u32, u32), u32>,
    qualities: Qualities<'a>,
    /// What was left before what is only supposed.
    before: Option<Before>,
}

#[derive(Clone, Copy)]
struct Own {
    level: u32,
    /// How many more of its own jobs may run; `u32::MAX`: any number.
    jobs: u32,
    asker: Asker,
}

/// It has not been looked up.
const UNKNOWN: Own = Own { level: u32::MAX, jobs: 0, asker: NOBODY };
const NOBODY: Asker = Asker { user: 0, account: 0 };

#[derive(Clone, Copy)]
struct Level {
    headroom: Headroom,
    above: u32,
    each: u32,
}

struct Said {
    each: EachJob,
    lets_any: bool,
}

#[derive(Default)]
struct Before {
    own: Vec<(usize, Own)>,
    levels: Vec<(usize, Level)>,
    qualities: Vec<(usize, Headroom)>,
}

impl<'a> Headrooms<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Headrooms {
            cluster,
            own: Vec::new(),
            counts: Counted { cluster, n_asked: 0, all: Vec::new() },
            levels: vec![Level { headroom: Headroom::ALL, above: 0, each: 0 }],
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
            0 => Own { level: 0, jobs: u32::MAX, asker: NOBODY },
            id => match self.own(id) {
                Some(own) => own,
                None => return Verdict::Unsaid,
            },
        };
        if self.qualities.are_plain && own.level == 0 {
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
        for level in self.lineage(own.level) {
            match level.headroom.verdict(want) {
                Verdict::Passes => (),
                other => return other,
            }
        }
        let said = &self.eachs[self.levels[own.level as usize].each as usize];
        match jobs_left(own, terms) {
            Verdict::Passes if !said.lets_any => each::verdict(&said.each, want),
            other => other,
        }
    }

    /// The priority below which no place is kept for the job; None: others have a word in it.
    pub fn min_priority(&mut self, job: &'a Job, partition: &'a Partition) -> Option<u32> {
        let terms = self.qualities.terms(job, partition)?;
        let of_association = match job.association {
            0 => None,
            id => {
                let own = self.own(id)?;
                self.eachs[self.levels[own.level as usize].each as usize].each.min_priority
            }
        };
        Some(terms.min_priority.or(of_association).unwrap_or(0))
    }

    /// The job starts and has that.
    pub fn take(&mut self, job: &'a Job, partition: &'a Partition, want: Want<'a>) {
        let is_plain = self.qualities.terms(job, partition).is_some_and(|terms| !terms.is_weighed);
        let want = if is_plain { want } else { want.weighed() };
        let own = self.own(job.association);
        let before = &mut self.before;
        let note = |at: usize, room: &Headroom| {
            if let Some(before) = before {
                before.qualities.push((at, *room));
            }
        };
        self.qualities.take(job, partition, own.map_or(NOBODY, |own| own.asker), &want, note);
        let Some(own) = own else { return };
        if own.jobs != u32::MAX {
            let at = job.association as usize;
            if let Some(before) = &mut self.before {
                before.own.push((at, own));
            }
            self.own[at].jobs = own.jobs.saturating_sub(1);
        }
        let mut next = own.level as usize;
        while next != 0 {
            if let Some(before) = &mut self.before {
                before.levels.push((next, self.levels[next]));
            }
            self.levels[next].headroom.take(&want);
            next = self.levels[next].above as usize;
        }
    }

    /// What is taken from here on is only supposed to be.
    pub fn suppose(&mut self) {
        self.before = Some(Before::default());
    }

    pub fn forget_what_was_supposed(&mut self) {
        let Some(Before { own, levels, qualities }) = self.before.take() else { return };
        qualities.into_iter().rev().for_each(|(at, before)| self.qualities.put_back(at, before));
        own.into_iter().rev().for_each(|(at, before)| self.own[at] = before);
        levels.into_iter().rev().for_each(|(at, before)| self.levels[at] = before);
    }

    fn lineage(&self, from: u32) -> impl Iterator<Item = &Level> {
        let level = |at: u32| if at == 0 { None } else { Some(&self.levels[at as usize]) };
        std::iter::successors(level(from), move |one| level(one.above))
    }

    fn own(&mut self, id: AssociationId) -> Option<Own> {
        match self.own.get(id as usize) {
            Some(own) if own.level != UNKNOWN.level => Some(*own),
            _ => self.look_up(id),
        }
    }

    fn look_up(&mut self, id: AssociationId) -> Option<Own> {
        let terse = self.cluster.accounts().terse(id)?;
        let above = if terse.parent == 0 { 0 } else { self.own(terse.parent)?.level };
        let level = match terse.together.is_none() && terse.each == 0 {
            true => above,
            false => self.level_of(id, terse, above)?,
        };
        let said = &self.eachs[self.levels[level as usize].each as usize].each;
        let jobs = match terse.max_jobs.or(said.max_jobs) {
            Some(most) => most.saturating_sub(self.cluster.tally().n_running(id)),
            None => u32::MAX,
        };
        if self.own.is_empty() {
            self.own.resize(self.cluster.accounts().last_association as usize + 1, UNKNOWN);
        }
        let own = Own { level, jobs, asker: Asker { user: terse.user, account: terse.account } };
        *self.own.get_mut(id as usize)? = own;
        Some(own)
    }

    fn level_of(&mut self, id: AssociationId, terse: &Terse, above: u32) -> Option<u32> {
        let headroom = Headroom::of(self.cluster, id, terse, self.counts.of(id))?;
        let each = self.merged(terse.each, self.levels[above as usize].each);
        self.levels.push(Level { headroom, above, each });
        Some(self.levels.len() as u32 - 1)
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

/// What is counted of associations. Of a few it is looked up; whoever asks about many has the list of all read through once, which takes
/// less time than looking these up.
struct Counted<'a> {
    cluster: &'a Cluster,
    n_asked: usize,
    /// By number, once it is read.
    all: Vec<Option<&'a Count>>,
}

/// So many are looked up one by one.
const FEW: usize = 100;

impl<'a> Counted<'a> {
    fn of(&mut self, id: AssociationId) -> Option<&'a Count> {
        let (tally, last) = (self.cluster.tally(), self.cluster.accounts().last_association as usize);
        self.n_asked += 1;
        if self.n_asked <= FEW {
            return tally.count(&Party::Association(id));
        }
        if self.all.is_empty() {
            self.all.resize(last + 1, None);
            for (id, count) in tally.associations() {
                if let Some(place) = self.all.get_mut(id as usize) {
                    *place = Some(count);
                }
            }
        }
        self.all.get(id as usize).copied().flatten()
    }
}

/// Whether another job of the association's own may run.
fn jobs_left(own: &Own, terms: &Terms) -> Verdict {
    match own.jobs {
        0 if !terms.decides_jobs => Verdict::Refused(Reason::AssocMaxJobsLimit),
        _ => Verdict::Passes,
    }
}
