//! A partition: a set of nodes with rules.
use serde::{Deserialize, Serialize};

use crate::NodeName;
use crate::spec::TimeLimit;
use crate::time::Span;

record! {
    pub struct Partition {
        pub name: String,
        /// As configured, for display; `ALL` is every node.
        pub nodes_text: String,
        pub nodes: Vec<NodeName>,
        pub is_default: bool,
        pub state: PartitionState,
        pub max_time: Option<TimeLimit>,
        /// What its resources are billed as, as written; empty: one for each CPU.
        pub billing_weights: String,
        pub default_time: Option<TimeLimit>,
        pub min_nodes: u32,
        pub max_nodes: Option<u32>,
        pub priority_tier: u32,
        pub priority_job_factor: u32,
        pub default_memory_per_node_mb: Option<u64>,
        pub default_memory_per_cpu_mb: Option<u64>,
        pub max_memory_per_node_mb: Option<u64>,
        pub is_hidden: bool,
        pub root_only: bool,
        pub exclusive_nodes: bool,
        pub allow_groups: Vec<String>,
        /// Empty: everybody's. With `deny_…` too, the list of the allowed decides.
        pub allow_accounts: Vec<String>,
        pub deny_accounts: Vec<String>,
        pub allow_qos: Vec<String>,
        pub deny_qos: Vec<String>,
        /// The hosts from which jobs may be submitted; empty: all.
        pub alloc_nodes: Vec<String>,
        /// Where jobs go that this partition cannot take.
        pub alternate: String,
        pub disable_root_jobs: bool,
        /// A node is used by one user at a time.
        pub exclusive_user: bool,
        /// Jobs run only in a reservation.
        pub requires_reservation: bool,
        /// A preempted job gets this long.
        pub grace_time: Span,
        /// The emptiest nodes first.
        pub least_loaded: bool,
        /// Of each node, only so many CPUs are for this partition's jobs.
        pub max_cpus_per_node: Option<u32>,
        pub max_cpus_per_socket: Option<u32>,
        pub max_memory_per_cpu_mb: Option<u64>,
        pub default_cpus_per_gpu: Option<u32>,
        pub default_memory_per_gpu_mb: Option<u64>,
        pub oversubscribe: OverSubscribe,
        /// Beyond its limit, a job of this partition runs so much longer; none: as the cluster has it.
        pub over_time_limit: Option<TimeLimit>,
        pub preempt_mode: Option<PreemptMode>,
        pub qos: String,
        /// So long a job waits for the lowest switch that could hold it if nothing else ran.
        pub topology_wait: Option<Span>,
        /// The name of its topology; empty: the default one.
        pub topology: String,
        /// Every job owns the blocks it touches.
        pub exclusive_topology: bool,
    }
}

/// Whether jobs share CPUs, and how many one CPU: those that ask for it, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverSubscribe {
    #[default]
    No,
    Exclusive,
    Yes(u32),
    Force(u32),
}

/// What becomes of a job whose nodes are needed by a more important one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreemptMode {
    #[default]
    Off,
    Cancel,
    Requeue,
    Suspend,
    /// Suspended and resumed in turn.
    SuspendGang,
    Gang,
    Within,
}

impl PreemptMode {
    pub fn word(self) -> &'static str {
        match self {
            PreemptMode::Off => "OFF",
            PreemptMode::Cancel => "CANCEL",
            PreemptMode::Requeue => "REQUEUE",
            PreemptMode::Suspend => "SUSPEND",
            PreemptMode::SuspendGang => "GANG,SUSPEND",
            PreemptMode::Gang => "GANG",
            PreemptMode::Within => "WITHIN",
        }
    }

    pub fn parse(text: &str) -> Option<PreemptMode> {
        Some(match text.to_ascii_uppercase().as_str() {
            "OFF" => PreemptMode::Off,
            "CANCEL" => PreemptMode::Cancel,
            "REQUEUE" => PreemptMode::Requeue,
            "SUSPEND" => PreemptMode::Suspend,
            "SUSPEND,GANG" | "GANG,SUSPEND" => PreemptMode::SuspendGang,
            "GANG" => PreemptMode::Gang,
            "WITHIN" => PreemptMode::Within,
            _ => return None,
        })
    }
}

impl OverSubscribe {
    /// `EXCLUSIVE`, `FORCE:4` …; a count that is left out is four, as Slurm has it.
    pub fn parse(text: &str) -> Option<OverSubscribe> {
        let (word, count) = match text.split_once(':') {
            Some((word, count)) => (word, count.parse().ok().filter(|count| (1..=1 << 14).contains(count))?),
            None => (text, 4),
        };
        Some(match (word.to_ascii_uppercase().as_str(), text.contains(':')) {
            ("NO", false) => OverSubscribe::No,
            ("EXCLUSIVE", false) => OverSubscribe::Exclusive,
            ("YES", _) => OverSubscribe::Yes(count),
            ("FORCE", _) => OverSubscribe::Force(count),
            _ => return None,
        })
    }

    pub fn word(self) -> String {
        match self {
            OverSubscribe::No => "NO".into(),
            OverSubscribe::Exclusive => "EXCLUSIVE".into(),
            OverSubscribe::Yes(count) => format!("YES:{count}"),
            OverSubscribe::Force(count) => format!("FORCE:{count}"),
        }
    }
}

impl Partition {
    /// As somebody who names none of its rules gets it.
    pub fn blank() -> Partition {
        Partition { priority_tier: 1, priority_job_factor: 1, ..Partition::default() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionState {
    #[default]
    Up,
    Down,
    Drain,
    Inactive,
}

impl PartitionState {
    pub fn word(self) -> &'static str {
        match self {
            PartitionState::Up => "UP",
            PartitionState::Down => "DOWN",
            PartitionState::Drain => "DRAIN",
            PartitionState::Inactive => "INACTIVE",
        }
    }

    pub fn takes_jobs(self) -> bool {
        matches!(self, PartitionState::Up | PartitionState::Down)
    }

    pub fn starts_jobs(self) -> bool {
        matches!(self, PartitionState::Up | PartitionState::Drain)
    }
}
