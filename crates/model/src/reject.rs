//! Why the state refused a command, in the words Slurm's users know.
use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reject {
    NoSuchJob,
    NoSuchStep,
    NoSuchNode(String),
    NoSuchPartition,
    NotPermitted,
    /// No set of nodes in the configuration could ever satisfy it.
    NeverFits,
    /// As `NeverFits`: no node alone has what the job wants of each.
    NoNodeHas(Lack),
    TooManyNodes,
    TimeLimitTooLong,
    BadDependency,
    BadArray,
    BadConstraint(String),
    PartitionDown,
    /// Its outcome stands.
    AlreadyOver,
    JobPending,
    JobNotPending,
    JobRunning,
    JobSuspended,
    NotSuspended,
    NotRunning,
    AlreadySuspended,
    NotBatch,
    RequeueDisabled,
    /// What concerns the whole was asked of one component.
    HetComponent,
    NotHetLeader,
    /// The step asks for more than its job has.
    StepTooLarge,
    /// The step asks for more memory, or other devices, than its job has on a node.
    StepMemory,
    StepGres,
    /// The job's other steps hold what this one needs.
    StepMustWait,
    /// The job is suspended.
    StepsDisabled,
    /// More ports than the site keeps for steps.
    TooManyPorts,
    /// Others have the ports that this step needs.
    PortsInUse,
    /// Active features that are not among a node's available ones.
    BadActiveFeatures,
    /// None was named, and none is the default.
    NoDefaultPartition,
    /// `--batch` names what the job's constraint does not.
    BadBatchFeatures,
    NodesBusy(String),
    ReasonRequired,
    InvalidNodeState,
    InvalidValue(String),
    TooManyJobs,
    GroupNotAllowed,
    InvalidAccount,
    InvalidQos,
    NoSuchUser,
    NoSuchGroup,
    BadLicenses,
    MemoryTooLarge,
    BadReservation,
    ReservationAccess,
    ReservationBusy,
    ReservationNameTaken,
    ReservationNotUsable,
    ReservationOverlap,
    BadTime,
    /// Not so many nodes are free for it.
    NodesUnavailable,
    /// Jobs are on the nodes that were named.
    NodesAreBusy,
    PartitionInUse,
    /// The network the job, node or partition names is not there, or its nodes do not fit into it.
    NoSuchTopology,
    /// Content that the submission refers to is not here; send it along.
    MissingBlob,
    /// Content whose id is not its hash.
    ForgedBlob,
    /// The burst buffer request is wrong; where and why.
    BadBuffer(String),
    BufferNotPermitted(String),
    NotSupported,
    NoSuchBuffer(String),
    /// About a run, or a duty, that is over.
    Stale,
    /// About accounts, users and QOS; in words.
    Accounts(String),
    /// The account is not known, or not the user's.
    BadAccount,
    BadQos,
    /// The shortest time the job would take does not fit before its deadline.
    BadTimeMin,
    /// No partition has this name.
    UnknownPartition(String),
    BadWckey,
    /// A limit of an account or a QOS; which.
    Limit(crate::Reason),
    NoSuchTrigger,
    DuplicateTrigger,
    TooManyTriggers,
    /// More CPUs than the partition has, where that is refused at once.
    TooManyCpus,
    /// Usage is to be looked at less often than the site needs, or never.
    BadAccountingFrequency,
    /// The batch script is longer than the site allows.
    ScriptTooLong,
    /// A text or a list is longer than can be taken; which.
    TextTooLong(String),
    /// Not even the owner of a job may do this to it.
    BeyondOwner,
    /// Whoever is nobody's operator does not put a job before others.
    BadNice,
    /// A job that is held is not weighed.
    JobHeld,
    /// The site's own script refuses it: one of Slurm's error numbers, and what the script says.
    BySite {
        code: u32,
        told: String,
    },
    /// As `why`; the site's own script, which had let it pass, has said something too.
    Told {
        told: String,
        why: Box<Reject>,
    },
    /// A bug: the entry was not applied.
    Internal(String),
}

/// What no node has enough of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lack {
    Cpus,
    Memory,
    TmpDisk,
    Sockets,
}

impl Lack {
    fn words(self) -> &'static str {
        match self {
            Lack::Cpus => "CPU count per node can not be satisfied",
            Lack::Memory => "Memory specification can not be satisfied",
            Lack::TmpDisk => "Temporary disk specification can not be satisfied",
            Lack::Sockets => "Socket, core and/or thread specification can not be satisfied",
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let text = match self {
            Reject::NoSuchJob | Reject::NoSuchStep => "Invalid job id specified",
            Reject::NoSuchNode(_) => "Invalid node name specified",
            Reject::NoSuchPartition => "Invalid partition name specified",
            Reject::NotPermitted | Reject::BeyondOwner => "Access/permission denied",
            Reject::NeverFits | Reject::NoNodeHas(_) => "Requested node configuration is not available",
            Reject::TooManyNodes => "Node count specification invalid",
            Reject::TimeLimitTooLong => "Requested time limit is invalid (missing or exceeds some limit)",
            Reject::BadDependency => "Job dependency problem",
            Reject::BadArray => "Invalid job array specification",
            Reject::BadConstraint(_) => "Invalid feature specification",
            Reject::PartitionDown => "Required partition not available (inactive or drain)",
            Reject::AlreadyOver => "Job/step already completing or completed",
            Reject::JobPending => "Job is pending execution",
            Reject::JobNotPending => "Job is no longer pending execution",
            Reject::JobRunning => "Job is in invalid state for requested operation",
            Reject::JobSuspended => "Job can not be altered now, try again later",
            Reject::NotSuspended => "Job is not suspended",
            Reject::NotRunning => "Job is not running",
            Reject::AlreadySuspended => "Job is already suspended",
            Reject::NotBatch => "Only batch jobs are accepted or processed",
            Reject::RequeueDisabled => "Requested operation is presently disabled",
            Reject::HetComponent => "Operation not permitted on individual component of heterogeneous job",
            Reject::NotHetLeader => "Job not heterogeneous job leader",
            Reject::StepTooLarge => "Requested node configuration is not available",
            Reject::StepMemory => "Memory required by task is not available",
            Reject::StepGres => "Invalid generic resource (gres) specification",
            Reject::StepMustWait => "Requested nodes are busy",
            Reject::TooManyPorts => "Requires more ports than can be reserved",
            Reject::PortsInUse => "Required ports are in use",
            Reject::BadActiveFeatures => "Active features not subset of available features",
            Reject::NoDefaultPartition => "No partition specified or system default partition",
            Reject::BadBatchFeatures => "Job --batch option is invalid or not a subset of --constraints",
            Reject::StepsDisabled => "Requested operation is presently disabled",
            Reject::NodesBusy(node) => return write!(out, "Requested nodes are busy ({node})"),
            Reject::ReasonRequired => "You must specify a reason when DOWNING a node",
            Reject::InvalidNodeState => "Invalid node state specified",
            Reject::InvalidValue(what) => return write!(out, "Invalid value for {what}"),
            Reject::NoSuchTopology => "Requested topology configuration is not available",
            Reject::TooManyJobs => "Resource temporarily unavailable",
            Reject::GroupNotAllowed => "User's group not permitted to use this partition",
            Reject::InvalidAccount => "Invalid account or account/partition combination specified",
            Reject::InvalidQos => "Invalid qos specification",
            Reject::NoSuchUser => "Invalid user id",
            Reject::NoSuchGroup => "Invalid group id",
            Reject::BadLicenses => "Invalid license specification",
            Reject::MemoryTooLarge => "Memory required by task is not available",
            Reject::BadReservation => "Requested reservation is invalid",
            Reject::ReservationAccess => "Access denied to requested reservation",
            Reject::ReservationBusy => "Requested reservation is in use",
            Reject::ReservationNameTaken => "Duplicate reservation name",
            Reject::ReservationNotUsable => "Requested reservation not usable now",
            Reject::ReservationOverlap => "Requested reservation overlaps with another reservation",
            Reject::BadTime => "Invalid time specified",
            Reject::NodesUnavailable => "Requested node configuration is not available",
            Reject::NodesAreBusy => "Requested nodes are busy",
            Reject::PartitionInUse => "Partition is in use",
            Reject::MissingBlob => "Content of the submission is missing",
            Reject::ForgedBlob => "Content of the submission is not what its id says",
            Reject::BadBuffer(_) => "Burst Buffer request invalid",
            Reject::BufferNotPermitted(_) => "Burst Buffer permission denied",
            Reject::NotSupported => "Requested operation not supported on this system",
            Reject::NoSuchBuffer(name) => return write!(out, "No burst buffer named {name}"),
            Reject::Stale => "Report is about a run that is over",
            Reject::Accounts(what) => what,
            Reject::BadAccount => "Invalid account or account/partition combination specified",
            Reject::BadQos => "Invalid qos specification",
            Reject::BadTimeMin => "Invalid time-min specification (exceeds job's time or other limits)",
            Reject::UnknownPartition(_) => "Invalid partition name specified",
            Reject::BadWckey => "Invalid wckey specification",
            Reject::Limit(_) => "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            Reject::NoSuchTrigger => "No such process",
            Reject::DuplicateTrigger => "Duplicate event trigger",
            Reject::TooManyTriggers => "Too many triggers are set already",
            Reject::TooManyCpus => "More processors requested than permitted",
            Reject::BadAccountingFrequency => "Invalid accounting frequency requested",
            Reject::ScriptTooLong | Reject::TextTooLong(_) => {
                "Pathname of a file, directory or other parameter too long"
            }
            Reject::BadNice => "Invalid --nice value",
            Reject::JobHeld => "Job is in held state, pending scheduler release",
            Reject::Told { why, .. } => return why.fmt(out),
            Reject::BySite { code, .. } => return out.write_str(&crate::error_texts::text(*code)),
            Reject::Internal(what) => return write!(out, "Internal error: {what}"),
        };
        out.write_str(text)
    }
}

impl Reject {
    /// More than the message says, a line each; told before it.
    pub fn details(&self) -> String {
        match self {
            Reject::BadBuffer(details) | Reject::BufferNotPermitted(details) => details.clone(),
            Reject::BySite { told, .. } => told.clone(),
            Reject::Told { told, why } => format!("{told}\n{}", why.details()),
            Reject::UnknownPartition(name) => format!("invalid partition specified: {name}"),
            Reject::NoNodeHas(lack) => lack.words().to_string(),
            Reject::Limit(reason) => reason.word().to_string(),
            Reject::TextTooLong(what) => what.clone(),
            _ => String::new(),
        }
    }
}

impl std::error::Error for Reject {}
