//! How a refusal crosses the socket: a gRPC status whose details hold the `Reject` itself.
use std::path::PathBuf;

use model::{Reject, codec};
use tonic::{Code, Status};

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Refused(Reject),
    #[error("Unable to contact the controller on {}: {why}", socket.display())]
    Unreachable { socket: PathBuf, why: String },
    /// The connection broke while the answer was awaited; the request may or may not have been carried out.
    #[error("Connection lost: {0}")]
    Broken(String),
    #[error("{0}")]
    Other(String),
}

/// What the HTTP library says of a stream that was cut off.
const CUT_OFF: &str = "h2 protocol error";

pub fn to_status(reject: &Reject) -> Status {
    Status::with_details(code(reject), reject.to_string(), codec::encode(reject).into())
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        if let Ok(reject) = codec::decode(status.details()) {
            return CallError::Refused(reject);
        }
        match status.code() {
            Code::Unavailable | Code::Unknown | Code::Cancelled => CallError::Broken(status.message().to_string()),
            // So ends an answer in pieces when whoever passed it on has lost the one who gave it.
            Code::Internal if status.message().starts_with(CUT_OFF) => CallError::Broken(status.message().to_string()),
            _ => CallError::Other(status.message().to_string()),
        }
    }
}

fn code(reject: &Reject) -> Code {
    match reject {
        Reject::Told { why, .. } => code(why),
        Reject::NoSuchJob
        | Reject::NoSuchStep
        | Reject::NoSuchNode(_)
        | Reject::NoSuchPartition
        | Reject::UnknownPartition(_)
        | Reject::NoSuchTrigger
        | Reject::NoSuchBuffer(_) => Code::NotFound,
        Reject::NotPermitted | Reject::BeyondOwner | Reject::BufferNotPermitted(_) => Code::PermissionDenied,
        Reject::BadReservation => Code::NotFound,
        Reject::GroupNotAllowed | Reject::InvalidAccount | Reject::InvalidQos | Reject::ReservationAccess => {
            Code::PermissionDenied
        }
        Reject::NoSuchUser
        | Reject::NoSuchGroup
        | Reject::BadLicenses
        | Reject::MemoryTooLarge
        | Reject::BadTime
        | Reject::BadNice
        | Reject::JobHeld
        | Reject::NodesUnavailable => Code::InvalidArgument,
        Reject::ReservationNameTaken | Reject::DuplicateTrigger => Code::AlreadyExists,
        Reject::ReservationBusy
        | Reject::ReservationNotUsable
        | Reject::ReservationOverlap
        | Reject::NodesAreBusy
        | Reject::PartitionInUse => Code::FailedPrecondition,
        Reject::NeverFits
        | Reject::NoNodeHas(_)
        | Reject::NoSuchTopology
        | Reject::TooManyNodes
        | Reject::TimeLimitTooLong
        | Reject::BadTimeMin
        | Reject::BadDependency
        | Reject::BadArray
        | Reject::BadConstraint(_)
        | Reject::StepTooLarge
        | Reject::StepMemory
        | Reject::StepGres
        | Reject::TooManyPorts
        | Reject::BadBatchFeatures
        | Reject::BadActiveFeatures
        | Reject::NoDefaultPartition
        | Reject::ReasonRequired
        | Reject::BySite { .. }
        | Reject::InvalidNodeState
        | Reject::Accounts(_)
        | Reject::BadAccount
        | Reject::BadQos
        | Reject::BadWckey
        | Reject::TooManyCpus
        | Reject::BadAccountingFrequency
        | Reject::ScriptTooLong
        | Reject::TextTooLong(_)
        | Reject::BadBuffer(_)
        | Reject::InvalidValue(_) => Code::InvalidArgument,
        Reject::PartitionDown
        | Reject::AlreadyOver
        | Reject::JobPending
        | Reject::JobNotPending
        | Reject::JobRunning
        | Reject::JobSuspended
        | Reject::NotSuspended
        | Reject::NotRunning
        | Reject::AlreadySuspended
        | Reject::NotBatch
        | Reject::RequeueDisabled
        | Reject::HetComponent
        | Reject::NotHetLeader
        | Reject::StepMustWait
        | Reject::StepsDisabled
        | Reject::PortsInUse
        | Reject::NodesBusy(_)
        | Reject::MissingBlob
        | Reject::ForgedBlob
        | Reject::NotSupported
        | Reject::Stale => Code::FailedPrecondition,
        Reject::TooManyJobs | Reject::TooManyTriggers | Reject::Limit(_) => Code::ResourceExhausted,
        Reject::Internal(_) => Code::Internal,
    }
}
