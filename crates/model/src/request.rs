//! What readers ask the controller for. Authorisation and filtering happen there; rendering happens in the commands.
use serde::{Deserialize, Serialize};

use crate::pool::BurstBufferConfig;
use crate::staging::NodeProgress;
use crate::{Buffer, Job, JobId, JobRef, Node, PersistentBuffer, Step, StepId, StepSpec, Timestamp};

record! {
    /// Which jobs. Empty filters let everything pass.
    pub struct JobFilter {
        /// Jobs, arrays with all their tasks, or some tasks.
        pub jobs: Vec<JobRef>,
        pub uids: Vec<u32>,
        /// Finished jobs that are still remembered too.
        pub with_finished: bool,
        pub with_steps: bool,
        /// Of the steps only these, if any are named; what happens to others is no news.
        pub only_steps: Vec<StepId>,
        /// Nothing is told but that the first job now has room for this step; of those who wait, one at a time.
        pub room_for: Option<StepSpec>,
    }

    /// A node with what only the whole state knows of it.
    pub struct NodeView {
        pub node: Node,
        /// A job here is being cleared away.
        pub has_ending_job: bool,
        /// A job here runs or is suspended.
        pub has_live_job: bool,
        /// The reservation whose time it is now.
        pub reservation: String,
        /// That reservation is for maintenance.
        pub is_in_maintenance: bool,
        /// As its agent last said; none: it has said nothing.
        pub load: Option<crate::agent::Load>,
    }

    /// One licence as the whole cluster sees it.
    pub struct LicenseView {
        pub name: String,
        pub total: u32,
        pub used: u32,
        /// Kept by reservations whose time it is, and not yet used by their jobs.
        pub reserved: u32,
        /// The cluster's part of a licence server's, kept with the accounts.
        pub is_remote: bool,
    }

    /// A piece of the answer, read from one snapshot of the state.
    pub struct JobsPage {
        pub jobs: Vec<Job>,
        pub steps: Vec<Step>,
        pub now: Timestamp,
        /// Ids of the filter that are not known at all.
        pub unknown: Vec<JobId>,
        /// How far data of these jobs is on its way.
        pub progress: Vec<NodeProgress>,
        /// What somebody wants to be told to whoever holds the allocation (`scontrol notify`).
        pub notices: Vec<String>,
        /// Of those who watch: the same picture goes on in the next page.
        pub goes_on: bool,
    }

    /// Everything about burst buffers that the caller may see.
    pub struct BurstPage {
        pub config: Option<Box<BurstBufferConfig>>,
        pub pools: Vec<PoolView>,
        /// The newest first.
        pub buffers: Vec<Buffer>,
        /// The jobs they belong to.
        pub jobs: Vec<Job>,
        pub persistent: Vec<PersistentBuffer>,
        pub progress: Vec<NodeProgress>,
        /// What is really in them, as measured last.
        pub used: Vec<UsedSpace>,
    }

    /// Of a job's buffer on all its nodes, or of a persistent one.
    pub struct UsedSpace {
        pub job: JobId,
        pub name: String,
        pub used_bytes: u64,
    }

    pub struct PoolView {
        pub name: String,
        pub total_bytes: u64,
        pub used_bytes: u64,
        /// What can still be given out: foreign files take of it, too.
        pub free_bytes: u64,
        /// Agents that cannot use it, and why.
        pub problems: Vec<String>,
    }

    /// One job's data on its way.
    pub struct StagePage {
        pub job: Job,
        /// None: not begun yet, or gone.
        pub buffer: Option<Buffer>,
        pub progress: Vec<NodeProgress>,
        pub now: Timestamp,
    }
}

/// A signal for processes of a job; delivered at once or not at all, so not part of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignalRequest {
    pub jobs: Vec<JobRef>,
    pub signal: u32,
    pub scope: SignalScope,
    /// Instead of a signal: words for the job's own output (`scontrol notify`).
    #[serde(default)]
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalScope {
    /// All steps, not the batch shell: what `scancel -s` does.
    Steps,
    /// The batch shell only (`-b`).
    BatchShell,
    /// Batch shell and steps (`-f`).
    Everything,
    Step(crate::StepId),
}
