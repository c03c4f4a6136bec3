//! What `scontrol update` may change.
use serde::{Deserialize, Serialize};

use crate::dependency::Dependency;
use crate::gres::{Gres, GresRequest};
use crate::license::LicenseRequest;
use crate::node::{NextState, NodeConfig};
use crate::partition::PartitionState;
use crate::spec::{MailKind, Memory, TimeLimit};
use crate::time::Timestamp;
use crate::{NodeName, StepId};

record! {
    /// Fields that are none stay as they are.
    pub struct JobChanges {
        pub name: Option<String>,
        pub comment: Option<String>,
        pub admin_comment: Option<String>,
        pub account: Option<String>,
        pub qos: Option<String>,
        pub wckey: Option<String>,
        pub partitions: Option<Vec<String>>,
        pub time_limit: Option<TimeLimitChange>,
        pub begin: Option<Timestamp>,
        pub deadline: Option<Timestamp>,
        pub dependency: Option<Dependency>,
        pub priority: Option<u32>,
        /// Before all other waiting jobs of its user (`scontrol top`).
        pub comes_first: Option<bool>,
        pub nice: Option<i32>,
        /// Its age counts from now (`ResetAccrueTime`).
        pub resets_age: Option<bool>,
        pub site_factor: Option<i32>,
        pub requeue: Option<bool>,
        pub min_nodes: Option<u32>,
        pub max_nodes: Option<u32>,
        pub n_tasks: Option<u32>,
        pub cpus_per_task: Option<u32>,
        pub memory: Option<Memory>,
        pub gres: Option<Vec<GresRequest>>,
        pub nodes: Option<Vec<NodeName>>,
        pub excluded: Option<Vec<NodeName>>,
        pub features: Option<String>,
        pub array_limit: Option<u32>,
        pub stdin: Option<String>,
        pub stdout: Option<String>,
        pub stderr: Option<String>,
        pub work_dir: Option<String>,
        pub burst_buffer: Option<String>,
        pub licenses: Option<LicenseRequest>,
        /// Names of reservations; empty takes the job out of its own.
        pub reservations: Option<Vec<String>>,
        /// The caller's groups, as far as a rule asks for them; filled in by the controller.
        pub groups: Option<Vec<String>>,
        pub n_switches: Option<u32>,
        pub switch_wait_secs: Option<u64>,
        pub segment: Option<u32>,
        pub spreads_segments: Option<bool>,
        pub consolidates_segments: Option<bool>,
        /// When a running job is to have used up its time limit.
        pub end: Option<Timestamp>,
        pub time_min: Option<TimeLimit>,
        /// Others may share its CPUs; or it keeps whole nodes.
        pub shares: Option<bool>,
        pub contiguous: Option<bool>,
        pub tmp_disk_mb: Option<u64>,
        pub min_cpus_per_node: Option<u32>,
        pub mail_to: Option<String>,
        pub mail_kinds: Option<Vec<MailKind>>,
        pub preference: Option<String>,
        pub tasks_per_node: Option<u32>,
        /// A job that was requeued to be held is said to have ended specially.
        pub special_exit: Option<bool>,
        /// Of one step, or of all that run.
        pub step_limit: Option<StepLimit>,
        /// All CPUs of a waiting job.
        pub n_cpus: Option<u32>,
        /// A node must have at least so many.
        pub sockets_per_node: Option<u32>,
        pub cores_per_socket: Option<u32>,
        pub threads_per_core: Option<u32>,
        pub delay_boot_secs: Option<u64>,
    }

    /// `scontrol update StepId=12.0 TimeLimit=5`
    pub struct StepLimit {
        /// None: all that run.
        pub step: Option<StepId>,
        /// `UNLIMITED` is none.
        pub minutes: u32,
    }

    pub struct PartitionChanges {
        pub state: Option<PartitionState>,
        pub fields: Vec<crate::partition_field::Field>,
        pub topology: Option<String>,
    }
}

/// `TimeLimit=10`, `TimeLimit=+5`, `TimeLimit=-5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeLimitChange {
    To(TimeLimit),
    LongerBySecs(u64),
    ShorterBySecs(u64),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodeChange {
    Drain {
        reason: String,
    },
    Undrain,
    Down {
        reason: String,
    },
    Resume,
    Reason(String),
    Features(Vec<String>),
    Weight(u32),
    /// Those of its features that are there now.
    ActiveFeatures(Vec<String>),
    Gres(Vec<Gres>),
    Comment(String),
    Extra(String),
    /// What the cloud calls them: one for all of the nodes, or one for each.
    InstanceIds(Vec<String>),
    InstanceTypes(Vec<String>),
    /// As `Drain`, but said to have failed.
    Fail {
        reason: String,
    },
    /// It does not answer, says an administrator.
    NotResponding,
    /// Where it is in the network: `topology:unit,…`; none: as the topologies say.
    Topology(Option<String>),
    /// It is to start anew when its last job has left.
    Reboot {
        /// It takes no new jobs before.
        is_asap: bool,
        next: Option<NextState>,
        reason: String,
    },
    CancelReboot,
    /// There are to be such nodes, though no file names them (`scontrol create NodeName=…`).
    Create(Box<NodeConfig>),
    /// A node that was created, or has joined, is no more.
    Delete,
    /// As `Resume`, but a node that is idle may stay so.
    Idle,
}

impl StepLimit {
    pub const UNLIMITED: u32 = u32::MAX;
}
