//! One file a command family. Each handler checks everything first, then changes; a reject changes nothing.
pub(crate) mod config;
pub(crate) mod job;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod step;
pub(crate) mod submit;
pub(crate) mod suspend;
pub(crate) mod tick;
pub(crate) mod update_job;

use model::command::JobResult;
use model::{Caller, JobId, JobRef, Reject, Reply, TaskSet};

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
    let mut results = Vec::new();
    for one in named {
        let Some(jobs) = cluster.named(one) else {
            results.push(JobResult { job: one.clone(), result: Err(Reject::NoSuchJob) });
            continue;
        };
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
        (Some(array), Some(task)) => JobRef { job: array, tasks: Some([task].into_iter().collect()) },
        (Some(array), None) => {
            let tasks = meant_tasks(cluster, id, named).or_else(|| job.waiting_tasks.clone());
            JobRef { job: array, tasks }
        }
        (None, _) => id.into(),
    }
}
