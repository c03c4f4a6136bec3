//! Moves jobs on as far as their features let them.
use model::{Duty, HeldBy, Job, JobId, Owner, Phase, Reason, Task, Timestamp, Wake, priority};

use crate::features::{self, Hold};
use crate::job_life::{self, Step};
use crate::{Cluster, accrual, buffers, gang, het, history, limits};

/// Settles every job the command touched, and those they woke. A queue, so long chains cannot nest.
pub(crate) fn settle_all(cluster: &mut Cluster) {
    loop {
        while let Some(id) = cluster.unsettled.pop_first() {
            if cluster.jobs.contains_key(&id) {
                settle(cluster, id);
            }
        }
        // When all have moved on as far as they can, those who share CPUs are looked at together.
        gang::settle(cluster);
        if cluster.unsettled.is_empty() {
            return;
        }
    }
}

/// Has every job that waits for `wake` settled again.
pub(crate) fn wake(cluster: &mut Cluster, wake: Wake) {
    let range = (wake.clone(), JobId(0))..=(wake, JobId(u32::MAX));
    let woken: Vec<JobId> = cluster.waiters.range(range).map(|(_, id)| *id).collect();
    cluster.unsettled.extend(woken);
}

/// Moves job `id` on until a feature holds it, and records what it then waits for.
fn settle(cluster: &mut Cluster, id: JobId) {
    limits::keep(cluster, id);
    forget_wait(cluster, id);
    features::dependency::forget_what_is_met(cluster, id);
    loop {
        buffers::settle::settle(cluster, id);
        features::time_used::note(cluster, id);
        let job = &cluster.jobs[&id];
        let (hold, look_again) = features::first_hold(cluster, job);
        match hold {
            Hold::Wait(reason, wakes) => return wait(cluster, id, reason, wakes, look_again),
            Hold::Do(task) => {
                let sequence = if matches!(task, Task::Stop | Task::Continue) { job.n_switches } else { 0 };
                let duty = Duty { owner: Owner::Job(id), attempt: job.attempt, task, sequence };
                cluster.duties.insert(Owner::Job(id), duty);
                note_hook(cluster, id, task);
                return wait(cluster, id, None, Vec::new(), look_again);
            }
            Hold::Stage => return queue_for_staging(cluster, id, look_again),
            Hold::End(outcome, reason) => het::end_with_the_others(cluster, id, outcome, reason),
            Hold::Free | Hold::FreeUntil(_) => match step_when_free(job) {
                Some(step) => {
                    let is_suspended = step == Step::Launched && job.starts_suspended;
                    job_life::take(cluster, id, step);
                    if is_suspended {
                        job_life::take(cluster, id, Step::Suspend);
                    }
                    if !cluster.jobs.contains_key(&id) {
                        return;
                    }
                }
                None => return rest(cluster, id, look_again),
            },
        }
    }
}

/// What the job waits for is part of the state that its users see.
fn note_hook(cluster: &mut Cluster, id: JobId, task: Task) {
    let phase = cluster.jobs[&id].phase;
    let is_hook = match task {
        Task::ControllerProlog | Task::Prolog => phase == Phase::Starting,
        Task::ControllerEpilog => phase == Phase::Finishing,
        _ => false,
    };
    let hook = is_hook.then_some(task);
    if cluster.jobs[&id].hook != hook {
        let job = cluster.job_mut(id);
        job.hook = hook;
        if phase == Phase::Starting {
            job.reason = hook.map(|_| Reason::Prolog);
        }
        // What is prepared by now may be asked to stand still.
        cluster.sharing_changed |= !cluster.shared_nodes.is_empty() || !cluster.parked.is_empty();
    }
}

/// Pending waits for the scheduler, Running and Suspended for a command; the rest move on by themselves.
fn step_when_free(job: &Job) -> Option<Step> {
    match job.phase {
        Phase::Pending | Phase::Running | Phase::Suspended => None,
        Phase::Starting => Some(Step::Launched),
        Phase::Ending => Some(Step::Cleared),
        Phase::Finishing if job.requeue => Some(Step::Requeue),
        Phase::Finishing => Some(Step::Finish),
        Phase::Done => Some(Step::Forget),
    }
}

fn rest(cluster: &mut Cluster, id: JobId, look_again: Option<Timestamp>) {
    if cluster.jobs[&id].phase == Phase::Pending {
        note_eligible(cluster, id);
        let job = cluster.job_mut(id);
        // Until the scheduler has looked, and finds it to be the next.
        job.reason.get_or_insert(Reason::Priority);
        let key = cluster.queue_key(&cluster.jobs[&id]);
        cluster.queue.insert(key);
    }
    watch(cluster, id, look_again.into_iter().chain(grown_at(cluster, id)).map(Wake::At).collect());
}

/// From now on the job waits for nothing but its turn, and grows older.
fn note_eligible(cluster: &mut Cluster, id: JobId) {
    let now = cluster.now;
    let is_newly_eligible = cluster.jobs[&id].eligible.is_none();
    if is_newly_eligible {
        history::changed(cluster, id);
    }
    cluster.job_mut(id).eligible.get_or_insert(now);
    if is_newly_eligible || cluster.jobs[&id].age_paused {
        accrual::begin(cluster, id);
    }
    weigh(cluster, id);
}

/// When age will add no more to its priority.
fn grown_at(cluster: &Cluster, id: JobId) -> Option<Timestamp> {
    let job = &cluster.jobs[&id];
    job.priority_grows.then(|| priority::grown_at(&cluster.config, job)).flatten()
}

/// How important the job is from now on; what age adds comes by itself until the age is full.
pub(crate) fn weigh(cluster: &mut Cluster, id: JobId) {
    let (now, config) = (cluster.now, cluster.config.clone());
    let factors = cluster.account_factors(&cluster.jobs[&id]);
    if cluster.jobs[&id].account_factors != factors {
        cluster.job_mut(id).account_factors = factors;
    }
    let job = &cluster.jobs[&id];
    if priority::is_given(&config, job) {
        if job.priority_grows {
            cluster.job_mut(id).priority_grows = false;
        }
        return;
    }
    let grows = priority::grown_at(&config, job).is_some_and(|grown| now < grown);
    let lasting = priority::without_age(&config, cluster.measures(), job);
    // A base of 0 is none yet.
    let keeps = config.scheduler.priority.only_rises && job.priority_base != 0;
    let lasting = if keeps { lasting.max(job.priority_base) } else { lasting };
    let has_grown = priority::grown_at(&config, job).is_some() && !grows;
    let full_age = if has_grown { i64::from(config.scheduler.priority.weight_age) } else { 0 };
    let sum = priority::within_range(lasting + full_age);
    if (job.priority, job.priority_grows, job.priority_base) != (sum, grows, lasting) {
        let job = cluster.job_mut(id);
        (job.priority, job.priority_grows, job.priority_base) = (sum, grows, lasting);
    }
}

/// How important a job that has its nodes is now: its age goes on, and what was used counts (`CALCULATE_RUNNING`).
pub(crate) fn weigh_placed(cluster: &mut Cluster, id: JobId) {
    let (now, config) = (cluster.now, cluster.config.clone());
    let factors = cluster.account_factors(&cluster.jobs[&id]);
    let job = &cluster.jobs[&id];
    if priority::is_given(&config, job) {
        return;
    }
    let mut weighed = (**job).clone();
    weighed.account_factors = factors;
    let lasting = priority::without_age(&config, cluster.measures(), &weighed);
    let sum = priority::within_range(lasting + priority::for_age(&config, &weighed, now));
    let keeps = config.scheduler.priority.only_rises;
    let sum = if keeps { sum.max(job.priority) } else { sum };
    if (job.priority, job.account_factors) != (sum, factors) {
        let job = cluster.job_mut(id);
        (job.priority, job.account_factors) = (sum, factors);
    }
}

/// It waits for space, or for its turn to have its data staged in.
fn queue_for_staging(cluster: &mut Cluster, id: JobId, look_again: Option<Timestamp>) {
    note_eligible(cluster, id);
    let mut wakes = vec![Wake::Partitions];
    wakes.extend(grown_at(cluster, id).map(Wake::At));
    // The scheduler may have found a limit that keeps the job; that stays until the scheduler says otherwise.
    let told = cluster.jobs[&id].reason.filter(|reason| cluster.rules() >= 3 && reason.is_limit());
    wait(cluster, id, told.or(Some(Reason::BurstBufferResources)), wakes, look_again);
    let job = &cluster.jobs[&id];
    let key = cluster.queue_key(job);
    match job.spec.buffer.as_ref().is_some_and(|request| request.asks_shared_pools()) {
        true => cluster.staging_queue.insert(key),
        false => cluster.unpooled_staging_queue.insert(key),
    };
}

fn wait(cluster: &mut Cluster, id: JobId, reason: Option<Reason>, mut wakes: Vec<Wake>, look_again: Option<Timestamp>) {
    wakes.extend(look_again.map(Wake::At));
    if cluster.jobs[&id].phase == Phase::Pending {
        accrual::pause_if_held(cluster, id);
        let job = cluster.job_mut(id);
        job.reason = reason;
        job.reason_text.clear();
        if matches!(job.held, Some(HeldBy::Requeue | HeldBy::SpecialExit)) && reason == Some(Reason::JobHeldUser) {
            job.reason_text.push_str("job requeued in held state");
        }
        if job.held == Some(HeldBy::LaunchFailed) {
            job.reason_text.push_str("launch failed requeued held");
        }
        if reason == Some(Reason::BurstBufferOperation) {
            let is_held = job.held == Some(HeldBy::BurstBuffer);
            job.reason_text = if is_held { job.buffer_hold.clone() } else { job.buffer_failure.clone() };
        }
    }
    watch(cluster, id, wakes);
}

fn watch(cluster: &mut Cluster, id: JobId, mut wakes: Vec<Wake>) {
    // Whatever it waits for, others of its array may take the last slots.
    wakes.extend(features::array_slots(cluster, &cluster.jobs[&id]));
    wakes.extend(features::reservation_changes(&cluster.jobs[&id]));
    wakes.extend(features::port_changes(&cluster.jobs[&id]));
    // So does its buffer's life.
    wakes.extend(buffers::settle::wakes(cluster, &cluster.jobs[&id]));
    wakes.sort_unstable();
    wakes.dedup();
    if wakes.is_empty() {
        return;
    }
    cluster.waiters.extend(wakes.iter().map(|wake| (wake.clone(), id)));
    cluster.job_mut(id).wakes = wakes;
}

/// Takes the job out of every index that its waiting put it in. The scheduler's reason stays while the job stays queued.
pub(crate) fn forget_wait(cluster: &mut Cluster, id: JobId) {
    cluster.duties.remove(&Owner::Job(id));
    let job = &cluster.jobs[&id];
    let is_pending = job.phase == Phase::Pending;
    let (reason, no_wakes) = (job.reason, job.wakes.is_empty());
    let key = cluster.queue_key(job);
    let mut was_queued = false;
    if is_pending {
        let is_kept_by_limit = reason.is_some_and(Reason::is_limit);
        was_queued |= cluster.staging_queue.remove(&key).is_some() && is_kept_by_limit;
        was_queued |= cluster.unpooled_staging_queue.remove(&key).is_some() && is_kept_by_limit;
        was_queued |= cluster.queue.remove(&key).is_some();
    }
    let clears_reason = is_pending && reason.is_some() && !was_queued;
    if no_wakes && !clears_reason {
        return;
    }
    let job = cluster.job_mut(id);
    if clears_reason {
        job.reason = None;
        job.reason_text.clear();
    }
    for wake in std::mem::take(&mut job.wakes) {
        cluster.waiters.remove(&(wake, id));
    }
}
