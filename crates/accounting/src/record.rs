//! From the controller's records to rows of history.
use model::amount::Amount;
use model::history::{JobRecord, StepRecord};
use model::job_state::JobState;
use model::pattern::{self, PatternValues};
use model::spec::Distribution;
use model::step::StepPhase;
use model::{Config, Job, JobKind, Outcome, Phase, Step, StepId, Timestamp, hostlist};

/// The row of a job's run.
pub fn job(config: &Config, job: &Job) -> JobRecord {
    let spec = &job.spec;
    let accounting = &config.accounting;
    let is_pending = job.phase == Phase::Pending;
    let script = match spec.kind {
        JobKind::Batch { script } if accounting.keeps_scripts => Some(script),
        JobKind::Batch { .. } | JobKind::Allocation | JobKind::Run(_) => None,
    };
    JobRecord {
        job: job.id,
        attempt: job.attempt,
        submitted: job.submitted,
        restarts: job.restarts,
        segment: spec.size.network.segment,
        array: job.array_id(),
        task: job.array_task(),
        waiting: job.waiting_tasks.clone(),
        waiting_limit: spec.array.as_ref().and_then(|array| array.limit),
        het_job: job.het.as_ref().map(|place| place.leader),
        het_offset: job.het.as_ref().map_or(0, |place| place.offset),
        name: spec.name.clone(),
        uid: spec.uid,
        gid: spec.gid,
        user: spec.user.clone(),
        group: spec.group.clone(),
        account: spec.account.clone(),
        qos: spec.qos.clone(),
        wckey: spec.wckey.clone(),
        comment: spec.comment.clone(),
        admin_comment: job.admin_comment.clone(),
        system_comment: job.remarks.iter().map(|remark| remark.text.as_str()).collect::<Vec<_>>().join("; "),
        partition: if is_pending { spec.partitions.join(",") } else { job.partition.clone() },
        reservation: if is_pending { spec.reservations.join(",") } else { job.reservation.clone() },
        licenses: spec.licenses.to_string(),
        constraints: spec.size.features.clone(),
        command_line: spec.submit_line.clone(),
        work_dir: spec.work_dir.clone(),
        stdin: file(job, spec.stdin.as_deref(), "/dev/null"),
        stdout: file(job, spec.stdout.as_deref(), default_output(job)),
        stderr: file(job, spec.stderr.as_deref().or(spec.stdout.as_deref()), default_output(job)),
        is_batch: spec.is_batch(),
        state: state(job).name().into(),
        cancelled_by: job.cancelled_by.filter(|_| job.outcome == Some(Outcome::Cancelled)),
        // Why it waited; how it ended is another matter.
        reason: job
            .reason
            .filter(|_| job.ended.is_none() || job.started.is_none())
            .map_or("None", |reason| reason.word())
            .into(),
        failed_nodes: job.unreachable.clone(),
        exit: exit(job),
        derived_exit: job.derived_exit,
        eligible: job.eligible,
        started: job.started.filter(|_| !is_pending),
        ended: job.ended,
        suspended: job.total_suspended,
        suspended_since: job.suspended_at,
        pauses: job.pauses.clone(),
        time_limit: spec.time_limit,
        priority: if job.held.is_some() { 0 } else { job.priority },
        asked: job.billed(config, job.asked()),
        memory: spec.size.memory,
        held: job.billed(config, job.held()),
        nodes: if job.has_nodes() { hostlist::compress(job.allocation.names()) } else { String::new() },
        script,
        environment: (accounting.keeps_environments && spec.is_batch()).then_some(spec.environment),
        has_extern: accounting.has_extern && !accounting.enforce.no_steps && job.has_nodes(),
        was_backfilled: false,
    }
}

/// The row of a step.
pub fn step(job: &Job, step: &Step) -> StepRecord {
    let state = match step.phase {
        StepPhase::Starting | StepPhase::Running if job.phase == Phase::Suspended => JobState::Suspended,
        StepPhase::Starting | StepPhase::Running | StepPhase::Ending => JobState::Running,
        StepPhase::Done => ended_step(job, step),
    };
    StepRecord {
        job: job.id,
        attempt: step.attempt,
        submitted: job.submitted,
        step: step.id,
        name: step_name(step),
        state: state.name().into(),
        cancelled_by: match state {
            JobState::Cancelled if step.was_cancelled => job.cancelled_by.or(Some(job.spec.uid)),
            _ => None,
        },
        exit: step.exit,
        started: step.started,
        ended: step.ended,
        suspended: suspended(job, step.started, step.ended),
        held: Amount::of_step(step),
        nodes: hostlist::compress(step.shares.iter().map(|share| &share.node)),
        layout: layout(step).into(),
        command_line: match step.spec.submit_line.as_str() {
            "" => step.spec.arguments.join(" "),
            line => line.to_owned(),
        },
        usage: step.usage.clone(),
    }
}

/// The row of the batch script, once the job has started.
pub fn batch_step(job: &Job) -> Option<StepRecord> {
    if !job.runs_script() || !job.has_nodes() {
        return None;
    }
    let first = &job.allocation.nodes[..1];
    let state = match job.phase {
        Phase::Pending | Phase::Starting | Phase::Running => JobState::Running,
        Phase::Suspended => JobState::Suspended,
        Phase::Ending | Phase::Finishing | Phase::Done => batch_state(job),
    };
    Some(StepRecord {
        job: job.id,
        attempt: job.attempt,
        submitted: job.submitted,
        step: StepId::Batch,
        name: "batch".into(),
        state: state.name().into(),
        cancelled_by: None,
        exit: if matches!(job.outcome, Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Preempted)) {
            model::ExitStatus::signaled(15)
        } else {
            job.exit
        },
        started: job.started,
        ended: job.ended,
        suspended: job.total_suspended,
        held: Amount { n_tasks: 1, ..Amount::of_shares(first) },
        nodes: hostlist::compress(first.iter().map(|share| &share.node)),
        layout: "Unknown".into(),
        command_line: String::new(),
        usage: job.usage.clone(),
    })
}

fn state(job: &Job) -> JobState {
    match (job.phase, job.outcome) {
        (Phase::Pending, _) => JobState::Pending,
        (Phase::Starting | Phase::Running, _) => JobState::Running,
        (Phase::Suspended, _) => JobState::Suspended,
        // Ended to run again: by request, or because something failed.
        (_, Some(Outcome::Cancelled)) if job.requeue => JobState::Requeued,
        (_, Some(outcome)) => outcome.into(),
        (_, None) => JobState::Completed,
    }
}

/// A job that was ended from outside has no exit code of its own.
fn exit(job: &Job) -> model::ExitStatus {
    match job.outcome {
        Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Preempted | Outcome::Deadline) => Default::default(),
        _ => job.exit,
    }
}

fn batch_state(job: &Job) -> JobState {
    match job.outcome {
        Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Preempted | Outcome::Deadline | Outcome::NodeFail) => {
            JobState::Cancelled
        }
        // To Slurm a step that a signal ended was cancelled, whoever sent it.
        Some(Outcome::Failed) if job.exit.signal != 0 => JobState::Cancelled,
        Some(outcome) => outcome.into(),
        None => JobState::Completed,
    }
}

fn ended_step(job: &Job, step: &Step) -> JobState {
    let job_was_ended = matches!(
        job.outcome,
        Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Preempted | Outcome::Deadline | Outcome::NodeFail)
    ) && step.ended >= job.ended;
    match () {
        () if step.out_of_memory => JobState::OutOfMemory,
        () if step.was_cancelled && step.ended.is_some_and(|ended| step.has_outlived_limit(ended)) => JobState::Timeout,
        () if step.was_cancelled || (job_was_ended && !step.exit.is_success()) => JobState::Cancelled,
        () if step.exit.signal != 0 => JobState::Cancelled,
        () if step.exit.is_success() => JobState::Completed,
        () => JobState::Failed,
    }
}

fn step_name(step: &Step) -> String {
    if !step.spec.name.is_empty() {
        return step.spec.name.clone();
    }
    let program = step.spec.arguments.first().map(String::as_str).unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default().to_string()
}

fn layout(step: &Step) -> &'static str {
    let is_default = step.spec.layout_words.is_empty() && step.spec.distribution == Distribution::Block;
    match step.spec.distribution {
        // Where nothing is asked for, Slurm calls one task a node cyclic.
        _ if is_default && step.n_tasks as usize <= step.shares.len() => "Cyclic",
        Distribution::Block | Distribution::Even => "Block",
        Distribution::Cyclic => "Cyclic",
        Distribution::Plane(_) => "Plane",
    }
}

/// The job's suspensions count for a step that lived through all of them; otherwise what is known is too little to tell.
fn suspended(job: &Job, started: Option<Timestamp>, ended: Option<Timestamp>) -> model::time::Span {
    let lived_through = started <= job.suspend_changed && ended.is_none_or(|ended| Some(ended) >= job.suspend_changed);
    if lived_through && job.suspend_changed.is_some() { job.total_suspended } else { Default::default() }
}

fn default_output(job: &Job) -> &'static str {
    if job.array.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" }
}

/// Where a stream of the script goes; empty for jobs without a script.
fn file(job: &Job, asked: Option<&str>, default: &str) -> String {
    if !job.spec.is_batch() {
        return String::new();
    }
    let values = PatternValues {
        job: job.id.0,
        array_job: job.array_id().map(|id| id.0),
        array_task: job.array_task(),
        ..PatternValues::default()
    };
    let name = match asked {
        Some(pattern) => pattern.to_string(),
        None => pattern::expand(default, &values),
    };
    if name.starts_with('/') { name } else { format!("{}/{name}", job.spec.work_dir.trim_end_matches('/')) }
}
