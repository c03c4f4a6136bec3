//! The log: what may be asked of the state, and what it answers. Commands are intents, not field patches.
use std::cell::Cell;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::accounts::Change;
pub use crate::content::Blob;
use crate::het::StepPart;
use crate::history::{Amendment, RunName};
use crate::node::{Machine, Run};
use crate::pool::{Plugin, Pool, PoolReport};
use crate::staging::{Access, StageResult};
use crate::trust::TrustChange;
use crate::update::{JobChanges, NodeChange, PartitionChanges};
use crate::{
    Caller, Config, Duty, Event, ExitStatus, JobId, JobRef, JobSpec, NodeName, Owner, Plan, Reject, StepId, StepSpec,
    Timestamp, Usage,
};

/// One entry of the replicated log. `at` is the only clock the state ever sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub at: Timestamp,
    pub by: Caller,
    pub command: Command,
}

/// Chosen at random by whoever asks, anew for each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64, pub u64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Blobs that the state may not have yet come along; one that is missing refuses the submission.
    Submit {
        spec: Box<JobSpec>,
        blobs: Vec<Blob>,
    },
    /// The components of one heterogeneous job, in their order: all are taken, or none.
    SubmitTogether {
        specs: Vec<JobSpec>,
        blobs: Vec<Blob>,
    },
    AdoptPlan(Plan),
    DutyDone {
        duty: Duty,
        result: DutyResult,
    },
    /// What agents answered about the directories of a buffer.
    Staged {
        duty: Duty,
        results: Vec<PlaceResult>,
    },
    /// Forgets a buffer whose directories cannot be reached; they go when their agents come back.
    DropBuffer {
        buffer: Owner,
    },
    /// What DataWarp's infrastructure lists.
    SessionsSeen {
        sessions: Vec<crate::buffer::Session>,
    },
    /// A directory of a job's buffer holds more than it may, or no longer does.
    BufferMeasured {
        job: JobId,
        epoch: u32,
        access: Access,
        node: NodeName,
        used_bytes: u64,
        is_over_limit: bool,
    },
    /// The file systems of a node's pools have changed.
    PoolsSeen {
        node: NodeName,
        pools: Vec<PoolReport>,
    },
    /// A plugin's pools, as it tells of them.
    PoolsReported {
        plugin: Plugin,
        pools: Vec<Pool>,
    },
    /// All tasks of a step (or the batch script) on one node have ended, and nothing of it is left there.
    Exited(Exited),
    /// `scancel` without a signal.
    Cancel {
        jobs: Vec<JobRef>,
        /// What is in burst buffers is given up (`--hurry`).
        #[serde(default)]
        hurry: bool,
    },
    /// Ends an allocation whose client is done (`salloc`), with the client's exit status.
    Complete {
        job: JobId,
        exit: ExitStatus,
    },
    Hold {
        jobs: Vec<JobRef>,
        by_user: bool,
    },
    Release {
        jobs: Vec<JobRef>,
    },
    Requeue {
        jobs: Vec<JobRef>,
        hold: bool,
    },
    Suspend {
        jobs: Vec<JobRef>,
    },
    Resume {
        jobs: Vec<JobRef>,
    },
    /// A signal has stopped the processes of these jobs, or let them go on.
    NoteStopped {
        jobs: Vec<JobId>,
        is_stopped: bool,
    },
    /// What is said of a run afterwards, while the state still knows of it.
    AmendRun {
        run: RunName,
        amendment: Box<Amendment>,
    },
    UpdateJob {
        job: JobRef,
        changes: Box<JobChanges>,
    },
    CreateStep {
        job: JobId,
        spec: Box<StepSpec>,
        blobs: Vec<Blob>,
    },
    /// One step over several components, or several parts of one allocation: all are created, or none.
    CreateStepTogether {
        parts: Vec<(JobId, StepSpec)>,
        blobs: Vec<Blob>,
    },
    CancelStep {
        job: JobId,
        step: StepId,
    },
    /// An agent has come, or come back, and says which runs live on it.
    RegisterNode {
        node: NodeName,
        machine: Box<Machine>,
        runs: Vec<Run>,
    },
    /// History has everything up to this change.
    Recorded {
        up_to: u64,
    },
    /// Ids up to this one were given before, by a state that is lost.
    ContinueIds {
        after: JobId,
    },
    NodeLost {
        node: NodeName,
    },
    UpdateNodes {
        nodes: Vec<NodeName>,
        change: NodeChange,
    },
    UpdatePartition {
        name: String,
        changes: Box<PartitionChanges>,
    },
    /// `sacctmgr`. The caller's name is the controller's word, not the caller's.
    ChangeAccounts {
        change: Box<Change>,
        by_name: String,
    },
    Reconfigure {
        config: Box<Config>,
    },
    /// As `Reconfigure`, when the controller starts: what was changed at run time stays while the file is as it was.
    Begin {
        config: Box<Config>,
    },
    /// All controllers know these rules: entries are judged by them from here on.
    AdoptRules {
        edition: u32,
    },
    CreatePartition {
        name: String,
        fields: Vec<crate::partition_field::Field>,
    },
    DeletePartition {
        name: String,
    },
    /// Without a name, one is found.
    CreateReservation {
        name: String,
        fields: Vec<crate::reservation_field::Field>,
        utc_offset_secs: i32,
    },
    UpdateReservation {
        name: String,
        fields: Vec<crate::reservation_field::Field>,
    },
    DeleteReservation {
        name: String,
    },
    Tick,
    /// `scontrol fsdampeningfactor`: until the configuration is read again.
    SetDampening {
        factor: u32,
    },
    /// `strigger --set`
    SetTrigger {
        trigger: Box<crate::trigger::Trigger>,
    },
    ClearTriggers {
        filter: crate::trigger::TriggerFilter,
    },
    /// The program of a trigger has run, as many times as it had before.
    TriggerRan {
        id: u32,
        n_fired: u32,
    },
    /// What only the leader knows of has happened.
    Happened {
        kinds: Vec<crate::trigger::TriggerKind>,
    },
    /// Machines join and leave.
    Trust(TrustChange),
    /// The state of a backup, for a cluster that has none of its own yet.
    Restore {
        #[serde(with = "crate::bytes")]
        state: Vec<u8>,
    },
    /// A command whose sender may send it again because it heard no answer: carried out once, answered as often as it comes.
    Once {
        request: RequestId,
        #[serde(deserialize_with = "not_once_again")]
        command: Box<Command>,
    },
}

/// A request holds no request: commands are long, and each inside another would take much of the reader's stack.
fn not_once_again<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Command>, D::Error> {
    thread_local!(static IS_INSIDE: Cell<bool> = const { Cell::new(false) });
    if IS_INSIDE.replace(true) {
        return Err(D::Error::custom("a request inside a request"));
    }
    let command = Box::deserialize(from);
    IS_INSIDE.set(false);
    command
}

impl Command {
    /// Users give it, and may have written it by hand. The rest is the controller's own, what nodes report, or an
    /// administrator's whole configuration or backup.
    pub fn is_from_users(&self) -> bool {
        match self {
            Command::Once { command, .. } => command.is_from_users(),
            Command::Submit { .. }
            | Command::SubmitTogether { .. }
            | Command::Cancel { .. }
            | Command::Complete { .. }
            | Command::Hold { .. }
            | Command::Release { .. }
            | Command::Requeue { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::UpdateJob { .. }
            | Command::CreateStep { .. }
            | Command::CreateStepTogether { .. }
            | Command::CancelStep { .. }
            | Command::UpdatePartition { .. }
            | Command::ChangeAccounts { .. }
            | Command::CreatePartition { .. }
            | Command::DeletePartition { .. }
            | Command::CreateReservation { .. }
            | Command::UpdateReservation { .. }
            | Command::DeleteReservation { .. }
            | Command::SetDampening { .. }
            | Command::SetTrigger { .. }
            | Command::ClearTriggers { .. } => true,
            Command::AdoptPlan(_)
            | Command::DutyDone { .. }
            | Command::Staged { .. }
            | Command::DropBuffer { .. }
            | Command::SessionsSeen { .. }
            | Command::BufferMeasured { .. }
            | Command::PoolsSeen { .. }
            | Command::PoolsReported { .. }
            | Command::Exited(_)
            | Command::NoteStopped { .. }
            | Command::AmendRun { .. }
            | Command::RegisterNode { .. }
            | Command::Recorded { .. }
            | Command::ContinueIds { .. }
            | Command::NodeLost { .. }
            | Command::UpdateNodes { .. }
            | Command::Reconfigure { .. }
            | Command::Begin { .. }
            | Command::AdoptRules { .. }
            | Command::Tick
            | Command::TriggerRan { .. }
            | Command::Happened { .. }
            | Command::Trust(_)
            | Command::Restore { .. } => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DutyResult {
    Done,
    /// What went wrong, where, and why.
    Failed {
        node: NodeName,
        why: String,
    },
    /// Nodes failed, and are to take no more jobs: the site's own program did there, or they cannot run anything.
    HookFailed {
        nodes: Vec<NodeName>,
        why: String,
        /// Why they are drained; empty: a prolog or an epilog, as the task says.
        #[serde(default)]
        drained_for: String,
    },
}

/// How one directory's work ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceResult {
    pub access: Access,
    pub node: NodeName,
    pub result: StageResult,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exited {
    pub job: JobId,
    pub attempt: u32,
    pub step: StepId,
    pub node: NodeName,
    /// The worst of the tasks on this node.
    pub exit: ExitStatus,
    /// The memory limit ended it.
    pub out_of_memory: bool,
    /// It never came to run its program; why.
    pub launch_error: Option<String>,
    /// It was the node that kept the program from running, and would keep every other: why it is drained.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub drained_for: String,
    /// None from agents that did not measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    Ok,
    Submitted(JobId),
    StepCreated(StepId),
    StepsCreated(Vec<StepPart>),
    ReservationCreated(String),
    Adopted {
        n_started: u32,
        n_stale: u32,
    },
    /// One result for each job or array task that was addressed, in order.
    Each(Vec<JobResult>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// The job, or the array with the tasks that share this result.
    pub job: JobRef,
    pub result: Result<(), Reject>,
}

/// What applying an entry gave.
#[derive(Clone, Debug)]
pub struct Applied {
    pub reply: Result<Reply, Reject>,
    pub events: Vec<Event>,
}

/// Blobs as one byte string instead of a list of numbers.
pub(crate) mod bytes {
    use serde::{Deserializer, Serializer, de::Visitor};

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
                out.write_str("a byte string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes)
    }
}
