//! The fair tree: who has used less than their share goes first, level by level from the root. A site may have the older
//! formula instead (`classic`).
//!
//! At each level siblings are ordered by share over use; an account's children come where the account stands, and children of
//! accounts that stand alike are ordered together; a user who stands like an account stands like the first of its users. A user's
//! factor is the place in the line that this gives, from 1 down.
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::accounts::{Accounts, Association, AssociationId, Classic, Place, QosUse, Shares, Standing, Use};
use model::priority::{AccountFactors, PriorityKind};
use model::{Job, JobId, Phase, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Cluster;
use crate::limits::{self, Count, Party};
use crate::settle;

mod classic;

/// The factors that priorities are computed with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FairShare {
    factors: Arc<BTreeMap<AssociationId, f64>>,
    at: Timestamp,
    /// When all use is forgotten; None: not yet decided, or never.
    reset_at: Option<Timestamp>,
}

impl FairShare {
    /// None: nobody's shares are reckoned, or not this one's.
    pub fn known_factor(&self, association: AssociationId) -> Option<f64> {
        self.factors.get(&association).copied()
    }

    pub fn factor(&self, association: AssociationId) -> f64 {
        self.factors.get(&association).copied().unwrap_or(0.0)
    }
}

impl Cluster {
    /// What accounts and QOS add to the job's priority.
    pub fn account_factors(&self, job: &Job) -> AccountFactors {
        let weights = &self.config.scheduler.priority;
        let norm = |own: u32, most: u32, is_raw: bool| match most {
            _ if is_raw => f64::from(own),
            0 => 0.0,
            _ => f64::from(own) / f64::from(most),
        };
        let mut factors = AccountFactors::default();
        if weights.weight_fair_share > 0 {
            factors.fair_share = self.fair_share.factor(job.association);
        }
        if weights.weight_qos > 0 {
            let most = self.accounts.qos.values().map(|qos| qos.priority).max().unwrap_or(0);
            factors.qos =
                norm(self.accounts.qos.get(&job.spec.qos).map_or(0, |qos| qos.priority), most, weights.raw_qos);
        }
        if weights.weight_association > 0 {
            let most = self.accounts.most_association_priority();
            let own = self.accounts.lineage(job.association).find_map(|one| one.limits.priority).unwrap_or(0);
            factors.association = norm(own, most, weights.raw_association);
        }
        factors
    }

    /// Unless shares are weighed by the fair tree.
    fn classic_shares(&self) -> Option<Classic> {
        let rules = &self.config.scheduler.priority;
        let classic = Classic { is_depth_oblivious: rules.depth_oblivious, dampening: rules.dampening };
        rules.no_fair_tree.then_some(classic)
    }

    /// Where everybody stands at that moment.
    pub fn standing(&self, at: Timestamp) -> Standing {
        let mut associations = places(self, at);
        for (id, place) in &mut associations {
            place.weighed_with = self.fair_share.factor(*id);
        }
        let mut qos: BTreeMap<String, QosUse> =
            self.accounts.qos.keys().map(|name| (name.clone(), QosUse::default())).collect();
        let decay = self.decay();
        for (party, count) in self.tally.counts() {
            let used = use_of(count, at, decay.of(party));
            match party {
                Party::Association(_) => (),
                Party::Qos(name) => qos.entry(name.to_owned()).or_default().all = used,
                Party::QosUser(name, user) => {
                    drop(qos.entry(name.to_owned()).or_default().users.insert(user.to_owned(), used))
                }
                Party::QosAccount(name, account) => {
                    drop(qos.entry(name.to_owned()).or_default().accounts.insert(account.to_owned(), used));
                }
            }
        }
        let half_life_secs = self.config.scheduler.priority.half_life.secs();
        Standing { at, half_life_secs, classic: self.classic_shares(), associations, qos }
    }
}

fn use_of(count: &Count, at: Timestamp, half_life: Option<f64>) -> Use {
    let mut held = count.held.clone();
    held.node = count.held_of("node");
    let mut run_secs = held.clone();
    run_secs.cpu = count.run_secs("cpu", at);
    run_secs.mem = count.run_secs("mem", at);
    run_secs.node = count.run_secs("node", at);
    run_secs.billing = count.run_secs("billing", at);
    run_secs.others.iter_mut().for_each(|(name, amount)| *amount = count.run_secs(name, at));
    Use {
        jobs: count.jobs,
        submitted: count.submitted,
        accruing: count.accruing,
        held,
        used: count.used_at(at, half_life),
        run_secs,
        wall_secs: count.wall_at(at, half_life),
    }
}

/// When the factors are to be computed again; None: nobody's priority depends on them.
pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    let computed = is_needed(cluster).then(|| cluster.fair_share.at + cluster.config.scheduler.priority.calc_period);
    computed.into_iter().chain(cluster.fair_share.reset_at).min()
}

fn is_needed(cluster: &Cluster) -> bool {
    let weights = &cluster.config.scheduler.priority;
    let of_waiting = weights.weight_fair_share > 0 && !cluster.queue.is_empty();
    let of_running = weights.calculates_running && !cluster.jobs.is_empty();
    weights.kind == PriorityKind::Multifactor && (of_waiting || of_running)
}

pub(crate) fn tick(cluster: &mut Cluster) {
    if cluster.fair_share.reset_at.is_some_and(|due| due <= cluster.now) {
        limits::forget_use(cluster);
    }
    if next_deadline(cluster).is_some_and(|due| due <= cluster.now) {
        refresh(cluster);
    }
}

/// Computes the factors from what was used until now; waiting jobs are weighed again.
pub(crate) fn refresh(cluster: &mut Cluster) {
    let weights = &cluster.config.scheduler.priority;
    let counts = weights.kind == PriorityKind::Multifactor && weights.weight_fair_share > 0;
    let factors: BTreeMap<AssociationId, f64> = match counts {
        true => factors(cluster, cluster.now),
        false => BTreeMap::new(),
    };
    let reset_at = cluster.config.scheduler.priority.usage_reset.next(cluster.now);
    cluster.fair_share = FairShare { factors: Arc::new(factors), at: cluster.now, reset_at };
    weigh_all(cluster);
}

/// What priorities are made of has changed.
pub(crate) fn weigh_all(cluster: &mut Cluster) {
    if cluster.config.scheduler.priority.kind != PriorityKind::Multifactor {
        return;
    }
    let waiting = cluster.jobs().filter(|job| job.phase == Phase::Pending).map(|job| job.id);
    let waiting: Vec<JobId> = waiting.collect();
    cluster.unsettled.extend(waiting);
    if cluster.config.scheduler.priority.calculates_running {
        let is_placed = |job: &&Arc<Job>| matches!(job.phase, Phase::Starting | Phase::Running | Phase::Suspended);
        let placed: Vec<JobId> = cluster.jobs().filter(is_placed).map(|job| job.id).collect();
        placed.into_iter().for_each(|id| settle::weigh_placed(cluster, id));
    }
}

fn factors(cluster: &Cluster, at: Timestamp) -> BTreeMap<AssociationId, f64> {
    let places = places(cluster, at);
    places.into_iter().filter_map(|(id, place)| Some((id, place.fair_share?))).collect()
}

/// The nearest ancestor whose children share among themselves.
fn level_above<'a>(accounts: &'a Accounts, one: &Association) -> Option<&'a Association> {
    let above = accounts.lineage(one.id).skip(1);
    let mut last = None;
    for ancestor in above {
        last = Some(ancestor);
        if ancestor.shares != Shares::Parent {
            break;
        }
    }
    last
}

fn places(cluster: &Cluster, at: Timestamp) -> BTreeMap<AssociationId, Place> {
    let accounts = &cluster.accounts;
    let decay = cluster.decay();
    let mut places: BTreeMap<AssociationId, Place> = BTreeMap::new();
    let mut children: BTreeMap<AssociationId, Vec<AssociationId>> = BTreeMap::new();
    let mut level_shares: BTreeMap<AssociationId, u64> = BTreeMap::new();
    for one in accounts.associations.values().filter(|one| one.is_here()) {
        let whom = Party::Association(one.id);
        let now = cluster.tally.count(whom).map(|count| use_of(count, at, decay.of(whom))).unwrap_or_default();
        places.insert(one.id, Place { now, ..Place::default() });
        let Some(above) = level_above(accounts, one) else { continue };
        let is_level = one.is_account() && one.shares == Shares::Parent;
        if !is_level {
            children.entry(above.id).or_default().push(one.id);
        }
        if let Shares::Number(number) = one.shares {
            *level_shares.entry(above.id).or_default() += u64::from(number);
        }
    }
    let root = accounts.associations.values().find(|one| one.parent == 0 && one.is_here());
    let used = |places: &BTreeMap<AssociationId, Place>, id: AssociationId| places[&id].now.used.billing;
    let total = root.map_or(0.0, |root| used(&places, root.id));
    let share_of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    for one in accounts.associations.values().filter(|one| one.is_here()) {
        let own = used(&places, one.id);
        let above = level_above(accounts, one);
        let around = above.map_or(total, |above| used(&places, above.id));
        let shares = above.map_or(0, |above| level_shares.get(&above.id).copied().unwrap_or(0));
        let place = places.get_mut(&one.id).expect("each has a place");
        place.level_shares = shares.max(1);
        place.usage_norm = share_of(own, total);
        // All that was used is the root's.
        place.usage_effective = if above.is_none() { 1.0 } else { share_of(own, around) };
        place.shares_norm = match one.shares {
            _ if above.is_none() => 0.0,
            Shares::Number(number) => share_of(f64::from(number), shares as f64),
            Shares::Parent => 1.0,
        };
        place.level_fs = match place.usage_effective {
            _ if place.shares_norm == 0.0 => Some(0.0),
            used if used > 0.0 => Some(place.shares_norm / used),
            _ => None,
        };
    }
    if let Some(rules) = cluster.classic_shares() {
        classic::fill_in(accounts, &rules, &mut places);
    } else if let Some(root) = root {
        let n_users = accounts.associations.values().filter(|one| !one.is_account() && one.is_here()).count() as u64;
        let mut line = Line { accounts, children: &children, n_users, next: n_users, ranks: BTreeMap::new() };
        line.rank(children.get(&root.id).cloned().unwrap_or_default(), &places, None);
        for (id, rank) in line.ranks {
            let factor = rank as f64 / n_users.max(1) as f64;
            places.get_mut(&id).expect("each has a place").fair_share = Some(factor);
        }
    }
    places
}

/// Everybody in one line, the first with the highest rank.
struct Line<'a> {
    accounts: &'a Accounts,
    children: &'a BTreeMap<AssociationId, Vec<AssociationId>>,
    n_users: u64,
    next: u64,
    ranks: BTreeMap<AssociationId, u64>,
}

impl Line<'_> {
    /// With `tie`, the first of them stand where a user beside their account stands, who is its equal.
    fn rank(&mut self, mut siblings: Vec<AssociationId>, places: &BTreeMap<AssociationId, Place>, tie: Option<u64>) {
        let fs = |id: &AssociationId| places[id].level_fs.unwrap_or(f64::INFINITY);
        let is_user = |id: &AssociationId| !self.accounts.associations[id].is_account();
        siblings.sort_by(|one, other| {
            fs(other)
                .partial_cmp(&fs(one))
                .unwrap_or(Ordering::Equal)
                .then(is_user(other).cmp(&is_user(one)))
                .then(one.cmp(other))
        });
        let mut tied: Option<(f64, u64)> = tie.zip(siblings.first()).map(|(rank, first)| (fs(first), rank));
        let mut index = 0;
        while index < siblings.len() {
            let id = siblings[index];
            if is_user(&id) {
                let rank = tied.filter(|(before, _)| *before == fs(&id)).map_or(self.next, |(_, rank)| rank);
                tied = Some((fs(&id), rank));
                self.ranks.insert(id, rank);
                self.next -= 1;
                index += 1;
                continue;
            }
            let alike = siblings[index..].iter().take_while(|other| fs(other) == fs(&id)).count();
            let below = siblings[index..index + alike].iter().flat_map(|one| self.children.get(one)).flatten();
            let below: Vec<AssociationId> = below.copied().collect();
            let tie = tied.filter(|(before, _)| *before == fs(&id)).map(|(_, rank)| rank);
            self.rank(below, places, tie);
            index += alike;
        }
        debug_assert!(self.next <= self.n_users);
    }
}
