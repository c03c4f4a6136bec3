//! A partition: a set of nodes with rules.
use serde::{Deserialize, Serialize};

use crate::NodeName;
use crate::spec::TimeLimit;

record! {
    pub struct Partition {
        pub name: String,
        /// As configured, for display; `ALL` is every node.
        pub nodes_text: String,
        pub nodes: Vec<NodeName>,
        pub is_default: bool,
        pub state: PartitionState,
        pub max_time: Option<TimeLimit>,
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
        /// The name of its topology; empty: the default one.
        pub topology: String,
        /// Every job owns the blocks it touches.
        pub exclusive_topology: bool,
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
