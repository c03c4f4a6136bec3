//! Whose burst buffers are filled, and when: in order of importance, early enough to be there when the nodes are, and nobody
//! passes another that waits for room in the same pool.
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use model::plan::{Grant, WaitReason};
use model::pool::{Pool, PoolKind};
use model::{BufferPhase, Job, JobId, NodeName, Partition, Phase, Reason, StageStart, Start, Timestamp};
use state::buffers::capacity::{self, Fit, Usage};
use state::{Cluster, buffers};

use crate::pass::Pass;
use crate::request::Request;

/// So many are begun at once; the next pass comes at once.
const N_BEGUN_AT_ONCE: usize = 256;

/// Jobs whose data is on its way, the least important first. They keep their places, for they start soon.
pub(crate) fn being_staged(cluster: &Cluster) -> Vec<&Job> {
    let is_on_its_way = |phase| matches!(phase, BufferPhase::StagingIn | BufferPhase::Revoked);
    let staging = cluster.buffers().filter(|buffer| is_on_its_way(buffer.phase));
    let jobs = staging.filter_map(|buffer| cluster.job(buffer.job)).map(|job| &**job);
    let mut jobs: Vec<&Job> = jobs.filter(|job| job.phase == Phase::Pending && job.held.is_none()).collect();
    jobs.sort_by_key(|job| std::cmp::Reverse(cluster.queue_key(job)));
    jobs
}

/// When a job will have its nodes, as far as can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Now,
    At(Timestamp),
    /// Later than is looked ahead.
    Unknown,
    Never,
}

impl<'a> Pass<'a> {
    pub(crate) fn keep_a_place(&mut self, job: &'a Job) {
        if self.depth.may_promise() {
            let pools = self.pools(job);
            if let Some(request) = self.request(job) {
                self.find_place(&pools, &request);
            }
        }
    }

    fn request(&mut self, job: &'a Job) -> Option<Request<'a>> {
        self.room.look_for(&job.spec.size);
        Request::waiting(&Request::all(self.cluster, &self.room.closures, job))
    }

    /// Begins to fill buffers.
    pub(crate) fn stage(&mut self) {
        if self.cluster.n_to_stage() == 0 {
            return;
        }
        let cluster = self.cluster;
        let mut usage = Usage::of(cluster);
        let pools = cluster.config().burst_buffer.iter().flat_map(|config| &config.pools);
        let shared = pools.filter(|pool| pool.kind == PoolKind::Shared);
        let shared: BTreeSet<&str> = shared.map(|pool| pool.name.as_str()).collect();
        let (mut queues, are_full) = (PoolQueues::default(), Cell::new(false));
        let reserves = cluster.reservations().any(|reservation| !reservation.burst_buffer.is_empty());
        let most_tasks = cluster.config().burst_buffer.as_ref().map_or(10, |config| config.n_array_tasks);
        let mut of_array = tasks_with_buffers(cluster);
        self.allowance.suppose();
        self.suppose_staged_ones_start();
        let queue = cluster.staging_queue(|| are_full.get());
        for job in queue.take(cluster.config().scheduler.depth as usize) {
            // Data is brought for no job that a limit keeps, and no job waits for the space of such a job.
            let pools = self.pools(job);
            let (_, refusal) = self.within_limits(job, pools);
            self.waits_to_be_staged(job, refusal.unwrap_or(Reason::BurstBufferResources));
            if let Some(reason) = refusal {
                self.waits_for_a_limit(job, reason);
                continue;
            }
            let wanted = capacity::wanted(cluster, &job.spec);
            let finds_what_it_uses = wanted.is_empty() || buffers::uses_are_ready(cluster, &job.spec);
            if !finds_what_it_uses || queues.keep(&usage, cluster, job, &wanted) {
                continue;
            }
            let tasks: Box<dyn Iterator<Item = Option<u32>>> = match &job.waiting_tasks {
                None => Box::new(std::iter::once(None)),
                Some(tasks) => Box::new(tasks.iter().map(Some)),
            };
            for task in tasks {
                let n_tasks = job.array_id().map(|array| of_array.entry(array).or_default());
                if task.is_some() && n_tasks.as_ref().is_some_and(|n_tasks| **n_tasks >= most_tasks) {
                    break;
                }
                // Tasks that are left may be too many for a limit.
                let pools = self.pools(job);
                let (within, refusal) = self.within_limits(job, pools);
                if refusal.is_some() {
                    break;
                }
                match usage.fit(cluster, &job.spec) {
                    Fit::Never => break,
                    Fit::NotNow => {
                        self.make_space(&usage, job);
                        queues.wait(job, &wanted);
                        are_full.set(!reserves && shared.is_subset(&queues.full));
                        break;
                    }
                    Fit::Now => (),
                }
                if !buffers::has_agent(cluster, job) || !self.is_due(job) {
                    break;
                }
                usage.take(cluster, &job.spec);
                queues.take(job, &wanted);
                if let Some(partition) = within.first().map(|pool| self.room.partition(*pool)) {
                    self.allowance.started(job, partition, as_asked(job, task, partition));
                }
                if let Some(n_tasks) = n_tasks {
                    *n_tasks += 1;
                }
                self.plan.stage_ins.push(StageStart { job: job.id, task, nodes: Vec::new() });
                if self.plan.stage_ins.len() >= N_BEGUN_AT_ONCE {
                    return self.allowance.forget_what_was_supposed();
                }
            }
        }
        self.allowance.forget_what_was_supposed();
    }

    /// Whoever has its data, or will have it soon, counts for limits as if it had started: no more are staged than may run.
    fn suppose_staged_ones_start(&mut self) {
        let cluster = self.cluster;
        let starting: BTreeSet<JobId> = self.allowance.starts().iter().map(|start| start.job).collect();
        let ahead = cluster.buffers().filter(|buffer| buffer.phase < BufferPhase::InUse);
        let jobs = ahead.filter_map(|buffer| cluster.job(buffer.job)).map(|job| &**job);
        let waits = |job: &&Job| job.phase == Phase::Pending && job.held.is_none() && !starting.contains(&job.id);
        for job in jobs.filter(waits) {
            if let Some(partition) = job.spec.partitions.first().and_then(|name| cluster.config().partition(name)) {
                self.allowance.started(job, partition, as_asked(job, None, partition));
            }
        }
    }

    /// Why nothing is done yet for its data, if that is news.
    fn waits_to_be_staged(&mut self, job: &Job, reason: Reason) {
        if job.reason != Some(reason) {
            self.plan.reasons.push(WaitReason { job: job.id, reason: Some(reason), ..Default::default() });
        }
    }

    /// It is expected to start soon enough, or nobody knows when.
    fn is_due(&mut self, job: &'a Job) -> bool {
        let Some(ahead) = self.ahead() else { return self.expected(job) == Expected::Now };
        let at = match self.expected(job) {
            Expected::Now | Expected::Unknown => return true,
            Expected::Never => return false,
            Expected::At(at) => at,
        };
        if at <= self.cluster.now() + ahead {
            return true;
        }
        self.look_again(Timestamp(at.0 - ahead.0));
        false
    }

    /// When nodes will be there for it.
    pub(crate) fn expected(&mut self, job: &'a Job) -> Expected {
        let pools = self.pools(job);
        let Some(request) = self.request(job) else { return Expected::Never };
        if pools.is_empty() || pools.iter().any(|pool| self.fits_now(*pool, &request).is_some()) {
            return Expected::Now;
        }
        self.room.look_ahead();
        let first = |pool: &crate::room::PoolId| {
            let slot = crate::timeline::Slot(1);
            crate::timeline::earliest(&self.room, &self.clock, *pool, &request, slot).map(|(slot, _)| slot)
        };
        match pools.iter().filter_map(first).min().filter(|slot| *slot < self.clock.end()) {
            Some(slot) => Expected::At(self.clock.time(slot)),
            None => Expected::Unknown,
        }
    }

    /// Private space is made ahead where the job is expected to run.
    pub(crate) fn stage_on(&mut self, job: &Job, at: Option<Timestamp>, grants: &[Grant]) {
        let has_none = job.buffer.is_none() || buffers::is_left_behind(self.cluster, job);
        let is_single = job.waiting_tasks.is_none() && has_none;
        let is_private =
            job.spec.buffer.as_ref().is_some_and(|request| request.has_private_space() && !request.depends_on_rank());
        let (true, true, Some(at), Some(ahead)) = (is_single, is_private, at, self.ahead()) else { return };
        // Others are just being asked to make room for it: it starts where they leave.
        if self.plan.preemptions.iter().any(|one| one.by == job.id) {
            return;
        }
        let nodes: Vec<NodeName> = grants.iter().map(|grant| grant.node.clone()).collect();
        let is_soon = at <= self.cluster.now() + ahead;
        if !is_soon {
            self.look_again(Timestamp(at.0 - ahead.0));
        }
        if is_soon && !buffers::is_staged_ahead(&job.spec) && nodes.iter().all(|node| self.room.has_disk_for(job, node))
        {
            self.room.take_disk(job, &nodes);
            self.plan.stage_ins.push(StageStart { job: job.id, task: None, nodes });
        }
    }

    fn ahead(&self) -> Option<model::time::Span> {
        let ahead = self.cluster.config().burst_buffer.as_ref()?.stage_ahead;
        (ahead.0 > 0).then_some(ahead)
    }
}

/// Who waits for room in which pool. Space of a reservation is its jobs' own, whoever waits for the rest of the pool.
#[derive(Default)]
struct PoolQueues<'a> {
    /// Somebody waits for room here.
    full: BTreeSet<&'a str>,
    /// Here jobs of the reservation wait, too.
    full_within: BTreeSet<(&'a str, &'a str)>,
    /// What this pass gives to jobs of the reservation.
    given_within: BTreeMap<(&'a str, &'a str), u64>,
}

impl<'a> PoolQueues<'a> {
    /// Others came first for what the job wants.
    fn keep(&self, usage: &Usage, cluster: &Cluster, job: &'a Job, wanted: &[(&'a Pool, u64)]) -> bool {
        wanted.iter().any(|(pool, bytes)| {
            let name = pool.name.as_str();
            let is_own = |reservation: &String| {
                let within = (name, reservation.as_str());
                let given = self.given_within.get(&within).copied().unwrap_or(0);
                let left = usage.left_in_reservation(cluster, reservation, name).saturating_sub(given);
                !self.full_within.contains(&within) && *bytes <= left
            };
            self.full.contains(name) && !job.spec.reservations.iter().any(is_own)
        })
    }

    fn wait(&mut self, job: &'a Job, wanted: &[(&'a Pool, u64)]) {
        for (pool, _) in wanted {
            self.full.insert(&pool.name);
            self.full_within.extend(job.spec.reservations.iter().map(|one| (pool.name.as_str(), one.as_str())));
        }
    }

    fn take(&mut self, job: &'a Job, wanted: &[(&'a Pool, u64)]) {
        for (pool, bytes) in wanted {
            for reservation in &job.spec.reservations {
                *self.given_within.entry((&pool.name, reservation)).or_default() += bytes;
            }
        }
    }
}

/// A start on nodes that are not known yet, for those who count what starts.
fn as_asked(job: &Job, task: Option<u32>, partition: &Partition) -> Start {
    let (n_nodes, n_cpus, memory_mb) = job.spec.asked_of_nodes();
    let no_node = |number: u32| NodeName::from(format!("{}/{number}", job.id));
    let mut nodes: Vec<Grant> =
        (0..n_nodes.max(1)).map(|number| Grant { node: no_node(number), ..Default::default() }).collect();
    nodes[0].n_cpus = n_cpus;
    nodes[0].memory_mb = memory_mb.unwrap_or(0);
    Start { job: job.id, task, partition: partition.name.clone(), nodes, ..Default::default() }
}

/// Tasks of arrays that have buffers and do not run yet.
fn tasks_with_buffers(cluster: &Cluster) -> BTreeMap<JobId, u32> {
    let mut counts = BTreeMap::new();
    let jobs = cluster.buffers().filter_map(|buffer| cluster.job(buffer.job));
    for array in jobs.filter(|job| job.phase == Phase::Pending).filter_map(|job| job.array_id()) {
        *counts.entry(array).or_default() += 1;
    }
    counts
}
