//! Heterogeneous jobs: all components start in one plan, each on nodes of its own, or none does.
use model::plan::{ExpectedStart, Grant};
use model::spec::Size;
use model::{HetPlace, Job, JobId, NodeName, Reason, Start};

use super::Pass;
use super::share::Way;
use crate::counts::Wanted;
use crate::pick::{self, Offer};
use crate::request::Request;
use crate::room::PoolId;
use crate::timeline::Slot;

/// Where one component may run, and in which ways: with other licences where it has the choice, the best first.
type Ways<'a> = (Vec<PoolId>, Vec<Request<'a>>);

/// What one component would get.
struct Found<'a> {
    pool: PoolId,
    request: Request<'a>,
    grants: Vec<Grant>,
}

impl<'a> Pass<'a> {
    /// Looks at the whole when the turn of its first component comes.
    pub(super) fn consider_whole(&mut self, het: &'a HetPlace) {
        if !self.wholes.insert(het.leader) {
            return;
        }
        let cluster = self.cluster;
        let eligible =
            |id: &JobId| cluster.job(*id).filter(|job| cluster.is_eligible(job)).map(|job| -> &'a Job { job });
        // One that is held, or waits for something else, keeps the others.
        let Some(components) = het.ids.iter().map(eligible).collect::<Option<Vec<&'a Job>>>() else { return };
        let wanted = components.iter().map(|job| self.wanted(job)).collect::<Option<Vec<_>>>();
        let Some(wanted): Option<Vec<Ways<'a>>> = wanted else { return };
        let is_behind = |pools: &Vec<PoolId>| pools.iter().any(|pool| self.reasons.is_blocked(*pool));
        let may_pass =
            self.cluster.config().scheduler.backfill.is_on || !wanted.iter().any(|(pools, _)| is_behind(pools));
        let found = self.all_apart(&wanted).filter(|_| may_pass);
        if let Some((job, reason)) = found.as_ref().and_then(|found| self.limit_on_one(found)) {
            for component in &components {
                let own = if component.id == job { reason } else { Reason::Priority };
                self.stays_for(component, own);
            }
            return;
        }
        match found {
            Some(found) => {
                for Found { pool, request, grants } in found {
                    self.place(pool, &request, None, grants, Way::default());
                }
            }
            None => wanted.iter().for_each(|(pools, requests)| self.keep(pools, &requests[0])),
        }
    }

    /// The first component that a limit keeps, the others being counted, and that limit.
    fn limit_on_one(&mut self, found: &[Found<'a>]) -> Option<(JobId, Reason)> {
        let before = self.allowance.snapshot();
        let mut refusal = None;
        for Found { pool, request, grants } in found {
            let partition = self.room.partition(*pool);
            if let Some(reason) = self.allowance.refusal_of(request.job, partition, grants, None) {
                refusal = Some((request.job.id, reason));
                break;
            }
            let (job, nodes) = (request.job.id, grants.clone());
            let start = Start { job, partition: partition.name.clone(), nodes, ..Default::default() };
            self.allowance.started(request.job, &start);
        }
        self.allowance.restore(before);
        refusal
    }

    /// None if it may not run in its reservation now.
    fn wanted(&mut self, job: &'a Job) -> Option<Ways<'a>> {
        let pools = self.pools(job);
        self.room.look_for(&job.spec.size);
        let mut requests = Request::all(self.cluster, &self.room.closures, job);
        let reservation = Request::waiting(&requests)?.reservation;
        requests.retain(|request| request.reservation == reservation);
        Some((pools, requests))
    }

    /// Places for all of them now, no node twice.
    fn all_apart(&self, wanted: &[Ways<'a>]) -> Option<Vec<Found<'a>>> {
        let (mut found, mut taken, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (pools, requests) in wanted {
            let (pool, request, grants) = requests.iter().find_map(|request| {
                let mut counts: Vec<Wanted> = counts.clone();
                add(&mut counts, &request.counts);
                pools.iter().find_map(|pool| Some((*pool, request, self.apart(*pool, request, &taken, &counts)?)))
            })?;
            add(&mut counts, &request.counts);
            taken.extend(grants.iter().map(|grant| grant.node.clone()));
            found.push(Found { pool, request: request.clone(), grants });
        }
        Some(found)
    }

    /// Nodes for one component besides those that are taken.
    fn apart(&self, pool: PoolId, request: &Request, taken: &[NodeName], counts: &[Wanted]) -> Option<Vec<Grant>> {
        let interval = self.clock.interval(Slot::NOW, request.length);
        if !self.room.counts.has(counts, interval, request.reservation) {
            return None;
        }
        let mut size = Size::clone(request.size);
        size.excluded.extend_from_slice(taken);
        pick::pick(&Offer::now(&self.room, pool, interval.until, request).with_size(&size))
    }

    /// A component that stays has a reason, and room of its own in the future as any job has.
    fn keep(&mut self, pools: &[PoolId], request: &Request<'a>) {
        self.reasons.of_blocked(&self.room, &self.clock, std::slice::from_ref(request), pools, &mut self.plan);
        let has_place = self.depth.may_promise() && self.promise(pools, request);
        if !has_place && request.job.expected_start.is_some() {
            self.plan.expected_starts.push(ExpectedStart { job: request.job.id, ..Default::default() });
        }
    }
}

/// Adds what one more component needs to what the others need.
fn add(counts: &mut Vec<Wanted>, more: &[Wanted]) {
    for one in more {
        match counts.iter_mut().find(|known| known.name == one.name) {
            Some(known) => known.count += one.count,
            None => counts.push(one.clone()),
        }
    }
}
