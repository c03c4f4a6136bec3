//! The counts of all parties, kept equal to the sum over the jobs. The only writer of both.
use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use model::accounts::{Accounts, Association, AssociationId};
use model::{JobId, Timestamp};
use serde::{Deserialize, Serialize};

use super::charge::has_node_limit;
use super::running::Running;
use super::{Charge, Count, Decay, Party};
use crate::Cluster;

/// Cheap to copy: the scheduler adds to a copy what it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Tally {
    /// What is counted; an older tally is counted anew.
    edition: u32,
    counts: OrdMap<Party, Arc<Count>>,
    /// What each job is counted with now.
    charges: OrdMap<JobId, Arc<Charge>>,
    /// The same of persistent buffers.
    standing: OrdMap<String, Arc<Charge>>,
    /// Of the counts of associations: their jobs.
    #[serde(skip)]
    running: Running,
}

/// A tally as it is written down.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stored {
    edition: u32,
    counts: OrdMap<Party, Arc<Count>>,
    charges: OrdMap<JobId, Arc<Charge>>,
    standing: OrdMap<String, Arc<Charge>>,
}

impl From<Stored> for Tally {
    fn from(stored: Stored) -> Tally {
        let Stored { edition, counts, charges, standing } = stored;
        let mut tally = Tally { edition, charges, standing, ..Tally::default() };
        for (party, count) in &counts {
            tally.note_running(party, count.jobs);
        }
        Tally { counts, ..tally }
    }
}

/// What a job's beginning or end does to a count.
type Changes = fn(&mut Count, &Charge);

/// Goes up when something else, or more, is counted.
const EDITION: u32 = 2;

impl Default for Tally {
    fn default() -> Self {
        Tally {
            edition: EDITION,
            counts: OrdMap::new(),
            charges: OrdMap::new(),
            standing: OrdMap::new(),
            running: Running::default(),
        }
    }
}

impl Tally {
    pub fn count(&self, party: &Party) -> Option<&Count> {
        self.counts.get(party).map(|count| &**count)
    }

    /// How many jobs of the association, and of all below it, run.
    pub fn n_running(&self, id: AssociationId) -> u32 {
        self.running.get(id)
    }

    /// Users of whom something is counted in this quality of service, in order.
    pub fn users_in(&self, qos: &str) -> impl Iterator<Item = (&str, &Count)> {
        let from = self.counts.range(Party::QosUser(qos.to_owned(), String::new())..);
        from.map_while(move |(party, count)| match party {
            Party::QosUser(of, user) if of == qos => Some((user.as_str(), &**count)),
            _ => None,
        })
    }

    /// Associations of which something is counted, in order.
    pub fn associations(&self) -> impl Iterator<Item = (AssociationId, &Count)> {
        self.counts.iter().map_while(|(party, count)| match party {
            Party::Association(id) => Some((*id, &**count)),
            _ => None,
        })
    }

    pub fn counts(&self) -> impl Iterator<Item = (&Party, &Count)> {
        self.counts.iter().map(|(party, count)| (party, &**count))
    }

    fn add(&mut self, accounts: &Accounts, decay: Decay, now: Timestamp, charge: &Charge) {
        self.change(accounts, decay, now, charge, (Count::add, Count::add_nodes));
    }

    fn change(
        &mut self,
        accounts: &Accounts,
        decay: Decay,
        now: Timestamp,
        charge: &Charge,
        (change, change_nodes): (Changes, Changes),
    ) {
        for party in charge.parties(accounts) {
            let half_life = decay.of(&party);
            let count = Arc::make_mut(self.counts.entry(party.clone()).or_default());
            count.settle(now, half_life);
            change(count, charge);
            if has_node_limit(accounts, &party) {
                change_nodes(count, charge);
            }
            let n_running = count.jobs;
            if count.is_idle() {
                self.counts.remove(&party);
            }
            self.note_running(&party, n_running);
        }
    }

    fn note_running(&mut self, party: &Party, n_running: u64) {
        if let Party::Association(id) = party {
            self.running.set(*id, n_running);
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
    let (before, now) = (before.cloned(), cluster.now);
    let (accounts, config) = (cluster.accounts.clone(), cluster.config.clone());
    let decay = Decay::new(&config, &accounts);
    if let Some(before) = before {
        cluster.tally.change(&accounts, decay, now, &before, (Count::subtract, Count::subtract_nodes));
        cluster.tally.charges.remove(&id);
    }
    if let Some(charge) = charge {
        cluster.tally.add(&accounts, decay, now, &charge);
        cluster.tally.charges.insert(id, Arc::new(charge));
    }
}

/// Counts a persistent buffer: once it is there, once it is gone.
pub(crate) fn keep_standing(cluster: &mut Cluster, name: &str) {
    let charge = cluster.persistent.get(name).and_then(|buffer| Charge::of_persistent(cluster, buffer));
    let (accounts, config, now) = (cluster.accounts.clone(), cluster.config.clone(), cluster.now);
    let decay = Decay::new(&config, &accounts);
    if let Some(before) = cluster.tally.standing.remove(name) {
        cluster.tally.change(&accounts, decay, now, &before, (Count::subtract, Count::subtract_nodes));
    }
    if let Some(charge) = charge {
        cluster.tally.add(&accounts, decay, now, &charge);
        cluster.tally.standing.insert(name.to_owned(), Arc::new(charge));
    }
}

/// Brings everything that was used up to now, before the pace at which it is forgotten changes.
pub(crate) fn settle_meters(cluster: &mut Cluster) {
    let (accounts, config, now) = (cluster.accounts.clone(), cluster.config.clone(), cluster.now);
    let decay = Decay::new(&config, &accounts);
    let parties: Vec<Party> = cluster.tally.counts.keys().cloned().collect();
    for party in parties {
        let half_life = decay.of(&party);
        if let Some(count) = cluster.tally.counts.get_mut(&party) {
            Arc::make_mut(count).settle(now, half_life);
        }
    }
}

/// Everything that was used is forgotten; what runs counts from now.
pub(crate) fn forget_use(cluster: &mut Cluster) {
    let now = cluster.now;
    let parties: Vec<Party> = cluster.tally.counts.keys().cloned().collect();
    for party in parties {
        if let Some(count) = cluster.tally.counts.get_mut(&party) {
            let count = Arc::make_mut(count);
            (count.used, count.wall, count.at) = (Default::default(), 0.0, now);
        }
        if cluster.tally.counts[&party].is_idle() {
            cluster.tally.counts.remove(&party);
        }
    }
}

/// What these associations, and all below them, have used is forgotten; those above have used as much less.
pub(crate) fn forget_use_of(cluster: &mut Cluster, ids: &[AssociationId]) {
    let accounts = Arc::clone(&cluster.accounts);
    for id in ids {
        let Some(count) = cluster.tally.count(&Party::Association(*id)).cloned() else { continue };
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
    let parties: Vec<Party> = cluster.tally.counts.keys().filter(is_meant).cloned().collect();
    for party in parties {
        let count = Count::clone(&cluster.tally.counts[&party]);
        change_use(cluster, party, &count, |used, _| *used = 0.0);
    }
}

/// What an account has used goes with it to the accounts above its new place.
pub(crate) fn move_use(cluster: &mut Cluster, after: &Accounts) {
    let before = Arc::clone(&cluster.accounts);
    let is_moved = |one: &&Association| after.associations.get(&one.id).is_some_and(|moved| moved.parent != one.parent);
    let moved: Vec<AssociationId> = before.associations.values().filter(is_moved).map(|one| one.id).collect();
    for id in moved {
        let Some(count) = cluster.tally.count(&Party::Association(id)).cloned() else { continue };
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

/// Differences of sums that should be nothing are nothing.
fn left_of(used: f64, less: f64) -> f64 {
    let left = used - less;
    if left <= used * 1e-12 { 0.0 } else { left }
}

fn change_use(cluster: &mut Cluster, party: Party, other: &Count, change: fn(&mut f64, f64)) {
    let count = Arc::make_mut(cluster.tally.counts.entry(party.clone()).or_default());
    count.at = count.at.max(other.at);
    let mut used = count.used.clone();
    used.merge(&other.used, change);
    count.used = used;
    change(&mut count.wall, other.wall);
    if count.is_idle() {
        cluster.tally.counts.remove(&party);
    }
}

/// What an earlier release has counted is counted as this one does.
pub(crate) fn adapt(cluster: &mut Cluster) {
    if cluster.tally.edition != EDITION {
        keep_all(cluster);
    }
}

/// Counts all jobs anew: whom they count for may have changed. What was used stays with those who used it.
pub(crate) fn keep_all(cluster: &mut Cluster) {
    let is_there = |party: &Party| match party {
        Party::Association(id) => cluster.accounts.associations.contains_key(id),
        Party::Qos(qos) | Party::QosUser(qos, _) | Party::QosAccount(qos, _) => cluster.accounts.qos.contains_key(qos),
    };
    let kept = cluster.tally.counts.iter().filter(|(party, _)| is_there(party));
    let kept = kept.map(|(party, count)| (party.clone(), Count::clone(count).without_jobs()));
    let counts = kept.filter(|(_, count)| !count.is_idle()).map(|(party, count)| (party, Arc::new(count)));
    cluster.tally = Tally { counts: counts.collect(), ..Tally::default() };
    let ids: Vec<JobId> = cluster.jobs.keys().copied().collect();
    ids.into_iter().for_each(|id| keep(cluster, id));
    let names: Vec<String> = cluster.persistent.keys().cloned().collect();
    names.iter().for_each(|name| keep_standing(cluster, name));
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
        for party in charge.parties(&cluster.accounts) {
            let counts_nodes = has_node_limit(&cluster.accounts, &party);
            let sum = sums.entry(party).or_default();
            sum.add(&charge);
            if counts_nodes {
                sum.add_nodes(&charge);
            }
        }
    }
    for buffer in cluster.persistent.values() {
        let charge = Charge::of_persistent(cluster, buffer);
        let counted = cluster.tally.standing.get(&buffer.name).map(|charge| &**charge);
        if counted != charge.as_ref() {
            return Err(format!("buffer {} is counted as {counted:?}, not as {charge:?}", buffer.name));
        }
        for party in charge.iter().flat_map(|charge| charge.parties(&cluster.accounts)) {
            sums.entry(party).or_default().add(charge.as_ref().expect("just seen"));
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
        let sum = sums.remove(party).unwrap_or_default();
        let counted = Count { used: Default::default(), wall: 0.0, at: Timestamp(0), ..count.clone() };
        if counted != sum {
            return Err(format!("{party:?} is counted as {counted:?}, the jobs come to {sum:?}"));
        }
        if let Party::Association(id) = party
            && u64::from(cluster.tally.n_running(*id)) != count.jobs
        {
            return Err(format!("{} jobs of {party:?} are told to run", cluster.tally.n_running(*id)));
        }
        let is_sound = |amount: f64| amount.is_finite() && amount >= 0.0;
        if !(is_sound(count.wall) && count.used.iter().all(|(_, amount)| is_sound(amount))) {
            return Err(format!("{party:?} has used {:?} in {} s", count.used, count.wall));
        }
    }
    for (id, n_running) in cluster.tally.running.iter() {
        if cluster.tally.count(&Party::Association(id)).is_none() {
            return Err(format!("{n_running} jobs of association {id} are told to run, and none is counted"));
        }
    }
    match sums.first_key_value() {
        Some((party, sum)) => Err(format!("{party:?} is not counted, the jobs come to {sum:?}")),
        None => Ok(()),
    }
}
