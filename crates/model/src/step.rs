//! One `srun` in a job: what was asked for, and how far it has come.
use serde::{Deserialize, Serialize};

use crate::resources::NodeShare;
use crate::spec::{Distribution, Memory};
use crate::{BlobId, ExitStatus, JobId, NodeName, StepId, Timestamp};

record! {
    /// What `srun` asked for.
    pub struct StepSpec {
        pub name: String,
        pub arguments: Vec<String>,
        pub environment: BlobId,
        pub work_dir: String,
        pub n_tasks: Option<u32>,
        pub min_nodes: u32,
        pub tasks_per_node: Option<u32>,
        pub cpus_per_task: Option<u32>,
        pub memory: Memory,
        pub distribution: Distribution,
        /// Only these nodes of the allocation; empty is any.
        pub nodes: Vec<NodeName>,
        pub excluded: Vec<NodeName>,
        /// Where each task's streams go: to the `srun` that asked, or to files.
        pub stdin: StepStream,
        pub stdout: StepStream,
        pub stderr: StepStream,
        /// `--open-mode=append`
        pub appends: bool,
        /// Shares CPUs with other steps (`--overlap`).
        pub overlaps: bool,
        /// The first task's terminal is the user's (`--pty`).
        pub pty: Option<TerminalSize>,
        /// A task that fails ends all (`-K`).
        pub kill_on_bad_exit: bool,
        pub submit_host: String,
    }

    pub struct TerminalSize {
        pub rows: u16,
        pub columns: u16,
    }

    /// One step of a job, from its creation until the job's record goes.
    pub struct Step {
        pub job: JobId,
        pub id: StepId,
        /// The job's run it belongs to.
        pub attempt: u32,
        pub spec: Box<StepSpec>,
        pub phase: StepPhase,
        /// The step's part of the allocation, with its tasks by node.
        pub shares: Vec<NodeShare>,
        pub n_tasks: u32,
        /// Nodes whose tasks have all ended.
        pub ended_nodes: Vec<NodeName>,
        /// The worst so far.
        pub exit: ExitStatus,
        pub was_cancelled: bool,
        pub started: Option<Timestamp>,
        pub ended: Option<Timestamp>,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepPhase {
    /// The agents are to start its tasks.
    #[default]
    Starting,
    Running,
    /// Its processes are to be cleared away.
    Ending,
    Done,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepStream {
    /// Carried to and from the client that waits.
    #[default]
    Client,
    /// `/dev/null`
    Nothing,
    /// A file name pattern, opened by each task (or shared, where the pattern does not tell tasks apart).
    File(String),
    /// The client's stream, for this one task only (`--input=3`).
    ClientTask(u32),
}

impl Step {
    /// Ranks of the tasks on each node, in the order of `shares`.
    pub fn ranks(&self) -> Vec<Vec<u32>> {
        let counts: Vec<u32> = self.shares.iter().map(|share| share.n_tasks).collect();
        self.spec.distribution.ranks(&counts)
    }

    pub fn is_live(&self) -> bool {
        self.phase != StepPhase::Done
    }
}
