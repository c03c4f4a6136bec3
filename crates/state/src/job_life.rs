//! The life of a job. Every phase change in the program is one line of `next`.
//!
//! ```text
//! Pending ──Place──▶ Starting ──Launched──▶ Running ⇄ Suspended
//!    │                  │                      │          │
//!   End                End                    End        End
//!    │                  └──────────▶ Ending ◀──┴──────────┘
//!    ▼                                 │ Cleared (nodes are given back)
//! Finishing ◀──────────────────────────┘
//!    ├──Requeue──▶ Pending
//!    └──Finish──▶ Done ──Forget──▶ (gone)
//! ```
use std::sync::Arc;

use model::job::Pause;
use model::time::Span;
use model::{Event, Job, JobId, Outcome, Phase, Reason, StepId, Wake};

use crate::buffers::life;
use crate::settle::{forget_wait, wake};
use crate::{Cluster, arrays, blobs, gang, het, history, ledger, limits, only_step, step_life};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Place,
    Launched,
    Suspend,
    Resume,
    End,
    Cleared,
    Finish,
    Requeue,
    Forget,
}

fn next(phase: Phase, step: Step) -> Option<Phase> {
    Some(match (phase, step) {
        (Phase::Pending, Step::Place) => Phase::Starting,
        (Phase::Starting, Step::Launched) => Phase::Running,
        (Phase::Running, Step::Suspend) => Phase::Suspended,
        (Phase::Suspended, Step::Resume) => Phase::Running,
        (Phase::Pending, Step::End) => Phase::Finishing,
        (Phase::Starting | Phase::Running | Phase::Suspended, Step::End) => Phase::Ending,
        (Phase::Ending, Step::Cleared) => Phase::Finishing,
        (Phase::Finishing, Step::Finish) => Phase::Done,
        (Phase::Finishing | Phase::Done, Step::Requeue) => Phase::Pending,
        (Phase::Done, Step::Forget) => Phase::Done,
        _ => return None,
    })
}

/// Takes `step` if the job's phase allows it; says whether it did. The job may be gone afterwards.
pub(crate) fn take(cluster: &mut Cluster, id: JobId, step: Step) -> bool {
    let at = cluster.now;
    let from = cluster.jobs[&id].phase;
    let Some(to) = next(from, step) else { return false };
    // Out of the queue and the waiting lists while they can still be found by the old phase.
    forget_wait(cluster, id);
    if step == Step::Forget {
        forget(cluster, id);
        return true;
    }
    if step == Step::Requeue {
        history::keep_run(cluster, id);
    }
    if step == Step::Requeue && from == Phase::Done {
        arrays::task_lives_again(cluster, id);
    }
    let config = cluster.config.clone();
    cluster.claims.remove(&id);
    let job = cluster.job_mut(id);
    if from == Phase::Pending {
        // It keeps what it had when it left the queue.
        job.priority = model::priority::shown(&config, job, at);
        job.priority_grows = false;
    }
    job.phase = to;
    if job.hook.take().is_some() && from == Phase::Starting {
        job.reason = None;
    }
    job.done.clear();
    match step {
        Step::Place => place(job, at),
        Step::Launched => (),
        Step::Suspend => suspend(job, at),
        Step::Resume => resume(job, at),
        Step::End => end_run(job, from, at),
        Step::Requeue => restart(job, at, Span::from_secs(config.jobs.requeue_delay_secs.into())),
        Step::Finish => job.finished = Some(at),
        Step::Cleared | Step::Forget => (),
    }
    match step {
        Step::Place => {
            gang::give_turn(cluster, id);
            arrays::task_started(cluster, id);
            life::place(cluster, id);
        }
        Step::End => {
            ledger::reclaim_cpus(cluster, id);
            cluster.job_mut(id).is_parked = false;
            cluster.parked.remove(&id);
            step_life::end_all(cluster, id);
            forget_name(cluster, id);
            het::ended(cluster, id);
            life::leave(cluster, id);
        }
        Step::Cleared => {
            step_life::all_cleared(cluster, id);
            ledger::free(cluster, id);
            arrays::task_stopped(cluster, id);
        }
        Step::Finish => arrays::task_over(cluster, id),
        Step::Requeue => {
            remember_name(cluster, id);
            step_life::forget_all(cluster, id);
            het::requeued(cluster, id);
        }
        Step::Suspend => ledger::lend_cpus(cluster, id),
        Step::Resume => {
            cluster.parked.remove(&id);
            ledger::reclaim_cpus(cluster, id);
        }
        Step::Launched | Step::Forget => (),
    }
    limits::keep(cluster, id);
    cluster.sharing_changed |= !cluster.shared_nodes.is_empty() || !cluster.parked.is_empty();
    moved(cluster, id);
    cluster.tell(Event::JobChanged { job: id, from, to, at });
    if step == Step::Cleared {
        // Its last step is over now, whatever was heard of it before.
        only_step::ended(cluster, id, StepId::Number(0));
    }
    true
}

/// Ends the job with `outcome`. The first outcome stands.
pub(crate) fn end(cluster: &mut Cluster, id: JobId, outcome: Outcome, reason: Option<Reason>) -> bool {
    let outcome = crate::preemption::outcome_of(&cluster.jobs[&id], outcome);
    if next(cluster.jobs[&id].phase, Step::End).is_none() {
        return false;
    }
    if outcome == Outcome::Preempted && cluster.jobs[&id].preempt_requeues {
        cluster.job_mut(id).requeue = true;
    }
    take(cluster, id, Step::End);
    let job = cluster.job_mut(id);
    job.outcome.get_or_insert(outcome);
    job.reason = if job.outcome == Some(Outcome::Preempted) { None } else { reason };
    true
}

/// The nodes are given back before anything ran: a batch job waits again.
pub(crate) fn give_back(cluster: &mut Cluster, id: JobId) {
    let job = cluster.job_mut(id);
    job.requeue = job.spec.is_batch();
    end(cluster, id, Outcome::Failed, Some(Reason::BurstBufferOperation));
}

/// Keeps the job in the list of its owner's names until its run ends.
pub(crate) fn remember_name(cluster: &mut Cluster, id: JobId) {
    let job = &cluster.jobs[&id];
    if matches!(job.phase, Phase::Pending | Phase::Starting | Phase::Running | Phase::Suspended) {
        let name = (job.spec.uid, job.spec.name.clone(), id);
        cluster.live_names.insert(name);
    }
}

pub(crate) fn forget_name(cluster: &mut Cluster, id: JobId) {
    let spec = cluster.jobs[&id].spec.clone();
    cluster.live_names.remove(&(spec.uid, spec.name.clone(), id));
    wake(cluster, Wake::NameFree { uid: spec.uid, name: spec.name.clone() });
}

/// Those who wait for this job, or for the array it is part of, look again.
pub(crate) fn moved(cluster: &mut Cluster, id: JobId) {
    wake(cluster, Wake::JobMoved(id));
    if let Some(array) = cluster.jobs[&id].array_id().filter(|array| *array != id) {
        wake(cluster, Wake::JobMoved(array));
    }
    if let Some(leader) = cluster.jobs[&id].het.as_ref().map(|het| het.leader).filter(|leader| *leader != id) {
        wake(cluster, Wake::JobMoved(leader));
    }
}

fn place(job: &mut Job, at: model::Timestamp) {
    job.alive = true;
    job.started = Some(at);
    job.last_evaluated = Some(at);
    job.preempted_at = None;
    job.preempted_by = None;
    job.expected_start = None;
    job.expected_nodes.clear();
    job.reason = None;
    job.reason_text.clear();
}

fn suspend(job: &mut Job, at: model::Timestamp) {
    job.run_before_suspend = job.run_time(at);
    job.suspended_at = Some(at);
    job.suspend_changed = Some(at);
    job.is_frozen = true;
    job.starts_suspended = false;
    job.is_stopped = false;
    job.n_switches += 1;
}

fn resume(job: &mut Job, at: model::Timestamp) {
    close_suspension(job, at);
    job.suspend_changed = Some(at);
    job.is_parked = false;
    job.n_switches += 1;
}

/// A job that ends while suspended ended, for its users, when it was suspended.
fn end_run(job: &mut Job, from: Phase, at: model::Timestamp) {
    job.ended = Some(job.suspended_at.unwrap_or(at));
    close_suspension(job, at);
    job.is_stopped = false;
    job.starts_suspended = false;
    if from == Phase::Pending {
        job.alive = false;
        // It had nothing to run (`sbatch -N0`): its start was its end.
        if job.buffer == Some(model::BufferPhase::InUse) {
            job.started = Some(at);
        }
    }
}

fn close_suspension(job: &mut Job, at: model::Timestamp) {
    if let Some(since) = job.suspended_at.take() {
        job.total_suspended = job.total_suspended + (at - since);
        job.note_pause(Pause { from: since, until: at });
    }
}

/// For its users the job is submitted anew; it may not start before `delay` has passed.
fn restart(job: &mut Job, at: model::Timestamp, delay: Span) {
    if delay > Span(0) && job.spec.begin.is_none_or(|begin| begin <= at) {
        Arc::make_mut(&mut job.spec).begin = Some(at + delay);
    }
    job.submitted = at;
    job.attempt += 1;
    job.restarts += 1;
    job.outcome = None;
    job.exit = Default::default();
    job.derived_exit = Default::default();
    job.reason = None;
    job.reason_text.clear();
    job.allocation = Default::default();
    job.alive = false;
    job.requeue = false;
    job.eligible = None;
    job.age_waits = false;
    job.age_paused = false;
    job.aged_from = None;
    job.started = None;
    job.ended = None;
    job.finished = None;
    job.suspended_at = None;
    job.suspend_changed = None;
    job.run_before_suspend = Span(0);
    job.total_suspended = Span(0);
    job.pauses.clear();
    job.is_frozen = false;
    job.n_switches = 0;
    job.launched = false;
    job.warned = false;
    job.time_used_percent = 0;
    job.cancelled_by = None;
    job.preempt_ends = None;
    job.preempt_requeues = false;
    job.next_step = 0;
    job.unreachable.clear();
    job.hurry = false;
    job.usage = None;
    job.licenses.clear();
    job.reservation.clear();
    job.must_end_by = None;
}

fn forget(cluster: &mut Cluster, id: JobId) {
    step_life::forget_all(cluster, id);
    moved(cluster, id);
    arrays::record_gone(cluster, id);
    let job = cluster.jobs.remove(&id).expect("callers look the job up first");
    limits::keep(cluster, id);
    blobs::release(cluster, &blobs::of_job(&job.spec));
    let at = cluster.now;
    cluster.tell(Event::JobGone { job: id, at });
}
