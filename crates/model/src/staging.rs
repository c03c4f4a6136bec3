//! What the controller and its agents say to each other about burst buffers.
//!
//! ```text
//! controller                                   agent
//!   Order::Stage {number, work}     ──▶  makes the directory, moves the data with a mover process of the job's user
//!   Order::Remove {number, removal} ──▶  ends that mover, removes the directory
//!   Order::StopMover {home, …}      ──▶  ends the mover, keeps the directory (another agent has taken over); no answer
//!                                   ◀──  Report::Staged {number, result}      once for each Stage and Remove
//!                                   ◀──  Report::Progress {…}                 at most one a second while anything moves
//!                                   ◀──  Report::Inventory {…}                after each Welcome, and every ten minutes
//! ```
//! - `home` names one directory: [`Home::directory`] says where it is below the pool's root.
//! - `(home, attempt, direction)` names the work. An order for work under way joins it (its answer goes to the new
//!   number); one for work that is done is answered at once from the record the agent keeps until the home is removed;
//!   one with a higher attempt replaces what is under way (files that are already right are not copied again); one
//!   with a lower attempt than was seen is ignored. After a restart of controller or agent orders simply come again.
//! - `Stage` with [`Direction::In`] makes the directory if it is not there (also when there are no transfers), owned by the
//!   user. With [`Direction::Out`] a missing directory is a failure.
//! - `Remove` first ends the home's mover (SIGTERM, SIGKILL after five seconds) and is answered when no process of it and
//!   nothing of the directory is left; a directory that is not there is removed already. A later `Stage` of a removed home
//!   with the same or a lower attempt is refused.
//! - Symbols (`%j`, `%n`, …) and buffer variables are resolved by the controller. Of an outside path the agent expands
//!   only a leading `~/` or `$HOME/`, with the user's home directory; a relative one is below `work_dir`.
//! - The controller trusts no directory that it does not know: an inventory's unknown homes are answered with `Remove`
//!   (number 0: no answer is awaited), those of jobs that there never were when they are ten minutes old.
//! - A home whose work names `peers` is copied from one of them (`rpc Mirror` between the two agents) as the job's user. Peers are
//!   advice: an agent that gets nothing from them reads the sources.
//! - Progress is soft: it is shown, never logged. Only the final result is.
use serde::{Deserialize, Serialize};

use crate::buffer::{Symlinks, TransferKind};
use crate::pool::{PoolReport, Verify};
use crate::time::Span;
use crate::{JobId, NodeName};

/// Who sees a job's space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// One directory for all nodes of the job (`striped`).
    #[default]
    Shared,
    /// A directory on each node (`private`).
    Private,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    #[default]
    In,
    Out,
}

/// One directory that an agent keeps for a buffer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Home {
    Job { job: JobId, epoch: u32, access: Access },
    Persistent { name: String },
}

impl Home {
    /// The data directory, which the job's user owns. Its parent, and the root, are the agent's.
    pub fn directory(&self, root: &str) -> String {
        let root = root.trim_end_matches('/');
        match self {
            Home::Job { job, epoch, access: Access::Shared } => format!("{root}/jobs/{job}.{epoch}/shared"),
            Home::Job { job, epoch, access: Access::Private } => format!("{root}/jobs/{job}.{epoch}/private"),
            Home::Persistent { name } => format!("{root}/persistent/{name}"),
        }
    }
}

record! {
    /// Fills or empties one home.
    pub struct StageWork hides(environment) {
        pub home: Option<Home>,
        pub attempt: u32,
        pub direction: Direction,
        /// With `%n` replaced.
        pub root: String,
        pub pool: String,
        pub capacity_bytes: u64,
        pub uid: u32,
        pub gid: u32,
        pub user: String,
        pub work_dir: String,
        pub transfers: Vec<TransferOrder>,
        /// The work has failed when it has taken this long.
        pub timeout: Span,
        pub verify: Verify,
        pub n_workers: u32,
        pub bandwidth_bytes: u64,
        /// Roots of all pools: no outside path may lie below one.
        pub forbidden: Vec<String>,
        /// `NAME=value`, what the job's own processes get about its buffers; for transfers that are commands.
        pub environment: Vec<String>,
        /// Nodes that have all of it: the data comes from one of them; when none gives it, from the sources.
        pub peers: Vec<StagedPeer>,
    }

    /// A node that has a home's data, and where its agent is heard.
    pub struct StagedPeer {
        pub node: NodeName,
        /// By other machines; empty: not.
        pub address: String,
        /// On its own machine.
        pub socket: String,
        pub root: String,
        /// Fingerprints by which it is known; none: any that the authority has signed.
        pub certificates: Vec<String>,
    }

    /// What is asked of a peer first.
    pub struct MirrorRequest {
        pub home: Option<Home>,
        pub root: String,
    }

    /// One transfer, with every symbol and variable resolved.
    pub struct TransferOrder {
        pub kind: TransferKind,
        /// A file or directory out of the buffer; for a command its text.
        pub outside: String,
        /// The data directory that `inside` is below: this home's own, or a persistent buffer's.
        pub base: String,
        /// Relative to `base`; empty: `base` itself. Ends in `/` where the user wrote that.
        pub inside: String,
        pub is_optional: bool,
        pub symlinks: Symlinks,
        pub manifest: String,
        pub with_attributes: bool,
    }

    pub struct Removal {
        pub home: Option<Home>,
        pub attempt: u32,
        pub root: String,
        pub pool: String,
    }

    /// What was moved in all.
    pub struct Moved hides(environment) {
        pub n_files: u64,
        pub n_bytes: u64,
        /// Sockets, FIFOs and devices, which are not copied.
        pub n_skipped: u64,
        pub took: Span,
        /// What the user should know though nothing failed: skipped sockets, retries.
        pub warnings: Vec<String>,
        /// What a plugin says it really gave; zero: as much as was asked for.
        pub real_bytes: u64,
        /// What a plugin wants the job's processes to know.
        pub environment: Vec<String>,
    }

    pub struct StageFailure {
        /// The first error, in one line.
        pub why: String,
        pub n_more: u64,
        pub moved: Moved,
        /// The hook that failed, by the name users know it by; empty: what the phase is called.
        pub operation: String,
    }

    /// How far the work for one home is.
    pub struct Progress {
        pub home: Option<Home>,
        pub attempt: u32,
        pub direction: Direction,
        pub n_files: u64,
        /// Zero while the sources are still being counted.
        pub n_files_total: u64,
        pub n_bytes: u64,
        pub n_bytes_total: u64,
        /// Over the last ten seconds.
        pub bytes_per_second: u64,
        /// Since the agent has watched it.
        pub average_bytes_per_second: u64,
        pub n_retries: u64,
        /// The latest trouble, if any.
        pub error: String,
    }

    /// A home that an agent has.
    pub struct HeldHome {
        pub home: Option<Home>,
        pub pool: String,
        pub root: String,
        pub attempt: u32,
        /// A mover works for it.
        pub is_moving: bool,
        pub used_bytes: u64,
        /// For how long it has been there.
        pub age: Span,
    }

    pub struct Inventory {
        pub homes: Vec<HeldHome>,
        pub pools: Vec<PoolReport>,
    }

    /// Progress with the node it comes from, for those who watch.
    pub struct NodeProgress {
        pub node: NodeName,
        pub progress: Progress,
        /// Nothing was heard of it for half a minute.
        pub is_stalled: bool,
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StageResult {
    Done(Moved),
    Failed(StageFailure),
}
