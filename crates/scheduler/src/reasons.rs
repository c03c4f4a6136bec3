//! Why a job stays: the first that finds no room in a partition waits for resources, those behind it for their turn.
use std::collections::BTreeSet;

use model::plan::WaitReason;
use model::{Job, NodeName, Plan, Reason, hostlist};
use state::Cluster;
use topology::Unfit;

use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::{PoolId, Room, SpotId};
use crate::timeline::{Clock, Interval, Slot};

const NODES_ARE_DOWN: &str =
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";

const RESERVED_FOR_MAINTENANCE: &str = "ReqNodeNotAvail, Reserved for maintenance";

const RESERVED_FOR_OTHERS: &str = "ReqNodeNotAvail, May be reserved for other job";

/// Looking at every node of a partition is dear; so many times a pass it is done.
const N_CLOSE_LOOKS: u32 = 64;

pub(crate) struct Reasons<'a> {
    cluster: &'a Cluster,
    /// Partitions in which a job already waits for resources.
    blocked: BTreeSet<PoolId>,
    n_close_looks: u32,
}

impl<'a> Reasons<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Reasons { cluster, blocked: BTreeSet::new(), n_close_looks: 0 }
    }

    /// Somebody already waits for resources there.
    pub fn is_blocked(&self, pool: PoolId) -> bool {
        self.blocked.contains(&pool)
    }

    /// Notes in the plan why the job stays, if that is news.
    pub fn of_blocked(
        &mut self,
        room: &Room<'a>,
        clock: &Clock,
        requests: &[Request<'a>],
        pools: &[PoolId],
        plan: &mut Plan,
    ) {
        let request = &requests[0];
        let job = request.job;
        let lacks_licenses =
            |one: &Request| !room.counts.has(&one.counts, clock.interval(Slot::NOW, one.length), one.reservation);
        let (reason, text) = match requests.iter().all(lacks_licenses) {
            true => (Reason::Licenses, String::new()),
            false => self.reason(room, clock, request, pools),
        };
        if job.reason != Some(reason) || job.reason_text != text || job.last_evaluated.is_none() {
            plan.reasons.push(WaitReason { job: job.id, reason: Some(reason), text, expected_start: None });
        }
    }

    fn reason(&mut self, room: &Room<'a>, clock: &Clock, request: &Request<'a>, pools: &[PoolId]) -> (Reason, String) {
        if let Some(text) = self.unavailable(request.job) {
            return (Reason::ReqNodeNotAvail, text);
        }
        if self.lacks_disk(room, request, pools) {
            return (Reason::BurstBufferResources, String::new());
        }
        let is_sure = pools.iter().any(|pool| room.is_complete(*pool)) || self.n_close_looks >= N_CLOSE_LOOKS;
        if !is_sure {
            self.n_close_looks += 1;
            let interval = Interval { from: Slot::NOW, until: Slot::NEVER };
            let can_start = |pool: &PoolId| pick::could_start(&Offer::of_spots(room, *pool, interval, request));
            if !pools.iter().any(can_start) {
                return self.too_few(room, request, pools);
            }
        }
        if self.waits_for_maintenance(room, clock, request, pools) {
            return (Reason::ReqNodeNotAvail, RESERVED_FOR_MAINTENANCE.into());
        }
        if self.is_reserved(room, clock, request, pools) {
            return (Reason::ReqNodeNotAvail, RESERVED_FOR_OTHERS.into());
        }
        let are_kept = self.are_kept_by_others(room, pools);
        let mut is_first = false;
        for pool in pools {
            is_first |= self.blocked.insert(*pool);
        }
        match is_first {
            false => (Reason::Priority, String::new()),
            true if are_kept => (Reason::Resources, NODES_ARE_DOWN.into()),
            true => (Reason::Resources, self.network_text(room, request, pools)),
        }
    }

    /// Too few nodes have room for its private burst buffer space, whatever else they have.
    fn lacks_disk(&mut self, room: &Room<'a>, request: &Request<'a>, pools: &[PoolId]) -> bool {
        if !request.needs_disk() || self.n_close_looks >= N_CLOSE_LOOKS {
            return false;
        }
        self.n_close_looks += 1;
        let least = request.size.node_bounds().0.max(1) as usize;
        let has_disk = |spot: &&SpotId| room.has_disk_for(request.job, &room.spot(**spot).node.name);
        let is_large = |pool: &&PoolId| room.members(**pool).len() >= least;
        let has_enough = |pool: &PoolId| room.members(*pool).iter().filter(has_disk).take(least).count() >= least;
        let mut large = pools.iter().filter(is_large).peekable();
        large.peek().is_some() && !large.any(has_enough)
    }

    /// It is the first of its partitions to wait, but jobs before it wait for all their nodes in other partitions.
    fn are_kept_by_others(&self, room: &Room<'a>, pools: &[PoolId]) -> bool {
        if self.blocked.is_empty() || pools.iter().all(|pool| self.blocked.contains(pool)) {
            return false;
        }
        let kept: BTreeSet<SpotId> = self.blocked.iter().flat_map(|pool| room.members(*pool)).copied().collect();
        pools.iter().flat_map(|pool| room.members(*pool)).all(|spot| kept.contains(spot))
    }

    /// What the network lacks, where that is why the job waits.
    fn network_text(&self, room: &Room<'a>, request: &Request<'a>, pools: &[PoolId]) -> String {
        if self.cluster.config().topology.plain_reasons {
            return String::new();
        }
        let interval = Interval { from: Slot::NOW, until: Slot::NEVER };
        let why = |pool: &PoolId| pick::why_not(&Offer::of_spots(room, *pool, interval, request));
        let is_about_units = |unfit: &Unfit| match unfit {
            Unfit::NoUnit | Unfit::NoUnitForSegment | Unfit::RequiredApart | Unfit::TooManyLeaves => true,
            Unfit::TooFew | Unfit::TooSmall | Unfit::RequiredBusy => false,
        };
        pools.iter().find_map(why).filter(is_about_units).map(|unfit| unfit.text().to_string()).unwrap_or_default()
    }

    /// It would start now, were it not for a maintenance that comes too soon.
    fn waits_for_maintenance(
        &mut self,
        room: &Room<'a>,
        clock: &Clock,
        request: &Request<'a>,
        pools: &[PoolId],
    ) -> bool {
        let Some(freed) = room.closures.without_maintenance(request) else { return false };
        if self.n_close_looks >= N_CLOSE_LOOKS {
            return false;
        }
        self.n_close_looks += 1;
        let until = clock.interval(Slot::NOW, request.length).until;
        pools.iter().any(|pool| pick::pick(&Offer::now(room, *pool, until, &freed)).is_some())
    }

    /// Nodes that the job named, but that take no jobs now.
    fn unavailable(&self, job: &Job) -> Option<String> {
        let is_unusable = |name: &&NodeName| self.cluster.node(name.as_str()).is_none_or(|node| !node.is_usable());
        let unusable: Vec<&NodeName> = job.spec.size.nodes.iter().filter(is_unusable).collect();
        (!unusable.is_empty()).then(|| unavailable(unusable))
    }

    /// Too few nodes take jobs at all; or too few of those that have what this one asks for.
    fn too_few(&self, room: &Room, request: &Request, pools: &[PoolId]) -> (Reason, String) {
        let least = request.size.node_bounds().0 as usize;
        let is_choosy = !request.size.suits_every_node() && pools.iter().any(|pool| room.members(*pool).len() >= least);
        let is_away = |name: &&NodeName| {
            self.cluster.node(name.as_str()).is_some_and(|node| !node.is_usable() && node.suits(request.size))
        };
        let nodes = pools.iter().flat_map(|pool| &room.partition(*pool).nodes);
        let away: BTreeSet<&NodeName> = if is_choosy { nodes.filter(is_away).collect() } else { BTreeSet::new() };
        match away.is_empty() {
            true => (Reason::Resources, NODES_ARE_DOWN.into()),
            false => (Reason::ReqNodeNotAvail, unavailable(away)),
        }
    }

    /// For as long as it would run, a node that it named is another's reservation, or too many of all are.
    fn is_reserved(&mut self, room: &Room, clock: &Clock, request: &Request, pools: &[PoolId]) -> bool {
        if !request.reservation.is_empty() || request.closed.is_empty() {
            return false;
        }
        let interval = clock.interval(Slot::NOW, request.length);
        let is_barred = |spot: &SpotId| room.closures.bars(*spot, request, interval);
        if request.size.nodes.iter().filter_map(|name| room.find(name)).any(|spot| is_barred(&spot)) {
            return true;
        }
        if self.n_close_looks >= N_CLOSE_LOOKS {
            return false;
        }
        self.n_close_looks += 1;
        let least = request.size.node_bounds().0 as usize;
        let has_enough = |pool: &PoolId| {
            let open = room.members(*pool).iter().filter(|spot| !is_barred(spot));
            open.take(least).count() >= least
        };
        !pools.iter().any(has_enough)
    }
}

fn unavailable<'n>(nodes: impl IntoIterator<Item = &'n NodeName>) -> String {
    let nodes = hostlist::compress(nodes.into_iter().map(|name| name.as_str()));
    format!("ReqNodeNotAvail, UnavailableNodes:{nodes}")
}
