//! How much of each pool is in use: never counted apart, always what the buffers hold.
use std::collections::{BTreeMap, BTreeSet};

use model::buffer::{BufferRequest, Space};
use model::pool::{Pool, PoolKind};
use model::staging::Access;
use model::{Buffer, JobSpec, NodeName, PersistentBuffer};

use crate::Cluster;

/// What all buffers together hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    shared: BTreeMap<String, u64>,
    on_nodes: BTreeMap<(String, NodeName), u64>,
    /// Of each shared pool, since looking at all agents' reports is dear: what it has, and what buffers can have of it.
    totals: BTreeMap<String, (u64, u64)>,
}

/// How a request stands to what is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Now,
    NotNow,
    /// More than the pool has, or can have before something else goes than buffers: a reservation of others, foreign files.
    Never,
}

impl Usage {
    pub fn of(cluster: &Cluster) -> Usage {
        let mut usage = Usage::default();
        cluster.buffers.values().for_each(|buffer| usage.add(buffer));
        cluster.persistent.values().for_each(|buffer| usage.add_persistent(buffer));
        let pools = cluster.config().burst_buffer.iter().flat_map(|config| &config.pools);
        let of_pool = |pool: &Pool| {
            let total = total(cluster, pool);
            (pool.name.clone(), (total, total.min(holdable(cluster, pool))))
        };
        usage.totals = pools.map(of_pool).collect();
        usage
    }

    fn add(&mut self, buffer: &Buffer) {
        for place in &buffer.places {
            for space in buffer.spaces.iter().filter(|space| space.access == place.access) {
                match place.access {
                    Access::Shared => self.take_shared(&space.pool, space.bytes),
                    Access::Private => self.take_on(&space.pool, &place.node, space.bytes),
                }
            }
        }
    }

    /// As if the buffer's shared space were free again.
    pub fn give_back(&mut self, buffer: &Buffer) {
        let n_shared = buffer.places.iter().filter(|place| place.access == Access::Shared).count();
        for space in buffer.spaces.iter().filter(|space| space.access == Access::Shared && n_shared > 0) {
            if let Some(bytes) = self.shared.get_mut(&space.pool) {
                *bytes = bytes.saturating_sub(space.bytes);
            }
        }
    }

    fn add_persistent(&mut self, buffer: &PersistentBuffer) {
        self.take_shared(&buffer.pool, buffer.bytes);
    }

    pub fn take_shared(&mut self, pool: &str, bytes: u64) {
        *self.shared.entry(pool.to_owned()).or_default() += bytes;
    }

    pub fn take_on(&mut self, pool: &str, node: &NodeName, bytes: u64) {
        *self.on_nodes.entry((pool.to_owned(), node.clone())).or_default() += bytes;
    }

    pub fn of_shared(&self, pool: &str) -> u64 {
        self.shared.get(pool).copied().unwrap_or(0)
    }

    pub fn on_node(&self, pool: &str, node: &NodeName) -> u64 {
        self.on_nodes.get(&(pool.to_owned(), node.clone())).copied().unwrap_or(0)
    }

    /// Those that something lies in.
    pub fn pools(&self) -> impl Iterator<Item = &str> {
        let on_nodes = self.on_nodes.keys().map(|(pool, _)| pool.as_str());
        let names: BTreeSet<&str> = self.shared.keys().map(String::as_str).chain(on_nodes).collect();
        names.into_iter().filter(|name| !name.is_empty())
    }

    /// Of the whole pool, on whatever nodes.
    pub fn of_pool(&self, pool: &Pool) -> u64 {
        let on_nodes = self.on_nodes.iter().filter(|((name, _), _)| *name == pool.name);
        self.of_shared(&pool.name) + on_nodes.map(|(_, bytes)| bytes).sum::<u64>()
    }

    /// Whether what the job needs of shared pools is there. Pools of nodes are looked at when nodes are known.
    pub fn fit(&self, cluster: &Cluster, spec: &JobSpec) -> Fit {
        let mut fit = Fit::Now;
        if names_lost_pool(cluster, spec) {
            return Fit::Never;
        }
        let wanted = wanted(cluster, spec);
        let reserved = if wanted.is_empty() { BTreeMap::new() } else { reserved_for_others(cluster, spec) };
        for (pool, bytes) in wanted {
            let (total, holdable) = self.totals.get(&pool.name).copied().unwrap_or_default();
            if bytes > total {
                return Fit::Never;
            }
            let taken = self.of_shared(&pool.name).max(pool.unfree_bytes);
            let (promised, kept) = reserved.get(&pool.name).copied().unwrap_or_default();
            if bytes > holdable.saturating_sub(promised) {
                return Fit::Never;
            }
            if bytes > holdable.saturating_sub(taken).saturating_sub(kept) {
                fit = Fit::NotNow;
            }
        }
        fit
    }

    /// What a reservation keeps of the pool for its jobs and none of them has.
    pub fn left_in_reservation(&self, cluster: &Cluster, reservation: &str, pool: &str) -> u64 {
        let (Some(config), Some(reservation)) = (&cluster.config().burst_buffer, cluster.reservation(reservation))
        else {
            return 0;
        };
        let promised = model::reserved_buffer::parse(&reservation.burst_buffer, config).unwrap_or_default();
        let promised = promised.into_iter().filter(|(name, _)| name == pool).map(|(_, bytes)| bytes).sum::<u64>();
        promised.saturating_sub(held_within(cluster, &reservation.name, pool))
    }

    pub fn take(&mut self, cluster: &Cluster, spec: &JobSpec) {
        for (pool, bytes) in wanted(cluster, spec) {
            self.take_shared(&pool.name, bytes);
        }
    }

    pub fn take_on_nodes(&mut self, spec: &JobSpec, nodes: &[NodeName]) {
        let space = spec.buffer.as_ref().and_then(|request| space(&request.spaces, Access::Private));
        for (space, node) in space.into_iter().flat_map(|space| nodes.iter().map(move |node| (space, node))) {
            self.take_on(&space.pool, node, space.bytes);
        }
    }

    /// Whether a node has room for the job's private space. What the job has there already is its own; what is being removed there
    /// must be gone first.
    pub fn has_room_on(&self, cluster: &Cluster, spec: &JobSpec, own: Option<&Buffer>, node: &NodeName) -> bool {
        let Some(space) = spec.buffer.as_ref().and_then(|request| space(&request.spaces, Access::Private)) else {
            return true;
        };
        let mut places = own.iter().flat_map(|buffer| &buffer.places);
        if let Some(place) = places.find(|place| place.access == Access::Private && place.node == *node) {
            return !place.is_unwanted;
        }
        let pool = cluster.config().burst_buffer.as_ref().and_then(|config| config.pool(&space.pool));
        pool.is_some_and(|pool| {
            self.on_node(&pool.name, node).saturating_add(space.bytes) <= holdable_on(cluster, pool, node)
        })
    }
}

/// What reservations that the job does not ask for keep from it, if it would run in their time: what they were promised, and
/// that less what their own jobs have already.
fn reserved_for_others(cluster: &Cluster, spec: &JobSpec) -> BTreeMap<String, (u64, u64)> {
    let mut kept: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let Some(config) = cluster.config().burst_buffer.as_ref() else { return kept };
    let end = spec.time_limit.and_then(|limit| limit.span()).map(|span| cluster.now() + span);
    for reservation in cluster.reservations().filter(|one| !one.burst_buffer.is_empty()) {
        let is_its = |names: &[String]| names.contains(&reservation.name);
        let overlaps = reservation.end > cluster.now() && end.is_none_or(|end| reservation.start < end);
        if is_its(&spec.reservations) || !overlaps {
            continue;
        }
        let promised = model::reserved_buffer::parse(&reservation.burst_buffer, config).unwrap_or_default();
        for (pool, bytes) in promised {
            let left = bytes.saturating_sub(held_within(cluster, &reservation.name, &pool));
            let (promised, kept) = kept.entry(pool.clone()).or_default();
            (*promised, *kept) = (promised.saturating_add(bytes), kept.saturating_add(left));
        }
    }
    kept
}

/// What jobs of the reservation have of the pool.
fn held_within(cluster: &Cluster, reservation: &str, pool: &str) -> u64 {
    let is_its = |names: &[String]| names.iter().any(|name| name == reservation);
    let is_within = |buffer: &Buffer| cluster.job(buffer.job).is_some_and(|job| is_its(&job.spec.reservations));
    let own = cluster.buffers.values().filter(|buffer| is_within(buffer));
    own.flat_map(|buffer| &buffer.spaces).filter(|space| space.pool == pool).map(|space| space.bytes).sum()
}

fn space(spaces: &[Space], access: Access) -> Option<&Space> {
    spaces.iter().find(|space| space.access == access)
}

/// A pool that the job was promised space of is configured no more.
fn names_lost_pool(cluster: &Cluster, spec: &JobSpec) -> bool {
    let Some(request) = &spec.buffer else { return false };
    let config = cluster.config().burst_buffer.as_ref();
    let is_lost = |name: &String| !name.is_empty() && config.and_then(|config| config.pool(name)).is_none();
    let spaces = request.spaces.iter().map(|space| &space.pool);
    spaces.chain(request.creates.iter().map(|creation| &creation.pool)).any(is_lost)
}

/// The request as it is now that the plugin has told its pools: space without a pool is the default pool's, and all is in
/// whole granules. None: it was so from the start.
pub(crate) fn resolved(cluster: &Cluster, request: &BufferRequest) -> Option<BufferRequest> {
    let config = cluster.config().burst_buffer.as_ref()?;
    let is_its = request.plugin.is_external() && config.plugin == request.plugin && config.is_loaded;
    if !is_its || cluster.rules() < 3 {
        return None;
    }
    let place = |name: &str, bytes: u64| {
        let pool = if name.is_empty() { config.default_pool() } else { config.pool(name) }?;
        Some((pool, pool.rounded(bytes)?))
    };
    let is_open = |name: &str, bytes: u64| place(name, bytes).is_some_and(|new| (&*new.0.name, new.1) != (name, bytes));
    let mut of_spaces = request.spaces.iter().map(|space| (space.pool.as_str(), space.bytes));
    let mut of_creates = request.creates.iter().map(|creation| (creation.pool.as_str(), creation.bytes));
    if !of_spaces.any(|(name, bytes)| is_open(name, bytes)) && !of_creates.any(|(name, bytes)| is_open(name, bytes)) {
        return None;
    }
    let mut request = request.clone();
    for space in std::mem::take(&mut request.spaces) {
        let (name, bytes) = match place(&space.pool, space.bytes) {
            Some((pool, bytes)) => (pool.name.clone(), bytes),
            None => (space.pool.clone(), space.bytes),
        };
        match request.spaces.iter_mut().find(|known| known.pool == name && known.access == space.access) {
            Some(known) => known.bytes = known.bytes.saturating_add(bytes),
            None => request.spaces.push(Space { pool: name, bytes, ..space }),
        }
    }
    for creation in &mut request.creates {
        if let Some((pool, bytes)) = place(&creation.pool, creation.bytes) {
            (creation.pool, creation.bytes) = (pool.name.clone(), bytes);
        }
    }
    if config.counts {
        request.count_megabytes();
    }
    Some(request)
}

/// What the job asks of each shared pool: its own space, and persistent buffers that are not there yet.
pub fn wanted<'a>(cluster: &'a Cluster, spec: &JobSpec) -> Vec<(&'a Pool, u64)> {
    let (Some(config), Some(request)) = (cluster.config().burst_buffer.as_ref(), &spec.buffer) else {
        return Vec::new();
    };
    let resolved = resolved(cluster, request);
    let request: &BufferRequest = resolved.as_ref().unwrap_or(request);
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for space in request.spaces.iter().filter(|space| space.access == Access::Shared) {
        *wanted.entry(&space.pool).or_default() += space.bytes;
    }
    for creation in &request.creates {
        if !cluster.persistent.contains_key(&creation.name) {
            let sum = wanted.entry(&creation.pool).or_default();
            *sum = sum.saturating_add(creation.bytes);
        }
    }
    wanted.into_iter().filter_map(|(name, bytes)| Some((config.pool(name)?, bytes))).collect()
}

/// Of a shared pool, or of all nodes that answer.
pub fn total(cluster: &Cluster, pool: &Pool) -> u64 {
    match pool.kind {
        PoolKind::Shared => match pool.total_bytes {
            Some(bytes) if !is_refused(cluster, pool) => bytes,
            Some(_) => 0,
            None => cluster.nodes().filter_map(|node| reported(cluster, pool, &node.name)).max().unwrap_or(0),
        },
        PoolKind::Node => {
            let nodes = cluster.nodes().filter(|node| node.answers);
            nodes.map(|node| total_on(cluster, pool, &node.name)).fold(0, u64::saturating_add)
        }
    }
}

pub fn total_on(cluster: &Cluster, pool: &Pool, node: &NodeName) -> u64 {
    match pool.total_bytes {
        Some(bytes) if is_sound(cluster, pool, node) => bytes,
        Some(_) => 0,
        None => reported(cluster, pool, node).unwrap_or(0),
    }
}

/// Every agent that answers complains of the pool.
fn is_refused(cluster: &Cluster, pool: &Pool) -> bool {
    let mut answering = cluster.nodes().filter(|node| node.answers).peekable();
    answering.peek().is_some() && answering.all(|node| !is_sound(cluster, pool, &node.name))
}

/// The agent has not complained of the pool.
fn is_sound(cluster: &Cluster, pool: &Pool, node: &NodeName) -> bool {
    let reports = cluster.node(node.as_str()).map(|node| node.machine.pools.as_slice()).unwrap_or_default();
    reports.iter().find(|report| report.pool == pool.name).is_none_or(|report| report.problem.is_empty())
}

fn reported(cluster: &Cluster, pool: &Pool, node: &NodeName) -> Option<u64> {
    let node = cluster.node(node.as_str()).filter(|node| node.answers)?;
    let report = node.machine.pools.iter().find(|report| report.pool == pool.name && report.problem.is_empty())?;
    let kept = u64::from(100 - pool.reserve_percent.min(100));
    let bytes = u128::from(report.total_bytes) * u128::from(kept) / 100;
    Some(whole(pool, bytes as u64))
}

/// What buffers can have of a shared pool's file system: foreign files are in their way.
fn holdable(cluster: &Cluster, pool: &Pool) -> u64 {
    match pool.kind {
        PoolKind::Shared => cluster.usable(&pool.name).map_or(u64::MAX, |bytes| whole(pool, bytes)),
        PoolKind::Node => u64::MAX,
    }
}

/// In granules, rounded down.
fn whole(pool: &Pool, bytes: u64) -> u64 {
    let granule = pool.granularity_bytes.max(1);
    bytes / granule * granule
}

/// What buffers can have of a node's pool.
pub fn holdable_on(cluster: &Cluster, pool: &Pool, node: &NodeName) -> u64 {
    let reports = cluster.node(node.as_str()).map(|node| node.machine.pools.as_slice()).unwrap_or_default();
    let report = reports.iter().find(|report| report.pool == pool.name && report.total_bytes > 0);
    let most = report.map_or(u64::MAX, |report| whole(pool, report.usable_bytes()));
    total_on(cluster, pool, node).min(most)
}

/// What can still be given out.
pub fn free(cluster: &Cluster, usage: &Usage, pool: &Pool) -> u64 {
    match pool.kind {
        PoolKind::Shared => {
            let most = total(cluster, pool).min(holdable(cluster, pool));
            most.saturating_sub(usage.of_pool(pool).max(pool.unfree_bytes))
        }
        PoolKind::Node => {
            let on = |name: &NodeName| holdable_on(cluster, pool, name).saturating_sub(usage.on_node(&pool.name, name));
            cluster.nodes().filter(|node| node.answers).map(|node| on(&node.name)).fold(0, u64::saturating_add)
        }
    }
}
