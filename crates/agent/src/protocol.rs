//! What the agent and a supervisor say to each other, and the fork server's one message.
use model::agent::{KillNote, Launch};
use model::ask::LiveRun;
use model::attach::{FromStep, ToStep};
use model::command::{Exited, RequestId};
use model::time::Span;
use model::{JobId, NodeName, StepId};
use serde::{Deserialize, Serialize};

/// One supervisor's charge: the batch script, or one node's tasks of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId {
    pub job: JobId,
    pub attempt: u32,
    pub step: StepId,
}

impl RunId {
    pub fn of(launch: &Launch) -> Self {
        RunId { job: launch.job, attempt: launch.attempt, step: launch.step }
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.job, self.attempt, self.step)
    }
}

/// What a process that the fork server makes is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BirthTrade {
    #[default]
    Supervisor,
    /// Writes what `sbcast` brings.
    Writer,
}

/// To the fork server, with the new process's end of its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    #[serde(default)]
    pub trade: BirthTrade,
}

/// A run for a supervisor that has none; its record comes along.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    pub launch: Launch,
    pub node: NodeName,
    pub spool_dir: String,
    /// The directory of the agent's cgroups.
    pub cgroup: Option<String>,
    /// The name of the agent's groups in other hierarchies.
    pub group: String,
    /// Which of the agent's script directories and cgroups this run has to itself.
    pub slot: u32,
    /// Where the commands of the run find the cluster; none: where those of its submitter do.
    #[serde(default)]
    pub config_file: Option<String>,
    /// Marks the processes' environment, to find them when all else fails.
    pub tag: String,
    /// What is left so long after SIGKILL is given up; zero: never.
    #[serde(default)]
    pub unkillable_timeout: Span,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToSupervisor {
    Start(Box<Start>),
    Kill {
        kill_wait: Span,
        note: KillNote,
    },
    Signal {
        signal: u32,
        whom: Whom,
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// Words for the run's own output.
    Say {
        text: String,
        #[serde(default)]
        request: Option<RequestId>,
    },
    /// Answered with `Done` when everything stands still.
    Freeze {
        number: u64,
        grace: Span,
    },
    Thaw {
        number: u64,
    },
    /// Answered with `Measured`.
    Measure {
        number: u64,
    },
    /// A client is there: events and output go to it, from the oldest that was not acknowledged.
    Attach,
    Detach,
    Step(ToStep),
    /// Nobody will ask for output any more.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whom {
    /// The processes started directly: the batch shell, the tasks.
    Leaders,
    Everyone,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum FromSupervisor {
    Done {
        number: u64,
    },
    Measured {
        number: u64,
        run: Box<LiveRun>,
    },
    Step(FromStep),
    /// So much of the client's input has gone to the tasks.
    InputTaken {
        bytes: u64,
    },
    /// Nothing is left of the run; the spool has it too.
    Ended(Exited),
    /// It has let go of the run, and can have another of the same user.
    StandsBy,
}
