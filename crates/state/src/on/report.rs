//! What the nodes report: duties done, processes ended.
use std::sync::Arc;

use model::command::{DutyResult, Exited};
use model::time::Span;
use model::{Duty, Event, ExitStatus, HeldBy, JobId, Outcome, Owner, Phase, Reason, Reject, Reply, StepId, Task};

use super::Answer;
use crate::features::{Failure, meaning_of_failure};
use crate::job_life::{self, Step};
use crate::{Cluster, buffers, on, only_step, reboots, step_life};

/// As long as Slurm lets a requeued job rest.
const REQUEUE_DELAY: Span = Span::from_secs(121);

pub(crate) fn duty_done(cluster: &mut Cluster, duty: &Duty, result: &DutyResult) -> Answer {
    if cluster.duties.get(&duty.owner) != Some(duty) {
        return Err(Reject::Stale);
    }
    let failure = match result {
        DutyResult::Done => Failure::CarryOn,
        DutyResult::Failed { .. } | DutyResult::HookFailed { .. } => meaning_of_failure(duty.task),
    };
    if matches!(failure, Failure::Retry) {
        return Ok(Reply::Ok);
    }
    if let DutyResult::HookFailed { nodes, drained_for, .. } = result {
        let text = match (drained_for.as_str(), duty.task) {
            ("", Task::Epilog) => "Epilog error",
            ("", _) => "Prolog error",
            (text, _) => text,
        };
        on::node::drain_after(cluster, nodes, text);
    }
    match &duty.owner {
        Owner::Job(id) => job_duty_done(cluster, *id, duty.task, failure, result),
        Owner::Step(job, step) => step_duty_done(cluster, *job, *step, duty.task, failure),
        Owner::Node(node) if duty.task == Task::Reboot => {
            let why = match result {
                DutyResult::Done => None,
                DutyResult::Failed { why, .. } | DutyResult::HookFailed { why, .. } => Some(why.as_str()),
            };
            reboots::told(cluster, node, why);
        }
        Owner::Node(node) => on::node::cleared(cluster, node),
        // Their results come place by place, with `Staged`.
        Owner::Buffer(_) | Owner::Persistent(_) => return Err(Reject::Stale),
    }
    Ok(Reply::Ok)
}

fn job_duty_done(cluster: &mut Cluster, id: JobId, task: Task, failure: Failure, result: &DutyResult) {
    let now = cluster.now;
    let why = match result {
        DutyResult::Done => "",
        DutyResult::Failed { why, .. } | DutyResult::HookFailed { why, .. } => why,
    };
    let tells_by_own_signal = cluster.config.scheduler.preemption.tells_by_own_signal(&cluster.jobs[&id].spec);
    let job = cluster.job_mut(id);
    job.done.insert(task);
    match task {
        Task::Warn => job.warned = true,
        Task::Continue => job.is_frozen = false,
        Task::Kill => job.alive = false,
        Task::Launch => job.launched = true,
        Task::Preempt => job.warned |= tells_by_own_signal,
        Task::Stop | Task::Clear | Task::Reboot => (),
        // For its users it starts when its nodes are ready.
        Task::ControllerProlog => job.started = Some(now),
        Task::Prolog | Task::Epilog | Task::ControllerEpilog => (),
        // Buffers' tasks are no job's.
        Task::StageIn | Task::PreRun | Task::PostRun | Task::StageOut | Task::Trim => (),
        Task::TearDown | Task::Create | Task::Destroy => (),
    }
    if task == Task::ControllerProlog {
        job_life::moved(cluster, id);
    }
    if matches!(failure, Failure::EndRun) {
        match (task, result) {
            (Task::ControllerProlog, _) => controller_prolog_failed(cluster, id, why),
            (_, DutyResult::HookFailed { .. }) => prolog_failed(cluster, id, why),
            _ => launch_failed(cluster, id, why),
        }
    }
    cluster.unsettled.insert(id);
}

/// A batch job that could not be launched waits, held, until somebody has looked.
fn launch_failed(cluster: &mut Cluster, id: JobId, why: &str) {
    let job = cluster.job_mut(id);
    if job.spec.is_batch() && job.spec.requeue.unwrap_or(true) {
        job.requeue = true;
        job.held = Some(HeldBy::Admin);
    }
    never_started(cluster, id, Outcome::Failed, Some(Reason::JobLaunchFailure), why);
}

/// A node could not be prepared.
fn prolog_failed(cluster: &mut Cluster, id: JobId, why: &str) {
    keep_from_failed_node(cluster, id);
    never_started(cluster, id, Outcome::Cancelled, None, why);
}

/// A batch job that its node let down runs again: whoever looks at the node releases it.
fn keep_from_failed_node(cluster: &mut Cluster, id: JobId) {
    let flags = cluster.config.hooks.flags;
    let job = &cluster.jobs[&id];
    if job.spec.is_batch() && (job.spec.requeue.unwrap_or(true) || flags.force_requeue) {
        requeue(cluster, id, (!flags.no_hold_on_failure).then_some(HeldBy::LaunchFailed));
    }
}

/// The run is followed by another of its own accord; whoever was requeued so too often is held.
fn requeue(cluster: &mut Cluster, id: JobId, held: Option<HeldBy>) {
    let most = cluster.config.jobs.max_requeues;
    let job = cluster.job_mut(id);
    job.requeue = true;
    job.auto_requeues += 1;
    let too_often = (job.auto_requeues >= most).then_some(HeldBy::MaxRequeue);
    job.held = held.or(too_often).or(job.held);
}

/// Where the site has batch jobs run again that end like this.
fn requeue_by_exit(cluster: &mut Cluster, exited: &Exited) {
    let (rules, job) = (&cluster.config.jobs, &cluster.jobs[&exited.job]);
    let is_meant = job.spec.is_batch() && job.spec.requeue != Some(false) && exited.launch_error.is_none();
    let code = u32::from(exited.exit.code);
    if !is_meant || exited.exit.signal != 0 {
        return;
    }
    let held = rules.requeue_exit_hold.contains(code).then_some(HeldBy::SpecialExit);
    if held.is_some() || rules.requeue_exit.contains(code) {
        requeue(cluster, exited.job, held);
    }
}

/// It is tried again, but not at once: the program may fail for long.
fn controller_prolog_failed(cluster: &mut Cluster, id: JobId, why: &str) {
    let later = cluster.now + REQUEUE_DELAY;
    let job = cluster.job_mut(id);
    if job.spec.is_batch() && job.spec.requeue.unwrap_or(true) {
        job.requeue = true;
        Arc::make_mut(&mut job.spec).begin = Some(later);
    }
    never_started(cluster, id, Outcome::Cancelled, None, why);
}

/// Nothing has run, so there is nothing to stage out; what was staged in serves the next start, if there is one.
fn never_started(cluster: &mut Cluster, id: JobId, outcome: Outcome, reason: Option<Reason>, why: &str) {
    buffers::life::revoke(cluster, id);
    job_life::end(cluster, id, outcome, reason);
    cluster.job_mut(id).reason_text = why.to_string();
}

fn step_duty_done(cluster: &mut Cluster, job: JobId, step: StepId, task: Task, failure: Failure) {
    match (task, failure) {
        (Task::Launch, Failure::CarryOn) => step_life::launched(cluster, job, step),
        (Task::Launch, _) => {
            cluster.step_mut(job, step).exit = ExitStatus::exited(1);
            step_life::end(cluster, job, step);
        }
        _ => {
            step_life::cleared(cluster, job, step);
            only_step::ended(cluster, job, step);
        }
    }
    cluster.unsettled.insert(job);
}

/// The batch script, or one node's tasks of a step, have ended.
pub(crate) fn exited(cluster: &mut Cluster, exited: &Exited) -> Answer {
    let job = cluster.jobs.get(&exited.job).ok_or(Reject::Stale)?;
    if job.attempt != exited.attempt || !(job.holds_nodes() || exited.usage.is_some()) {
        return Err(Reject::Stale);
    }
    match exited.step {
        StepId::Batch => {
            let is_news = job.holds_nodes() || job.usage.is_none();
            if !job.runs_script() || job.script_node() != Some(&exited.node) || !is_news {
                return Err(Reject::Stale);
            }
            batch_exited(cluster, exited);
        }
        StepId::Number(_) => {
            let step = cluster.step(exited.job, exited.step).ok_or(Reject::Stale)?;
            let is_news = (step.is_live() || exited.usage.is_some())
                && step.shares.iter().any(|share| share.node == exited.node)
                && !step.ended_nodes.contains(&exited.node);
            if !is_news {
                return Err(Reject::Stale);
            }
            step_exited(cluster, exited);
        }
    }
    if !exited.drained_for.is_empty() {
        on::node::drain_after(cluster, std::slice::from_ref(&exited.node), &exited.drained_for);
    }
    cluster.unsettled.insert(exited.job);
    Ok(Reply::Ok)
}

fn batch_exited(cluster: &mut Cluster, exited: &Exited) {
    let id = exited.job;
    let has_live_steps = !step_life::live(cluster, id).is_empty();
    let at = cluster.now;
    let job = cluster.job_mut(id);
    job.usage = exited.usage.as_ref().map(|usage| Box::new(usage.on(&exited.node)));
    if !job.holds_nodes() {
        // The nodes were said to be clear before this came; only what was measured is news.
        return cluster.tell(Event::JobUpdated { job: id, at });
    }
    // The supervisor has cleared the script's node; only steps can still be alive.
    job.alive = has_live_steps;
    job.launched = true;
    if job.phase == Phase::Ending {
        return;
    }
    job.exit = exited.exit;
    // An exit proves the launch, whose own report may come later.
    job_life::take(cluster, id, Step::Launched);
    let (outcome, reason) = outcome_of(exited);
    // Where something of a script that has run cannot be ended, the node is at fault, and the job is over.
    let has_run = cluster.rules() >= 3 && exited.launch_error.is_none();
    match exited.drained_for.is_empty() || has_run {
        true => requeue_by_exit(cluster, exited),
        false => keep_from_failed_node(cluster, id),
    }
    job_life::end(cluster, id, outcome, reason);
    if let Some(why) = &exited.launch_error {
        cluster.job_mut(id).reason_text = why.clone();
    }
}

fn step_exited(cluster: &mut Cluster, exited: &Exited) {
    let (id, step) = (exited.job, exited.step);
    step_life::node_ended(cluster, exited);
    only_step::ended(cluster, id, step);
}

fn outcome_of(exited: &Exited) -> (Outcome, Option<Reason>) {
    if exited.out_of_memory {
        return (Outcome::OutOfMemory, Some(Reason::OutOfMemory));
    }
    if exited.launch_error.is_some() {
        return (Outcome::Failed, Some(Reason::JobLaunchFailure));
    }
    match exited.exit {
        exit if exit.is_success() => (Outcome::Completed, None),
        exit if exit.signal != 0 => (Outcome::Failed, Some(Reason::RaisedSignal)),
        _ => (Outcome::Failed, Some(Reason::NonZeroExitCode)),
    }
}
