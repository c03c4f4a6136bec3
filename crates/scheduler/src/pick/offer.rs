//! The nodes of a partition as they are during an interval: all that a choice may look at.
use model::fit;
use model::node;
use model::spec::Size;
use model::topology::TopologyRules;
use topology::Shape;

use super::Overs;
use super::over::Over;
use crate::request::Request;
use crate::room::{Alike, PoolId, Room, SpotId};
use crate::spot::Spot;
use crate::timeline::{Free, Interval, Slot};
use crate::units::Each;

pub(crate) struct Offer<'r, 'a> {
    room: &'r Room<'a>,
    pool: PoolId,
    interval: Interval,
    request: &'r Request<'r>,
    size: &'r Size,
    suits_all: bool,
    /// What is free during an interval that begins later: CPUs, weight, spot, the fullest first. Now is kept indexed by the room.
    later: Option<Vec<(u32, u32, SpotId)>>,
    /// CPUs that others hold, but may be had.
    overs: Option<&'r Overs>,
}

impl<'r, 'a> Offer<'r, 'a> {
    /// From now on.
    pub fn now(room: &'r Room<'a>, pool: PoolId, until: Slot, request: &'r Request<'r>) -> Self {
        Offer::of_spots(room, pool, Interval { from: Slot::NOW, until }, request)
    }

    /// From a later mark on.
    pub fn later(room: &'r Room<'a>, pool: PoolId, interval: Interval, request: &'r Request<'r>) -> Self {
        Offer::later_among(room, pool, interval, request, room.members(pool))
    }

    /// The same, where only these nodes can have room.
    pub fn later_among(
        room: &'r Room<'a>,
        pool: PoolId,
        interval: Interval,
        request: &'r Request<'r>,
        spots: &[SpotId],
    ) -> Self {
        let free = spots.iter().filter_map(|id| {
            let spot = room.spot(*id);
            let free = spot.uses().free_over(spot.whole, interval);
            (free.cpus >= request.least_cpus).then_some((free.cpus, spot.weight, *id))
        });
        let mut free: Vec<(u32, u32, SpotId)> = free.collect();
        free.sort_unstable();
        Offer { later: Some(free), ..Offer::of_spots(room, pool, interval, request) }
    }

    /// From now on, with CPUs that others hold.
    pub fn over(room: &'r Room<'a>, pool: PoolId, until: Slot, request: &'r Request<'r>, overs: &'r Overs) -> Self {
        let free = overs.iter().filter_map(|(id, over)| {
            let spot = room.spot(*id);
            let cpus = spot.now.cpus + over.n_cpus;
            (cpus >= request.least_cpus).then_some((cpus, spot.weight, *id))
        });
        let mut free: Vec<(u32, u32, SpotId)> = free.collect();
        free.sort_unstable();
        Offer { later: Some(free), overs: Some(overs), ..Offer::now(room, pool, until, request) }
    }

    /// To ask of single nodes only.
    pub fn of_spots(room: &'r Room<'a>, pool: PoolId, interval: Interval, request: &'r Request<'r>) -> Self {
        Offer {
            room,
            pool,
            interval,
            request,
            size: request.size,
            suits_all: request.suits_all,
            later: None,
            overs: None,
        }
    }

    /// The same, for nodes that must have more.
    pub fn with_size(&self, size: &'r Size) -> Self {
        Offer { later: self.later.clone(), size, suits_all: size.suits_every_node(), ..*self }
    }

    /// The same for single nodes, which give a part of what the job wants in all.
    pub fn for_part<'s>(&'s self, size: &'s Size) -> Offer<'s, 'a> {
        Offer { later: None, size, suits_all: size.suits_every_node(), ..*self }
    }

    pub fn size(&self) -> &'r Size {
        self.size
    }

    pub fn spot(&self, id: SpotId) -> &'r Spot<'a> {
        self.room.spot(id)
    }

    /// The fewest and the most nodes, as job and partition together allow.
    pub fn bounds(&self) -> Option<(u32, u32)> {
        super::bounds(self.room, self.pool, self.request.job, self.size)
    }

    /// The topology by which the job is placed here.
    pub fn shape(&self) -> Option<&'a Shape> {
        state::shape_for(self.room.cluster, self.room.partition(self.pool), self.size)
    }

    pub fn rules(&self) -> &'a TopologyRules {
        &self.room.cluster.config().topology
    }

    /// The most leaf switches, while the job still waits for few.
    pub fn most_leaves(&self) -> Option<u32> {
        let n_switches = self.size.network.n_switches;
        (n_switches > 0 && self.interval.from < self.request.limit_until).then_some(n_switches)
    }

    /// The highest level of the common switch, while the job still waits for a low one; or for good.
    pub fn most_level(&self) -> Option<u32> {
        let wish = &self.size.network;
        if wish.most_level.is_some() && !wish.level_is_preferred {
            return wish.most_level;
        }
        let limit = self.request.level_limit(self.pool);
        limit.filter(|(_, until)| self.interval.from < *until).map(|(level, _)| level)
    }

    /// Nodes by unit that have that much, from now on; none if not all weigh the same.
    pub fn alike(&self, each: Each) -> Option<Alike<'r, 'a>> {
        if self.later.is_none() { self.room.alike(self.pool, each, self.interval.until) } else { None }
    }

    pub fn spares_units(&self, shape: &Shape) -> bool {
        state::spares_units(self.room.cluster, shape)
    }

    /// Nobody else is in the unit of this node during the interval.
    pub fn is_unit_free(&self, shape: &Shape, id: SpotId) -> bool {
        let Some(unit) = shape.unit_of(self.spot(id).node.rank) else { return true };
        let network = self.room.cluster.network();
        shape.unit_nodes(unit).iter().map(|node| network.name(*node)).all(|name| match self.room.find(name) {
            Some(other) => self.is_idle(self.spot(other)),
            None => self.room.cluster.node(name.as_str()).is_none_or(|node| node.jobs.is_empty()),
        })
    }

    fn is_idle(&self, spot: &Spot) -> bool {
        let is_empty_now = spot.is_empty && spot.now.cpus > 0;
        (self.interval.from > Slot::NOW || is_empty_now) && spot.uses().during(self.interval).next().is_none()
    }

    /// All nodes, in natural order.
    pub fn members(&self) -> &'r [SpotId] {
        self.room.members(self.pool)
    }

    /// Nodes with at least so many CPUs free all the time, the fullest first.
    pub fn fullest(&self, n_cpus: u32) -> Box<dyn Iterator<Item = SpotId> + '_> {
        if self.room.partition(self.pool).least_loaded {
            return self.emptiest(n_cpus);
        }
        match &self.later {
            None => Box::new(self.room.fullest(self.pool, n_cpus, self.interval.until)),
            Some(free) => {
                let first = free.partition_point(|(cpus, ..)| *cpus < n_cpus);
                Box::new(free[first..].iter().map(|(.., spot)| *spot))
            }
        }
    }

    /// As `fullest`, but the emptiest first.
    pub fn emptiest(&self, n_cpus: u32) -> Box<dyn Iterator<Item = SpotId> + '_> {
        match &self.later {
            None => Box::new(self.room.emptiest(self.pool, n_cpus, self.interval.until)),
            Some(free) => {
                let first = free.partition_point(|(cpus, ..)| *cpus < n_cpus);
                let alike = free[first..].chunk_by(|one, next| one.0 == next.0);
                Box::new(alike.rev().flat_map(|spots| spots.iter().map(|(.., spot)| *spot)))
            }
        }
    }

    /// No more CPUs than this are free.
    pub fn most_free_cpus(&self) -> u64 {
        match &self.later {
            None => self.room.n_free_cpus(self.pool),
            Some(free) => free.iter().map(|(cpus, ..)| u64::from(*cpus)).sum(),
        }
    }

    /// How many of the job's tasks the node could take; none if it cannot serve the job.
    pub fn n_tasks_fitting(&self, id: SpotId) -> Option<u32> {
        let spot = self.room.spot(id);
        let is_full = self.request.needs_disk() && !self.room.has_disk_for(self.request.job, &spot.node.name);
        let closures = &self.room.closures;
        let wants_all = self.size.wants_whole_nodes() || self.overs.is_some();
        if is_full
            || closures.bars(id, self.request, self.interval)
            || (wants_all && closures.keeps_some(id, self.request, self.interval, spot.whole.cpus))
        {
            return None;
        }
        if let Some(overs) = self.overs {
            // What is promised to somebody is shared with nobody.
            let over = overs.get(&id).filter(|_| spot.is_as_now(self.interval))?;
            return self.fitting_beside(id, spot, *over);
        }
        match spot.is_as_now(self.interval) {
            true => self.fitting_now(id, spot),
            false => self.fitting_over(id, spot),
        }
    }

    fn fitting_now(&self, id: SpotId, spot: &Spot) -> Option<u32> {
        let uid = self.request.spec().uid;
        let is_admitted = !self.room.has_lone_users || node::admits(spot.users(), uid, self.size.sharing);
        if spot.now.cpus == 0 || !is_admitted || (self.size.wants_whole_nodes() && !spot.is_empty) {
            return None;
        }
        self.fitting(id, spot, spot.now, spot.gres_in_use())
    }

    fn fitting_beside(&self, id: SpotId, spot: &Spot, over: Over) -> Option<u32> {
        let uid = self.request.spec().uid;
        let is_admitted = !self.room.has_lone_users || node::admits(spot.users(), uid, self.size.sharing);
        let free = Free { cpus: spot.now.cpus + over.n_cpus, memory_mb: spot.now.memory_mb };
        if free.cpus == 0 || !is_admitted || (self.size.wants_whole_nodes() && !over.is_empty) {
            return None;
        }
        self.fitting(id, spot, free, spot.gres_in_use())
    }

    fn fitting_over(&self, id: SpotId, spot: &Spot) -> Option<u32> {
        let uid = self.request.spec().uid;
        let mut free = spot.uses().free_over(spot.whole, self.interval);
        if self.interval.from == Slot::NOW {
            free = Free { cpus: free.cpus.min(spot.now.cpus), memory_mb: free.memory_mb.min(spot.now.memory_mb) };
        }
        let is_admitted =
            !self.room.has_lone_users || node::admits(&spot.uses().users_over(self.interval), uid, self.size.sharing);
        let is_taken = self.size.wants_whole_nodes() && spot.uses().during(self.interval).next().is_some();
        if free.cpus == 0 || !is_admitted || is_taken {
            return None;
        }
        let wants_gres = !self.size.gres.is_empty() || !self.size.gres_per_task.is_empty();
        let in_use = if wants_gres { spot.uses().gres_over(self.interval) } else { Vec::new() };
        self.fitting(id, spot, free, &in_use)
    }

    /// As `n_tasks_fitting`, if nothing ran on the node.
    pub fn n_tasks_fitting_alone(&self, id: SpotId) -> Option<u32> {
        let spot = self.room.spot(id);
        self.fitting(id, spot, spot.whole, &[])
    }

    fn fitting(&self, id: SpotId, spot: &Spot, free: Free, in_use: &[model::gres::GresUnits]) -> Option<u32> {
        let memory_mb = if self.room.tracks_memory { free.memory_mb } else { u64::MAX };
        let share = self.room.share_left(self.pool, id);
        let open = match self.room.closures.is_empty() {
            true => free.cpus,
            false => self.room.closures.open_cpus(id, self.request, self.interval, free.cpus),
        };
        let room = fit::Room { cpus: open.min(share), memory_mb };
        let n_tasks = self.size.n_tasks_fitting(room, &spot.node.config, in_use)?;
        // A whole node's memory goes with all its CPUs; others who stand still, or share them, keep some of it.
        let wants_more = self.size.wants_whole_nodes() || self.overs.is_some();
        if wants_more && self.size.part_of(&spot.node.config, n_tasks).memory_mb > memory_mb {
            return None;
        }
        let has_gres = self.size.gres.is_empty() || spot.node.config.pick_gres(in_use, &self.size.gres).is_some();
        ((self.suits_all || spot.node.suits(self.size)) && has_gres).then_some(n_tasks)
    }
}
