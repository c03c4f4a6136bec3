//! The scheduler's plan, made on a state that may be gone: every part is checked again, stale parts are dropped.
use std::collections::BTreeSet;
use std::sync::Arc;

use model::het::StepPart;
use model::plan::StagePreemption;
use model::spec::{Distribution, TimeLimit};
use model::{
    BufferPhase, Job, JobId, JobKind, JobSpec, NodeName, NodeShare, Partition, Phase, Plan, Reply, StageStart, Start,
    StepId,
};

use super::Answer;
use crate::buffers::capacity::{self, Fit, Usage};
use crate::buffers::life;
use crate::features::partition_refusal;
use crate::job_life::{self, Step};
use crate::settle::forget_wait;
use crate::step_layout::Layout;
use crate::{
    Cluster, arrays, batch_host, buffers, gang, het, ledger, limits, network, plan_due, ports, preemption,
    reservations, step_life,
};

pub(crate) fn adopt(cluster: &mut Cluster, plan: &Plan) -> Answer {
    let mut n_started = 0;
    let mut wholes = BTreeSet::new();
    for start in &plan.starts {
        match het_leader(cluster, start) {
            None if may_start(cluster, start) => {
                place(cluster, start);
                n_started += 1;
            }
            None => (),
            Some(leader) if wholes.insert(leader) => n_started += start_together(cluster, leader, plan),
            Some(_) => (),
        }
    }
    if !plan.stage_ins.is_empty() {
        let mut usage = Usage::of(cluster);
        for stage_in in &plan.stage_ins {
            stage(cluster, &mut usage, stage_in);
        }
    }
    for id in &plan.forfeits {
        cluster.claims.remove(id);
    }
    plan.stage_preemptions.iter().for_each(|one| unstage(cluster, one));
    let told = plan.preemptions.iter().filter(|one| preemption::begin(cluster, one)).count();
    for wait in &plan.reasons {
        let tells_staging = cluster.rules() >= 3;
        let is_waiting = |job: &Job| cluster.is_eligible(job) || (tells_staging && cluster.may_be_staged(job));
        if cluster.jobs.get(&wait.job).is_some_and(|job| is_waiting(job)) {
            let now = cluster.now;
            let job = cluster.job_mut(wait.job);
            job.reason = wait.reason;
            job.reason_text = wait.text.clone();
            job.last_evaluated = Some(now);
        }
    }
    for id in &plan.switch_waits {
        let waits = cluster.jobs.get(id).is_some_and(|job| cluster.is_eligible(job) && job.switch_wait_since.is_none());
        if waits {
            let now = cluster.now;
            cluster.job_mut(*id).switch_wait_since = Some(now);
        }
    }
    for expected in &plan.expected_starts {
        let eligible = cluster.jobs.get(&expected.job).is_some_and(|job| cluster.is_eligible(job));
        if eligible {
            let now = cluster.now;
            let job = cluster.job_mut(expected.job);
            job.expected_start = expected.at;
            job.expected_nodes = expected.nodes.clone();
            job.last_evaluated = Some(now);
        }
    }
    plan_due::note(cluster, plan.look_again);
    reservations::replace_used(cluster, plan.starts.iter().map(|start| start.reservation.as_str()));
    let n_stale = plan.starts.len() as u32 - n_started + (plan.preemptions.len() - told) as u32;
    Ok(Reply::Adopted { n_started, n_stale })
}

fn het_leader(cluster: &Cluster, start: &Start) -> Option<JobId> {
    cluster.jobs.get(&start.job)?.het.as_ref().map(|het| het.leader)
}

/// All components start, or none; how many do.
fn start_together(cluster: &mut Cluster, leader: JobId, plan: &Plan) -> u32 {
    let starts: Vec<&Start> = plan.starts.iter().filter(|start| het_leader(cluster, start) == Some(leader)).collect();
    let Some(het) = cluster.jobs.get(&starts[0].job).and_then(|job| job.het.clone()) else { return 0 };
    let named: BTreeSet<JobId> = starts.iter().map(|start| start.job).collect();
    if starts.len() != het.ids.len() || !het.ids.iter().all(|id| named.contains(id)) {
        return 0;
    }
    let n_nodes: usize = starts.iter().map(|start| start.nodes.len()).sum();
    let nodes: BTreeSet<&NodeName> = starts.iter().flat_map(|start| &start.nodes).map(|grant| &grant.node).collect();
    if nodes.len() != n_nodes {
        return 0;
    }
    let before = cluster.clone();
    for start in &starts {
        if !may_start(cluster, start) {
            *cluster = before;
            return 0;
        }
        place(cluster, start);
    }
    let first_step = |id: &JobId| StepPart { job: *id, step: StepId::Number(0) };
    let parts: Vec<StepPart> = het.ids.iter().map(first_step).collect();
    if parts.iter().all(|part| cluster.step(part.job, part.step).is_some()) {
        het::join(cluster, &parts);
    }
    starts.len() as u32
}

fn may_start(cluster: &Cluster, start: &Start) -> bool {
    let Some(job) = cluster.jobs.get(&start.job) else { return false };
    let task_is_right = match (&job.waiting_tasks, start.task) {
        (Some(waiting), Some(task)) => waiting.contains(task),
        (None, None) => true,
        _ => false,
    };
    let array = job.array_id().and_then(|array| cluster.arrays.get(&array));
    let partition = cluster.config.partition(&start.partition);
    cluster.is_eligible(job)
        && task_is_right
        && array.is_none_or(|array| array.n_may_start() > 0)
        && job.spec.partitions.contains(&start.partition)
        && partition.is_some_and(|partition| {
            partition_refusal(cluster, partition, job).is_none()
                && start.nodes.iter().all(|grant| is_in(cluster, partition, &grant.node))
                && network::allows(cluster, partition, &job.spec, start)
        })
        && limit_is_right(&job.spec, start)
        && has_private_room(cluster, job, start)
        && has_ports(cluster, job)
        && reservations::allow(cluster, job, start)
        && partition
            .is_some_and(|partition| start.parks.iter().all(|one| gang::may_park(cluster, job, partition, *one)))
        && ledger::fits(cluster, job, start)
        && limits::refusal(cluster, job, start).is_none()
}

/// Whatever its step asks for is free, wherever it starts.
fn has_ports(cluster: &Cluster, job: &Job) -> bool {
    let JobKind::Run(step) = &job.spec.kind else { return true };
    step.n_ports.is_none_or(|count| ports::are_free_anywhere(cluster, count))
}

/// A shorter limit is one that `--time-min` allows.
fn limit_is_right(spec: &JobSpec, start: &Start) -> bool {
    let Some(limit) = start.time_limit else { return true };
    spec.time_min.is_some_and(|least| least <= limit) && spec.time_limit.is_none_or(|most| limit <= most)
}

/// Begins the buffer of a job that still waits for one, if there is still room for it.
fn stage(cluster: &mut Cluster, usage: &mut Usage, stage_in: &StageStart) {
    let Some(job) = cluster.jobs.get(&stage_in.job) else { return };
    let task_is_right = match (&job.waiting_tasks, stage_in.task) {
        (Some(waiting), Some(task)) => waiting.contains(task),
        (None, None) => true,
        _ => false,
    };
    let spec = job.spec.clone();
    let is_waiting = cluster.may_be_staged(job) || (cluster.is_eligible(job) && !stage_in.nodes.is_empty());
    let fits = |node: &NodeName| cluster.nodes.contains_key(node) && usage.has_room_on(cluster, &spec, None, node);
    let has_none = job.buffer.is_none() || life::is_left_behind(cluster, job);
    let is_let_in = cluster.rules() < 3 || is_within_limits(cluster, job);
    // Whoever waits for a persistent buffer keeps no space from others meanwhile.
    let finds_what_it_uses =
        cluster.rules() < 3 || capacity::wanted(cluster, &spec).is_empty() || buffers::uses_are_ready(cluster, &spec);
    let may = has_none
        && spec.buffer.is_some()
        && is_waiting
        && task_is_right
        && is_let_in
        && finds_what_it_uses
        && usage.fit(cluster, &spec) == Fit::Now
        && stage_in.nodes.iter().all(fits)
        && buffers::has_agent(cluster, job);
    if !may {
        return;
    }
    usage.take(cluster, &spec);
    usage.take_on_nodes(&spec, &stage_in.nodes);
    let id = match stage_in.task {
        Some(task) => arrays::split(cluster, stage_in.job, &[task].into_iter().collect()),
        None => stage_in.job,
    };
    forget_wait(cluster, id);
    life::create(cluster, id, &stage_in.nodes);
    cluster.unsettled.insert(id);
}

/// In some partition no limit of accounts would keep it from starting.
fn is_within_limits(cluster: &Cluster, job: &Job) -> bool {
    let partitions = job.spec.partitions.iter().filter_map(|name| cluster.config.partition(name));
    let mut partitions = partitions.peekable();
    partitions.peek().is_none() || partitions.any(|partition| limits::asked_refusal(cluster, job, partition).is_none())
}

/// What was filled ahead goes again, and its job waits for another turn.
fn unstage(cluster: &mut Cluster, one: &StagePreemption) {
    let allows = cluster.config.burst_buffer.as_ref().is_some_and(|config| config.preempts);
    let is_waiting = cluster.jobs.get(&one.job).is_some_and(|job| {
        let is_ahead = matches!(job.buffer, Some(BufferPhase::StagingIn | BufferPhase::StagedIn));
        job.phase == Phase::Pending && is_ahead
    });
    let is_wanted = cluster.jobs.get(&one.by).is_some_and(|job| job.buffer.is_none() && cluster.may_be_staged(job));
    if allows && is_waiting && is_wanted {
        buffers::life::take(cluster, one.job, buffers::life::Step::Discard);
    }
}

/// Every node has room for the job's private space.
fn has_private_room(cluster: &Cluster, job: &Job, start: &Start) -> bool {
    let is_private = job.spec.buffer.as_ref().is_some_and(|request| request.has_private_space());
    if !is_private {
        return true;
    }
    let (usage, own) = (Usage::of(cluster), cluster.buffer(job.id));
    let own = own.map(|buffer| &**buffer);
    start.nodes.iter().all(|grant| usage.has_room_on(cluster, &job.spec, own, &grant.node))
}

fn is_in(cluster: &Cluster, partition: &Partition, node: &NodeName) -> bool {
    cluster.nodes.get(node).is_some_and(|node| node.partitions.contains(&partition.name))
}

fn place(cluster: &mut Cluster, start: &Start) {
    let id = match start.task {
        Some(task) => arrays::split(cluster, start.job, &[task].into_iter().collect()),
        None => start.job,
    };
    cluster.claims.remove(&start.job);
    ledger::hold(cluster, id, start);
    let last = cluster.reservation(&start.reservation).and_then(|one| reservations::last_moment(cluster, one));
    let now = cluster.now;
    let placed = &cluster.jobs[&id];
    let batch_host = batch_host::choose(cluster, &placed.spec, placed.allocation.names());
    let job = cluster.job_mut(id);
    job.partition = start.partition.clone();
    job.reservation = start.reservation.clone();
    job.must_end_by = last;
    job.batch_host = batch_host;
    job.switch_wait_since = None;
    if start.time_limit.is_some() {
        Arc::make_mut(&mut job.spec).time_limit = start.time_limit;
    }
    if let Some(deadline) = job.spec.deadline {
        // In whole minutes, as limits are told.
        let left = (deadline - now).secs().div_ceil(60).max(1) * 60;
        if job.spec.time_limit.and_then(TimeLimit::span).is_none_or(|limit| limit.secs() > left) {
            Arc::make_mut(&mut job.spec).time_limit = Some(TimeLimit::Secs(left));
        }
    }
    reservations::note_use(cluster, &start.reservation, true);
    job_life::take(cluster, id, Step::Place);
    if let JobKind::Run(spec) = cluster.jobs[&id].spec.kind.clone() {
        create_only_step(cluster, id, &spec);
    }
    cluster.unsettled.insert(id);
}

/// An `srun` outside an allocation is one step, laid out as the whole job is, unless whole nodes are to be packed.
fn create_only_step(cluster: &mut Cluster, id: JobId, spec: &model::StepSpec) {
    let shares = cluster.jobs[&id].allocation.nodes.iter().filter(|share| share.n_tasks > 0);
    let mut shares: Vec<NodeShare> = shares.cloned().collect();
    let size = &cluster.jobs[&id].spec.size;
    let packs = cluster.rules() >= 2 && (spec.packs || cluster.config.scheduler.fills_nodes);
    if size.n_tasks.is_none() && size.tasks_per_node.is_none() {
        // Whole nodes are shown with as many tasks as they have room for. One each is what was asked, unless it was told
        // how many CPUs each has.
        let n_tasks = |share: &NodeShare| match spec.cpus_per_task {
            Some(each) if !spec.overcommit => (share.cpus.len() / each.max(1)).max(1),
            _ => 1,
        };
        shares.iter_mut().for_each(|share| share.n_tasks = n_tasks(share));
    }
    if !spec.hosts.is_empty() {
        let count = |node: &NodeName| spec.hosts.iter().filter(|host| *host == node).count() as u32;
        shares.iter_mut().for_each(|share| share.n_tasks = count(&share.node).min(share.n_tasks));
        shares.retain(|share| share.n_tasks > 0);
    } else if size.wants_whole_nodes() && spec.distribution == Distribution::Block && packs {
        let each = spec.cpus_per_task.unwrap_or(1).max(1);
        let most = spec.tasks_per_node.unwrap_or(u32::MAX);
        let rooms: Vec<u32> = shares.iter().map(|share| (share.cpus.len() / each).min(most)).collect();
        let counts = Distribution::Block.counts(shares.iter().map(|share| share.n_tasks).sum(), &rooms);
        let counts = counts.into_iter().flatten();
        shares.iter_mut().zip(counts).for_each(|(share, count)| share.n_tasks = count);
    }
    let layout = Layout { n_tasks: shares.iter().map(|share| share.n_tasks).sum(), shares };
    crate::blobs::take(cluster, &crate::blobs::of_step(spec), &[]);
    cluster.job_mut(id).next_step = 1;
    // What was asked for was looked at before; what MPI would like to have is no condition.
    let ports = ports::choose(cluster, spec, layout.shares.iter()).unwrap_or_default();
    step_life::create(cluster, id, StepId::Number(0), spec, layout, ports);
}
