//! Nodes that some jobs may not use at some times: what reservations do to the timeline.
use std::collections::{BTreeMap, BTreeSet};

use model::reservation::Flag;
use model::{JobSpec, NodeName, Reservation, Timestamp};
use state::Cluster;

use crate::request::Request;
use crate::room::SpotId;
use crate::timeline::{Clock, Interval, Slot};

/// Keeps jobs off nodes for a time.
struct Closure<'a> {
    spots: BTreeSet<SpotId>,
    interval: Interval,
    /// To the microsecond, for jobs that would start now.
    begins: Timestamp,
    holds_for: Whom<'a>,
    is_maintenance: bool,
    /// Only so many CPUs are meant; none: whole nodes.
    cores: Option<BTreeMap<SpotId, Cores>>,
}

/// CPUs of a node that a reservation keeps for its jobs, and how many of them its jobs have now.
#[derive(Clone, Copy)]
struct Cores {
    kept: u32,
    used: u32,
}

#[derive(Clone, Copy)]
enum Whom<'a> {
    /// All but the jobs of that reservation, and those that it waits for.
    Outside(&'a Reservation),
    /// The jobs of that reservation: they stay on its nodes.
    Inside(&'a str),
}

#[derive(Default)]
pub(crate) struct Closures<'a> {
    now: Timestamp,
    all: Vec<Closure<'a>>,
}

impl<'a> Closures<'a> {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// `n_spots` are all the nodes that are seen, `find` tells them by name.
    pub fn new(
        cluster: &'a Cluster,
        clock: &Clock,
        n_spots: SpotId,
        find: impl Fn(&NodeName) -> Option<SpotId>,
    ) -> Closures<'a> {
        let mut all = Vec::new();
        for reservation in cluster.reservations() {
            let own: BTreeSet<SpotId> = reservation.nodes.iter().filter_map(&find).collect();
            let cores = (!reservation.cpus.is_empty()).then(|| {
                let cores = |(name, kept): (&NodeName, &u32)| {
                    Some((find(name)?, Cores { kept: *kept, used: cluster.cpus_used_in(&reservation.name, name) }))
                };
                reservation.cpus.iter().filter_map(cores).collect::<BTreeMap<_, _>>()
            });
            all.extend(windows(reservation, cluster.now(), clock).map(|(begins, interval)| Closure {
                spots: own.clone(),
                interval,
                begins,
                holds_for: Whom::Outside(reservation),
                is_maintenance: reservation.has(Flag::Maint),
                cores: cores.clone(),
            }));
            if cores.is_some() && !reservation.has(Flag::Flex) {
                all.push(Closure {
                    spots: own.clone(),
                    interval: Interval { from: Slot::NOW, until: Slot::NEVER },
                    begins: Timestamp(0),
                    holds_for: Whom::Inside(&reservation.name),
                    is_maintenance: false,
                    cores: cores.clone(),
                });
            }
            if !reservation.has(Flag::AnyNodes) && !reservation.has(Flag::Flex) {
                all.push(Closure {
                    spots: (0..n_spots).filter(|spot| !own.contains(spot)).collect(),
                    interval: Interval { from: Slot::NOW, until: Slot::NEVER },
                    begins: Timestamp(0),
                    holds_for: Whom::Inside(&reservation.name),
                    is_maintenance: false,
                    cores: None,
                });
            }
        }
        Closures { now: cluster.now(), all }
    }

    /// Those that hold for such a job in that reservation, or in none (empty), by number; jobs with the same list are treated alike.
    pub fn of(&self, spec: &JobSpec, own: &str) -> Vec<u32> {
        let holds = |closure: &Closure| match closure.holds_for {
            Whom::Outside(reservation) => reservation.name != own && !reservation.waits_for(spec),
            Whom::Inside(name) => name == own,
        };
        (0..).zip(&self.all).filter(|(_, closure)| holds(closure)).map(|(number, _)| number).collect()
    }

    pub fn bars(&self, spot: SpotId, request: &Request, interval: Interval) -> bool {
        let whole = self.holding(spot, request).filter(|closure| closure.cores.is_none());
        whole.into_iter().any(|closure| self.meets(closure, request, interval))
    }

    fn meets(&self, closure: &Closure, request: &Request, interval: Interval) -> bool {
        let end = request.length.0.map(|span| self.now + span);
        match interval.from {
            Slot::NOW => end.is_none_or(|end| closure.begins < end),
            _ => closure.interval.overlaps(interval),
        }
    }

    /// Of so many CPUs that are free on the node, how many the request's job may have: some may be kept for others.
    pub fn open_cpus(&self, spot: SpotId, request: &Request, interval: Interval, free: u32) -> u32 {
        let (mut open, mut own) = (free, u32::MAX);
        for closure in self.holding(spot, request) {
            let Some(cores) = closure.cores.as_ref().and_then(|cores| cores.get(&spot)) else { continue };
            // Later on nobody is sure to be there still.
            let left = if interval.from == Slot::NOW { cores.kept.saturating_sub(cores.used) } else { cores.kept };
            match closure.holds_for {
                Whom::Inside(_) => own = own.min(left),
                Whom::Outside(_) if self.meets(closure, request, interval) => open = open.saturating_sub(left),
                Whom::Outside(_) => (),
            }
        }
        // What is kept for others is kept beside what is its own.
        open.min(own)
    }

    /// Whether CPUs of the node are kept from the request's job, so that it cannot have them all, or share those that there are.
    pub fn keeps_some(&self, spot: SpotId, request: &Request, interval: Interval, all: u32) -> bool {
        !self.is_empty() && self.open_cpus(spot, request, interval, all) < all
    }

    pub fn bars_ever(&self, spot: SpotId, request: &Request) -> bool {
        self.holding(spot, request).next().is_some()
    }

    /// When the node is closed to the request's job.
    pub fn intervals(&self, spot: SpotId, request: &Request) -> impl Iterator<Item = Interval> {
        self.holding(spot, request).map(|closure| closure.interval)
    }

    /// The request without what is closed for maintenance, if that is anything.
    pub fn without_maintenance<'r>(&self, request: &Request<'r>) -> Option<Request<'r>> {
        let is_other = |number: &&u32| !self.all[**number as usize].is_maintenance;
        let closed: Vec<u32> = request.closed.iter().filter(is_other).copied().collect();
        (closed.len() < request.closed.len()).then(|| Request { closed, ..request.clone() })
    }

    fn holding<'s>(&'s self, spot: SpotId, request: &Request) -> impl Iterator<Item = &'s Closure<'a>> {
        let holding: Vec<&Closure> = request.closed.iter().map(|number| &self.all[*number as usize]).collect();
        holding.into_iter().filter(move |closure| closure.spots.contains(&spot))
    }
}

/// The times of a reservation, as far as a job that starts within the window could run into them.
fn windows<'r>(
    reservation: &'r Reservation,
    now: Timestamp,
    clock: &'r Clock,
) -> impl Iterator<Item = (Timestamp, Interval)> + 'r {
    let horizon = clock.time(clock.end());
    let mut is_beyond = false;
    let wanted = reservation.windows(now).take_while(move |(start, _)| {
        let was_beyond = is_beyond;
        is_beyond = *start > horizon;
        !was_beyond
    });
    wanted.map(move |(start, end)| {
        let interval = Interval { from: clock.slot_before(start), until: clock.slot(end) };
        (start, interval)
    })
}
