//! What became of what the user asked for: the record of a job.
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::buffer::{BufferPhase, BufferState};
use crate::dependency::Dependency;
use crate::license::LicenseCount;
use crate::priority::AccountFactors;
use crate::time::{Span, Timestamp};
use crate::{Allocation, ExitStatus, HetPlace, JobId, JobSpec, NodeName, Outcome, Reason, Task, TaskSet, Usage};

record! {
    /// A job, one task of an array, or the part of an array that has not started (`waiting_tasks`).
    pub struct Job hides(buffer_environment) {
        pub id: JobId,
        pub spec: Arc<JobSpec>,
        /// For tasks that have left their array's record; and for that record itself, with `task` none.
        pub array: Option<ArrayPlace>,
        /// The tasks this record still stands for; none for anything but an array's waiting part.
        pub waiting_tasks: Option<TaskSet>,
        /// For the components of a heterogeneous job.
        pub het: Option<HetPlace>,
        /// Counts runs: a report of an earlier run is stale.
        pub attempt: u32,
        pub restarts: u32,
        /// How often that was of its own accord, since somebody released it.
        pub auto_requeues: u32,
        pub phase: Phase,
        pub outcome: Option<Outcome>,
        pub exit: ExitStatus,
        /// The worst exit of the job's steps.
        pub derived_exit: ExitStatus,
        pub held: Option<HeldBy>,
        /// Why it waits, or why it ended.
        pub reason: Option<Reason>,
        /// More than the reason says; `scontrol show job` adds it.
        pub reason_text: String,
        /// What would have its waiting looked at again.
        pub wakes: Vec<Wake>,
        pub priority: u32,
        /// Age adds to `priority_base` while it waits.
        pub priority_grows: bool,
        /// Everything but age; may be less than nothing.
        pub priority_base: i64,
        /// What its association and QOS add, as it was weighed last.
        pub account_factors: AccountFactors,
        /// Added by the site (`scontrol update SiteFactor=`).
        pub site_factor: i32,
        /// The partition it runs in, or would be considered in first.
        pub partition: String,
        /// Whom it is charged to; 0: nobody.
        pub association: u32,
        /// An administrator chose its QOS, which its association need not have.
        pub has_given_qos: bool,
        /// Held while `holds_nodes()`, kept for display afterwards.
        pub allocation: Allocation,
        /// Tasks already done in this phase.
        pub done: BTreeSet<Task>,
        /// Processes may exist on the nodes.
        pub alive: bool,
        /// The run is to be followed by another.
        pub requeue: bool,
        /// What is left to wait for.
        pub dependency: Dependency,
        /// What is left can never be met.
        pub dependency_failed: bool,
        /// The batch script of this run has been started.
        pub launched: bool,
        /// Its processes may be frozen.
        pub is_frozen: bool,
        /// How often this run has been suspended and resumed; freezes and thaws are told apart by it.
        pub n_switches: u32,
        /// Suspended by the scheduler, which resumes it, and not by somebody.
        pub is_parked: bool,
        /// Its place among those that take turns: the lowest is the next.
        pub turn: u64,
        /// Others may use its CPUs while it is suspended (`suspend_cpus = "release"`).
        pub lends_cpus: bool,
        /// Its processes were stopped by a signal (`scancel -s STOP`); its clock goes on.
        pub is_stopped: bool,
        /// Nodes that have not confirmed the last suspend or resume. Not in the state: the controller fills it in for readers.
        pub awaited_nodes: Vec<NodeName>,
        pub submitted: Timestamp,
        pub eligible: Option<Timestamp>,
        /// A limit keeps its age from counting.
        pub age_waits: bool,
        /// It is, or was, held after it was eligible: its age counts anew from its release.
        pub age_paused: bool,
        /// Its age counts only from here: it had to wait for that, or was held.
        pub aged_from: Option<Timestamp>,
        pub started: Option<Timestamp>,
        pub ended: Option<Timestamp>,
        /// Since when nothing is left to be done for it; it is forgotten some time after.
        pub finished: Option<Timestamp>,
        pub last_evaluated: Option<Timestamp>,
        /// Set exactly while suspended.
        pub suspended_at: Option<Timestamp>,
        /// Last suspended or resumed, as Slurm's SuspendTime.
        pub suspend_changed: Option<Timestamp>,
        pub run_before_suspend: Span,
        pub total_suspended: Span,
        /// When it was suspended before; the oldest are joined where they are many.
        pub pauses: Vec<Pause>,
        /// Since when it waits for few switches: the scheduler first found only more.
        pub switch_wait_since: Option<Timestamp>,
        /// The scheduler's estimate.
        pub expected_start: Option<Timestamp>,
        /// Where it would start then: a hostlist.
        pub expected_nodes: String,
        pub cancelled_by: Option<u32>,
        /// When it was told to make room, for whom, and by when it must have gone.
        pub preempted_at: Option<Timestamp>,
        pub preempted_by: Option<JobId>,
        pub preempt_ends: Option<Timestamp>,
        /// It runs again after that.
        pub preempt_requeues: bool,
        pub next_step: u32,
        /// The warning signal has been asked for.
        pub warned: bool,
        /// The last mark of its time limit that it has passed and somebody wants to hear of.
        pub time_used_percent: u32,
        /// Nodes that could not be reached when the run ended.
        pub unreachable: Vec<NodeName>,
        /// What the batch script of this run has used.
        pub usage: Option<Box<Usage>>,
        /// The phase of its burst buffer, while it has one; kept equal to the buffer's own.
        pub buffer: Option<BufferPhase>,
        /// What is to be done for its burst buffer now has failed; why.
        pub buffer_failure: String,
        /// Why its burst buffer holds it (`HeldBy::BurstBuffer`), also when nothing of the buffer is left.
        pub buffer_hold: String,
        /// What its processes are told of its buffers. Not in the state: the controller fills it in for its owner.
        pub buffer_environment: Vec<String>,
        /// Counts what was ordered for its buffers.
        pub n_buffer_orders: u32,
        /// The run's data is given up: nothing is staged out (`scancel --hurry`).
        pub hurry: bool,
        /// What an administrator has to say of it.
        pub admin_comment: String,
        /// The system's own comments, oldest first.
        pub remarks: Vec<Remark>,
        /// Held while `holds_nodes()`, kept for display afterwards.
        pub licenses: Vec<LicenseCount>,
        /// The site's program that the job waits for now: it is configuring, or completing.
        pub hook: Option<Task>,
        /// Somebody has suspended it while its nodes were prepared: it is suspended as soon as it starts.
        pub starts_suspended: bool,
        /// The reservation it runs in.
        pub reservation: String,
        /// Whatever its limit, it ends then: with its reservation.
        pub must_end_by: Option<Timestamp>,
        /// Where the script runs, if not on the first node (`--batch`).
        pub batch_host: Option<NodeName>,
    }

    /// One time that a job was suspended.
    pub struct Pause {
        pub from: Timestamp,
        pub until: Timestamp,
    }

    /// One line of SystemComment.
    pub struct Remark {
        pub at: Timestamp,
        pub text: String,
    }

    pub struct ArrayPlace {
        pub array: JobId,
        pub task: Option<u32>,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Waits to be placed.
    #[default]
    Pending,
    /// Holds nodes; processes are being prepared.
    Starting,
    Running,
    Suspended,
    /// Holds nodes; processes are being cleared away.
    Ending,
    /// Holds no nodes; data is being moved off.
    Finishing,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeldBy {
    User,
    Admin,
    /// By the command that requeued it.
    Requeue,
    /// Started and failed too often.
    MaxRequeue,
    /// Its burst buffer could not be filled.
    BurstBuffer,
    /// Its reservation is gone.
    ReservationGone,
    /// It could not be launched: a prolog failed.
    LaunchFailed,
    /// Requeued because of how it ended (`scontrol requeuehold State=SpecialExit`).
    SpecialExit,
}

/// What ends a wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Wake {
    At(Timestamp),
    /// A job (or the whole array) has started, ended or gone.
    JobMoved(JobId),
    Released(JobId),
    /// A job of this user with this name has ended.
    NameFree {
        uid: u32,
        name: String,
    },
    /// A task of this array has ended, or its limit has changed.
    ArraySlot(JobId),
    /// History has all of this job.
    Recorded(JobId),
    /// The rules of a partition, or of the cluster, have changed.
    Partitions,
    /// The job's burst buffer has moved on, or is gone.
    Buffer(JobId),
    /// The persistent buffer of this name is there, or gone, or somebody has stopped using it.
    Persistent(String),
    /// A reservation has begun, ended or changed.
    Reservation(String),
    /// Steps have taken ports, or given them back.
    Ports,
    /// A record of this array is gone.
    ArrayShrunk(JobId),
}

/// More are not kept apart.
const MOST_PAUSES: usize = 100;

impl Job {
    /// Notes a suspension that is over. Of very many the two oldest are joined, so that the sum stays right.
    pub fn note_pause(&mut self, pause: Pause) {
        self.pauses.push(pause);
        if self.pauses.len() > MOST_PAUSES {
            let second = self.pauses.remove(1);
            self.pauses[0].until = self.pauses[0].until + (second.until - second.from);
        }
    }

    /// The node that runs the script, where there is one.
    pub fn script_node(&self) -> Option<&NodeName> {
        self.batch_host.as_ref().filter(|_| self.runs_script()).or_else(|| self.allocation.first())
    }

    /// Whether it grows older while it waits.
    pub fn accrues_age(&self) -> bool {
        self.phase == Phase::Pending && self.eligible.is_some() && !self.age_waits && !self.age_paused
    }

    /// Since when its age counts.
    pub fn accrue_time(&self) -> Option<Timestamp> {
        if self.age_waits || self.age_paused { None } else { self.aged_from.or(self.eligible) }
    }

    /// The reason in Slurm's words, which has none of its own for an end by a signal.
    pub fn reason_word(&self) -> Option<&'static str> {
        let reason = self.reason?;
        let is_by_signal = matches!(reason, Reason::NonZeroExitCode | Reason::RaisedSignal) && self.exit.signal != 0;
        Some(if is_by_signal { Reason::JobLaunchFailure } else { reason }.word())
    }

    /// It has ended and will not run again.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ending | Phase::Finishing | Phase::Done) && !self.requeue
    }

    /// Suspended by somebody, who alone resumes it.
    pub fn is_suspended_by_hand(&self) -> bool {
        self.phase == Phase::Suspended && !self.is_parked
    }

    pub fn holds_nodes(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running | Phase::Suspended | Phase::Ending)
    }

    /// Time it has run, without suspensions.
    pub fn run_time(&self, now: Timestamp) -> Span {
        let Some(started) = self.started else { return Span(0) };
        if self.suspended_at.is_some() {
            return self.run_before_suspend;
        }
        let until = self.ended.unwrap_or(now);
        match self.suspend_changed {
            // Ended while suspended: the end is the moment of suspension.
            Some(changed) if until <= changed => self.run_before_suspend,
            Some(changed) => (until - changed) + self.run_before_suspend,
            None => until - started,
        }
    }

    /// How much of the time between the two its processes were let run: that of a step, which is no longer than the job's.
    pub fn ran_between(&self, from: Timestamp, until: Timestamp) -> Span {
        let until = self.suspended_at.map_or(until, |since| since.min(until));
        let paused = self.pauses.iter().map(|pause| pause.until.min(until) - pause.from.max(from));
        paused.fold(until - from, |left, pause| left - pause)
    }

    /// When it must end, as far as is known.
    pub fn end_time(&self) -> Option<Timestamp> {
        if self.ended.is_some() {
            return self.ended;
        }
        let by_limit = self.end_by_limit();
        match (by_limit, self.must_end_by.filter(|_| self.started.is_some())) {
            (Some(limit), Some(last)) => Some(limit.min(last)),
            (limit, last) => limit.or(last),
        }
    }

    /// When its own limit is over.
    pub fn end_by_limit(&self) -> Option<Timestamp> {
        let limit = self.spec.time_limit?.span()?;
        match self.suspend_changed {
            Some(changed) if self.suspended_at.is_none() => Some(changed + (limit - self.run_before_suspend)),
            Some(_) => Some(self.started? + limit + self.total_suspended),
            None => Some(self.started? + limit),
        }
    }

    /// A batch job whose script runs here: of a heterogeneous job only the first component runs it.
    pub fn runs_script(&self) -> bool {
        self.spec.is_batch() && self.het.as_ref().is_none_or(HetPlace::is_leader)
    }

    /// What users read as BurstBufferState; none for jobs that ask for no buffer.
    pub fn buffer_state(&self) -> Option<BufferState> {
        self.spec.buffer.as_ref()?;
        Some(match self.buffer {
            None if self.is_over() => BufferState::Complete,
            None => BufferState::Pending,
            Some(BufferPhase::Allocating) => BufferState::Allocating,
            Some(BufferPhase::StagingIn) => BufferState::StagingIn,
            Some(BufferPhase::StagedIn) => BufferState::StagedIn,
            Some(BufferPhase::Deleting) => BufferState::Deleting,
            Some(BufferPhase::PreRun) => BufferState::PreRun,
            Some(BufferPhase::Revoked) => BufferState::AllocRevoke,
            Some(BufferPhase::InUse) => BufferState::Running,
            Some(BufferPhase::PostRun) => BufferState::PostRun,
            Some(BufferPhase::StagingOut) => BufferState::StagingOut,
            Some(BufferPhase::TearingDown) if self.buffer_failure.is_empty() => BufferState::Teardown,
            Some(BufferPhase::TearingDown) => BufferState::TeardownFail,
        })
    }

    /// It has nodes, which prologs prepare or its data is brought to; nothing may be launched before.
    pub fn is_being_prepared(&self) -> bool {
        let brings = matches!(self.buffer, Some(BufferPhase::Deleting | BufferPhase::PreRun));
        self.phase == Phase::Starting && (self.hook.is_some() || brings)
    }

    /// Its run is over, but its data is not yet where it belongs.
    pub fn is_staging_out(&self) -> bool {
        let stages_out = matches!(self.buffer, Some(BufferPhase::PostRun | BufferPhase::StagingOut));
        self.phase == Phase::Finishing && !self.requeue && stages_out
    }

    /// The array this job is, or belongs to.
    pub fn array_id(&self) -> Option<JobId> {
        self.array.as_ref().map(|place| place.array)
    }

    pub fn array_task(&self) -> Option<u32> {
        self.array.as_ref().and_then(|place| place.task)
    }

    /// How many tasks this record stands for.
    pub fn n_tasks_waiting(&self) -> u64 {
        self.waiting_tasks.as_ref().map_or(1, |tasks| u64::from(tasks.len()))
    }
}
