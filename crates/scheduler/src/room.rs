//! What is free, as this plan will have left it. Nodes are indexed once a pass, and by free CPUs within each partition.
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use model::fit;
use model::gres::GresUnits;
use model::node::{self, Tenancy};
use model::plan::Grant;
use model::spec::{JobSpec, Sharing, Size};
use model::{Node, NodeName, Partition};
use state::Cluster;

/// One usable node.
pub(crate) struct Spot<'a> {
    pub node: &'a Node,
    cpus: u32,
    memory_mb: u64,
    is_empty: bool,
    /// Some job has the whole node.
    is_closed: bool,
    /// As with `gres`: more than the node's own record says.
    users: Option<BTreeMap<u32, Tenancy>>,
    /// In use, where the plan has given out more than the node's own record says.
    gres: Option<Vec<GresUnits>>,
    pools: Vec<PoolId>,
}

/// A spot's place among all: natural order of names.
pub(crate) type SpotId = u32;

/// A partition with its usable nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolId(u32);

#[derive(Default)]
struct Pool {
    /// By free CPUs, then weight, then natural order.
    by_free: BTreeMap<u32, BTreeSet<(u32, SpotId)>>,
    n_free_cpus: u64,
    members: Vec<SpotId>,
    /// Every node of the partition is usable.
    is_complete: bool,
}

pub(crate) struct Room<'a> {
    spots: Vec<Spot<'a>>,
    /// In the order of names as strings, to look spots up.
    names: Vec<(&'a NodeName, SpotId)>,
    pools: BTreeMap<&'a str, PoolId>,
    pool_list: Vec<Pool>,
    n_free_cpus: u64,
    tracks_memory: bool,
    /// For whom nodes are looked for.
    uid: u32,
    /// Some job wants, or has, nodes to its user alone.
    has_lone_users: bool,
}

impl<'a> Room<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let mut nodes: Vec<&Node> = cluster.nodes().map(|node| &**node).filter(|node| node.is_usable()).collect();
        nodes.sort_unstable_by_key(|node| node.rank);
        let mut names: Vec<(&NodeName, SpotId)> = nodes.iter().map(|node| &node.name).zip(0..).collect();
        names.sort_unstable();
        let spots: Vec<Spot> = nodes.into_iter().map(Spot::new).collect();
        Room {
            names,
            pools: BTreeMap::new(),
            pool_list: Vec::new(),
            n_free_cpus: spots.iter().map(|spot| u64::from(spot.cpus)).sum(),
            tracks_memory: cluster.config().scheduler.tracks_memory,
            uid: 0,
            has_lone_users: spots.iter().any(|spot| spot.users().values().any(|user| user.n_alone > 0)),
            spots,
        }
    }

    /// From now on places are looked for for this job's user.
    pub fn look_for(&mut self, spec: &JobSpec) {
        self.uid = spec.uid;
        self.has_lone_users |= spec.size.sharing == Sharing::OneUser;
    }

    /// Users are told apart where some want to be alone.
    pub fn seeker(&self) -> Option<u32> {
        self.has_lone_users.then_some(self.uid)
    }

    pub fn is_full(&self) -> bool {
        self.n_free_cpus == 0
    }

    pub fn spot(&self, id: SpotId) -> &Spot<'a> {
        &self.spots[id as usize]
    }

    pub fn find(&self, name: &NodeName) -> Option<SpotId> {
        let at = self.names.binary_search_by(|(known, _)| known.as_str().cmp(name.as_str())).ok()?;
        Some(self.names[at].1)
    }

    /// The nodes of a partition, indexed when first asked for.
    pub fn pool(&mut self, partition: &'a Partition) -> PoolId {
        if let Some(id) = self.pools.get(partition.name.as_str()) {
            return *id;
        }
        let id = PoolId(self.pool_list.len() as u32);
        let members: BTreeSet<SpotId> = partition.nodes.iter().filter_map(|name| self.find(name)).collect();
        let mut pool = Pool { is_complete: members.len() >= partition.nodes.len(), ..Default::default() };
        for member in &members {
            let spot = &mut self.spots[*member as usize];
            spot.pools.push(id);
            pool.insert(*member, spot);
        }
        pool.members = members.into_iter().collect();
        self.pool_list.push(pool);
        self.pools.insert(&partition.name, id);
        id
    }

    pub fn members(&self, pool: PoolId) -> &[SpotId] {
        &self.pool_list[pool.0 as usize].members
    }

    pub fn is_complete(&self, pool: PoolId) -> bool {
        self.pool_list[pool.0 as usize].is_complete
    }

    pub fn n_free_cpus(&self, pool: PoolId) -> u64 {
        self.pool_list[pool.0 as usize].n_free_cpus
    }

    /// Those with at least so many free CPUs, the fullest first.
    pub fn fullest(&self, pool: PoolId, n_cpus: u32) -> impl Iterator<Item = SpotId> {
        self.by_free(pool, n_cpus..=u32::MAX).flat_map(|spots| spots.iter().map(|(_, spot)| *spot))
    }

    /// Those with at least so many free CPUs, the emptiest first.
    pub fn emptiest(&self, pool: PoolId, n_cpus: u32) -> impl Iterator<Item = SpotId> {
        self.by_free(pool, n_cpus..=u32::MAX).rev().flat_map(|spots| spots.iter().map(|(_, spot)| *spot))
    }

    fn by_free(
        &self,
        pool: PoolId,
        cpus: RangeInclusive<u32>,
    ) -> impl DoubleEndedIterator<Item = &BTreeSet<(u32, SpotId)>> {
        self.pool_list[pool.0 as usize].by_free.range(cpus).map(|(_, spots)| spots)
    }

    /// How many of the job's tasks the node could take now; none if it cannot serve the job now.
    pub fn n_tasks_fitting(&self, id: SpotId, size: &Size) -> Option<u32> {
        let spot = self.spot(id);
        let is_admitted = !self.has_lone_users || node::admits(spot.users(), self.uid, size.sharing);
        if spot.is_closed || !is_admitted || (size.wants_whole_nodes() && !spot.is_empty) {
            return None;
        }
        let memory_mb = if self.tracks_memory { spot.memory_mb } else { u64::MAX };
        let n_tasks =
            size.n_tasks_fitting(fit::Room { cpus: spot.cpus, memory_mb }, &spot.node.config, spot.gres_in_use())?;
        (spot.node.suits(size) && spot.has_gres(size)).then_some(n_tasks)
    }

    /// As `n_tasks_fitting`, if nothing ran on the node.
    pub fn n_tasks_fitting_alone(&self, id: SpotId, size: &Size) -> Option<u32> {
        let node = self.spot(id).node;
        let mut room = node.config.room();
        if !self.tracks_memory {
            room.memory_mb = u64::MAX;
        }
        let n_tasks = size.n_tasks_fitting(room, &node.config, &[])?;
        node.suits(size).then_some(n_tasks)
    }

    /// Leaves less for the jobs that come after.
    pub fn take(&mut self, grants: &[Grant], size: &Size) {
        for grant in grants {
            let id = self.find(&grant.node).expect("picked from the spots");
            let spot = &mut self.spots[id as usize];
            for pool in &spot.pools {
                self.pool_list[pool.0 as usize].remove(id, spot);
            }
            self.n_free_cpus -= u64::from(spot.cpus);
            spot.take(grant, size, self.uid);
            self.n_free_cpus += u64::from(spot.cpus);
            for pool in &spot.pools {
                self.pool_list[pool.0 as usize].insert(id, spot);
            }
        }
    }
}

impl<'a> Spot<'a> {
    fn new(node: &'a Node) -> Self {
        let is_closed = node.exclusive_job.is_some();
        let room = node.free_room();
        Spot {
            node,
            cpus: if is_closed { 0 } else { room.cpus },
            memory_mb: room.memory_mb,
            is_empty: node.jobs.is_empty(),
            is_closed,
            users: None,
            gres: None,
            pools: Vec::new(),
        }
    }

    fn users(&self) -> &BTreeMap<u32, Tenancy> {
        self.users.as_ref().unwrap_or(&self.node.users)
    }

    fn gres_in_use(&self) -> &[GresUnits] {
        self.gres.as_deref().unwrap_or(&self.node.used.gres)
    }

    fn has_gres(&self, size: &Size) -> bool {
        size.gres.is_empty() || self.node.config.pick_gres(self.gres_in_use(), &size.gres).is_some()
    }

    fn take(&mut self, grant: &Grant, size: &Size, uid: u32) {
        let mut users = self.users().clone();
        let tenancy = users.entry(uid).or_default();
        tenancy.n_jobs += 1;
        tenancy.n_alone += u32::from(size.sharing == Sharing::OneUser);
        self.users = Some(users);
        self.cpus -= grant.n_cpus;
        self.memory_mb = self.memory_mb.saturating_sub(grant.memory_mb);
        self.is_empty = false;
        if size.wants_whole_nodes() {
            self.is_closed = true;
            self.cpus = 0;
        }
        if !size.gres.is_empty() || !size.gres_per_task.is_empty() {
            let mut in_use = self.gres_in_use().to_vec();
            in_use.extend(self.node.config.pick_gres(&in_use, &size.gres_for(grant.n_tasks)).into_iter().flatten());
            self.gres = Some(in_use);
        }
    }
}

impl Pool {
    fn insert(&mut self, id: SpotId, spot: &Spot) {
        if spot.cpus > 0 {
            self.n_free_cpus += u64::from(spot.cpus);
            self.by_free.entry(spot.cpus).or_default().insert((spot.node.config.weight, id));
        }
    }

    fn remove(&mut self, id: SpotId, spot: &Spot) {
        let Some(spots) = self.by_free.get_mut(&spot.cpus) else { return };
        spots.remove(&(spot.node.config.weight, id));
        if spots.is_empty() {
            self.by_free.remove(&spot.cpus);
        }
        self.n_free_cpus -= u64::from(spot.cpus);
    }
}
