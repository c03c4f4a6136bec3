//! Limits of accounts and qualities of service, with what this pass has started counted already.
//!
//! What is left to associations (`headrooms`) says of most jobs whether they pass, and what keeps them if not; nothing else is looked at.
//! Of the others many share their rules: what certainly passes (`Ceiling`) is worked out once for all of them, and holds until something
//! starts that counts for one of the same parties. The rules themselves are put together when somebody asks for more; kept, those of
//! many thousand users would cost more than they do. What has started is counted for rules when somebody asks for them.
use std::collections::BTreeMap;

use model::accounts::{Amounts, AssociationId};
use model::plan::{Grant, Start};
use model::spec::TimeLimit;
use model::{Job, Partition, Reason, Timestamp};
use state::Cluster;
use state::limits::{self, Charge, Count, Demand, Outlook, Party, Rules, Verdict, Want, Whom};

use self::headrooms::Headrooms;

mod headrooms;
mod qualities;

pub(crate) struct Allowance<'a> {
    cluster: &'a Cluster,
    headrooms: Headrooms<'a>,
    /// What has started, and of which jobs.
    starts: Vec<Start>,
    started: Vec<&'a Job>,
    /// How much of it is counted.
    n_counted: usize,
    /// From here on it is only supposed.
    supposed_from: Option<usize>,
    groups: Vec<Group<'a>>,
    /// The first group of each association; others follow by `Group::next`.
    by_association: Vec<Option<u32>>,
    /// Those without an association: by user and account.
    by_name: BTreeMap<(&'a str, &'a str), u32>,
    /// Associations that the rules of groups ask about, group by group.
    asked: Vec<AssociationId>,
    counts: Counts<'a>,
    /// What there is in all, where limits are parts of it; by partition, or of the cluster.
    wholes: BTreeMap<Option<&'a str>, Amounts>,
    /// Starts that are counted so far.
    n_starts: u32,
}

/// Jobs under the same rules: of one association in one QOS and in partitions of one QOS.
struct Group<'a> {
    qos: &'a str,
    partition_qos: &'a str,
    next: Option<u32>,
    /// Where in `asked` its associations are.
    asks: (u32, u32),
    /// Some rule asks about a QOS.
    asks_qos: bool,
    /// Their QOS is for those who have used less.
    below_threshold: Option<Reason>,
    may_be_promised: bool,
    min_priority: u32,
    outlook: Outlook,
    /// After how many starts that was so.
    as_of: u32,
}

/// What is counted, as the state has it and with what was started since.
struct Counts<'a> {
    cluster: &'a Cluster,
    changed: Vec<Count>,
    /// Where those of associations are, and after which start they were changed.
    of_associations: Vec<Option<(u32, u32)>>,
    of_others: BTreeMap<Party, u32>,
    /// After which start something of a QOS was changed.
    qos_changed: u32,
    /// What counts were before what is only supposed.
    before: Vec<(u32, Count)>,
}

impl<'a> Allowance<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Allowance {
            cluster,
            headrooms: Headrooms::new(cluster),
            starts: Vec::new(),
            started: Vec::new(),
            n_counted: 0,
            supposed_from: None,
            groups: Vec::new(),
            by_association: Vec::new(),
            by_name: BTreeMap::new(),
            asked: Vec::new(),
            counts: Counts {
                cluster,
                changed: Vec::new(),
                of_associations: Vec::new(),
                of_others: BTreeMap::new(),
                qos_changed: 0,
                before: Vec::new(),
            },
            wholes: BTreeMap::new(),
            n_starts: 0,
        }
    }

    /// Has what will be asked about the job's association brought from memory.
    pub fn fetch_association(&self, job: &Job) {
        self.headrooms.fetch_association(job.association);
    }

    /// The same of its user, once the association has come.
    pub fn fetch_user(&self, job: &Job) {
        self.headrooms.fetch_user(job.association);
    }

    /// Whether it is certain at a glance that no limit keeps the job.
    pub fn lets(&mut self, job: &'a Job, partition: &'a Partition) -> bool {
        if !limits::binds(self.cluster, job) {
            return true;
        }
        match self.verdict(job, partition) {
            Verdict::Passes => return true,
            Verdict::Refused(_) => return false,
            Verdict::Unsaid => (),
        }
        let group = self.group(job, partition);
        match self.outlook(group, job, partition) {
            Outlook::Closed(_) => false,
            Outlook::Open(ceiling) => self.groups[group].below_threshold.is_none() && ceiling.lets(&job.spec),
        }
    }

    /// What keeps the job from starting in the partition, whatever nodes it would get.
    pub fn refusal(&mut self, job: &'a Job, partition: &'a Partition) -> Option<Reason> {
        if !limits::binds(self.cluster, job) {
            return None;
        }
        match self.verdict(job, partition) {
            Verdict::Passes => None,
            Verdict::Refused(reason) => Some(reason),
            Verdict::Unsaid => self.exact_refusal(job, partition),
        }
    }

    /// When the limits that keep the job from the partition let it start though nothing has happened; none: they never do.
    pub fn lifted_at(&mut self, job: &'a Job, partition: &'a Partition) -> Option<Timestamp> {
        self.count();
        let rules = self.rules(job, partition);
        let demand = Demand::asked(self.cluster, &job.spec);
        rules.passes_at(|party| self.counts.of(party), self.cluster.decay(), self.cluster.now(), &demand)
    }

    /// What is known without the rules.
    fn verdict(&mut self, job: &'a Job, partition: &'a Partition) -> Verdict {
        let verdict = self.headrooms.verdict(job, partition, || Want::asked(&job.spec));
        debug_assert!(self.agrees(verdict, |own| own.exact_refusal(job, partition)), "job {}: {verdict:?}", job.id);
        verdict
    }

    /// Whether the rules say the same.
    fn agrees(&mut self, verdict: Verdict, rules: impl FnOnce(&mut Self) -> Option<Reason>) -> bool {
        match verdict {
            Verdict::Passes => rules(self).is_none(),
            Verdict::Refused(reason) => rules(self) == Some(reason),
            Verdict::Unsaid => true,
        }
    }

    fn exact_refusal(&mut self, job: &'a Job, partition: &'a Partition) -> Option<Reason> {
        let group = self.group(job, partition);
        if let Some(reason) = self.groups[group].below_threshold {
            return Some(reason);
        }
        let found = match self.outlook(group, job, partition) {
            Outlook::Closed(reason) => Some(reason),
            Outlook::Open(ceiling) if ceiling.lets(&job.spec) => None,
            Outlook::Open(_) => return self.ask(job, partition, &Demand::asked(self.cluster, &job.spec)),
        };
        debug_assert_eq!(found, self.ask(job, partition, &Demand::asked(self.cluster, &job.spec)), "job {}", job.id);
        found
    }

    /// What keeps it from starting with these nodes.
    pub fn refusal_of(
        &mut self,
        job: &'a Job,
        partition: &'a Partition,
        grants: &[Grant],
        limit: Option<TimeLimit>,
    ) -> Option<Reason> {
        if !limits::binds(self.cluster, job) {
            return None;
        }
        let exactly = |own: &mut Self| {
            let demand = Demand::of_grants(own.cluster, job, &partition.name, grants, limit);
            own.ask(job, partition, &demand)
        };
        let verdict = self.headrooms.verdict(job, partition, || Want::granted(&job.spec, grants, limit));
        debug_assert!(self.agrees(verdict, exactly), "job {} on {grants:?}: {verdict:?}", job.id);
        match verdict {
            Verdict::Passes => return None,
            Verdict::Refused(reason) => return Some(reason),
            Verdict::Unsaid => (),
        }
        let group = self.group(job, partition);
        if let Outlook::Open(ceiling) = self.outlook(group, job, partition)
            && ceiling.lets_granted(&job.spec, grants, limit)
        {
            debug_assert_eq!(exactly(self), None, "job {} on {grants:?}", job.id);
            return None;
        }
        exactly(self)
    }

    /// Whether the job is important enough to have a place kept for it.
    pub fn may_be_promised(&mut self, job: &'a Job, partition: Option<&'a Partition>) -> bool {
        let Some(partition) = partition.filter(|_| limits::binds(self.cluster, job)) else { return true };
        let (may_be_promised, min_priority) = match self.headrooms.min_priority(job, partition) {
            Some(least) => (true, least),
            None => {
                let group = self.group(job, partition);
                (self.groups[group].may_be_promised, self.groups[group].min_priority)
            }
        };
        let shown = || model::priority::shown(self.cluster.config(), job, self.cluster.now());
        may_be_promised && (min_priority == 0 || shown() >= min_priority)
    }

    /// Takes what the plan starts in the partition.
    pub fn started(&mut self, job: &'a Job, partition: &'a Partition, start: Start) {
        if limits::binds(self.cluster, job) {
            self.headrooms.take(job, partition, Want::granted(&job.spec, &start.nodes, start.time_limit));
        }
        self.starts.push(start);
        self.started.push(job);
    }

    /// What has started so far.
    pub fn starts(&self) -> &[Start] {
        &self.starts
    }

    pub fn into_starts(self) -> Vec<Start> {
        self.starts
    }

    /// What is started from here on is only supposed to.
    pub fn suppose(&mut self) {
        self.headrooms.suppose();
        self.supposed_from = Some(self.started.len());
    }

    pub fn forget_what_was_supposed(&mut self) {
        self.headrooms.forget_what_was_supposed();
        let Some(from) = self.supposed_from.take() else { return };
        self.started.truncate(from);
        self.starts.truncate(from);
        if self.n_counted <= from {
            return;
        }
        self.n_counted = from;
        for (at, before) in std::mem::take(&mut self.counts.before).into_iter().rev() {
            self.counts.changed[at as usize] = before;
        }
        // Whoever was looked at meanwhile is looked at again.
        self.groups.iter_mut().for_each(|group| group.as_of = 0);
    }

    /// Counts what has started and is not counted yet.
    fn count(&mut self) {
        while let Some((job, start)) = self.started.get(self.n_counted).zip(self.starts.get(self.n_counted)) {
            let is_supposed = self.supposed_from.is_some_and(|from| self.n_counted >= from);
            self.n_counted += 1;
            let demand = Demand::granted(self.cluster, job, start);
            let Some(charge) = Charge::of_start(self.cluster, job, start, &demand) else { continue };
            self.n_starts += 1;
            self.counts.begin(&charge, self.n_starts, is_supposed);
        }
    }

    fn ask(&mut self, job: &'a Job, partition: &'a Partition, demand: &Demand) -> Option<Reason> {
        self.count();
        let rules = self.rules(job, partition);
        let (decay, now) = (self.cluster.decay(), self.cluster.now());
        rules.start_with(|party| self.counts.of(party), decay, now, demand)
    }

    fn rules(&mut self, job: &'a Job, partition: &'a Partition) -> Rules<'a> {
        let (cluster, wholes) = (self.cluster, &mut self.wholes);
        let mut whole = |of: Option<&'a Partition>| {
            let known = wholes.entry(of.map(|of| of.name.as_str()));
            known.or_insert_with(|| limits::whole(cluster, of)).clone()
        };
        cluster.rules_with(&job.spec, job.association, Some(partition), &mut whole)
    }

    fn outlook(&mut self, group: usize, job: &'a Job, partition: &'a Partition) -> Outlook {
        self.count();
        let known = &self.groups[group];
        if known.as_of < self.n_starts {
            let (from, until) = known.asks;
            let is_new = |id: &AssociationId| self.counts.changed_after(*id, known.as_of);
            let is_old = known.asks_qos && self.counts.qos_changed > known.as_of
                || self.asked[from as usize..until as usize].iter().any(is_new);
            if is_old {
                let rules = self.rules(job, partition);
                let outlook = self.outlook_of(&rules);
                self.groups[group].outlook = outlook;
            }
            self.groups[group].as_of = self.n_starts;
        }
        self.groups[group].outlook
    }

    fn outlook_of(&self, rules: &Rules) -> Outlook {
        rules.outlook(|party| self.counts.of(party), self.cluster.decay(), self.cluster.now())
    }

    fn group(&mut self, job: &'a Job, partition: &'a Partition) -> usize {
        let (qos, partition_qos) = (job.spec.qos.as_str(), partition.qos.as_str());
        let first = self.first_group(job);
        let mut next = first;
        while let Some(at) = next {
            let group = &self.groups[at as usize];
            if group.qos == qos && group.partition_qos == partition_qos {
                return at as usize;
            }
            next = group.next;
        }
        self.count();
        let rules = self.rules(job, partition);
        let from = self.asked.len() as u32;
        let mut asks_qos = false;
        for party in rules.parties() {
            match party {
                Party::Association(id) if self.asked[from as usize..].contains(&id) => (),
                Party::Association(id) => self.asked.push(id),
                Party::Qos(_) | Party::QosUser(..) | Party::QosAccount(..) => asks_qos = true,
            }
        }
        let group = Group {
            qos,
            partition_qos,
            next: first,
            asks: (from, self.asked.len() as u32),
            asks_qos,
            below_threshold: self.cluster.below_threshold(job),
            may_be_promised: rules.may_be_promised(),
            min_priority: rules.min_priority(),
            outlook: self.outlook_of(&rules),
            as_of: self.n_starts,
        };
        self.groups.push(group);
        let at = self.groups.len() - 1;
        self.note_first_group(job, at as u32);
        at
    }

    fn first_group(&self, job: &Job) -> Option<u32> {
        match job.association {
            0 => self.by_name.get(&(job.spec.user.as_str(), job.spec.account.as_str())).copied(),
            association => self.by_association.get(association as usize).copied().flatten(),
        }
    }

    fn note_first_group(&mut self, job: &'a Job, group: u32) {
        match job.association {
            0 => drop(self.by_name.insert((&job.spec.user, &job.spec.account), group)),
            association => *place(&mut self.by_association, self.cluster, association) = Some(group),
        }
    }
}

/// Grows the list at once to what all associations need.
fn place<'v, T: Clone>(list: &'v mut Vec<Option<T>>, cluster: &Cluster, id: AssociationId) -> &'v mut Option<T> {
    let at = id as usize;
    if list.len() <= at {
        list.resize((at + 1).max(cluster.accounts().last_association as usize + 1), None);
    }
    &mut list[at]
}

impl Counts<'_> {
    fn of(&self, whom: Whom) -> Option<&Count> {
        match self.place_of(whom) {
            Some(at) => Some(&self.changed[at as usize]),
            None => self.cluster.tally().count(whom),
        }
    }

    /// Where its counts are, if something has started for it.
    fn place_of(&self, whom: Whom) -> Option<u32> {
        match whom {
            Party::Association(id) => self.of_associations.get(id as usize).copied().flatten().map(|(at, _)| at),
            _ if self.of_others.is_empty() => None,
            other => self.of_others.get(&other.to_party()).copied(),
        }
    }

    fn changed_after(&self, id: AssociationId, start: u32) -> bool {
        self.of_associations.get(id as usize).copied().flatten().is_some_and(|(_, changed)| changed > start)
    }

    /// Counts a job from now on, as the start with that number.
    fn begin(&mut self, charge: &Charge, start: u32, is_supposed: bool) {
        let cluster = self.cluster;
        let (accounts, decay, now) = (cluster.accounts(), cluster.decay(), cluster.now());
        for whom in charge.parties(accounts) {
            let at = self.own(whom, start);
            let count = &mut self.changed[at as usize];
            if is_supposed {
                self.before.push((at, count.clone()));
            }
            count.begin(charge, now, decay.of(whom), limits::has_node_limit(accounts, whom));
        }
    }

    /// Where the counts of the party are that may be changed.
    fn own(&mut self, whom: Whom, start: u32) -> u32 {
        let known = self.place_of(whom);
        let at = known.unwrap_or_else(|| {
            self.changed.push(self.cluster.tally().count(whom).cloned().unwrap_or_default());
            self.changed.len() as u32 - 1
        });
        match whom {
            Party::Association(id) => *place(&mut self.of_associations, self.cluster, id) = Some((at, start)),
            other => {
                self.qos_changed = start;
                if known.is_none() {
                    self.of_others.insert(other.to_party(), at);
                }
            }
        }
        at
    }
}
