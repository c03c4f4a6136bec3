//! Slurm's job states: a view of phase and outcome, never stored.
use std::str::FromStr;

use crate::buffer::BufferPhase;
use crate::{Job, Outcome, Phase, Task};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    Pending,
    Running,
    Suspended,
    Completed,
    Cancelled,
    Failed,
    Timeout,
    NodeFail,
    Preempted,
    BootFail,
    Deadline,
    OutOfMemory,
    Completing,
    Configuring,
    StageOut,
    Requeued,
    RequeueHold,
    SpecialExit,
    Stopped,
    Resizing,
    Revoked,
    Signaling,
    ResvDelHold,
    RequeueFed,
}

const NAMES: &[(JobState, &str, &str)] = &[
    (JobState::Pending, "PENDING", "PD"),
    (JobState::Running, "RUNNING", "R"),
    (JobState::Suspended, "SUSPENDED", "S"),
    (JobState::Completed, "COMPLETED", "CD"),
    (JobState::Cancelled, "CANCELLED", "CA"),
    (JobState::Failed, "FAILED", "F"),
    (JobState::Timeout, "TIMEOUT", "TO"),
    (JobState::NodeFail, "NODE_FAIL", "NF"),
    (JobState::Preempted, "PREEMPTED", "PR"),
    (JobState::BootFail, "BOOT_FAIL", "BF"),
    (JobState::Deadline, "DEADLINE", "DL"),
    (JobState::OutOfMemory, "OUT_OF_MEMORY", "OOM"),
    (JobState::Completing, "COMPLETING", "CG"),
    (JobState::Configuring, "CONFIGURING", "CF"),
    (JobState::StageOut, "STAGE_OUT", "SO"),
    (JobState::Requeued, "REQUEUED", "RQ"),
    (JobState::RequeueHold, "REQUEUE_HOLD", "RH"),
    (JobState::SpecialExit, "SPECIAL_EXIT", "SE"),
    (JobState::Stopped, "STOPPED", "ST"),
    (JobState::Resizing, "RESIZING", "RS"),
    (JobState::Revoked, "REVOKED", "RV"),
    (JobState::Signaling, "SIGNALING", "SI"),
    (JobState::ResvDelHold, "RESV_DEL_HOLD", "RD"),
    (JobState::RequeueFed, "REQUEUE_FED", "RF"),
];

impl JobState {
    pub fn all() -> impl Iterator<Item = JobState> {
        NAMES.iter().map(|(state, ..)| *state)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(state, ..)| *state == self).expect("every state is listed").1
    }

    pub fn code(self) -> &'static str {
        NAMES.iter().find(|(state, ..)| *state == self).expect("every state is listed").2
    }

    pub fn is_finished(self) -> bool {
        (JobState::Completed..=JobState::OutOfMemory).contains(&self)
    }
}

impl FromStr for JobState {
    type Err = ();
    /// Accepts the long and the short name in any case.
    fn from_str(text: &str) -> Result<Self, ()> {
        let named = |(_, name, code): &&(JobState, &str, &str)| {
            name.eq_ignore_ascii_case(text) || code.eq_ignore_ascii_case(text)
        };
        NAMES.iter().find(named).map(|(state, ..)| *state).ok_or(())
    }
}

impl From<Outcome> for JobState {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => JobState::Completed,
            Outcome::Failed => JobState::Failed,
            Outcome::Cancelled => JobState::Cancelled,
            Outcome::Timeout => JobState::Timeout,
            Outcome::NodeFail => JobState::NodeFail,
            Outcome::Preempted => JobState::Preempted,
            Outcome::BootFail => JobState::BootFail,
            Outcome::Deadline => JobState::Deadline,
            Outcome::OutOfMemory => JobState::OutOfMemory,
        }
    }
}

impl Job {
    /// The one word that squeue shows.
    pub fn state(&self) -> JobState {
        match self.phase {
            Phase::Pending if self.held == Some(crate::HeldBy::SpecialExit) => JobState::SpecialExit,
            Phase::Pending => JobState::Pending,
            // Without a prolog a start takes milliseconds; Slurm calls that RUNNING.
            Phase::Starting if matches!(self.buffer, Some(BufferPhase::PreRun | BufferPhase::Deleting)) => {
                JobState::Configuring
            }
            Phase::Starting if self.hook == Some(Task::ControllerProlog) => JobState::Configuring,
            Phase::Starting => JobState::Running,
            Phase::Running if self.is_stopped => JobState::Stopped,
            Phase::Running => JobState::Running,
            Phase::Suspended => JobState::Suspended,
            Phase::Ending => JobState::Completing,
            Phase::Finishing if self.is_staging_out() => JobState::StageOut,
            Phase::Finishing if self.hook.is_some() => JobState::Completing,
            Phase::Finishing | Phase::Done => self.base_state(),
        }
    }

    /// The state without COMPLETING and other passing flags.
    pub fn base_state(&self) -> JobState {
        match (self.phase, self.outcome) {
            (Phase::Pending, _) => JobState::Pending,
            (Phase::Starting | Phase::Running, _) => JobState::Running,
            (Phase::Suspended, _) => JobState::Suspended,
            (Phase::Ending | Phase::Finishing | Phase::Done, _) if self.requeue => JobState::Pending,
            (Phase::Ending | Phase::Finishing | Phase::Done, Some(outcome)) => outcome.into(),
            (Phase::Ending | Phase::Finishing | Phase::Done, None) => JobState::Completed,
        }
    }
}
