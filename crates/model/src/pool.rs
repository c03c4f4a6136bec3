//! Where burst buffers live: the pools of `[burst_buffer]`, and the rules of that section.
use serde::{Deserialize, Serialize};

use crate::NodeName;
use crate::time::Span;

/// The section `[burst_buffer]`, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BurstBufferConfig {
    pub plugin: Plugin,
    pub pools: Vec<Pool>,
    /// For requests that name none; empty: the first pool.
    pub default_pool: String,
    /// Ordinary users may create and destroy persistent buffers.
    pub enables_persistent: bool,
    /// Users see only their own buffers.
    pub is_private: bool,
    /// A buffer whose staging failed is torn down at once instead of being kept for inspection.
    pub tears_down_after_failure: bool,
    /// Names or numbers of users; empty: everyone.
    pub allow_users: Vec<String>,
    pub deny_users: Vec<String>,
    pub stage_in_timeout: Span,
    pub stage_out_timeout: Span,
    pub validate_timeout: Span,
    pub other_timeout: Span,
    pub poll_interval: Span,
    /// Data is staged in for jobs expected to start within this time; zero: only when the nodes are there.
    pub stage_ahead: Span,
    /// Buffers filled ahead make room for more important jobs that start sooner.
    pub preempts: bool,
    /// Nodes stay with the job until its data is staged out.
    pub holds_nodes: bool,
    /// A job whose buffer holds more than it asked for is ended.
    pub ends_over_limit: bool,
    /// How often agents measure what buffers hold, and what else is in their pools.
    pub measure_interval: Span,
    pub verify_in: Verify,
    pub verify_out: Verify,
    /// Copying threads of one agent; zero: as many as suit the machine.
    pub n_workers: u32,
    /// Bytes a second one agent may move; zero: no limit.
    pub bandwidth_bytes: u64,
    /// Nodes of one job that read the same sources; the others copy from nodes that have the data. Zero: all read.
    pub fanout: u32,
    /// Most directives in one request.
    pub max_directives: u32,
    /// The word behind `#` in scripts (`Directive`), for `burst_buffer/lua`.
    pub directive: String,
    /// The site's burst_buffer.lua.
    pub script: String,
    /// DataWarp's `dw_wlm_cli` and `dwstat`.
    pub get_sys_state: String,
    pub get_sys_status: String,
    /// `EmulateCray`: buffers are what we remember, not what the infrastructure lists.
    pub emulates_cray: bool,
    /// Root may have buffers, too; Slurm's own plugins refuse that.
    pub allows_root: bool,
    /// How often a plugin is asked for its pools.
    pub pools_interval: Span,
    /// How long a failed teardown rests; zero: as long as is usual for the plugin.
    pub teardown_interval: Span,
    /// How long a job waits whose buffer was being filled when the controller went down.
    pub restart_delay: Span,
    /// Hooks of one stage that run at once.
    pub n_hooks: u32,
    /// Tasks of one array that have buffers before they run.
    pub n_array_tasks: u32,
    /// Space counts as the resource `bb/<plugin>` (`AccountingStorageTRES`).
    pub counts: bool,
    /// Options of a plugin that is no more (`CreateBuffer=…`), shown as they were written.
    pub legacy: Vec<String>,
    /// The plugin has told of its pools. Not in any file: found out at run time, as are the pools of a plugin.
    pub is_loaded: bool,
}

impl Default for BurstBufferConfig {
    fn default() -> Self {
        BurstBufferConfig {
            plugin: Plugin::Native,
            pools: Vec::new(),
            default_pool: String::new(),
            enables_persistent: false,
            is_private: false,
            tears_down_after_failure: false,
            allow_users: Vec::new(),
            deny_users: Vec::new(),
            stage_in_timeout: Span::from_secs(86_400),
            stage_out_timeout: Span::from_secs(86_400),
            validate_timeout: Span::from_secs(5),
            other_timeout: Span::from_secs(300),
            poll_interval: Span::from_secs(15),
            stage_ahead: Span::from_secs(10 * 3600),
            preempts: false,
            holds_nodes: false,
            ends_over_limit: false,
            measure_interval: Span::from_secs(30),
            verify_in: Verify::Stream,
            verify_out: Verify::Full,
            n_workers: 0,
            bandwidth_bytes: 0,
            fanout: 0,
            max_directives: 1000,
            directive: "BB_LUA".into(),
            script: String::new(),
            get_sys_state: "/opt/cray/dw_wlm/default/bin/dw_wlm_cli".into(),
            get_sys_status: "/opt/cray/dws/default/bin/dwstat".into(),
            emulates_cray: false,
            allows_root: false,
            pools_interval: Span::from_secs(30),
            teardown_interval: Span::from_secs(0),
            restart_delay: Span::from_secs(60),
            n_hooks: 32,
            n_array_tasks: 10,
            counts: false,
            legacy: Vec::new(),
            is_loaded: false,
        }
    }
}

/// Who does the buffers' tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Plugin {
    /// Our agents move the data.
    #[default]
    Native,
    /// The site's script does, on the controller's machine.
    Lua,
    /// The vendor's program does, on the controller's machine.
    DataWarp,
}

impl Plugin {
    /// As in `burst_buffer/native`.
    pub fn word(self) -> &'static str {
        match self {
            Plugin::Native => "native",
            Plugin::Lua => "lua",
            Plugin::DataWarp => "datawarp",
        }
    }

    /// Its tasks are hooks on the controller's machine; agents have nothing to do.
    pub fn is_external(self) -> bool {
        self != Plugin::Native
    }

    /// `burst_buffer/lua`, or `lua`.
    pub fn parse(text: &str) -> Option<Plugin> {
        let word = text.strip_prefix("burst_buffer/").unwrap_or(text);
        [Plugin::Native, Plugin::Lua, Plugin::DataWarp].into_iter().find(|plugin| plugin.word() == word)
    }
}

record! {
    pub struct Pool {
        pub name: String,
        pub kind: PoolKind,
        /// The directory that buffers are made in. For a pool of kind `node` it may contain `%n`, the node's name.
        pub root: String,
        /// Sizes are rounded up to a multiple of this; zero counts as one.
        pub granularity_bytes: u64,
        /// Of the pool, or of each node for a pool of kind `node`; none: what the agents report of the file system.
        pub total_bytes: Option<u64>,
        /// Of a reported size, this much is left alone.
        pub reserve_percent: u32,
        /// Agents that move data to and from a shared pool; empty: any.
        pub movers: Vec<NodeName>,
        /// A plugin says that this much is not to be had: our buffers, and whatever else is there.
        pub unfree_bytes: u64,
    }

    /// What an agent says of a pool's file system.
    pub struct PoolReport {
        pub pool: String,
        pub total_bytes: u64,
        /// What is left of it.
        pub available_bytes: u64,
        /// What buffers of this agent have taken of it.
        pub held_bytes: u64,
        /// What others than buffers have taken of it. Agents see only their own part of a shared pool: the controller works it out.
        pub foreign_bytes: u64,
        /// Why the agent cannot use it; empty: it can.
        pub problem: String,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolKind {
    /// One directory that all nodes see.
    #[default]
    Shared,
    /// A directory on each node's own disk; requests are for each node.
    Node,
}

/// How copies are compared with their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verify {
    None,
    Size,
    /// A hash of what was read against what was written, on the way.
    #[default]
    Stream,
    /// The copy is read back.
    Full,
}

impl PoolReport {
    /// What buffers can have of it.
    pub fn usable_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.foreign_bytes)
    }
}

impl Pool {
    /// `bytes` rounded up to whole granules; at least one. None if that is more than can be counted.
    pub fn rounded(&self, bytes: u64) -> Option<u64> {
        let granule = self.granularity_bytes.max(1);
        bytes.max(1).div_ceil(granule).checked_mul(granule)
    }
}

impl BurstBufferConfig {
    pub fn pool(&self, name: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// The pool of requests that name none.
    pub fn default_pool(&self) -> Option<&Pool> {
        match self.default_pool.as_str() {
            "" if self.plugin == Plugin::Lua => None,
            "" => self.pools.first(),
            name => self.pool(name),
        }
    }
}
