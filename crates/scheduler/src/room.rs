//! The usable nodes, indexed once a pass: by partition, and within each by what is free from now on.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::plan::Grant;
use model::spec::{Sharing, Size};
use model::staging::Access;
use model::{Job, JobId, Node, NodeName, Partition, Timestamp};
use state::Cluster;
use state::buffers::capacity::Usage;

use crate::closures::Closures;
use crate::counts::Counts;
use crate::pool::Pool;
use crate::request::Request;
use crate::spot::Spot;
use crate::timeline::{Calendar, Clock, Interval, Running, Slot};
use crate::units::{Each, Units};

pub(crate) use crate::pool::PoolId;

/// A spot's place among all: natural order of names.
pub(crate) type SpotId = u32;

/// Nodes that are all alike to a job, as far as CPUs tell.
pub(crate) struct Alike<'r, 'a> {
    room: &'r Room<'a>,
    units: &'r Units<'a>,
    each: Each,
    until: Slot,
    /// Nodes of units that serve until then, but not for ever.
    more: BTreeMap<u32, u32>,
}

impl<'a> Alike<'_, 'a> {
    /// How many there are of each unit.
    pub fn counts(&self) -> Vec<u32> {
        self.units.count(self.each, &self.more)
    }

    /// The best unit for `n` nodes, where the best place is in one.
    pub fn tightest(&self, n: u32) -> Option<u32> {
        self.units.tightest(self.each, &self.more, n)
    }

    /// Those of a unit, the nodes that others use first.
    pub fn of(&self, unit: u32) -> impl Iterator<Item = SpotId> {
        self.units.of(unit, self.each, self.until, |id| self.room.spot(id))
    }
}

pub(crate) struct Room<'a> {
    spots: Vec<Spot<'a>>,
    /// In the order of names as strings, to look spots up.
    names: Vec<(&'a NodeName, SpotId)>,
    pools: BTreeMap<&'a str, PoolId>,
    pool_list: Vec<Pool<'a>>,
    n_free_cpus: u64,
    running: Rc<Running<'a>>,
    /// Kept once the future has been asked about.
    calendar: Option<RefCell<Calendar<'a>>>,
    pub cluster: &'a Cluster,
    pub closures: Closures<'a>,
    pub counts: Counts,
    buffers: Buffers<'a>,
    /// CPUs that jobs of a partition have on a node, where the partition may have only so many there.
    shares: BTreeMap<(PoolId, SpotId), u32>,
    pub tracks_memory: bool,
    /// Some job wants, or has, nodes to its user alone.
    pub has_lone_users: bool,
}

/// Spots, and shares of partitions, as they were before jobs were taken away.
pub(crate) struct Lifted<'a> {
    before: Vec<(SpotId, Spot<'a>)>,
    shares: BTreeMap<(PoolId, SpotId), u32>,
}

/// What burst buffers hold of the nodes' disks.
struct Buffers<'a> {
    cluster: &'a Cluster,
    usage: Option<Usage>,
}

impl<'a> Room<'a> {
    pub fn new(cluster: &'a Cluster, clock: &Clock) -> Self {
        // The state keeps nodes in the order of their names as strings.
        let by_name: Vec<&Node> = cluster.nodes().map(|node| &**node).filter(|node| node.is_usable()).collect();
        let mut order: Vec<u32> = (0..by_name.len() as u32).collect();
        order.sort_unstable_by_key(|at| by_name[*at as usize].rank);
        let nodes: Vec<&Node> = order.iter().map(|at| by_name[*at as usize]).collect();
        let mut names: Vec<(&NodeName, SpotId)> = by_name.iter().map(|node| (&node.name, 0)).collect();
        order.iter().zip(0..).for_each(|(at, spot)| names[*at as usize].1 = spot);
        let running = Rc::new(Running::new(cluster, clock));
        let spots: Vec<Spot> = nodes.into_iter().map(|node| Spot::new(node, &running)).collect();
        let closures = Closures::new(cluster, clock, spots.len() as SpotId, |name| find(&names, name));
        Room {
            names,
            pools: BTreeMap::new(),
            pool_list: Vec::new(),
            n_free_cpus: spots.iter().map(|spot| u64::from(spot.now.cpus)).sum(),
            running,
            calendar: None,
            cluster,
            closures,
            counts: Counts::new(cluster, clock),
            shares: BTreeMap::new(),
            buffers: Buffers { cluster, usage: cluster.config().burst_buffer.as_ref().map(|_| Usage::of(cluster)) },
            tracks_memory: cluster.config().scheduler.tracks_memory,
            has_lone_users: spots.iter().any(|spot| spot.users().values().any(|user| user.n_alone > 0)),
            spots,
        }
    }

    /// The node has room for the job's private burst buffer space, or the job has it there already.
    pub fn has_disk_for(&self, job: &Job, node: &NodeName) -> bool {
        let Buffers { cluster, usage } = &self.buffers;
        let own = cluster.buffer(job.id).map(|buffer| &**buffer);
        usage.as_ref().is_some_and(|usage| usage.has_room_on(cluster, &job.spec, own, node))
    }

    /// The job's private space is promised on these nodes, where it has none yet.
    pub fn take_disk(&mut self, job: &Job, nodes: &[NodeName]) {
        let Buffers { cluster, usage: Some(usage) } = &mut self.buffers else { return };
        let own = cluster.buffer(job.id);
        let is_there = |node: &NodeName| {
            own.is_some_and(|own| own.places.iter().any(|at| at.access == Access::Private && at.node == *node))
        };
        let new: Vec<NodeName> = nodes.iter().filter(|node| !is_there(node)).cloned().collect();
        usage.take_on_nodes(&job.spec, &new);
    }

    /// Notes who ends when. Needed before anything is asked of the future.
    pub fn look_ahead(&mut self) {
        if self.calendar.is_some() {
            return;
        }
        let mut ids: Vec<JobId> = self.spots.iter().flat_map(|spot| spot.node.jobs.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        let jobs = ids.into_iter().filter_map(|id| self.cluster.job(id)).map(|job| &**job);
        let ending = |job: &'a Job| (self.running.interval(self.cluster.expected_end(job)).until, job);
        let mut closed: BTreeMap<JobId, Vec<SpotId>> = BTreeMap::new();
        for (id, spot) in (0..).zip(&self.spots) {
            if let Some(job) = spot.node.blocked_by {
                closed.entry(job).or_default().push(id);
            }
        }
        self.calendar = Some(RefCell::new(Calendar::new(jobs.map(ending).collect(), closed)));
        for pool in &mut self.pool_list {
            for id in pool.members.clone() {
                let spot = &self.spots[id as usize];
                if spot.is_changed {
                    pool.note_ends(id, spot);
                }
            }
        }
    }

    /// When something ends on the nodes of the partition, in the order of time; some of it may be told twice.
    pub fn ends(&self, pool: PoolId) -> impl Iterator<Item = (Slot, SpotId)> {
        let (mut known, mut number) = (Vec::new(), 0);
        let running = std::iter::from_fn(move || {
            if number == known.len() && self.reads_on(pool, number) {
                known.extend_from_slice(&self.of(pool).ends.borrow()[number..]);
            }
            number += 1;
            known.get(number - 1).copied()
        });
        let mut running = running.fuse().peekable();
        let mut changed = self.of(pool).changed_ends.iter().copied().peekable();
        std::iter::from_fn(move || match (running.peek(), changed.peek()) {
            (Some(one), Some(other)) if other < one => changed.next(),
            (None, _) => changed.next(),
            _ => running.next(),
        })
    }

    /// True: more than so many ends are known on the nodes of the partition.
    fn reads_on(&self, pool: PoolId, n_seen: usize) -> bool {
        let Some(calendar) = &self.calendar else { return false };
        while self.of(pool).ends.borrow().len() <= n_seen {
            let mut calendar = calendar.borrow_mut();
            let more = calendar.read_on(|name| self.find(name));
            if more.is_empty() {
                return false;
            }
            for (slot, spot) in more {
                for pool in &self.spot(*spot).pools {
                    self.of(*pool).ends.borrow_mut().push((*slot, *spot));
                }
            }
        }
        true
    }

    /// From now on places are looked for for this job.
    pub fn look_for(&mut self, size: &Size) {
        self.has_lone_users |= size.sharing == Sharing::OneUser;
    }

    pub fn is_full(&self) -> bool {
        self.n_free_cpus == 0
    }

    /// Free at this moment, in whatever partition.
    pub fn n_free_cpus_of_all(&self) -> u64 {
        self.n_free_cpus
    }

    pub fn spot(&self, id: SpotId) -> &Spot<'a> {
        &self.spots[id as usize]
    }

    pub fn find(&self, name: &NodeName) -> Option<SpotId> {
        find(&self.names, name)
    }

    /// The nodes of a partition, indexed when first asked for.
    pub fn pool(&mut self, cluster: &Cluster, partition: &'a Partition) -> PoolId {
        if let Some(id) = self.pools.get(partition.name.as_str()) {
            return *id;
        }
        let id = PoolId(self.pool_list.len() as u32);
        let mut members: Vec<SpotId> = partition.nodes.iter().filter_map(|name| self.find(name)).collect();
        members.sort_unstable();
        members.dedup();
        let plain = Size::default();
        let shape = state::shape_for(self.cluster, partition, &plain)
            .or_else(|| self.cluster.network().shape(&partition.topology).filter(|shape| shape.n_units() > 0));
        let weight = |id: &SpotId| self.spots[*id as usize].node.config.weight;
        let mut pool = Pool {
            partition,
            units: shape.map(|shape| Units::new(shape, &members, &self.spots)),
            has_one_weight: members.iter().map(weight).min() == members.iter().map(weight).max(),
            promised: BTreeSet::new(),
            ends: RefCell::default(),
            changed_ends: BTreeSet::new(),
            by_free: BTreeMap::new(),
            until: BTreeMap::new(),
            n_free_cpus: 0,
            is_complete: members.len() >= partition.nodes.len(),
            members: members.clone(),
        };
        if let Some(calendar) = &self.calendar {
            let known = calendar.borrow();
            pool.ends = RefCell::new(
                known.ends.iter().filter(|(_, spot)| members.binary_search(spot).is_ok()).copied().collect(),
            );
        }
        let looks_ahead = self.calendar.is_some();
        for member in members {
            let spot = &mut self.spots[member as usize];
            spot.pools.push(id);
            pool.insert(member, spot);
            if looks_ahead && spot.is_changed {
                pool.note_ends(member, spot);
            }
        }
        if partition.max_cpus_per_node.is_some() {
            let used = |spot: SpotId| cluster.cpus_of_partition(&self.spots[spot as usize].node.name, &partition.name);
            let shares: Vec<_> = pool.members.iter().map(|spot| ((id, *spot), used(*spot))).collect();
            self.shares.extend(shares);
        }
        self.pool_list.push(pool);
        self.pools.insert(&partition.name, id);
        id
    }

    pub fn n_spots(&self) -> usize {
        self.spots.len()
    }

    pub fn promised(&self, pool: PoolId) -> &BTreeSet<SpotId> {
        &self.of(pool).promised
    }

    /// Those with at least so many CPUs that nobody holds or is promised.
    pub fn free_for_ever(&self, pool: PoolId, n_cpus: u32) -> impl Iterator<Item = SpotId> {
        self.of(pool).by_free.range(n_cpus..).flat_map(|(_, spots)| spots.iter().map(|(_, spot)| *spot))
    }

    pub fn partition(&self, pool: PoolId) -> &'a Partition {
        self.of(pool).partition
    }

    pub fn members(&self, pool: PoolId) -> &[SpotId] {
        &self.of(pool).members
    }

    /// Nodes by unit that have that much from now until then; none where some weigh more than others, or there are no units.
    pub fn alike(&self, pool: PoolId, each: Each, until: Slot) -> Option<Alike<'_, 'a>> {
        let pool = self.of(pool);
        let units = pool.units.as_ref().filter(|_| pool.has_one_weight)?;
        let promised = pool.promised.iter().map(|id| (*id, &self.spots[*id as usize]));
        Some(Alike { room: self, units, each, until, more: units.until(each, until, promised) })
    }

    pub fn is_complete(&self, pool: PoolId) -> bool {
        self.of(pool).is_complete
    }

    /// CPUs of the node that jobs of the partition may still be given, whatever is free.
    pub fn share_left(&self, pool: PoolId, spot: SpotId) -> u32 {
        let Some(most) = self.of(pool).partition.max_cpus_per_node else { return u32::MAX };
        most.saturating_sub(self.shares.get(&(pool, spot)).copied().unwrap_or(0))
    }

    /// Free at this moment, whatever is promised.
    pub fn n_free_cpus(&self, pool: PoolId) -> u64 {
        self.of(pool).n_free_cpus
    }

    /// Those with at least so many CPUs free from now until then: first gaps before promises, which nobody else can use for
    /// long, then the fullest nodes.
    pub fn fullest(&self, pool: PoolId, n_cpus: u32, until: Slot) -> impl Iterator<Item = SpotId> {
        self.in_gaps(pool, n_cpus, until).chain(self.free_for_ever(pool, n_cpus))
    }

    /// As `fullest`, but the emptiest nodes first.
    pub fn emptiest(&self, pool: PoolId, n_cpus: u32, until: Slot) -> impl Iterator<Item = SpotId> {
        let for_ever = self.of(pool).by_free.range(n_cpus..).rev();
        self.in_gaps(pool, n_cpus, until).chain(for_ever.flat_map(|(_, spots)| spots.iter().map(|(_, spot)| *spot)))
    }

    /// Nodes that have enough only until a promise begins.
    fn in_gaps(&self, pool: PoolId, n_cpus: u32, until: Slot) -> impl Iterator<Item = SpotId> {
        let later = self.of(pool).until.range(until..);
        later.flat_map(move |(end, spots)| {
            let is_its_step = move |spot: SpotId| {
                let stairs = &self.spot(spot).stairs;
                stairs.for_ever < n_cpus
                    && stairs.step_for(until).is_some_and(|(at, level)| at == *end && level >= n_cpus)
            };
            spots.iter().map(|(_, spot)| *spot).filter(move |spot| is_its_step(*spot))
        })
    }

    /// Leaves less for the jobs that come after: now, or from a later mark on.
    pub fn give(&mut self, pool: PoolId, grants: &[Grant], request: &Request, interval: Interval) {
        self.counts.take(request.job.id, &request.counts, interval, request.reservation);
        for grant in grants {
            let id = self.find(&grant.node).expect("picked from the spots");
            if let Some(share) = self.shares.get_mut(&(pool, id)).filter(|_| interval.from == Slot::NOW) {
                *share += grant.n_cpus;
            }
            self.change(id, |spot| match interval.from {
                Slot::NOW => spot.take(grant, request.size, request.job, interval),
                _ => spot.promise(grant, request.size, request.job, interval),
            });
        }
        self.close_units(grants, request, pool, interval);
    }

    /// The rest of the units that such a job touches is closed to others as long as it runs.
    fn close_units(&mut self, grants: &[Grant], request: &Request, pool: PoolId, interval: Interval) {
        if !request.size.network.owns_units {
            return;
        }
        let partition = self.partition(pool);
        let shape = state::shape_for(self.cluster, partition, request.size);
        let Some(shape) = shape.filter(|shape| !state::spares_units(self.cluster, shape)) else { return };
        let names = grants.iter().filter_map(|grant| self.cluster.node(grant.node.as_str()));
        let units: BTreeSet<u32> = names.filter_map(|node| shape.unit_of(node.rank)).collect();
        for node in units.into_iter().flat_map(|unit| shape.unit_nodes(unit)) {
            let name = self.cluster.network().name(*node);
            if grants.iter().any(|grant| grant.node == *name) {
                continue;
            }
            if let Some(id) = self.find(name) {
                self.change(id, |spot| spot.close(request.job, interval));
            }
        }
    }

    /// Changes a spot, and the indexes with it.
    fn change(&mut self, id: SpotId, change: impl FnOnce(&mut Spot<'a>)) {
        let spot = &mut self.spots[id as usize];
        for pool in &spot.pools {
            self.pool_list[pool.0 as usize].remove(id, spot);
        }
        self.n_free_cpus -= u64::from(spot.now.cpus);
        change(spot);
        self.n_free_cpus += u64::from(spot.now.cpus);
        for pool in &spot.pools {
            let pool = &mut self.pool_list[pool.0 as usize];
            pool.insert(id, spot);
            if self.calendar.is_some() && spot.is_changed {
                pool.note_ends(id, spot);
            }
        }
    }

    /// Takes these jobs away for a while: what was there before goes to `restore`.
    pub fn lift(&mut self, gone: &BTreeSet<JobId>) -> Lifted<'a> {
        let cluster = self.cluster;
        let jobs = || gone.iter().filter_map(|id| cluster.job(*id));
        let mut spots: BTreeSet<SpotId> =
            jobs().flat_map(|job| job.allocation.names()).filter_map(|name| self.find(name)).collect();
        if jobs().any(|job| job.spec.size.network.owns_units) {
            let closed = |spot: &Spot| spot.node.blocked_by.is_some_and(|by| gone.contains(&by));
            spots.extend((0..).zip(&self.spots).filter(|(_, spot)| closed(spot)).map(|(id, _)| id));
        }
        let shares = self.shares.clone();
        for ((pool, spot), used) in &mut self.shares {
            let partition = &self.pool_list[pool.0 as usize].partition.name;
            let node = &self.spots[*spot as usize].node.name;
            let here = jobs().filter(|job| job.partition == *partition);
            let freed = here.filter_map(|job| job.allocation.share(node.as_str())).map(|share| share.cpus.len());
            *used = used.saturating_sub(freed.sum());
        }
        let mut before = Vec::with_capacity(spots.len());
        for id in spots {
            let lifted = self.spots[id as usize].without(cluster, gone);
            before.push((id, self.spots[id as usize].clone()));
            self.change(id, |spot| *spot = lifted);
        }
        Lifted { before, shares }
    }

    pub fn restore(&mut self, lifted: Lifted<'a>) {
        self.shares = lifted.shares;
        for (id, before) in lifted.before {
            self.change(id, |spot| *spot = before);
        }
    }

    /// The job will be gone by then.
    pub fn shorten(&mut self, job: &Job, at: Timestamp, clock: &Clock) {
        let until = clock.slot(at).clamp(Slot(1), clock.end());
        for name in job.allocation.names() {
            if let Some(id) = self.find(name) {
                self.change(id, |spot| spot.shorten(job.id, until, at));
            }
        }
    }

    /// When the last of those ends whose place the job takes at that mark: to the second where only running jobs end there.
    pub fn free_from(&self, grants: &[Grant], at: Slot, clock: &Clock) -> Timestamp {
        let spots = || grants.iter().filter_map(|grant| self.find(&grant.node)).map(|id| self.spot(id));
        // Of those that are only promised a place, nobody knows more than the mark.
        if spots().any(|spot| spot.promised.iter().any(|one| one.interval.until == at)) {
            return clock.time(at);
        }
        let ending = spots().flat_map(|spot| &spot.held().uses).filter(|one| one.interval.until == at);
        let last = ending.filter_map(|one| one.ends_at).max();
        last.unwrap_or(clock.time(at))
    }

    fn of(&self, pool: PoolId) -> &Pool<'a> {
        &self.pool_list[pool.0 as usize]
    }
}

fn find(names: &[(&NodeName, SpotId)], name: &NodeName) -> Option<SpotId> {
    let at = names.binary_search_by(|(known, _)| known.as_str().cmp(name.as_str())).ok()?;
    Some(names[at].1)
}
