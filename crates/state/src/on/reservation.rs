//! Reservations made, changed and taken away.
use std::collections::BTreeSet;
use std::sync::Arc;

use model::feature_sets::Wish;
use model::partition_field::NodesChange;
use model::reservation::{Flag, Members};
use model::reservation_field::{Field, MembersChange};
use model::time::Span;
use model::{Caller, Job, Node, NodeName, Phase, Reject, Reply, Reservation, Timestamp, feature_sets, features};

use super::Answer;
use crate::{Cluster, reservations};

/// What `Duration=UNLIMITED` means.
const A_YEAR: Span = Span::from_secs(365 * 24 * 3600);
/// Idle reservations go after this long, if nothing else is said.
const PURGE_AFTER: Span = Span::from_secs(300);
/// A start that is a little in the past was typed a little slowly.
const GRACE: Span = Span::from_secs(60);

pub(crate) fn create(cluster: &mut Cluster, by: Caller, name: &str, fields: &[Field], utc_offset_secs: i32) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    let mut draft = Draft::new(Reservation { utc_offset_secs, made_by: by.uid, ..Default::default() });
    for field in fields {
        draft.take(cluster, field)?;
    }
    let reservation = draft.finish(cluster)?;
    let name = match name {
        "" => unused_name(cluster, &reservation),
        name => checked_name(cluster, name)?,
    };
    cluster.n_reservations += 1;
    cluster.reservations.insert(name.clone(), Arc::new(Reservation { name: name.clone(), ..reservation }));
    reservations::tick(cluster);
    reservations::changed(cluster, &name);
    Ok(Reply::ReservationCreated(name))
}

pub(crate) fn update(cluster: &mut Cluster, by: Caller, name: &str, fields: &[Field]) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    let present = cluster.reservation(name).ok_or(Reject::BadReservation)?;
    let mut draft = Draft::new((**present).clone());
    draft.is_new = false;
    for field in fields {
        draft.take(cluster, field)?;
    }
    let mut changed = draft.finish(cluster)?;
    if changed.start > cluster.now {
        changed.has_begun = false;
        changed.idle_since = None;
    }
    cluster.reservations.insert(name.into(), Arc::new(changed));
    reservations::tick(cluster);
    reservations::changed(cluster, name);
    Ok(Reply::Ok)
}

pub(crate) fn delete(cluster: &mut Cluster, by: Caller, name: &str) -> Answer {
    let reservation = cluster.reservation(name);
    let is_own = reservation.is_some_and(|one| may_be_deleted(cluster, one) && is_member(cluster, one, by));
    if !by.is_admin && !is_own {
        return Err(Reject::NotPermitted);
    }
    if reservation.is_none() {
        return Err(Reject::BadReservation);
    }
    // Also those that only wait for it.
    let wants = |job: &Job| job.phase == Phase::Pending && job.spec.reservations.iter().any(|wanted| wanted == name);
    let uses = |job: &Job| job.holds_nodes() && !job.is_over() && job.reservation == name;
    if cluster.jobs().any(|job| wants(job) || uses(job)) {
        return Err(Reject::ReservationBusy);
    }
    reservations::remove(cluster, name);
    Ok(Reply::Ok)
}

/// Whoever may use it may take it away, with `USER_DELETE` or where the site lets them.
fn may_be_deleted(cluster: &Cluster, reservation: &Reservation) -> bool {
    reservation.has(Flag::UserDelete) || cluster.config.jobs.users_delete_reservations
}

/// Names are known to the state by the jobs they come with.
fn is_member(cluster: &Cluster, reservation: &Reservation, by: Caller) -> bool {
    let is_known = |name: &String| {
        name.parse() == Ok(by.uid) || cluster.jobs().any(|job| job.spec.uid == by.uid && job.spec.user == *name)
    };
    reservation.made_by == by.uid || !reservation.users.are_excluded && reservation.users.names.iter().any(is_known)
}

fn checked_name(cluster: &Cluster, name: &str) -> Result<String, Reject> {
    let is_word = name.chars().all(|c| c.is_alphanumeric() || "_-.@+:".contains(c));
    match (is_word, cluster.reservations.contains_key(name)) {
        (false, _) => Err(Reject::BadReservation),
        (true, true) => Err(Reject::ReservationNameTaken),
        (true, false) => Ok(name.into()),
    }
}

/// `alice_3`: the first who may use it, and a number.
fn unused_name(cluster: &Cluster, reservation: &Reservation) -> String {
    let lists = [&reservation.accounts, &reservation.users, &reservation.groups];
    let first = lists.iter().find_map(|members| members.names.first());
    let base = first.map_or("resv", String::as_str);
    let numbers = cluster.n_reservations + 1..;
    let names = numbers.map(|number| format!("{base}_{number}"));
    names.into_iter().find(|name| !cluster.reservations.contains_key(name)).expect("numbers do not end")
}

/// A reservation while it is being said what it shall be.
struct Draft {
    reservation: Reservation,
    is_new: bool,
    has_start: bool,
    duration: Option<Span>,
    has_end: bool,
    n_nodes: Option<u32>,
    /// Cores in all, or of each node.
    cores: Option<Vec<u32>>,
    /// Its nodes were named, not counted.
    names_nodes: bool,
    /// `Nodes=ALL`
    names_all: bool,
    /// PART_NODES is asked for now, not kept from before.
    asks_part_nodes: bool,
    nodes_changed: bool,
}

impl Draft {
    fn new(reservation: Reservation) -> Draft {
        Draft {
            reservation,
            is_new: true,
            has_start: false,
            duration: None,
            has_end: false,
            n_nodes: None,
            cores: None,
            names_nodes: false,
            names_all: false,
            asks_part_nodes: false,
            nodes_changed: false,
        }
    }

    fn take(&mut self, cluster: &Cluster, field: &Field) -> Result<(), Reject> {
        let reservation = &mut self.reservation;
        match field {
            Field::Start(at) => {
                self.move_start(*at);
            }
            Field::End(at) => {
                reservation.end = *at;
                self.has_end = true;
            }
            Field::Duration(span) => self.duration = Some(span.unwrap_or(A_YEAR)),
            Field::LongerBy(span) => self.duration = Some((reservation.end - reservation.start) + *span),
            Field::ShorterBy(span) => self.duration = Some((reservation.end - reservation.start) - *span),
            Field::Nodes(change) => {
                let unknown = change.named().iter().find(|name| !cluster.nodes.contains_key(*name));
                if let Some(unknown) = unknown {
                    return Err(Reject::NoSuchNode(unknown.to_string()));
                }
                let present: Vec<NodeName> = reservation.nodes.iter().cloned().collect();
                let all = cluster.nodes.values().filter(|node| !node.is_removed).map(|node| node.name.clone());
                reservation.nodes = change.apply(&present, all).into_iter().collect();
                self.names_nodes = true;
                self.nodes_changed = true;
                self.names_all = matches!(change, NodesChange::All);
                set_flag(reservation, Flag::AllNodes, self.names_all);
                // Who names nodes means no longer those of the partition.
                if !self.names_all && !self.asks_part_nodes {
                    set_flag(reservation, Flag::PartNodes, false);
                }
                set_flag(reservation, Flag::SpecNodes, true);
            }
            Field::NodeCount(count) => {
                self.n_nodes = Some(*count);
                self.nodes_changed = true;
            }
            Field::CoreCounts(counts) => {
                self.cores = Some(counts.clone());
                self.nodes_changed = true;
            }
            Field::Features(text) => reservation.features = text.clone(),
            Field::Users(change) => reservation.users = members(change, &reservation.users, Reject::NoSuchUser)?,
            Field::Accounts(change) => {
                reservation.accounts = members(change, &reservation.accounts, Reject::InvalidAccount)?;
            }
            Field::Groups(change) => reservation.groups = members(change, &reservation.groups, Reject::NoSuchGroup)?,
            Field::Licenses(list) => {
                let totals = cluster.license_totals();
                let is_there = |wanted: &model::license::LicenseCount| {
                    totals.get(&wanted.name).is_some_and(|total| wanted.count <= *total)
                };
                if !list.iter().all(is_there) {
                    return Err(Reject::BadLicenses);
                }
                reservation.licenses = list.clone();
            }
            Field::BurstBuffer(text) => {
                if !text.is_empty() {
                    let config = cluster.config.burst_buffer.as_ref();
                    let config =
                        config.ok_or_else(|| Reject::InvalidValue("BurstBuffer: there are none here".into()))?;
                    let wrong = |why| Reject::InvalidValue(format!("BurstBuffer={why}"));
                    model::reserved_buffer::parse(text, config).map_err(wrong)?;
                }
                reservation.burst_buffer = text.clone();
            }
            Field::Flags(flags) => {
                self.asks_part_nodes |= flags.contains(&Flag::PartNodes);
                let of_nodes = [Flag::SpecNodes, Flag::AllNodes];
                reservation.flags.retain(|flag| of_nodes.contains(flag));
                reservation.flags.extend(flags);
            }
            Field::AddFlags(flags) => {
                self.asks_part_nodes |= flags.contains(&Flag::PartNodes);
                reservation.flags.extend(flags);
            }
            Field::RemoveFlags(flags) => reservation.flags.retain(|flag| !flags.contains(flag)),
            Field::PurgeAfter(span) => reservation.purge_after = Some(*span),
            Field::Partition(name) => {
                if !name.is_empty() && cluster.config.partition(name).is_none() {
                    return Err(Reject::NoSuchPartition);
                }
                reservation.partition = name.clone();
            }
            Field::MaxStartDelay(span) => reservation.max_start_delay = Some(*span),
            Field::Comment(text) => reservation.comment = text.clone(),
            Field::Skip => self.skip()?,
        }
        Ok(())
    }

    /// Moved as a whole, unless its end is said too.
    fn move_start(&mut self, at: Timestamp) {
        let duration = self.reservation.end - self.reservation.start;
        self.reservation.start = at;
        if !self.is_new {
            self.reservation.end = at + duration;
        }
        self.has_start = true;
    }

    /// A reservation that repeats leaves out its next time.
    fn skip(&mut self) -> Result<(), Reject> {
        let next = self.reservation.window_after(self.reservation.end);
        match next.filter(|_| self.reservation.repeats()) {
            Some(window) => {
                reservations::begin_again(&mut self.reservation, window);
                Ok(())
            }
            None => Err(Reject::ReservationNotUsable),
        }
    }

    fn finish(mut self, cluster: &Cluster) -> Result<Reservation, Reject> {
        self.settle_times(cluster)?;
        self.settle_flags(cluster)?;
        let reservation = &self.reservation;
        let is_for_somebody = [&reservation.users, &reservation.accounts, &reservation.groups]
            .into_iter()
            .any(|members| !members.names.is_empty());
        if !is_for_somebody {
            return Err(Reject::InvalidAccount);
        }
        if !reservation.features.is_empty() {
            wished(cluster, &reservation.features)?;
        }
        if self.asks_part_nodes && self.reservation.partition.is_empty() {
            return Err(Reject::NoSuchPartition);
        }
        if self.asks_part_nodes && !self.names_all {
            return Err(Reject::NoSuchNode(String::new()));
        }
        if self.reservation.has(Flag::PartNodes) {
            set_flag(&mut self.reservation, Flag::AllNodes, false);
        }
        if self.reservation.has(Flag::PartNodes) && self.nodes_changed {
            self.take_partition(cluster)?;
        } else if let Some(counts) = self.cores.take() {
            self.share_cores(cluster, &counts)?;
        } else if let Some(count) = self.n_nodes {
            self.reservation.cpus.clear();
            self.count_nodes(cluster, count)?;
        } else if self.names_nodes {
            self.reservation.cpus.clear();
        }
        let reservation = &self.reservation;
        let has_other = !reservation.licenses.is_empty() || !reservation.burst_buffer.is_empty();
        if reservation.nodes.is_empty() && !has_other {
            return Err(Reject::NodesUnavailable);
        }
        self.check_rivals(cluster)?;
        Ok(self.reservation)
    }

    fn settle_times(&mut self, cluster: &Cluster) -> Result<(), Reject> {
        let (now, is_new) = (cluster.now, self.is_new);
        let reservation = &mut self.reservation;
        if is_new && !self.has_start {
            return Err(Reject::BadTime);
        }
        if self.has_start && reservation.start + GRACE < now && is_new {
            return Err(Reject::BadTime);
        }
        if let Some(duration) = self.duration {
            reservation.end = reservation.start + duration;
        } else if is_new && !self.has_end {
            return Err(Reject::BadTime);
        }
        if reservation.end <= reservation.start || reservation.end <= now {
            return Err(Reject::BadTime);
        }
        if reservation.has(Flag::TimeFloat) && is_new {
            reservation.floats_by = reservation.start - now;
        }
        Ok(())
    }

    fn settle_flags(&mut self, cluster: &Cluster) -> Result<(), Reject> {
        let reservation = &mut self.reservation;
        // Nodes that stay whatever happens to them are none that are replaced.
        let has_any = |flags: [Flag; 2]| flags.iter().any(|flag| reservation.has(*flag));
        let is_torn = has_any([Flag::Maint, Flag::StaticAlloc]) && has_any([Flag::Replace, Flag::ReplaceDown]);
        if is_torn && cluster.rules() >= 2 {
            return Err(Reject::BadReservation);
        }
        let repeats = [Flag::Hourly, Flag::Daily, Flag::Weekday, Flag::Weekend, Flag::Weekly];
        let n_repeats = repeats.iter().filter(|flag| reservation.has(**flag)).count();
        let floats = reservation.has(Flag::TimeFloat);
        if n_repeats > 1 || n_repeats == 1 && floats {
            return Err(Reject::BadReservation);
        }
        match (reservation.has(Flag::PurgeComp), reservation.purge_after) {
            (true, None) => reservation.purge_after = Some(PURGE_AFTER),
            (false, _) => reservation.purge_after = None,
            (true, Some(_)) => (),
        }
        Ok(())
    }

    fn take_partition(&mut self, cluster: &Cluster) -> Result<(), Reject> {
        let partition = cluster.config.partition(&self.reservation.partition).ok_or(Reject::NoSuchPartition)?;
        self.reservation.nodes = partition.nodes.iter().cloned().collect();
        Ok(())
    }

    /// Nodes that it may have: its own, and those of its partition that have the features it wants.
    fn candidates<'c>(&mut self, cluster: &'c Cluster) -> Result<Vec<&'c Arc<Node>>, Reject> {
        let Wish { constraint, .. } = wished(cluster, &self.reservation.features)?;
        let partition = match self.reservation.partition.as_str() {
            "" => cluster.config.default_partition(),
            name => cluster.config.partition(name),
        };
        let members: BTreeSet<&NodeName> = partition.into_iter().flat_map(|partition| &partition.nodes).collect();
        if partition.is_some() && self.reservation.partition.is_empty() {
            self.reservation.partition = partition.map_or_else(String::new, |partition| partition.name.clone());
        }
        let fits = |node: &&Arc<Node>| {
            (members.contains(&node.name) || self.reservation.nodes.contains(&node.name))
                && constraint.as_ref().is_none_or(|constraint| constraint.is_met_by(node.features()))
        };
        Ok(cluster.nodes.values().filter(fits).collect())
    }

    /// Makes the number of its nodes right: those it has stay as far as they can, those that nobody uses come first.
    fn count_nodes(&mut self, cluster: &Cluster, count: u32) -> Result<(), Reject> {
        let count = count as usize;
        let mut nodes = self.candidates(cluster)?;
        let is_taken = |node: &NodeName| self.rival(cluster, node).is_some();
        nodes.sort_by_key(|node| {
            let is_own = self.reservation.nodes.contains(&node.name);
            (!is_own, !node.is_usable(), self.is_busy(cluster, node), node.rank)
        });
        let ignores_jobs = self.reservation.has(Flag::IgnoreJobs);
        let is_free = |node: &&Arc<Node>| {
            let is_own = self.reservation.nodes.contains(&node.name);
            is_own || (node.is_usable() && !is_taken(&node.name) && (ignores_jobs || !self.is_busy(cluster, node)))
        };
        nodes.retain(|node| is_free(node));
        let own: Vec<bool> = nodes.iter().map(|node| self.reservation.nodes.contains(&node.name)).collect();
        let sets = wished(cluster, &self.reservation.features)?.sets;
        let pinned = sets.pin(nodes.iter().zip(own).map(|(node, is_own)| (node.features(), is_own)));
        let pinned = pinned.ok_or(Reject::NodesUnavailable)?;
        // Those that make the numbers of features right, and any others after them.
        let others = (0..nodes.len()).filter(|place| !pinned.contains(place));
        let chosen: BTreeSet<NodeName> =
            pinned.iter().copied().chain(others).take(count).map(|place| nodes[place].name.clone()).collect();
        if chosen.len() < count || pinned.len() > count {
            return Err(Reject::NodesUnavailable);
        }
        self.reservation.nodes = chosen;
        Ok(())
    }

    /// Which nodes have the cores, and how many of each: as many nodes as were counted or named, else as few as will do.
    fn share_cores(&mut self, cluster: &Cluster, counts: &[u32]) -> Result<(), Reject> {
        let total: u32 = counts.iter().sum();
        let nodes = match (self.names_nodes, self.n_nodes) {
            (true, _) => self.reservation.nodes.iter().cloned().collect(),
            (false, n_nodes) => {
                self.reservation.nodes.clear();
                self.reservation.cpus.clear();
                self.nodes_with_cores(cluster, total, n_nodes)?
            }
        };
        if total == 0 || nodes.is_empty() || (counts.len() > 1 && counts.len() != nodes.len()) {
            return Err(Reject::NodesUnavailable);
        }
        let each = total.div_ceil(nodes.len() as u32);
        let is_counted = self.names_nodes || self.n_nodes.is_some();
        let mut left = total;
        let mut cpus = std::collections::BTreeMap::new();
        for (at, name) in nodes.iter().enumerate() {
            let node = cluster.nodes.get(name).ok_or(Reject::NodesUnavailable)?;
            let threads = node.config.n_threads_per_core();
            let open = self.open_cpus(cluster, node) / threads;
            let cores = match (counts.len() > 1, is_counted) {
                (true, _) => counts[at],
                (false, true) => each.min(left),
                (false, false) => open.min(left),
            };
            let wants_held = self.wants_first_cores() && self.holds_below(cluster, node, cores * threads);
            if cores > open || cores == 0 || wants_held {
                return Err(Reject::NodesAreBusy);
            }
            left = left.saturating_sub(cores);
            cpus.insert(name.clone(), cores * threads);
        }
        self.reservation.nodes = nodes.into_iter().collect();
        self.reservation.cpus = cpus;
        Ok(())
    }

    /// The nodes of its partition that have most to give, in their natural order.
    fn nodes_with_cores(
        &mut self,
        cluster: &Cluster,
        total: u32,
        n_nodes: Option<u32>,
    ) -> Result<Vec<NodeName>, Reject> {
        let each = n_nodes.map_or(1, |n_nodes| total.div_ceil(n_nodes.max(1)));
        let candidates = self.candidates(cluster)?;
        let cores = |node: &&Arc<Node>| self.open_cpus(cluster, node) / node.config.n_threads_per_core();
        let mut open: Vec<(u32, &Arc<Node>)> = candidates.iter().map(|node| (cores(node), *node)).collect();
        open.retain(|(cores, node)| *cores >= each && node.is_usable() && !self.is_whole_taken(cluster, &node.name));
        open.sort_by_key(|(cores, node)| (std::cmp::Reverse(*cores), node.rank));
        let mut sum = 0;
        let mut chosen: Vec<&Arc<Node>> = Vec::new();
        for (cores, node) in open {
            let is_enough = n_nodes.map_or(sum >= total, |n_nodes| chosen.len() as u32 >= n_nodes);
            if is_enough {
                break;
            }
            sum += cores;
            chosen.push(node);
        }
        let is_enough = sum >= total && n_nodes.is_none_or(|n_nodes| chosen.len() as u32 == n_nodes);
        chosen.sort_by_key(|node| node.rank);
        if is_enough {
            Ok(chosen.into_iter().map(|node| node.name.clone()).collect())
        } else {
            Err(Reject::NodesUnavailable)
        }
    }

    fn is_whole_taken(&self, cluster: &Cluster, node: &NodeName) -> bool {
        self.rival(cluster, node).is_some_and(|rival| rival.cpus.is_empty())
    }

    /// CPUs of the node that nobody else has in the reservation's time.
    fn open_cpus(&self, cluster: &Cluster, node: &Node) -> u32 {
        let own = &self.reservation;
        let others = cluster.reservations.values().filter(|other| other.name != own.name && do_meet(own, other));
        let kept: u32 = others.filter_map(|other| other.cpus.get(&node.name)).sum();
        let is_foreign = |job: &&Arc<Job>| {
            let is_own = !own.name.is_empty() && job.reservation == own.name;
            !is_own && !job.is_over() && job.reservation.is_empty() && self.is_met_by(cluster, job)
        };
        let jobs = node.jobs.iter().filter_map(|id| cluster.jobs.get(id)).filter(is_foreign);
        let held: u32 =
            jobs.filter_map(|job| job.allocation.share(node.name.as_str())).map(|share| share.cpus.len()).sum();
        let held = if own.has(Flag::IgnoreJobs) { 0 } else { held };
        node.config.cpus.saturating_sub(kept + held)
    }

    /// FIRST_CORES; with IGNORE_JOBS whoever runs there now does not matter.
    fn wants_first_cores(&self) -> bool {
        self.reservation.has(Flag::FirstCores) && !self.reservation.has(Flag::IgnoreJobs)
    }

    /// A job that is in the way has one of the first CPUs of the node.
    fn holds_below(&self, cluster: &Cluster, node: &Node, n_cpus: u32) -> bool {
        let own = &self.reservation;
        node.jobs.iter().filter_map(|id| cluster.jobs.get(id)).any(|job| {
            let is_own = !own.name.is_empty() && job.reservation == own.name;
            let is_in_the_way = !is_own && !job.is_over() && self.is_met_by(cluster, job);
            let share = job.allocation.share(node.name.as_str()).filter(|_| is_in_the_way);
            share.is_some_and(|share| share.cpus.iter().any(|cpu| cpu < n_cpus))
        })
    }

    /// By the second in which the job ends, as commands show it: there the reservation may begin.
    fn is_met_by(&self, cluster: &Cluster, job: &Job) -> bool {
        let shown = |end: Timestamp| if cluster.rules() >= 3 { Timestamp::from_secs(end.secs()) } else { end };
        self.reservation.meets(cluster.now, job.end_time().map(shown))
    }

    /// A job runs there into the reservation's time.
    fn is_busy(&self, cluster: &Cluster, node: &Node) -> bool {
        let reservation = &self.reservation;
        node.jobs.iter().filter_map(|id| cluster.jobs.get(id)).any(|job| {
            let is_own = !reservation.name.is_empty() && job.reservation == reservation.name;
            !is_own && !job.is_over() && self.is_met_by(cluster, job)
        })
    }

    /// Another reservation of the node at one of its times.
    fn rival<'a>(&self, cluster: &'a Cluster, node: &NodeName) -> Option<&'a Arc<Reservation>> {
        let own = &self.reservation;
        if own.has(Flag::Overlap) || own.has(Flag::Maint) {
            return None;
        }
        cluster.reservations.values().find(|other| {
            let lets_others = other.has(Flag::Maint) || other.has(Flag::Overlap);
            // Two that keep cores may share a node; whether there are enough is counted.
            let share = !own.cpus.is_empty() && !other.cpus.is_empty();
            other.name != own.name && !lets_others && !share && other.nodes.contains(node) && do_meet(own, other)
        })
    }

    /// Jobs and other reservations that are in the way of what was named.
    fn check_rivals(&self, cluster: &Cluster) -> Result<(), Reject> {
        let reservation = &self.reservation;
        if !self.nodes_changed && !self.has_start && self.duration.is_none() && !self.has_end {
            return Ok(());
        }
        if reservation.nodes.iter().any(|node| self.rival(cluster, node).is_some()) {
            return Err(Reject::ReservationOverlap);
        }
        let ignores_jobs = reservation.has(Flag::IgnoreJobs);
        let busy = |name: &&NodeName| match (cluster.nodes.get(*name), reservation.cpus.get(*name)) {
            (Some(node), Some(cpus)) => *cpus > self.open_cpus(cluster, node),
            (Some(node), None) => self.is_busy(cluster, node),
            (None, _) => false,
        };
        match reservation.nodes.iter().find(busy) {
            Some(_) if !ignores_jobs => Err(Reject::NodesAreBusy),
            _ => self.check_licenses(cluster),
        }
    }

    /// Together, reservations may keep no more licences than there are.
    fn check_licenses(&self, cluster: &Cluster) -> Result<(), Reject> {
        let totals = cluster.license_totals();
        for wanted in &self.reservation.licenses {
            let others = cluster
                .reservations
                .values()
                .filter(|other| other.name != self.reservation.name && do_meet(&self.reservation, other));
            let kept: u32 = others
                .flat_map(|other| &other.licenses)
                .filter(|license| license.name == wanted.name)
                .map(|license| license.count)
                .sum();
            if kept + wanted.count > totals.get(&wanted.name).copied().unwrap_or(0) {
                return Err(Reject::BadLicenses);
            }
        }
        Ok(())
    }
}

/// So many of the times of two reservations are compared.
const N_WINDOWS: usize = 64;

fn do_meet(one: &Reservation, other: &Reservation) -> bool {
    let from = one.start.min(other.start);
    let meets = |by: &Reservation, other: &Reservation| {
        by.windows(from).take(N_WINDOWS).any(|(start, end)| other.meets(start, Some(end)))
    };
    meets(one, other) || meets(other, one)
}

fn members(change: &MembersChange, present: &Members, reject: Reject) -> Result<Members, Reject> {
    change.apply(present).ok_or(reject)
}

fn set_flag(reservation: &mut Reservation, flag: Flag, is_set: bool) {
    match is_set {
        true => reservation.flags.insert(flag),
        false => reservation.flags.remove(&flag),
    };
}

/// Nodes that could take the place of others in the reservation: idle ones that nobody else has reserved.
pub(crate) fn idle_nodes_for(cluster: &Cluster, reservation: &Reservation, count: usize) -> Vec<NodeName> {
    let mut draft = Draft::new(reservation.clone());
    let Ok(mut nodes) = draft.candidates(cluster) else { return Vec::new() };
    nodes.retain(|node| !reservation.nodes.contains(&node.name) && node.is_usable() && node.jobs.is_empty());
    nodes.retain(|node| draft.rival(cluster, &node.name).is_none());
    nodes.sort_by_key(|node| node.rank);
    // Those that are missing among the features that are counted come first.
    let staying = reservation.nodes.iter().filter_map(|name| cluster.nodes.get(name)).filter(|node| node.is_usable());
    let staying: Vec<&Arc<Node>> = staying.collect();
    let asked = staying.iter().map(|node| (*node, true)).chain(nodes.iter().map(|node| (*node, false)));
    let sets = wished(cluster, &reservation.features).map(|wish| wish.sets).unwrap_or_default();
    let pinned = sets.pin(asked.map(|(node, stays)| (node.features(), stays))).unwrap_or_default();
    let wanted = |place: &usize| pinned.contains(&(place + staying.len()));
    let (first, then): (Vec<usize>, Vec<usize>) = (0..nodes.len()).partition(wanted);
    first.into_iter().chain(then).take(count).map(|place| nodes[place].name.clone()).collect()
}

/// What its nodes must have: each of them, and all together.
fn wished(cluster: &Cluster, text: &str) -> Result<Wish, Reject> {
    let counts = cluster.rules() >= 2;
    let wish = match text {
        "" => Ok(Wish::default()),
        text if counts => feature_sets::parse(text),
        text => features::parse(text).map(|constraint| Wish { constraint: Some(constraint), ..Wish::default() }),
    };
    match wish {
        Ok(wish) if !wish.sets.one_of.is_empty() => Err(Reject::BadConstraint(text.into())),
        wish => wish.map_err(Reject::BadConstraint),
    }
}
