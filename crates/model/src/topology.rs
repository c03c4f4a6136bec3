//! How the network is described: switches, blocks, and the rules by which jobs are placed on them.
use serde::{Deserialize, Serialize};

use crate::NodeName;
use crate::time::Span;

/// The name of a topology that is given none.
pub const DEFAULT_NAME: &str = "default";

/// How long a job waits for few switches when nothing else is said.
pub const DEFAULT_SWITCH_WAIT: Span = Span(300 * 1_000_000);

record! {
    /// One description of the network. A partition uses one of them.
    pub struct Topology {
        pub name: String,
        /// Partitions that name none use it.
        pub is_default: bool,
        pub kind: TopologyKind,
        pub switches: Vec<Switch>,
        pub blocks: Vec<Block>,
        /// Planning sizes of blocks, the base size first; empty: the size of the first block, and all its doublings up to sixteen.
        pub block_sizes: Vec<u32>,
        /// No blocks are named: all nodes in natural order are cut into blocks of so many.
        pub cut: u32,
        /// Steps are ranked by name rather than by the network (`flat: {alpha_step_rank: true}`).
        pub alpha_step_rank: bool,
    }

    /// A leaf holds nodes, any other switch holds switches.
    pub struct Switch {
        pub name: String,
        pub nodes: Vec<NodeName>,
        pub switches: Vec<String>,
        /// Stored and shown; 0 stands for 1.
        pub link_speed: u32,
    }

    /// Nodes that are near to each other.
    pub struct Block {
        pub name: String,
        pub nodes: Vec<NodeName>,
    }

    /// What holds for all topologies of a cluster.
    pub struct TopologyRules {
        /// Only jobs that say `--topology` are placed by the network.
        pub only_on_request: bool,
        /// Jobs without `--switches` need no common switch.
        pub is_optional: bool,
        /// A job that does not fit on one leaf is spread over all of them.
        pub dragonfly: bool,
        /// The order of nodes is that of their switches or blocks, not of their names.
        pub ranks_by_unit: bool,
        /// Ranges of fewer sizes than this are tried on blocks from the largest size down.
        pub max_size_unroll: u32,
        /// The network comes before the weight of nodes.
        pub network_before_weight: bool,
        /// `--exclusive=topo` holds for leaf switches as for blocks.
        pub exclusive_leaves: bool,
        /// Waiting jobs give a plain reason, without the text about the network.
        pub plain_reasons: bool,
        /// The longest wait for few switches; none: five minutes.
        pub max_switch_wait: Option<Span>,
        /// The words of `TopologyParam` that are routes for messages: shown, and without effect.
        pub routes: Vec<String>,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopologyKind {
    #[default]
    Flat,
    Tree,
    Block,
}

impl TopologyKind {
    /// As `--topology` and `plugin` spell it.
    pub fn word(self) -> &'static str {
        match self {
            TopologyKind::Flat => "none",
            TopologyKind::Tree => "tree",
            TopologyKind::Block => "block",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [TopologyKind::Flat, TopologyKind::Tree, TopologyKind::Block].into_iter().find(|kind| kind.word() == word)
    }

    /// As `scontrol show config` spells it.
    pub fn plugin(self) -> &'static str {
        match self {
            TopologyKind::Flat => "topology/flat",
            TopologyKind::Tree => "topology/tree",
            TopologyKind::Block => "topology/block",
        }
    }
}

impl TopologyRules {
    pub fn max_switch_wait(&self) -> Span {
        self.max_switch_wait.unwrap_or(DEFAULT_SWITCH_WAIT)
    }
}

/// What a submission hears whose nodes cannot be cut into such segments.
pub fn segment_problem(segment: u32, n_nodes: u32) -> String {
    format!(
        "--segment={segment} does not fit the job size ({n_nodes}): node count must be evenly divisible by segment size"
    )
}
