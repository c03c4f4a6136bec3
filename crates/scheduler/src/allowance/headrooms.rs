//! What is left of the limits of all associations, with what this pass has started taken off.
//!
//! ```text
//! association ──own──▶ level ──above──▶ level ──above──▶ nothing
//! ```
//! Only who limits something has a level: most users are found in a table of a few bytes each, and share the level of their account.
use model::accounts::AssociationId;
use model::{Job, Partition, Reason};
use state::Cluster;
use state::limits::{self, Each, Headroom, Verdict, Want};

pub(super) struct Headrooms<'a> {
    cluster: &'a Cluster,
    /// By number.
    own: Vec<Own>,
    /// The first limits nothing.
    levels: Vec<Level>,
    /// All that is said of each job, in some words or others; the first says nothing.
    eachs: Vec<Each>,
    /// Every quality of service leaves it to associations.
    qos_is_plain: bool,
    /// Qualities of service, with those of partitions, and whether they leave it to associations.
    qos: Vec<(&'a str, &'a str, bool)>,
    /// What was left before what is only supposed.
    before: Option<Before>,
}

#[derive(Clone, Copy)]
struct Own {
    level: u32,
    /// How many more of its own jobs may run; `u32::MAX`: any number.
    jobs: u32,
}

/// It has not been looked up.
const UNKNOWN: Own = Own { level: u32::MAX, jobs: 0 };

#[derive(Clone, Copy)]
struct Level {
    headroom: Headroom,
    above: u32,
    each: u32,
}

#[derive(Default)]
struct Before {
    own: Vec<(usize, Own)>,
    levels: Vec<(usize, Level)>,
}

impl<'a> Headrooms<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Headrooms {
            cluster,
            own: Vec::new(),
            levels: vec![Level { headroom: Headroom::ALL, above: 0, each: 0 }],
            eachs: vec![Each::default()],
            qos_is_plain: cluster.accounts().qos.values().all(limits::leaves_it_to_associations),
            qos: Vec::new(),
            before: None,
        }
    }

    /// Whether a limit keeps the job from having that, as far as it is known here.
    pub fn verdict<'j>(&mut self, job: &'a Job, partition: &'a Partition, want: impl FnOnce() -> Want<'j>) -> Verdict {
        if !self.suffice_for(job, partition) {
            return Verdict::Unsaid;
        }
        if job.association == 0 {
            return Verdict::Passes;
        }
        let Some(own) = self.own(job.association) else { return Verdict::Unsaid };
        let own_jobs = match own.jobs {
            0 => Verdict::Refused(Reason::AssocMaxJobsLimit),
            _ => Verdict::Passes,
        };
        if own.level == 0 {
            return own_jobs;
        }
        let want = want();
        for level in self.lineage(own.level) {
            match level.headroom.verdict(&want) {
                Verdict::Passes => (),
                other => return other,
            }
        }
        let each = &self.eachs[self.levels[own.level as usize].each as usize];
        match own_jobs {
            Verdict::Passes if !each.lets_any() => each.verdict(&want),
            other => other,
        }
    }

    /// The priority below which no place is kept for the job; None: others have a word in it.
    pub fn min_priority(&mut self, job: &'a Job, partition: &'a Partition) -> Option<u32> {
        if !self.suffice_for(job, partition) {
            return None;
        }
        if job.association == 0 {
            return Some(0);
        }
        let own = self.own(job.association)?;
        Some(self.eachs[self.levels[own.level as usize].each as usize].min_priority())
    }

    /// The job starts and has that.
    pub fn take(&mut self, job: &'a Job, partition: &'a Partition, want: Want<'a>) {
        let want = if self.suffice_for(job, partition) { want } else { want.weighed() };
        let Some(own) = self.own(job.association) else { return };
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
        let Some(Before { own, levels }) = self.before.take() else { return };
        own.into_iter().rev().for_each(|(at, before)| self.own[at] = before);
        levels.into_iter().rev().for_each(|(at, before)| self.levels[at] = before);
    }

    fn suffice_for(&mut self, job: &'a Job, partition: &'a Partition) -> bool {
        if self.qos_is_plain {
            return true;
        }
        let (own, of_partition) = (job.spec.qos.as_str(), partition.qos.as_str());
        let is_same = |known: &&(&str, &str, bool)| known.0 == own && known.1 == of_partition;
        if let Some((.., suffices)) = self.qos.iter().find(is_same) {
            return *suffices;
        }
        let named = [own, of_partition].into_iter().filter_map(|name| self.cluster.accounts().qos.get(name));
        let suffices = named.into_iter().all(limits::leaves_it_to_associations);
        self.qos.push((own, of_partition, suffices));
        suffices
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
        let terse = *self.cluster.accounts().terse(id)?;
        let above = if terse.parent == 0 { 0 } else { self.own(terse.parent)?.level };
        // What an account says of each job, those below it say too.
        let speaks = terse.says_more || (!terse.is_users && terse.max_jobs.is_some());
        let level = if speaks { self.level_of(id, above)? } else { above };
        let each = &self.eachs[self.levels[level as usize].each as usize];
        let jobs = match terse.max_jobs.or(each.max_jobs()) {
            Some(most) => most.saturating_sub(self.cluster.tally().n_running(id)),
            None => u32::MAX,
        };
        if self.own.is_empty() {
            self.own.resize(self.cluster.accounts().last_association as usize + 1, UNKNOWN);
        }
        let own = Own { level, jobs };
        *self.own.get_mut(id as usize)? = own;
        Some(own)
    }

    /// That of the one above, if it says nothing else.
    fn level_of(&mut self, id: AssociationId, above: u32) -> Option<u32> {
        let each_above = self.levels[above as usize].each;
        let (headroom, each) = Headroom::of(self.cluster, id, &self.eachs[each_above as usize])?;
        // Most say what the one above said, or the last one.
        let last = self.eachs.len() as u32 - 1;
        let known = [each_above, last].into_iter().find(|at| self.eachs[*at as usize] == each);
        let each = known.unwrap_or_else(|| {
            self.eachs.push(each);
            last + 1
        });
        if headroom == Headroom::ALL && each == each_above {
            return Some(above);
        }
        self.levels.push(Level { headroom, above, each });
        Some(self.levels.len() as u32 - 1)
    }
}
