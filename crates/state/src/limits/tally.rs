//! The counts of all parties, kept equal to the sum over the jobs. The only writer of both.
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::{OrdMap, Vector};
use model::accounts::{Accounts, Association, AssociationId};
use model::{JobId, Timestamp};
use serde::{Deserialize, Serialize};

use super::charge::has_node_limit;
use super::counts::Counts;
use super::gists::{self, Gist, Gists};
use super::{Charge, Count, Decay, Party, Whom};
use crate::Cluster;

/// Cheap to copy: the scheduler adds to a copy what it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Tally {
    /// What is counted; an older tally is counted anew.
    edition: u32,
    counts: Counts,
    /// What each job is counted with now.
    charges: OrdMap<JobId, Arc<Charge>>,
    /// The same of persistent buffers.
    standing: OrdMap<String, Arc<Charge>>,
    /// None: accounts have changed, or it was just read.
    #[serde(skip)]
    gists: Option<Gists>,
}

/// A tally as it is written down.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    edition: u32,
    counts: Counts,
    charges: OrdMap<JobId, Arc<Charge>>,
    standing: OrdMap<String, Arc<Charge>>,
}

impl From<Stored> for Tally {
    fn from(stored: Stored) -> Tally {
        let Stored { edition, counts, charges, standing } = stored;
        Tally { edition, counts, charges, standing, gists: None }
    }
}

/// What can be made again says nothing.
impl PartialEq for Tally {
    fn eq(&self, other: &Tally) -> bool {
        let Tally { edition, counts, charges, standing, gists: _ } = self;
        (edition, counts, charges, standing) == (&other.edition, &other.counts, &other.charges, &other.standing)
    }
}

/// Goes up when something else, or more, is counted.
const EDITION: u32 = 2;

impl Default for Tally {
    fn default() -> Self {
        Tally {
            edition: EDITION,
            counts: Counts::default(),
            charges: OrdMap::new(),
            standing: OrdMap::new(),
            gists: None,
        }
    }
}

/// As what things are counted.
#[derive(Clone, Copy)]
struct Terms<'a> {
    accounts: &'a Accounts,
    decay: Decay<'a>,
    now: Timestamp,
}

impl Tally {
    pub fn count(&self, whom: Whom) -> Option<&Count> {
        self.counts.get(whom)
    }

    /// What jobs of each association have, with those of all below it; by number, for so many numbers.
    pub fn copy_of_associations(&self, n_numbers: usize) -> Vec<Gist> {
        let mut copy = match &self.gists {
            Some(gists) => copy(&gists.associations),
            None => {
                let mut all = vec![Gist::default(); n_numbers];
                for (id, count) in self.associations() {
                    if let Some(place) = all.get_mut(id as usize) {
                        *place = Gist::of(count);
                    }
                }
                all
            }
        };
        copy.resize(n_numbers, Gist::default());
        copy
    }

    /// What jobs of each user have in this quality of service, by the user's number. None: not at hand.
    pub fn copy_of_users_in(&self, qos: &str) -> Option<Vec<Gist>> {
        self.gists.as_ref()?.users.get(qos).map(copy)
    }

    /// Users of whom something is counted in this quality of service, in order.
    pub fn users_in(&self, qos: &str) -> impl Iterator<Item = (&str, &Count)> {
        self.counts.users_in(qos)
    }

    /// Associations of which something is counted, in order.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Count)> {
        self.counts.associations()
    }

    pub fn counts(&self) -> impl Iterator<Item = (Whom<'_>, &Count)> {
        self.counts.iter()
    }

    /// Counts somebody with another charge than before.
    fn count_instead(&mut self, terms: Terms, before: Option<&Charge>, after: Option<&Charge>) {
        match (before, after) {
            (Some(one), Some(other)) if !one.counts_for_the_same(other) => {
                self.count_instead(terms, before, None);
                self.count_instead(terms, None, after);
            }
            _ => {
                let Some(either) = before.or(after) else { return };
                let Terms { accounts, decay, now } = terms;
                for whom in either.parties(accounts) {
                    let counts_nodes = has_node_limit(accounts, whom);
                    let gist = self.counts.change(whom, |count| {
                        count.settle(now, decay.of(whom));
                        if let Some(before) = before {
                            count.subtract(before, counts_nodes);
                        }
                        if let Some(after) = after {
                            count.add(after, counts_nodes);
                        }
                        Gist::of(count)
                    });
                    if let Some(gists) = &mut self.gists {
                        gists.note(whom, gist, || gists::number_of_user(accounts, either));
                    }
                }
            }
        }
    }
}

/// Counts the job as it is now: after anything of it has changed, or once it is gone.
pub(crate) fn keep(cluster: &mut Cluster, id: JobId) {
    let charge = cluster.jobs.get(&id).and_then(|job| Charge::of(cluster, job));
    let before = cluster.tally.charges.get(&id);
    if before.map(|before| &**before) == charge.as_ref() {
        return;
    }
    let before = before.cloned();
    count_instead(cluster, before.as_deref(), charge.as_ref());
    match charge {
        Some(charge) => drop(cluster.tally.charges.insert(id, Arc::new(charge))),
        None => drop(cluster.tally.charges.remove(&id)),
    }
}

fn count_instead(cluster: &mut Cluster, before: Option<&Charge>, after: Option<&Charge>) {
    let (accounts, config) = (cluster.accounts.clone(), cluster.config.clone());
    let terms = Terms { accounts: &accounts, decay: Decay::new(&config, &accounts), now: cluster.now };
    cluster.tally.count_instead(terms, before, after);
}

/// Counts a persistent buffer: once it is there, once it is gone.
pub(crate) fn keep_standing(cluster: &mut Cluster, name: &str) {
    let charge = cluster.persistent.get(name).and_then(|buffer| Charge::of_persistent(cluster, buffer));
    let before = cluster.tally.standing.remove(name);
    count_instead(cluster, before.as_deref(), charge.as_ref());
    if let Some(charge) = charge {
        cluster.tally.standing.insert(name.to_owned(), Arc::new(charge));
    }
}

/// Makes what is at hand for plans anew: accounts are others.
pub(crate) fn number_anew(cluster: &mut Cluster) {
    cluster.tally.gists = Some(Gists::new(&cluster.accounts, cluster.tally.counts.iter()));
}

/// Brings everything that was used up to now, before the pace at which it is forgotten changes.
pub(crate) fn settle_meters(cluster: &mut Cluster) {
    let (accounts, config, now) = (cluster.accounts.clone(), cluster.config.clone(), cluster.now);
    let decay = Decay::new(&config, &accounts);
    for party in cluster.tally.parties() {
        cluster.tally.counts.change(party.whom(), |count| count.settle(now, decay.of(party.whom())));
    }
}

impl Tally {
    fn parties(&self) -> Vec<Party> {
        self.counts.iter().map(|(whom, _)| whom.to_party()).collect()
    }
}

/// Everything that was used is forgotten; what runs counts from now.
pub(crate) fn forget_use(cluster: &mut Cluster) {
    let now = cluster.now;
    for party in cluster.tally.parties() {
        let forget = |count: &mut Count| (count.used, count.wall, count.at) = (Default::default(), 0.0, now);
        cluster.tally.counts.change(party.whom(), forget);
    }
}

/// What these associations, and all below them, have used is forgotten; those above have used as much less.
pub(crate) fn forget_use_of(cluster: &mut Cluster, ids: &[AssociationId]) {
    let accounts = Arc::clone(&cluster.accounts);
    for id in ids {
        let Some(count) = cluster.tally.count(Party::Association(*id)).cloned() else { continue };
        for above in accounts.lineage(*id).skip(1) {
            change_use(cluster, Party::Association(above.id), &count, |used, less| *used = left_of(*used, less));
        }
        for below in accounts.with_all_below(*id) {
            change_use(cluster, Party::Association(below), &count, |used, _| *used = 0.0);
        }
    }
}

/// What was used in these qualities of service is forgotten.
pub(crate) fn forget_use_in(cluster: &mut Cluster, names: &[String]) {
    let is_meant = |party: &&Party| match party {
        Party::Association(_) => false,
        Party::Qos(qos) | Party::QosUser(qos, _) | Party::QosAccount(qos, _) => names.contains(qos),
    };
    for party in cluster.tally.parties().iter().filter(is_meant) {
        let Some(count) = cluster.tally.count(party.whom()).cloned() else { continue };
        change_use(cluster, party.whom(), &count, |used, _| *used = 0.0);
    }
}

/// What an account has used goes with it to the accounts above its new place.
pub(crate) fn move_use(cluster: &mut Cluster, after: &Accounts) {
    let before = Arc::clone(&cluster.accounts);
    let is_moved = |one: &&Association| after.associations.get(&one.id).is_some_and(|moved| moved.parent != one.parent);
    let moved: Vec<AssociationId> = before.associations.values().filter(is_moved).map(|one| one.id).collect();
    for id in moved {
        let Some(count) = cluster.tally.count(Party::Association(id)).cloned() else { continue };
        let above =
            |accounts: &Accounts| -> Vec<AssociationId> { accounts.lineage(id).skip(1).map(|one| one.id).collect() };
        let (old, new) = (above(&before), above(after));
        for id in old.iter().filter(|id| !new.contains(id)) {
            change_use(cluster, Party::Association(*id), &count, |used, less| *used = left_of(*used, less));
        }
        for id in new.iter().filter(|id| !old.contains(id)) {
            change_use(cluster, Party::Association(*id), &count, |used, more| *used += more);
        }
    }
}

/// Stretch by stretch: this is done anew in each plan.
fn copy(all: &Vector<Gist>) -> Vec<Gist> {
    let mut copy = Vec::with_capacity(all.len());
    all.leaves().for_each(|stretch| copy.extend_from_slice(stretch));
    copy
}

/// Differences of sums that should be nothing are nothing.
fn left_of(used: f64, less: f64) -> f64 {
    let left = used - less;
    if left <= used * 1e-12 { 0.0 } else { left }
}

fn change_use(cluster: &mut Cluster, whom: Whom, other: &Count, change: fn(&mut f64, f64)) {
    cluster.tally.counts.change(whom, |count| {
        count.at = count.at.max(other.at);
        let mut used = count.used.clone();
        used.merge(&other.used, change);
        count.used = used;
        change(&mut count.wall, other.wall);
    });
}

/// What an earlier release has counted is counted as this one does.
pub(crate) fn adapt(cluster: &mut Cluster) {
    if cluster.tally.edition != EDITION {
        keep_all(cluster);
    }
    if cluster.tally.gists.is_none() {
        number_anew(cluster);
    }
}

/// Counts all jobs anew: whom they count for may have changed. What was used stays with those who used it.
pub(crate) fn keep_all(cluster: &mut Cluster) {
    let is_there = |whom: &Whom| match whom {
        Party::Association(id) => cluster.accounts.associations.contains_key(id),
        Party::Qos(qos) | Party::QosUser(qos, _) | Party::QosAccount(qos, _) => cluster.accounts.qos.contains_key(*qos),
    };
    let kept = cluster.tally.counts.iter().filter(|(whom, _)| is_there(whom));
    let kept = kept.map(|(whom, count)| (whom.to_party(), count.clone().without_jobs()));
    let counts = kept.filter(|(_, count)| !count.is_idle()).map(|(party, count)| (party, Arc::new(count)));
    cluster.tally = Tally { counts: counts.collect(), ..Tally::default() };
    let ids: Vec<JobId> = cluster.jobs.keys().copied().collect();
    ids.into_iter().for_each(|id| keep(cluster, id));
    let names: Vec<String> = cluster.persistent.keys().cloned().collect();
    names.iter().for_each(|name| keep_standing(cluster, name));
    number_anew(cluster);
}

/// The counts are what the jobs come to.
pub(crate) fn check(cluster: &Cluster) -> Result<(), String> {
    let mut sums: BTreeMap<Party, Count> = BTreeMap::new();
    for job in cluster.jobs() {
        let charge = Charge::of(cluster, job);
        let counted = cluster.tally.charges.get(&job.id).map(|charge| &**charge);
        if counted != charge.as_ref() {
            return Err(format!("job {} is counted as {counted:?}, not as {charge:?}", job.id));
        }
        let Some(charge) = charge else { continue };
        for whom in charge.parties(&cluster.accounts) {
            sums.entry(whom.to_party()).or_default().add(&charge, has_node_limit(&cluster.accounts, whom));
        }
    }
    for buffer in cluster.persistent.values() {
        let charge = Charge::of_persistent(cluster, buffer);
        let counted = cluster.tally.standing.get(&buffer.name).map(|charge| &**charge);
        if counted != charge.as_ref() {
            return Err(format!("buffer {} is counted as {counted:?}, not as {charge:?}", buffer.name));
        }
        for whom in charge.iter().flat_map(|charge| charge.parties(&cluster.accounts)) {
            sums.entry(whom.to_party()).or_default().add(charge.as_ref().expect("just seen"), false);
        }
    }
    if cluster.tally.standing.keys().any(|name| !cluster.persistent.contains_key(name)) {
        return Err("a persistent buffer is counted that is gone".into());
    }
    let n_charges = cluster.tally.charges.keys().filter(|id| !cluster.jobs.contains_key(*id)).count();
    if n_charges > 0 {
        return Err(format!("{n_charges} jobs are counted that are gone"));
    }
    for (party, count) in cluster.tally.counts() {
        let sum = sums.remove(&party.to_party()).unwrap_or_default();
        let counted = Count { used: Default::default(), wall: 0.0, at: Timestamp(0), ..count.clone() };
        if counted != sum {
            return Err(format!("{party:?} is counted as {counted:?}, the jobs come to {sum:?}"));
        }
        let is_sound = |amount: f64| amount.is_finite() && amount >= 0.0;
        if !(is_sound(count.wall) && count.used.iter().all(|(_, amount)| is_sound(amount))) {
            return Err(format!("{party:?} has used {:?} in {} s", count.used, count.wall));
        }
    }
    let gists = cluster.tally.gists.as_ref();
    if gists.is_some_and(|gists| *gists != Gists::new(&cluster.accounts, cluster.tally.counts.iter())) {
        return Err("what is at hand of the counts is not what they are".into());
    }
    match sums.first_key_value() {
        Some((party, sum)) => Err(format!("{party:?} is not counted, the jobs come to {sum:?}")),
        None => Ok(()),
    }
}
