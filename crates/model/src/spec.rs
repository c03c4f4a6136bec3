//! What the user asked for. Changes only by `scontrol update`.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::buffer::BufferRequest;
use crate::dependency::Dependency;
use crate::feature_sets::FeatureSets;
use crate::features::Constraint;
use crate::gres::GresRequest;
use crate::kept::Spared;
use crate::license::LicenseRequest;
use crate::time::{Span, Timestamp};
use crate::topology::TopologyKind;
use crate::{BlobId, NodeName, StepSpec, TaskSet};

record! {
    pub struct JobSpec {
        pub name: String,
        pub uid: u32,
        pub gid: u32,
        pub user: String,
        pub group: String,
        pub account: String,
        pub qos: String,
        pub wckey: String,
        /// How often its usage is to be looked at (`--acctg-freq`), in seconds; the site may refuse it.
        pub accounting_secs: Option<u32>,
        pub comment: String,
        /// Given by the site's job_submit.lua, like the factor.
        pub admin_comment: String,
        pub site_factor: i32,
        /// In the order of preference; empty until admission fills in the default.
        pub partitions: Vec<String>,
        pub kind: JobKind,
        /// What `scontrol show job` gives as Command: the script's path, or the program.
        pub command: String,
        pub arguments: Vec<String>,
        /// `NAME=value` entries, each ended by a NUL.
        pub environment: BlobId,
        pub work_dir: String,
        pub submit_host: String,
        /// The command as it was typed.
        pub submit_line: String,
        /// File name patterns; none is the default (`slurm-%j.out`, `/dev/null`).
        pub stdin: Option<String>,
        pub stdout: Option<String>,
        /// None: the same file as stdout.
        pub stderr: Option<String>,
        pub open_mode: OpenMode,
        pub size: Size,
        /// None: the partition's default.
        pub time_limit: Option<TimeLimit>,
        pub time_min: Option<TimeLimit>,
        pub begin: Option<Timestamp>,
        pub deadline: Option<Timestamp>,
        pub dependency: Dependency,
        pub kill_on_invalid_dependency: Option<bool>,
        pub held: bool,
        /// Asked for by an administrator; none lets the scheduler decide.
        pub priority: Option<u32>,
        pub nice: i32,
        /// None: the cluster's default.
        pub requeue: Option<bool>,
        pub array: Option<ArraySpec>,
        /// Sent before the time limit is reached.
        pub warning: Option<Warning>,
        /// Resource limits of the submitter, as `getrlimit` names and values; applied where the job runs.
        pub limits: Vec<ResourceLimit>,
        pub umask: Option<u32>,
        pub mail: Option<Mail>,
        /// A node failure does not end the job.
        pub no_kill: bool,
        /// `--bb`, as given.
        pub burst_buffer: String,
        /// What `--bbf` names.
        pub burst_buffer_file: String,
        /// What these and the script's directives come to; filled in by admission.
        pub buffer: Option<Arc<BufferRequest>>,
        /// Which of several it is; each has its own part of the script's directives.
        pub component: Option<u32>,
        pub licenses: LicenseRequest,
        /// In the order of preference; empty: none.
        pub reservations: Vec<String>,
        /// The user's groups besides `group`, as far as a rule of the cluster asks for them.
        pub groups: Vec<String>,
        /// `--gpu-bind` and `--gpu-freq` as written, for display.
        pub gpu_bind_words: String,
        pub gpu_freq_words: String,
        pub tres_words: TresWords,
        /// How long it would wait for nodes that need no reboot; for display.
        pub delay_boot: Span,
        /// The script runs on the first node with these (`--batch`), as written: `a&b`, `a|b`.
        pub batch_features: String,
        /// As given; there are no labels but those that jobs bring along.
        pub mcs_label: String,
        /// `--power` in Slurm's words; for display.
        pub power_words: String,
        /// Its nodes are to be started anew first; only where the site has no program for it, so that nothing comes of it.
        pub wants_reboot: bool,
    }

    /// How much, and where.
    pub struct Size {
        pub min_nodes: u32,
        /// None: as many as `min_nodes`, unless tasks ask for more.
        pub max_nodes: Option<u32>,
        pub n_tasks: Option<u32>,
        pub tasks_per_node: Option<u32>,
        pub cpus_per_task: Option<u32>,
        pub min_cpus_per_node: Option<u32>,
        pub memory: Memory,
        pub tmp_disk_mb: u64,
        /// No node with less memory serves, though none is handed out.
        pub node_memory_mb: u64,
        /// On each node.
        pub gres: Vec<GresRequest>,
        /// For each task on a node, besides `gres`.
        pub gres_per_task: Vec<GresRequest>,
        /// In all, besides `gres`; nodes may give different numbers, each at least one.
        pub gres_total: Vec<GresRequest>,
        pub cpus_per_gpu: Option<u32>,
        /// Of each core, only so many CPUs do work for the job; it holds whole cores.
        pub threads_per_core: Option<u32>,
        /// A node must have at least so many.
        pub sockets_per_node: Option<u32>,
        pub cores_per_socket: Option<u32>,
        /// Of each node, which it has alone, so much is left to the system (`--core-spec`, `--thread-spec`).
        pub spared: Option<Spared>,
        /// At most so many on a node, for each socket and each core it has.
        pub tasks_per_socket: Option<u32>,
        pub tasks_per_core: Option<u32>,
        pub sharing: Sharing,
        pub overcommit: bool,
        pub contiguous: bool,
        /// As many nodes as there are tasks for (`--spread-job`).
        pub spreads: bool,
        /// The fewest nodes of a range (`--use-min-nodes`).
        pub prefers_few_nodes: bool,
        pub distribution: Distribution,
        /// Over the sockets of a node.
        pub socket_order: SocketOrder,
        pub nodes: Vec<NodeName>,
        pub excluded: Vec<NodeName>,
        /// What each node meets.
        pub constraint: Option<Constraint>,
        /// What they meet together.
        pub feature_sets: FeatureSets,
        /// Nodes that meet this are taken where there are enough of them (`--prefer`).
        pub preference: Option<Constraint>,
        /// The same as written, for display.
        pub preferred: String,
        /// The constraint as written, for display.
        pub features: String,
        pub network: NetworkWish,
    }

    /// Where in the network.
    pub struct NetworkWish {
        /// `--topology=tree|block|none`; none: as the cluster places all jobs.
        pub topology: Option<TopologyKind>,
        /// At most so many leaf switches, for as long as the job waits for that; 0: any number.
        pub n_switches: u32,
        /// None: as long as the cluster lets jobs wait.
        pub switch_wait: Option<Span>,
        /// The job is made of parts of so many nodes; 0: it is not.
        pub segment: u32,
        pub spreads_segments: bool,
        pub consolidates_segments: bool,
        /// No other job is in the blocks it touches (`--exclusive=topo`).
        pub owns_units: bool,
        /// The common switch is of no higher level (`--topology=tree:level=1`).
        pub most_level: Option<u32>,
        /// That holds only as long as the cluster lets jobs wait for few switches (`:preferred`).
        pub level_is_preferred: bool,
        /// With more than one segment, `-w` names nodes to choose from (blocks only).
        pub among: Vec<NodeName>,
    }

    /// `--array=1-5%2`
    pub struct ArraySpec {
        pub tasks: TaskSet,
        /// At most this many run at once.
        pub limit: Option<u32>,
    }

    /// `--mail-type`, `--mail-user`
    pub struct Mail {
        pub kinds: Vec<MailKind>,
        /// Each task of an array has its own mails.
        pub for_each_task: bool,
        /// Empty: the job's user.
        pub to: String,
    }

    /// Devices as they were asked for, where that is not only on each node; for display.
    pub struct TresWords {
        pub per_job: String,
        pub per_node: String,
        pub per_socket: String,
        pub per_task: String,
        /// What a GPU brings along is the cluster's word, not the job's.
        pub cpus_by_default: bool,
        pub memory_by_default: bool,
    }

    /// `--signal=[B:]USR1@60`
    pub struct Warning {
        pub signal: u32,
        pub before: Span,
        /// Only the batch shell gets it (`B:`), not the steps.
        pub batch_only: bool,
        /// The job may run into reservations that wait so long for it to go (`R:`).
        pub overlaps_reservations: bool,
    }
}

/// One resource limit of the submitter. Written as three values, since every job carries sixteen of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, Option<u64>, Option<u64>)", into = "(u32, Option<u64>, Option<u64>)")]
pub struct ResourceLimit {
    /// `RLIMIT_*` number.
    pub resource: u32,
    pub soft: u64,
    pub hard: u64,
}

impl ResourceLimit {
    pub const INFINITY: u64 = u64::MAX;
}

impl From<(u32, Option<u64>, Option<u64>)> for ResourceLimit {
    fn from((resource, soft, hard): (u32, Option<u64>, Option<u64>)) -> Self {
        let limit = |value: Option<u64>| value.unwrap_or(ResourceLimit::INFINITY);
        ResourceLimit { resource, soft: limit(soft), hard: limit(hard) }
    }
}

impl From<ResourceLimit> for (u32, Option<u64>, Option<u64>) {
    fn from(limit: ResourceLimit) -> Self {
        let finite = |value: u64| (value != ResourceLimit::INFINITY).then_some(value);
        (limit.resource, finite(limit.soft), finite(limit.hard))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum JobKind {
    /// Runs a script on its first node.
    Batch { script: BlobId },
    /// Runs nothing by itself: `salloc`.
    #[default]
    Allocation,
    /// Is one step: `srun` outside an allocation.
    Run(Box<StepSpec>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenMode {
    /// The cluster's default: truncate, but append after a requeue.
    #[default]
    Default,
    Append,
    Truncate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// The partition's or cluster's default.
    #[default]
    Default,
    PerNodeMb(u64),
    PerCpuMb(u64),
    PerGpuMb(u64),
    /// `--mem=0`: all memory of each node.
    WholeNode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    /// As the partition says; usually CPUs are not shared, nodes are.
    #[default]
    Default,
    /// `--exclusive`: whole nodes.
    WholeNodes,
    /// `--exclusive=user`: nodes that nobody else uses.
    OneUser,
    /// `--oversubscribe`
    Oversubscribe,
}

/// What a mail tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MailKind {
    Begin,
    End,
    Fail,
    Requeue,
    InvalidDependency,
    TimeLimit,
    StageOut,
    /// So much of the time limit has been used.
    TimeLimit50,
    TimeLimit80,
    TimeLimit90,
}

impl Mail {
    /// What is told, in Slurm's order, whatever was asked for first.
    pub fn words(&self) -> String {
        let words = [
            (MailKind::InvalidDependency, "INVALID_DEPEND"),
            (MailKind::Begin, "BEGIN"),
            (MailKind::End, "END"),
            (MailKind::Fail, "FAIL"),
            (MailKind::Requeue, "REQUEUE"),
            (MailKind::StageOut, "STAGE_OUT"),
            (MailKind::TimeLimit50, "TIME_LIMIT_50"),
            (MailKind::TimeLimit80, "TIME_LIMIT_80"),
            (MailKind::TimeLimit90, "TIME_LIMIT_90"),
            (MailKind::TimeLimit, "TIME_LIMIT"),
        ];
        let asked = words.into_iter().filter(|(kind, _)| self.kinds.contains(kind)).map(|(_, word)| word);
        let each = self.for_each_task.then_some("ARRAY_TASKS");
        each.into_iter().chain(asked).collect::<Vec<_>>().join(",")
    }
}

/// How tasks, and their ranks, are spread over nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Distribution {
    /// One a node, then node by node.
    #[default]
    Block,
    /// One on each node in turn.
    Cyclic,
    /// So many on each node in turn.
    Plane(u32),
    /// As many on each node as on the others, node by node.
    Even,
}

/// How a job's cores, and what its tasks are bound to, are spread over the sockets of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SocketOrder {
    /// As the cluster does it: in turn, unless it says otherwise.
    #[default]
    Usual,
    /// Socket by socket.
    Block,
    /// A task from each in turn.
    Cyclic,
    /// A core from each in turn, also for one task.
    FullCyclic,
}

/// Time limits are whole minutes to Slurm's users; kept in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TimeLimit {
    Secs(u64),
    Unlimited,
}

impl TimeLimit {
    pub fn span(self) -> Option<Span> {
        match self {
            TimeLimit::Secs(secs) => Some(Span::from_secs(secs)),
            TimeLimit::Unlimited => None,
        }
    }
}

impl Size {
    pub fn n_cpus_per_task(&self) -> u32 {
        self.cpus_per_task.unwrap_or(1).max(1)
    }

    /// Tasks to lay out when the job gets `n_nodes`.
    pub fn n_tasks_on(&self, n_nodes: u32) -> u32 {
        match (self.n_tasks, self.tasks_per_node) {
            (Some(n_tasks), _) => n_tasks,
            (None, Some(per_node)) => per_node * n_nodes,
            (None, None) => n_nodes,
        }
    }
}

impl Mail {
    /// Only plain addresses: many mail programs take `|command`, `/file` or `-option` as a recipient, and ours runs as the controller.
    pub fn has_plain_address(&self) -> bool {
        let is_plain = |address: &str| {
            address.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
                && address.chars().all(|letter| letter.is_ascii_alphanumeric() || "._+-@%=".contains(letter))
        };
        self.to.is_empty() || self.to.split(',').all(is_plain)
    }
}

impl JobSpec {
    pub fn is_batch(&self) -> bool {
        matches!(self.kind, JobKind::Batch { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_goes_to_plain_addresses_only() {
        let is_plain = |to: &str| Mail { to: to.into(), ..Default::default() }.has_plain_address();
        for address in ["", "ada", "ada@example.org", "a.b+c@x-y.org,root", "_svc"] {
            assert!(is_plain(address), "{address}");
        }
        for address in
            ["|touch /tmp/x", "/etc/passwd", "-oQ/tmp", "ada,|sh", "ada;sh", "a b", "ada,", "$(sh)", "`sh`", "~root"]
        {
            assert!(!is_plain(address), "{address}");
        }
    }
}
