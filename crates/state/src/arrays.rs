//! Job arrays: tasks leave their common record when they start, or when they are treated apart.
use std::sync::Arc;

use model::job::ArrayPlace;
use model::{Array, Event, JobId, Outcome, TaskSet, Wake};

use crate::settle::{forget_wait, wake};
use crate::{Cluster, blobs, history, job_life};

/// The entity behind a newly submitted array.
pub(crate) fn create(cluster: &mut Cluster, id: JobId, tasks: &TaskSet, limit: Option<u32>) {
    let (Some(min), Some(max)) = (tasks.first(), tasks.last()) else { return };
    let count = tasks.len();
    let stride = tasks.step().unwrap_or(1);
    let array = Array { id, limit, min, max, stride, count, waiting: [id].into(), ..Default::default() };
    cluster.arrays.insert(id, Arc::new(array));
}

/// Gives `tasks` of the waiting record `from` a record of their own, and returns it. Takes `from` itself when nothing else is left in it.
/// A record of one task is that task.
pub(crate) fn split(cluster: &mut Cluster, from: JobId, tasks: &TaskSet) -> JobId {
    let record = &cluster.jobs[&from];
    let (Some(waiting), Some(array)) = (&record.waiting_tasks, record.array_id()) else { return from };
    let mut rest = waiting.clone();
    rest.remove_all(tasks);
    let id = if rest.is_empty() { from } else { leave(cluster, from, tasks, rest) };
    if let (1, Some(task)) = (tasks.len(), tasks.first()) {
        become_task(cluster, id, array, task);
    }
    id
}

fn leave(cluster: &mut Cluster, from: JobId, tasks: &TaskSet, rest: TaskSet) -> JobId {
    let id = cluster.next_job_id();
    let mut job = (*cluster.jobs[&from]).clone();
    job.id = id;
    job.wakes.clear();
    job.waiting_tasks = Some(tasks.clone());
    blobs::take(cluster, &blobs::of_job(&job.spec), &[]);
    let array = job.array_id().expect("only arrays are split");
    cluster.jobs.insert(id, Arc::new(job));
    cluster.job_mut(from).waiting_tasks = Some(rest);
    history::changed(cluster, from);
    cluster.array_mut(array).expect("its records live").waiting.insert(id);
    job_life::remember_name(cluster, id);
    cluster.unsettled.extend([from, id]);
    let at = cluster.now;
    cluster.tell(Event::JobSubmitted { job: id, at });
    id
}

fn become_task(cluster: &mut Cluster, id: JobId, array: JobId, task: u32) {
    forget_wait(cluster, id);
    let job = cluster.job_mut(id);
    job.waiting_tasks = None;
    job.array = Some(ArrayPlace { array, task: Some(task) });
    let array = cluster.array_mut(array).expect("its records live");
    array.waiting.remove(&id);
    array.tasks.insert(task, id);
    cluster.unsettled.insert(id);
}

fn array_of(cluster: &mut Cluster, id: JobId) -> Option<&mut Array> {
    let array = cluster.jobs[&id].array_id()?;
    cluster.array_mut(array)
}

pub(crate) fn task_started(cluster: &mut Cluster, id: JobId) {
    let Some(array) = array_of(cluster, id) else { return };
    array.n_live += 1;
    let array = array.id;
    // Tasks that still wait may now be over the limit.
    wake(cluster, Wake::ArraySlot(array));
}

/// Another limit; everything that waits looks again.
pub(crate) fn set_limit(cluster: &mut Cluster, id: JobId, limit: Option<u32>) {
    let Some(array) = cluster.array_mut(id) else { return };
    if array.limit == limit {
        return;
    }
    array.limit = limit;
    let records: Vec<JobId> = array.waiting.iter().chain(array.tasks.values()).copied().collect();
    for record in &records {
        if let Some(shown) = Arc::make_mut(&mut cluster.job_mut(*record).spec).array.as_mut() {
            shown.limit = limit;
        }
    }
    cluster.unsettled.extend(records);
}

pub(crate) fn task_stopped(cluster: &mut Cluster, id: JobId) {
    let Some(array) = array_of(cluster, id) else { return };
    array.n_live -= 1;
    let array = array.id;
    wake(cluster, Wake::ArraySlot(array));
}

pub(crate) fn task_over(cluster: &mut Cluster, id: JobId) {
    count_over(cluster, id, |counted, n_tasks| *counted += n_tasks);
}

pub(crate) fn task_lives_again(cluster: &mut Cluster, id: JobId) {
    count_over(cluster, id, |counted, n_tasks| *counted -= n_tasks);
}

fn count_over(cluster: &mut Cluster, id: JobId, count: impl Fn(&mut u64, u64)) {
    let job = &cluster.jobs[&id];
    let (n_tasks, failed) = (job.n_tasks_waiting(), job.outcome != Some(Outcome::Completed));
    let Some(array) = array_of(cluster, id) else { return };
    count(&mut array.n_over, n_tasks);
    if failed {
        count(&mut array.n_failed, n_tasks);
    }
}

/// Forgets one record; the array goes with its last.
pub(crate) fn record_gone(cluster: &mut Cluster, id: JobId) {
    let place = cluster.jobs[&id].array.clone();
    let Some(ArrayPlace { array, task }) = place else { return };
    let entity = cluster.array_mut(array).expect("its records live");
    match task {
        Some(task) => {
            entity.tasks.remove(&task);
        }
        None => {
            entity.waiting.remove(&id);
        }
    }
    if entity.n_records() == 0 {
        cluster.arrays.remove(&array);
    }
    wake(cluster, Wake::ArrayShrunk(array));
}
