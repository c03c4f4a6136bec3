//! Whose age counts. Limits (`GrpJobsAccrue` and its kin) say how many waiting jobs may grow older at a time; the others begin when a
//! place among those is free, which is looked for once a `calc_period`. A job that is held loses its place.
use model::{JobId, TaskSet, Timestamp};

use crate::{Cluster, arrays, limits};

/// The job is eligible, or so again: its age counts from now, unless too many others' do.
pub(crate) fn begin(cluster: &mut Cluster, id: JobId) {
    let job = &cluster.jobs[&id];
    let (n_tasks, n_places) = (job.n_tasks_waiting(), limits::places_to_accrue(cluster, job));
    let Some(left) = n_places.filter(|left| *left < n_tasks) else { return count_from_now(cluster, id) };
    if left > 0 {
        let waiting = job.waiting_tasks.clone().unwrap_or_default();
        let first: TaskSet = waiting.iter().take(left as usize).collect();
        let apart = arrays::split(cluster, id, &first);
        count_from_now(cluster, apart);
    }
    let job = cluster.job_mut(id);
    (job.age_waits, job.age_paused) = (true, false);
    limits::keep(cluster, id);
    let again = cluster.now + cluster.config.scheduler.priority.calc_period;
    cluster.accrual_due = Some(cluster.accrual_due.map_or(again, |due| due.min(again)));
}

fn count_from_now(cluster: &mut Cluster, id: JobId) {
    let now = cluster.now;
    let job = cluster.job_mut(id);
    // Whoever is eligible from now on needs no other mark.
    if job.eligible != Some(now) {
        job.aged_from = Some(now);
    }
    (job.age_waits, job.age_paused) = (false, false);
    limits::keep(cluster, id);
}

/// Whoever is held grows no older.
pub(crate) fn pause_if_held(cluster: &mut Cluster, id: JobId) {
    let job = &cluster.jobs[&id];
    if job.held.is_some() && job.eligible.is_some() && !job.age_paused {
        cluster.job_mut(id).age_paused = true;
        limits::keep(cluster, id);
    }
}

pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    cluster.accrual_due
}

/// Those who came first begin first.
pub(crate) fn tick(cluster: &mut Cluster) {
    if cluster.accrual_due.is_none_or(|due| cluster.now < due) {
        return;
    }
    cluster.accrual_due = None;
    let mut waiting: Vec<JobId> = cluster.queue().filter(|job| job.age_waits).map(|job| job.id).collect();
    waiting.sort_unstable();
    for id in waiting {
        begin(cluster, id);
        cluster.unsettled.insert(id);
    }
}
