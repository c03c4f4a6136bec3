//! What the leader has to do to the world now. Duties are part of the state, so a new leader just reads them.
use serde::{Deserialize, Serialize};

use crate::{JobId, NodeName, StepId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Duty {
    pub owner: Owner,
    /// The job's run, or the node's registration, that it is about.
    pub attempt: u32,
    pub task: Task,
    /// Which of several requests of the same kind in one run: a freeze done for an earlier suspension is none for a later one.
    #[serde(default, skip_serializing_if = "is_first")]
    pub sequence: u32,
}

fn is_first(sequence: &u32) -> bool {
    *sequence == 0
}

/// What has a life of its own, and so may need something done. At most one duty each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Owner {
    Job(JobId),
    Step(JobId, StepId),
    Node(NodeName),
    /// A job's burst buffer.
    Buffer(JobId),
    Persistent(String),
}

/// One thing the leader does to the world. A job's task covers all its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Task {
    /// Starts the batch script on the first node, or the step's tasks on all its nodes.
    Launch,
    /// Sends the warning signal asked for with `--signal`.
    Warn,
    /// Freezes every process of the job.
    Stop,
    Continue,
    /// Ends every process of the job or step: SIGTERM, KillWait, SIGKILL. Done when nothing is left.
    Kill,
    /// A node that came back ends the runs that are no longer its own, before it is used again.
    Clear,
    /// Makes a buffer's directories, and brings the data into them.
    StageIn,
    /// The nodes of the run get what they still lack.
    PreRun,
    /// What a plugin does first when the run is over.
    PostRun,
    StageOut,
    /// Removes the directories that the run has no use for, and only those.
    Trim,
    TearDown,
    /// Makes a persistent buffer.
    Create,
    Destroy,
    /// Tells the job that it must make room soon: SIGCONT and SIGTERM, or the signal it asked for.
    Preempt,
    /// Runs the site's program on the controller, before the nodes are prepared.
    ControllerProlog,
    /// Runs the site's program on every node of the job.
    Prolog,
    /// As `Prolog`, when nothing of the job is left on its nodes.
    Epilog,
    /// Runs the site's program on the controller, when the nodes are clear.
    ControllerEpilog,
    /// Has a node start anew.
    Reboot,
}
