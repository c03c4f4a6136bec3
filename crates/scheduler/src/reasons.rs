//! Why a job stays: the first that finds no room in a partition waits for resources, those behind it for their turn.
use std::collections::BTreeSet;

use model::plan::WaitReason;
use model::{Job, NodeName, Plan, Reason, hostlist};
use state::Cluster;
use topology::Unfit;

use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::{PoolId, Room};
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
        if job.reason != Some(reason) || job.reason_text != text {
            plan.reasons.push(WaitReason { job: job.id, reason: Some(reason), text, expected_start: None });
        }
    }

    fn reason(&mut self, room: &Room<'a>, clock: &Clock, request: &Request<'a>, pools: &[PoolId]) -> (Reason, String) {
        if let Some(text) = self.unavailable(request.job) {
            return (Reason::ReqNodeNotAvail, text);
        }
        let is_sure = pools.iter().any(|pool| room.is_complete(*pool)) || self.n_close_looks >= N_CLOSE_LOOKS;
        if !is_sure {
            self.n_close_looks += 1;
            let interval = Interval { from: Slot::NOW, until: Slot::NEVER };
            let can_start = |pool: &PoolId| pick::could_start(&Offer::of_spots(room, *pool, interval, request));
            if !pools.iter().any(can_start) {
                return (Reason::Resources, NODES_ARE_DOWN.into());
            }
        }
        if self.waits_for_maintenance(room, clock, request, pools) {
            return (Reason::ReqNodeNotAvail, RESERVED_FOR_MAINTENANCE.into());
        }
        if names_reserved(room, clock, request) {
            return (Reason::ReqNodeNotAvail, RESERVED_FOR_OTHERS.into());
        }
        let mut is_first = false;
        for pool in pools {
            is_first |= self.blocked.insert(*pool);
        }
        if !is_first {
            return (Reason::Priority, String::new());
        }
        (Reason::Resources, self.network_text(room, request, pools))
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
        let named = || hostlist::compress(unusable.iter().map(|name| name.as_str()));
        (!unusable.is_empty()).then(|| format!("ReqNodeNotAvail, UnavailableNodes:{}", named()))
    }
}

/// Nodes that the job named are another's reservation for as long as it would run.
fn names_reserved(room: &Room, clock: &Clock, request: &Request) -> bool {
    let interval = clock.interval(Slot::NOW, request.length);
    let mut named = request.size.nodes.iter().filter_map(|name| room.find(name));
    request.reservation.is_empty() && named.any(|spot| room.closures.bars(spot, request, interval))
}
