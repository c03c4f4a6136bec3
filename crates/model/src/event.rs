//! Facts for watchers, accounting and metrics. Made by `apply`, never read by it.
use serde::{Deserialize, Serialize};

use crate::buffer::BufferPhase;
use crate::{JobId, NodeName, Phase, StepId, StepPhase, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    JobChanged {
        job: JobId,
        from: Phase,
        to: Phase,
        at: Timestamp,
    },
    JobSubmitted {
        job: JobId,
        at: Timestamp,
    },
    /// Something users see has changed, but not the phase.
    JobUpdated {
        job: JobId,
        at: Timestamp,
    },
    JobGone {
        job: JobId,
        at: Timestamp,
    },
    StepChanged {
        job: JobId,
        step: StepId,
        to: StepPhase,
        at: Timestamp,
    },
    /// A job's burst buffer has moved on; none: it is gone.
    BufferChanged {
        job: JobId,
        to: Option<BufferPhase>,
        at: Timestamp,
    },
    /// A running job has used so much of its time limit.
    TimeUsed {
        job: JobId,
        percent: u32,
        at: Timestamp,
    },
    NodeChanged {
        node: NodeName,
        at: Timestamp,
    },
    ReservationChanged {
        name: String,
        at: Timestamp,
    },
    Reconfigured {
        at: Timestamp,
    },
}
