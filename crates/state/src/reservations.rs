//! Reservations in time: who may use which nodes when, and what happens when one begins, ends or goes.
use std::sync::Arc;

use model::reservation::Flag;
use model::spec::TimeLimit;
use model::time::Span;
use model::{HeldBy, Job, JobId, JobSpec, NodeName, Phase, Reservation, Start, Timestamp, Wake};

use crate::settle::wake;
use crate::{Cluster, chronicle, on};

impl Cluster {
    pub fn reservation(&self, name: &str) -> Option<&Arc<Reservation>> {
        self.reservations.get(name)
    }

    /// All of them, in the order of their names.
    pub fn reservations(&self) -> impl Iterator<Item = &Arc<Reservation>> {
        self.reservations.values()
    }

    /// The reservations that the job may start in now, the wanted ones first; an empty list for a job that wants none.
    /// A job that wants none may all the same be drawn into magnetic ones.
    pub fn reservations_for(&self, job: &Job) -> Vec<&Arc<Reservation>> {
        let is_open = |reservation: &&Arc<Reservation>| {
            (reservation.is_active(self.now) || reservation.has(Flag::Flex)) && reservation.admits(&job.spec)
        };
        match job.spec.reservations.is_empty() {
            false => {
                job.spec.reservations.iter().filter_map(|name| self.reservations.get(name)).filter(is_open).collect()
            }
            true => {
                let magnetic = self.reservations.values().filter(|reservation| reservation.has(Flag::Magnetic));
                magnetic.filter(|reservation| reservation.is_active(self.now)).filter(is_open).collect()
            }
        }
    }

    /// When the job would end if it started now in that reservation, or in none (empty).
    pub fn end_if_started(&self, limit: Option<TimeLimit>, reservation: &str) -> Option<Timestamp> {
        let by_limit = limit.and_then(|limit| limit.span()).map(|span| self.now + span);
        let last = self.reservations.get(reservation).and_then(|one| last_moment(self, one));
        match (by_limit, last) {
            (Some(limit), Some(last)) => Some(limit.min(last)),
            (limit, last) => limit.or(last),
        }
    }

    /// The reservation, other than `own`, that keeps a job off the node which would run there from now until `until`.
    pub fn reserved_for_others(
        &self,
        node: &NodeName,
        spec: &JobSpec,
        own: &str,
        until: Option<Timestamp>,
    ) -> Option<&Arc<Reservation>> {
        self.reservations.values().find(|reservation| {
            let is_in_the_way = reservation.name != own && !reservation.waits_for(spec);
            is_in_the_way && reservation.has_whole(node) && reservation.meets(self.now, until)
        })
    }

    /// So many of the node's first CPUs belong to reservations (FIRST_CORES) that a job in `own` is not in.
    pub(crate) fn first_cpus_kept(&self, own: &str, node: &NodeName) -> u32 {
        let others = self.reservations.values().filter(|one| one.has(Flag::FirstCores) && one.name != own);
        others.filter_map(|one| one.cpus.get(node)).copied().max().unwrap_or(0)
    }

    /// CPUs of the node that jobs of that reservation hold.
    pub fn cpus_used_in(&self, reservation: &str, node: &NodeName) -> u32 {
        let Some(node) = self.nodes.get(node) else { return 0 };
        let jobs = node.jobs.iter().filter_map(|id| self.jobs.get(id)).filter(|job| job.reservation == reservation);
        jobs.filter_map(|job| job.allocation.share(node.name.as_str())).map(|share| share.cpus.len()).sum()
    }

    /// The reservation whose time it is on the node; one for maintenance goes before others.
    pub fn reservation_on(&self, node: &NodeName) -> Option<&Arc<Reservation>> {
        let here = || {
            let active = self.reservations.values().filter(|reservation| reservation.is_active(self.now));
            active.filter(|reservation| reservation.has_whole(node))
        };
        here().find(|reservation| reservation.has(Flag::Maint)).or_else(|| here().next())
    }
}

/// How often the nodes of a reservation are looked at that has them replaced.
const LOOK_EVERY: Span = Span::from_secs(5);

/// When jobs of the reservation must be over.
pub(crate) fn last_moment(cluster: &Cluster, reservation: &Reservation) -> Option<Timestamp> {
    let over_run = cluster.config.scheduler.reservation_over_run;
    (!reservation.has(Flag::Flex)).then(|| reservation.end + over_run)
}

/// The job may start on these nodes now, as far as reservations go.
pub(crate) fn allow(cluster: &Cluster, job: &Job, start: &Start) -> bool {
    let (spec, own) = (&job.spec, start.reservation.as_str());
    if own.is_empty() {
        if !spec.reservations.is_empty() {
            return false;
        }
    } else if !cluster.reservations_for(job).iter().any(|reservation| reservation.name == own) {
        return false;
    }
    let own_nodes = cluster.reservations.get(own).filter(|one| !one.has(Flag::AnyNodes) && !one.has(Flag::Flex));
    let until = cluster.end_if_started(start.time_limit.or(spec.time_limit), own);
    start.nodes.iter().all(|grant| {
        own_nodes.is_none_or(|reservation| reservation.nodes.contains(&grant.node))
            && cluster.reserved_for_others(&grant.node, spec, own, until).is_none()
            && cores_allow(cluster, job, start, &grant.node, grant.n_cpus, until)
    })
}

/// Cores that reservations keep on the node are left to their jobs, and those of the job's own reservation are enough for it.
fn cores_allow(
    cluster: &Cluster,
    job: &Job,
    start: &Start,
    node: &NodeName,
    n_cpus: u32,
    until: Option<Timestamp>,
) -> bool {
    let mut kept = 0;
    for reservation in cluster.reservations.values() {
        let Some(cpus) = reservation.cpus.get(node) else { continue };
        let left = cpus.saturating_sub(cluster.cpus_used_in(&reservation.name, node));
        if reservation.name == start.reservation {
            if n_cpus > left && !reservation.has(Flag::Flex) {
                return false;
            }
        } else if !reservation.waits_for(&job.spec) && reservation.meets(cluster.now, until) {
            kept += left;
        }
    }
    kept == 0 || cluster.nodes.get(node).is_some_and(|node| n_cpus + kept <= node.free_cpus())
}

/// When the next reservation begins, ends or is to be looked at.
pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    cluster.reservations.values().filter_map(|reservation| deadline(reservation)).min()
}

fn deadline(reservation: &Reservation) -> Option<Timestamp> {
    if reservation.has(Flag::TimeFloat) {
        return None;
    }
    let change = if reservation.has_begun { reservation.end } else { reservation.start };
    let purge = reservation.purge_after.and_then(|after| reservation.idle_since.map(|since| since + after));
    let look = is_to_replace(reservation).then(|| reservation.looked_at + LOOK_EVERY);
    Some(purge.into_iter().chain(look).fold(change, |first, other| first.min(other)))
}

fn is_to_replace(reservation: &Reservation) -> bool {
    reservation.lacks_nodes || (reservation.replaces() && reservation.has_begun)
}

/// A node that is out of service is looked for a successor of in those reservations that keep their number of nodes.
pub(crate) fn node_changed(cluster: &mut Cluster, name: &NodeName) {
    if cluster.reservations.is_empty() || cluster.nodes.get(name).is_some_and(|node| node.is_usable()) {
        return;
    }
    let lacks = |one: &&Arc<Reservation>| one.nodes.contains(name) && one.keeps_count() && !one.lacks_nodes;
    let names: Vec<String> = cluster.reservations.values().filter(lacks).map(|one| one.name.clone()).collect();
    for name in names {
        cluster.reservation_mut(&name).lacks_nodes = true;
    }
}

/// Time has passed: reservations begin, end, come again, or go because nobody uses them.
pub(crate) fn tick(cluster: &mut Cluster) {
    let now = cluster.now;
    let due = |reservation: &&Arc<Reservation>| deadline(reservation).is_some_and(|at| at <= now);
    let due: Vec<String> = cluster.reservations.values().filter(due).map(|one| one.name.clone()).collect();
    for name in due {
        advance(cluster, &name);
    }
}

fn advance(cluster: &mut Cluster, name: &str) {
    let now = cluster.now;
    let reservation = cluster.reservation_mut(name);
    if reservation.end <= now {
        match reservation.window_after(now) {
            Some(window) if reservation.repeats() => {
                let over = reservation.clone();
                begin_again(reservation, window);
                chronicle::note_reservation(cluster, &over);
            }
            _ => return remove(cluster, name),
        }
    }
    let reservation = cluster.reservation_mut(name);
    if reservation.start <= now && !reservation.has_begun {
        reservation.has_begun = true;
        reservation.idle_since = reservation.has(Flag::PurgeComp).then_some(now);
    }
    if is_to_replace(&cluster.reservations[name]) {
        replace(cluster, name);
    }
    let reservation = cluster.reservation_mut(name);
    let is_idle_long = match (reservation.purge_after, reservation.idle_since) {
        (Some(after), Some(since)) => since + after <= now,
        _ => false,
    };
    if is_idle_long {
        if is_used(cluster, name) {
            cluster.reservation_mut(name).idle_since = Some(now);
        } else {
            return purge(cluster, name);
        }
    }
    changed(cluster, name);
}

/// Those of these that have other nodes for those that jobs now use (`REPLACE`) get them at once.
pub(crate) fn replace_used<'n>(cluster: &mut Cluster, names: impl Iterator<Item = &'n str>) {
    let names: std::collections::BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    for name in names {
        let Some(reservation) = cluster.reservations.get(name) else { continue };
        if reservation.has(Flag::Replace) && reservation.has_begun {
            replace(cluster, name);
            changed(cluster, name);
        }
    }
}

/// Nodes that are out of service, or in use (`REPLACE`), give way to idle ones, as far as there are any.
fn replace(cluster: &mut Cluster, name: &str) {
    let reservation = cluster.reservations[name].clone();
    let gives_way = |node: &NodeName| {
        let node = cluster.nodes.get(node);
        node.is_none_or(|node| !node.is_usable() || (reservation.has(Flag::Replace) && !node.jobs.is_empty()))
    };
    let old: Vec<NodeName> = reservation.nodes.iter().filter(|node| gives_way(node)).cloned().collect();
    let new = on::reservation::idle_nodes_for(cluster, &reservation, old.len());
    let lacks_nodes = reservation.keeps_count() && new.len() < old.len();
    let cpus_of = |node: &NodeName| cluster.nodes.get(node).map_or(0, |node| node.config.cpus);
    let new: Vec<(NodeName, u32)> = new.into_iter().map(|node| (node.clone(), cpus_of(&node))).collect();
    let now = cluster.now;
    let changed = cluster.reservation_mut(name);
    changed.looked_at = now;
    changed.lacks_nodes = lacks_nodes;
    for (old, (new, n_cpus)) in old.into_iter().zip(new) {
        changed.nodes.remove(&old);
        // What was kept there is kept here, as far as there is as much.
        if let Some(kept) = changed.cpus.remove(&old) {
            changed.cpus.insert(new.clone(), kept.min(n_cpus));
        }
        changed.nodes.insert(new);
    }
}

/// One that repeats only loses its present time.
fn purge(cluster: &mut Cluster, name: &str) {
    let reservation = &cluster.reservations[name];
    let next = if reservation.repeats() { reservation.window_after(reservation.end) } else { None };
    match next {
        Some(window) => {
            let over = reservation.clone();
            chronicle::note_reservation(cluster, &over);
            begin_again(cluster.reservation_mut(name), window);
            changed(cluster, name);
        }
        None => remove(cluster, name),
    }
}

pub(crate) fn begin_again(reservation: &mut Reservation, (start, end): (Timestamp, Timestamp)) {
    reservation.start = start;
    reservation.end = end;
    reservation.has_begun = false;
    reservation.idle_since = None;
}

/// A job runs in it, or wants to.
pub(crate) fn is_used(cluster: &Cluster, name: &str) -> bool {
    cluster.jobs().any(|job| {
        let waits = job.phase == Phase::Pending && job.spec.reservations.iter().any(|one| one == name);
        waits || job.holds_nodes() && job.reservation == name
    })
}

/// Jobs that run in it, or wait for it, look again.
pub(crate) fn changed(cluster: &mut Cluster, name: &str) {
    let last = cluster.reservations.get(name).cloned().map(|reservation| last_moment(cluster, &reservation));
    let running: Vec<JobId> =
        cluster.jobs().filter(|job| job.holds_nodes() && job.reservation == name).map(|job| job.id).collect();
    for id in running {
        if let Some(last) = last {
            cluster.job_mut(id).must_end_by = last;
        }
        cluster.unsettled.insert(id);
    }
    wake(cluster, Wake::Reservation(name.into()));
    let at = cluster.now;
    cluster.tell(model::Event::ReservationChanged { name: name.into(), at });
}

/// Takes the reservation away. Jobs that waited for it are held, unless it says otherwise.
pub(crate) fn remove(cluster: &mut Cluster, name: &str) {
    let Some(reservation) = cluster.reservations.remove(name) else { return };
    chronicle::note_reservation(cluster, &reservation);
    let holds = !reservation.has(Flag::NoHoldJobsAfterEnd);
    let waiting = cluster.jobs().filter(|job| job.phase == Phase::Pending);
    let waiting = waiting.filter(|job| job.spec.reservations.iter().any(|one| one == name));
    let waiting: Vec<JobId> = waiting.map(|job| job.id).collect();
    for id in waiting {
        let job = cluster.job_mut(id);
        let spec = Arc::make_mut(&mut job.spec);
        spec.reservations.retain(|one| one != name);
        if spec.reservations.is_empty() && holds {
            job.held.get_or_insert(HeldBy::ReservationGone);
        }
        cluster.unsettled.insert(id);
    }
    let at = cluster.now;
    cluster.tell(model::Event::ReservationChanged { name: name.into(), at });
}

/// A job of the reservation has started, or given back its nodes.
pub(crate) fn note_use(cluster: &mut Cluster, name: &str, is_used: bool) {
    let now = cluster.now;
    let keeps_count = cluster.reservations.get(name).is_some_and(|reservation| reservation.has(Flag::PurgeComp));
    if keeps_count {
        let reservation = cluster.reservation_mut(name);
        let since = if is_used { None } else { Some(now) };
        reservation.idle_since = since.filter(|_| reservation.has_begun);
    }
}
