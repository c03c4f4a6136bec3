//! Programs that wait for something to happen: `strigger`.
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::{JobId, NodeName};

macro_rules! kinds {
    ($($name:ident $word:literal $about:ident),* $(,)?) => {
        /// What may happen, in the order in which Slurm names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum TriggerKind { $($name),* }

        impl TriggerKind {
            pub const ALL: &[TriggerKind] = &[$(TriggerKind::$name),*];

            pub fn word(self) -> &'static str {
                match self { $(TriggerKind::$name => $word),* }
            }

            pub fn about(self) -> About {
                match self { $(TriggerKind::$name => About::$about),* }
            }
        }
    };
}

/// What an event happens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    Node,
    Job,
    Controller,
    Cluster,
    /// Of a Slurm's accounting, which here is part of the controller: they can be set and never happen.
    AccountingDaemon,
    Database,
}

kinds! {
    Up "up" Node,
    Down "down" Node,
    Fail "fail" Node,
    Time "time" Job,
    Fini "fini" Job,
    Reconfig "reconfig" Cluster,
    Idle "idle" Node,
    Drained "drained" Node,
    PrimaryFailure "primary_slurmctld_failure" Controller,
    PrimaryResumedOperation "primary_slurmctld_resumed_operation" Controller,
    PrimaryResumedControl "primary_slurmctld_resumed_control" Controller,
    BackupAssumedControl "backup_slurmctld_assumed_control" Controller,
    BurstBuffer "burst_buffer" Cluster,
    Draining "draining" Node,
    Resume "resume" Node,
    BackupFailure "backup_slurmctld_failure" Controller,
    BackupResumedOperation "backup_slurmctld_resumed_operation" Controller,
    AccountingBufferFull "primary_slurmctld_acct_buffer_full" Controller,
    AccountingDaemonFailure "primary_slurmdbd_failure" AccountingDaemon,
    AccountingDaemonResumed "primary_slurmdbd_resumed_operation" AccountingDaemon,
    DatabaseFailure "primary_database_failure" Database,
    DatabaseResumed "primary_database_resumed_operation" Database,
}

record! {
    pub struct Trigger {
        pub id: u32,
        /// Who set it, and whom its program runs as.
        pub uid: u32,
        pub gid: u32,
        pub user: String,
        pub kinds: Vec<TriggerKind>,
        pub job: Option<JobId>,
        /// Empty: all nodes, or those of the job.
        pub nodes: Vec<NodeName>,
        /// After the event; before it, where that can be known.
        pub offset_secs: i64,
        /// A path from the root, perhaps with arguments.
        pub program: String,
        /// It stays when it has run.
        pub is_permanent: bool,
        /// What it waited for has happened.
        pub fire: Option<Fire>,
        /// How often it has run.
        pub n_fired: u32,
        /// When to look whether it is time.
        pub look_at: Option<Timestamp>,
    }

    pub struct Fire {
        pub at: Timestamp,
        /// What has happened to these.
        pub nodes: BTreeSet<NodeName>,
    }

    /// Which are meant; what is none means all.
    pub struct TriggerFilter {
        pub id: Option<u32>,
        pub job: Option<JobId>,
        pub uid: Option<u32>,
    }

    /// What a node is, as far as triggers care.
    pub struct NodeMark {
        pub is_down: bool,
        pub is_drained: bool,
        pub is_draining: bool,
        pub has_failed: bool,
    }
}

impl TriggerKind {
    /// The accounts are the controller's own, and no controller stands by as a backup that does nothing.
    pub fn never_happens(self) -> bool {
        use TriggerKind::{AccountingBufferFull, BackupFailure, BackupResumedOperation};
        matches!(self, AccountingBufferFull | BackupFailure | BackupResumedOperation)
            || matches!(self.about(), About::AccountingDaemon | About::Database)
    }
}

impl TriggerFilter {
    pub fn fits(&self, trigger: &Trigger) -> bool {
        self.id.is_none_or(|id| trigger.id == id)
            && self.job.is_none_or(|job| trigger.job == Some(job))
            && self.uid.is_none_or(|uid| trigger.uid == uid)
    }
}

impl Trigger {
    /// `job`, `node`, `slurmctld` or `other`: what Slurm calls the kind of thing it is about.
    pub fn resource(&self) -> &'static str {
        match (self.job, self.kinds.first().map(|kind| kind.about())) {
            (Some(_), _) => "job",
            (None, Some(About::Controller)) => "slurmctld",
            (None, Some(About::AccountingDaemon)) => "slurmdbd",
            (None, Some(About::Database)) => "database",
            (None, _) if self.kinds.contains(&TriggerKind::BurstBuffer) => "other",
            (None, _) => "node",
        }
    }

    /// What its program is told: the job's id, or the nodes.
    pub fn argument(&self) -> String {
        let nodes = self.fire.as_ref().map(|fire| &fire.nodes).filter(|nodes| !nodes.is_empty());
        match (nodes, self.job) {
            (Some(nodes), _) => crate::hostlist::compress(nodes.iter().map(|node| node.as_str())),
            (None, Some(job)) => job.to_string(),
            (None, None) => "*".into(),
        }
    }
}
