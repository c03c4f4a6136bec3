//! What `srun` and an agent say to each other about one step: streams, signals, ends of tasks.
use serde::{Deserialize, Serialize};

use crate::{ExitStatus, JobId, StepId};

/// `srun` to agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToStep {
    /// First on the stream. The agent waits for the launch if it has not come yet.
    Open {
        job: JobId,
        attempt: u32,
        step: StepId,
    },
    /// First on the stream of one who only looks on (`sattach`): it gets what the client gets from now on.
    Observe {
        job: JobId,
        attempt: u32,
        step: StepId,
    },
    /// For every task that reads the client's input, or one.
    Input {
        rank: Option<u32>,
        #[serde(with = "crate::bytes")]
        data: Vec<u8>,
    },
    EndOfInput,
    Resize {
        rows: u16,
        columns: u16,
    },
    Signal {
        signal: u32,
    },
    /// What the tasks of all nodes have put before the fence with this number (`--mpi=pmi2`).
    Fence {
        sequence: u32,
        entries: Vec<(String, String)>,
    },
    /// What all nodes of a group of tasks have brought to their meeting with this number (`--mpi=pmix`).
    Gathered {
        group: String,
        sequence: u32,
        #[serde(with = "crate::bytes")]
        data: Vec<u8>,
    },
    /// What has this task put? Asked by another node, under its own number.
    Fetch {
        from: u32,
        number: u64,
        rank: u32,
    },
    Fetched {
        number: u64,
        status: i32,
        #[serde(with = "crate::bytes")]
        data: Vec<u8>,
    },
    /// The program is there, under this name (`--bcast`): the tasks may start.
    Begin {
        program: String,
        /// Where its libraries are, if they were brought too.
        libraries: Option<String>,
    },
    /// Output up to here has been written out; the supervisor may forget it.
    Received {
        total_bytes: u64,
    },
}

/// Agent to `srun`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromStep {
    /// The tasks have been started; ranks and process ids.
    Started {
        tasks: Vec<(u32, u32)>,
    },
    Output {
        rank: u32,
        stream: Stream,
        #[serde(with = "crate::bytes")]
        data: Vec<u8>,
    },
    TaskExited {
        rank: u32,
        exit: ExitStatus,
    },
    /// All tasks here have entered the fence with this number, and have put this before.
    Fence {
        sequence: u32,
        entries: Vec<(String, String)>,
    },
    /// The tasks here of a group, which has members on so many nodes, have come to its meeting with this number.
    Gather {
        group: String,
        n_nodes: u32,
        sequence: u32,
        #[serde(with = "crate::bytes")]
        data: Vec<u8>,
    },
    /// A task here wants what one on that node of the step has put.
    Fetch {
        number: u64,
        node: u32,
        rank: u32,
    },
    /// The answer to the node that asked.
    Fetched {
        to: u32,
        number: u64,
        status: i32,
        #[serde(with = "crate::bytes")]
        data: Vec<u8>,
    },
    /// A task has asked that the whole step be ended.
    Abort {
        rank: u32,
        text: String,
    },
    /// All tasks here have ended and all output has been sent.
    Finished,
    /// It will never start; why.
    Failed {
        why: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    Stdout,
    Stderr,
}
