//! A node: what it should be, what it is, and who uses it.
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::gres::{Gres, GresUnits};
use crate::pool::PoolReport;
use crate::spec::Sharing;
use crate::{CpuSet, JobId, NodeName, Timestamp};

record! {
    pub struct Node {
        pub name: NodeName,
        /// Its place among the configured nodes, in natural name order unless the configuration orders them by the network.
        pub rank: u32,
        /// The partitions it is in.
        pub partitions: Vec<String>,
        pub config: NodeConfig,
        /// What the agent said last.
        pub machine: Machine,
        pub phase: NodePhase,
        /// Its agent is connected, as far as the log knows.
        pub answers: bool,
        /// Counts registrations: a duty of an earlier one is stale.
        pub attempt: u32,
        /// Takes no new jobs.
        pub drain: bool,
        /// Why it is drained or down, who said so, and when.
        pub reason: Option<NodeReason>,
        pub used: Used,
        /// Jobs that hold something here.
        pub jobs: BTreeSet<JobId>,
        /// The job that has the whole node.
        pub exclusive_job: Option<JobId>,
        /// Of these jobs, those that are suspended and lend their CPUs.
        pub n_lenders: u32,
        /// Some CPUs are held by several jobs, which share them, take turns, or stand still for each other.
        pub shares_cpus: bool,
        /// The users of the jobs here, and how many jobs of each want to be alone with their user.
        pub users: BTreeMap<u32, Tenancy>,
        /// Runs that must be ended before the node is used again.
        pub stale_runs: Vec<Run>,
        pub last_busy: Option<Timestamp>,
        pub registered: Option<Timestamp>,
        /// No longer in the configuration; goes when its last job has.
        pub is_removed: bool,
        pub comment: String,
        pub extra: String,
        /// The cloud's own names for the machine and its kind.
        pub instance_id: String,
        pub instance_type: String,
        /// Taken out because it failed, says an administrator.
        pub has_failed: bool,
        /// Those of its features that are there now; none: all.
        pub active_features: Option<Vec<String>>,
        /// A job that owns the blocks it touches keeps all others away from here, though it does not run here.
        pub blocked_by: Option<JobId>,
        /// As in its configuration, set by an administrator.
        pub topology: Option<String>,
        /// It is to start anew, or does.
        pub reboot: Option<Box<Reboot>>,
    }

    /// A node that is to start anew: when its last job has left, it is told to.
    pub struct Reboot {
        /// It takes no new jobs before.
        pub is_asap: bool,
        /// What it is afterwards; none: what it was before.
        pub next: Option<NextState>,
        /// Since when it is awaited.
        pub issued: Option<Timestamp>,
        /// Its agent has begun.
        pub is_told: bool,
        /// The machine's last start before; another one means that it is done.
        pub boot_id: String,
    }

    /// What one user has on a node.
    pub struct Tenancy {
        pub n_jobs: u32,
        /// Jobs that keep other users away.
        pub n_alone: u32,
    }

    /// One line of `[[nodes]]`, for one node.
    pub struct NodeConfig {
        pub cpus: u32,
        pub memory_mb: u64,
        pub tmp_disk_mb: u64,
        pub gres: Vec<Gres>,
        pub features: Vec<String>,
        /// Lighter nodes are used first.
        pub weight: u32,
        pub address: String,
        /// What its machine is called, where the site says that this is not the node's name (`NodeHostname`).
        pub hostname: String,
        pub sockets: u32,
        pub cores_per_socket: u32,
        pub threads_per_core: u32,
        /// What it is when it is seen for the first time, and why.
        pub starts_as: NodeStart,
        pub start_reason: String,
        /// `topology:unit,…`, where that is not as the topology says; a blank is nowhere.
        pub topology: Option<String>,
        /// CPUs that are kept from jobs, by their numbers; `cpus` counts the others.
        pub kept_cpus: CpuSet,
        /// How many cores these are, where the site has counted them.
        pub kept_cores: u32,
        /// Memory that is kept from jobs; `memory_mb` is the rest.
        pub kept_memory_mb: u64,
        /// CPUs that go to a job together, where these are more than one: a core's or a socket's (`hand_out`).
        pub cpus_together: u32,
    }

    /// What an agent tells of its machine.
    pub struct Machine {
        pub hostname: String,
        pub cpus: u32,
        pub memory_mb: u64,
        pub architecture: String,
        pub system: String,
        pub version: String,
        pub booted: Option<Timestamp>,
        /// Another one after each start of the machine.
        pub boot_id: String,
        pub agent_started: Option<Timestamp>,
        /// Where `srun` and friends reach the agent.
        pub socket: String,
        /// Where its agent is heard by other machines, `host:port`; empty: nowhere.
        pub address: String,
        /// The file systems of the burst buffer pools.
        pub pools: Vec<PoolReport>,
        /// Where it is in the network, as its agent was told (`--conf Topology=…`): of use when the machine is new, or has been
        /// started anew.
        pub topology: Option<String>,
        /// What the node is, where no file names it (`-Z`).
        pub dynamic: Option<Box<NodeConfig>>,
        /// The only user whose jobs its agent can run; none: it is root's, and runs everybody's.
        pub runs_only: Option<u32>,
        /// What its kernel does not offer to keep movers and Lua workers in bounds.
        pub unconfined: Vec<String>,
    }

    /// Kept equal to the sum over the jobs by the ledger.
    pub struct Used {
        pub cpus: CpuSet,
        pub memory_mb: u64,
        pub gres: Vec<GresUnits>,
    }

    pub struct NodeReason {
        pub text: String,
        pub by_uid: u32,
        pub at: Timestamp,
    }

    /// One run of a job on a node.
    pub struct Run {
        pub job: JobId,
        pub attempt: u32,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodePhase {
    /// Never heard of since it was configured.
    #[default]
    Unknown,
    Up,
    /// Back, but still ending runs that are no longer its own.
    Clearing,
    /// Does not answer.
    Lost,
    /// Taken out by an administrator.
    Down,
}

/// What a node is after it has started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextState {
    Resume,
    Down,
}

impl NextState {
    pub fn word(self) -> &'static str {
        match self {
            NextState::Resume => "RESUME",
            NextState::Down => "DOWN",
        }
    }
}

/// What a configuration makes of a node that nobody has heard of yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeStart {
    #[default]
    Usable,
    Drained,
    Down,
}

impl NodeStart {
    pub fn word(self) -> &'static str {
        match self {
            NodeStart::Usable => "UNKNOWN",
            NodeStart::Drained => "DRAIN",
            NodeStart::Down => "DOWN",
        }
    }
}

impl Node {
    /// Nobody else would be on it; those who lend their CPUs are in nobody's way.
    pub fn is_for_the_taking(&self) -> bool {
        self.jobs.len() == self.n_lenders as usize
    }

    /// A job of this user may join those that are here.
    pub fn admits(&self, uid: u32, sharing: Sharing) -> bool {
        admits(&self.users, uid, sharing)
    }

    /// New jobs may be placed here.
    pub fn is_usable(&self) -> bool {
        self.phase == NodePhase::Up && !self.drain && !self.is_removed
    }

    /// The features that are there now.
    pub fn features(&self) -> &[String] {
        self.active_features.as_deref().unwrap_or(&self.config.features)
    }

    pub fn free_cpus(&self) -> u32 {
        self.config.cpus.saturating_sub(self.config.cpus_taken(&self.used.cpus))
    }

    pub fn free_memory_mb(&self) -> u64 {
        self.config.memory_mb.saturating_sub(self.used.memory_mb)
    }
}

/// Whether a job of this user may join those of `users`.
pub fn admits(users: &BTreeMap<u32, Tenancy>, uid: u32, sharing: Sharing) -> bool {
    let mut others = users.iter().filter(|(other, _)| **other != uid);
    match sharing {
        Sharing::OneUser => others.next().is_none(),
        Sharing::Default | Sharing::WholeNodes | Sharing::Oversubscribe => others.all(|(_, here)| here.n_alone == 0),
    }
}
