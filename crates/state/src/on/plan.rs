//! The scheduler's plan, made on a state that may be gone: every part is checked again, stale parts are dropped.
use std::sync::Arc;

use model::{JobId, JobKind, JobSpec, NodeName, NodeShare, Partition, Plan, Reply, Start};

use super::Answer;
use crate::features::partition_refusal;
use crate::job_life::{self, Step};
use crate::step_layout::Layout;
use crate::{Cluster, arrays, ledger, step_life};

pub(crate) fn adopt(cluster: &mut Cluster, plan: &Plan) -> Answer {
    let mut n_started = 0;
    for start in &plan.starts {
        if may_start(cluster, start) {
            place(cluster, start);
            n_started += 1;
        }
    }
    for wait in &plan.reasons {
        let eligible = cluster.jobs.get(&wait.job).is_some_and(|job| cluster.is_eligible(job));
        if eligible {
            let now = cluster.now;
            let job = cluster.job_mut(wait.job);
            job.reason = wait.reason;
            job.reason_text = wait.text.clone();
            job.last_evaluated = Some(now);
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
    Ok(Reply::Adopted { n_started, n_stale: plan.starts.len() as u32 - n_started })
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
            partition_refusal(partition, job).is_none()
                && start.nodes.iter().all(|grant| is_in(cluster, partition, &grant.node))
        })
        && limit_is_right(&job.spec, start)
        && ledger::fits(cluster, &job.spec, start)
}

/// A shorter limit is one that `--time-min` allows.
fn limit_is_right(spec: &JobSpec, start: &Start) -> bool {
    let Some(limit) = start.time_limit else { return true };
    spec.time_min.is_some_and(|least| least <= limit) && spec.time_limit.is_none_or(|most| limit <= most)
}

fn is_in(cluster: &Cluster, partition: &Partition, node: &NodeName) -> bool {
    cluster.nodes.get(node).is_some_and(|node| node.partitions.contains(&partition.name))
}

fn place(cluster: &mut Cluster, start: &Start) {
    let id = match start.task {
        Some(task) => arrays::split(cluster, start.job, &[task].into_iter().collect()),
        None => start.job,
    };
    ledger::hold(cluster, id, start);
    let job = cluster.job_mut(id);
    job.partition = start.partition.clone();
    if start.time_limit.is_some() {
        Arc::make_mut(&mut job.spec).time_limit = start.time_limit;
    }
    job_life::take(cluster, id, Step::Place);
    if let JobKind::Run(spec) = cluster.jobs[&id].spec.kind.clone() {
        create_only_step(cluster, id, &spec);
    }
    cluster.unsettled.insert(id);
}

/// An `srun` outside an allocation is one step, laid out as the whole job is.
fn create_only_step(cluster: &mut Cluster, id: JobId, spec: &model::StepSpec) {
    let shares = cluster.jobs[&id].allocation.nodes.iter().filter(|share| share.n_tasks > 0);
    let mut shares: Vec<NodeShare> = shares.cloned().collect();
    let size = &cluster.jobs[&id].spec.size;
    if size.n_tasks.is_none() && size.tasks_per_node.is_none() {
        // Whole nodes are shown with as many tasks as they have room for; one each is what was asked.
        shares.iter_mut().for_each(|share| share.n_tasks = 1);
    }
    if !spec.hosts.is_empty() {
        let count = |node: &NodeName| spec.hosts.iter().filter(|host| *host == node).count() as u32;
        shares.iter_mut().for_each(|share| share.n_tasks = count(&share.node).min(share.n_tasks));
        shares.retain(|share| share.n_tasks > 0);
    }
    let layout = Layout { n_tasks: shares.iter().map(|share| share.n_tasks).sum(), shares };
    crate::blobs::take(cluster, &crate::blobs::of_step(spec), &[]);
    step_life::create(cluster, id, spec, layout);
}
