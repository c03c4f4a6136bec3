//! One file a command family. Each handler checks everything first, then changes; a reject changes nothing.
pub(crate) mod accounts;
pub(crate) mod buffer;
pub(crate) mod config;
mod dynamic;
pub(crate) mod history;
pub(crate) mod job;
pub(crate) mod node;
pub(crate) mod partition;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod reservation;
mod resize;
pub(crate) mod step;
pub(crate) mod submit;
pub(crate) mod suspend;
pub(crate) mod tick;
pub(crate) mod trust;
pub(crate) mod update_job;

use std::collections::BTreeMap;

use model::command::JobResult;
use model::{Caller, Job, JobId, JobRef, Reject, Reply, TaskSet};

use crate::{Cluster, arrays};

pub(crate) type Answer = Result<Reply, Reject>;

/// Does `act` to every job that the user named, tasks of a waiting array split off where only some are meant,
/// and gathers a result for each.
pub(crate) fn each(
    cluster: &mut Cluster,
    by: Caller,
    named: &[JobRef],
    act: impl Fn(&mut Cluster, JobId) -> Result<(), Reject>,
) -> Answer {
    each_of(cluster, by, named, |_, _| Ok(()), act)
}

/// As `each`, for what can only be done to the whole of a heterogeneous job.
pub(crate) fn each_whole(
    cluster: &mut Cluster,
    by: Caller,
    named: &[JobRef],
    act: impl Fn(&mut Cluster, JobId) -> Result<(), Reject>,
) -> Answer {
    let answer = each_of(cluster, by, named, not_a_component, act)?;
    Ok(with_missing_tasks(answer, named))
}

/// Tasks that were named though there are none are answered for as well, beside those that there are.
fn with_missing_tasks(answer: Reply, named: &[JobRef]) -> Reply {
    let Reply::Each(mut results) = answer else { return answer };
    let mut answered: BTreeMap<JobId, Vec<TaskSet>> = BTreeMap::new();
    for result in &results {
        if let Some(tasks) = &result.job.tasks {
            answered.entry(result.job.job).or_default().push(tasks.clone());
        }
    }
    for one in named {
        let Some(tasks) = &one.tasks else { continue };
        let mut missing = tasks.clone();
        answered.get(&one.job).into_iter().flatten().for_each(|known| missing.remove_all(known));
        if !missing.is_empty() {
            let job = JobRef { job: one.job, tasks: Some(missing), component: None };
            results.push(JobResult { job, result: Err(Reject::NoSuchJob) });
        }
    }
    Reply::Each(results)
}

pub(crate) fn not_a_component(job: &Job, named: &JobRef) -> Result<(), Reject> {
    match &job.het {
        Some(het) if !het.is_leader() || named.component.is_some() => Err(Reject::HetComponent),
        _ => Ok(()),
    }
}

/// As `each`; `may` says whether what was named of a heterogeneous job can be treated so.
pub(crate) fn each_of(
    cluster: &mut Cluster,
    by: Caller,
    named: &[JobRef],
    may: impl Fn(&Job, &JobRef) -> Result<(), Reject>,
    act: impl Fn(&mut Cluster, JobId) -> Result<(), Reject>,
) -> Answer {
    let mut results = Vec::new();
    for one in named {
        let Some(jobs) = cluster.named(one) else {
            results.push(JobResult { job: one.clone(), result: Err(Reject::NoSuchJob) });
            continue;
        };
        let first = &cluster.jobs[&jobs[0]];
        if first.het.is_some() {
            // Whoever may do nothing at all is not told more.
            let allowed = match by.may_act_for(first.spec.uid) {
                true => may(first, one),
                false => Err(Reject::NotPermitted),
            };
            let result = allowed.and_then(|()| on_components(cluster, by, &jobs, &act));
            results.push(JobResult { job: one.clone(), result });
            continue;
        }
        for id in jobs {
            let owner = cluster.jobs[&id].spec.uid;
            let label = label(cluster, id, one);
            let result = match by.may_act_for(owner) {
                true => act_on_part(cluster, id, one, &act),
                false => Err(Reject::NotPermitted),
            };
            results.push(JobResult { job: label, result });
        }
    }
    Ok(Reply::Each(results))
}

/// A heterogeneous job, or a component of it, has one answer under the name that the user gave: all of what was named, or nothing.
fn on_components(
    cluster: &mut Cluster,
    by: Caller,
    jobs: &[JobId],
    act: impl Fn(&mut Cluster, JobId) -> Result<(), Reject>,
) -> Result<(), Reject> {
    let before = cluster.clone();
    let mut n_over = 0;
    for id in jobs {
        let result = match by.may_act_for(cluster.jobs[id].spec.uid) {
            true => act(cluster, *id),
            false => Err(Reject::NotPermitted),
        };
        match result {
            Ok(()) => (),
            // One that has ended alone does not keep the rest.
            Err(Reject::AlreadyOver) if n_over + 1 < jobs.len() => n_over += 1,
            Err(reject) => {
                *cluster = before;
                return Err(reject);
            }
        }
    }
    Ok(())
}

fn act_on_part(
    cluster: &mut Cluster,
    id: JobId,
    named: &JobRef,
    act: impl Fn(&mut Cluster, JobId) -> Result<(), Reject>,
) -> Result<(), Reject> {
    let meant = meant_tasks(cluster, id, named);
    let is_part = meant.as_ref().is_some_and(|meant| Some(meant) != cluster.jobs[&id].waiting_tasks.as_ref());
    if !is_part {
        return act(cluster, id);
    }
    // Splitting is kept only if the command is.
    let before = cluster.clone();
    let part = arrays::split(cluster, id, &meant.expect("a part was meant"));
    let result = act(cluster, part);
    if result.is_err() {
        *cluster = before;
    }
    result
}

fn meant_tasks(cluster: &Cluster, id: JobId, named: &JobRef) -> Option<TaskSet> {
    let waiting = cluster.jobs[&id].waiting_tasks.as_ref()?;
    named.tasks.as_ref().map(|tasks| tasks.intersection(waiting))
}

/// How the result names the job: `12`, or the array with the tasks it is about.
fn label(cluster: &Cluster, id: JobId, named: &JobRef) -> JobRef {
    let job = &cluster.jobs[&id];
    match (job.array_id(), job.array_task()) {
        (Some(array), Some(task)) => JobRef::task(array, task),
        (Some(array), None) => {
            let tasks = meant_tasks(cluster, id, named).or_else(|| job.waiting_tasks.clone());
            JobRef { job: array, tasks, component: None }
        }
        (None, _) => id.into(),
    }
}
