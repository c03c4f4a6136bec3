//! Burst buffers: what a job asks for, and the entities with a life of their own that come of it.
//!
//! A job's [`Buffer`] begins when the plan has its data staged in, and is gone when its last directory is. It has one
//! [`Place`] for each directory: one for its shared space, and one on each node for its private space. A
//! [`PersistentBuffer`] belongs to nobody's run. Space in use is never counted apart: it is what these entities hold.
use serde::{Deserialize, Serialize};

use crate::directive::{Room, inside};
use crate::pool::Plugin;
use crate::staging::{Access, Direction, Home, Moved};
use crate::{JobId, NodeName, Timestamp};

record! {
    /// What the directives of a job ask for.
    pub struct BufferRequest {
        /// The directives, as `scontrol show job` shows them.
        pub text: String,
        pub spaces: Vec<Space>,
        pub transfers: Vec<Transfer>,
        /// Persistent buffers the job uses.
        pub uses: Vec<String>,
        pub creates: Vec<Creation>,
        pub destroys: Vec<Destruction>,
        /// Who does what it takes.
        pub plugin: Plugin,
        /// `#DW swap`: bytes on each node, and their pool. Charged as one more of the spaces.
        pub swap: Option<Space>,
        /// Data is brought back after the run, as far as the directives tell.
        pub stages_out: bool,
        /// What counts of it as `bb/<plugin>`, in MiB, for each job and for each node; nothing where that is not counted.
        pub tres_mb: u64,
        pub tres_mb_per_node: u64,
        /// Of it, what goes into persistent buffers: those count for themselves once they are there.
        pub tres_mb_created: u64,
        /// An administrator asked: other users' persistent buffers may be destroyed, too.
        pub by_admin: bool,
    }

    /// Room for the job alone.
    pub struct Space {
        pub pool: String,
        pub access: Access,
        /// In whole granules of the pool; on each node for private space.
        pub bytes: u64,
    }

    /// One `stage_in` or `stage_out`, as written: symbols and variables stand in it.
    pub struct Transfer {
        pub direction: Direction,
        pub kind: TransferKind,
        pub source: String,
        pub destination: String,
        pub when: When,
        /// A missing source is no failure.
        pub is_optional: bool,
        pub symlinks: Symlinks,
        /// A list of checksums that what is staged in must match.
        pub manifest: String,
        pub with_attributes: bool,
    }

    /// `#BB create_persistent`
    pub struct Creation {
        pub name: String,
        pub pool: String,
        pub bytes: u64,
        /// As written; only plugins look at them.
        pub access: String,
        pub kind: String,
    }

    /// `#BB destroy_persistent`
    pub struct Destruction {
        pub name: String,
        /// Jobs that use it are not waited for.
        pub hurry: bool,
    }

    /// The buffer of one run of a job.
    pub struct Buffer hides(environment) {
        pub job: JobId,
        /// Names its directories; a later buffer of the same job has a higher one.
        pub epoch: u32,
        /// Counts what was ordered: an answer to an earlier order is stale.
        pub attempt: u32,
        pub phase: BufferPhase,
        pub uid: u32,
        pub gid: u32,
        pub spaces: Vec<Space>,
        /// Persistent buffers that must stay while this one lives.
        pub uses: Vec<String>,
        pub places: Vec<Place>,
        pub created: Timestamp,
        /// When the present phase began.
        pub since: Timestamp,
        /// The present task has failed and is not tried again by itself; or, in teardown, is tried again and again.
        pub failure: String,
        /// The data is given up.
        pub hurry: bool,
        /// The job it was made for ran.
        pub was_used: bool,
        pub staged_in: Moved,
        pub staged_out: Moved,
        pub plugin: Plugin,
        /// The run is over, and its processes are gone: what is to be done after it may begin.
        pub is_vacated: bool,
        /// `NAME=value` for the job's processes, as a plugin's `paths` gave them.
        pub environment: Vec<String>,
        /// Teardowns that failed.
        pub n_teardown_failures: u32,
    }

    /// One directory, and the agent that cares for it.
    pub struct Place {
        pub access: Access,
        pub node: NodeName,
        pub pool: String,
        /// With `%n` replaced.
        pub root: String,
        /// The present task is done here.
        pub is_done: bool,
        /// Its data has been staged in.
        pub is_staged: bool,
        /// The job has no use for it: it goes, whatever the rest does.
        pub is_unwanted: bool,
        /// Of an earlier buffer of the job, left on a node that did not answer; 0: of this one.
        pub epoch: u32,
        /// Why the present task failed here.
        pub failure: String,
        /// It holds more than it may.
        pub is_over_limit: bool,
        /// The number of its node among the job's, which `%t` stands for.
        pub rank: u32,
    }

    /// A named buffer that outlives jobs.
    pub struct PersistentBuffer {
        pub name: String,
        pub pool: String,
        pub bytes: u64,
        pub uid: u32,
        pub gid: u32,
        pub user: String,
        pub account: String,
        pub root: String,
        pub created: Timestamp,
        pub phase: PersistentPhase,
        pub attempt: u32,
        /// The agent that makes or removes it.
        pub node: NodeName,
        /// The job that asked for the present phase.
        pub by_job: JobId,
        pub failure: String,
        pub hurry: bool,
        pub plugin: Plugin,
        pub access: String,
        pub kind: String,
        /// Whom it counts for, and how much of `bb/<plugin>` it counts as.
        pub association: u32,
        pub qos: String,
        pub tres_mb: u64,
        /// Since when the infrastructure does not list it.
        pub missed_since: Option<Timestamp>,
    }

    /// A buffer as DataWarp's infrastructure lists it.
    pub struct Session {
        /// A job's number, or a persistent buffer's name.
        pub token: String,
        pub uid: u32,
        pub user: String,
        pub created: Timestamp,
        pub bytes: u64,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BufferPhase {
    /// Persistent buffers are being made for it.
    Allocating,
    #[default]
    StagingIn,
    /// Its data is there; the job may start.
    StagedIn,
    /// The job has its nodes; persistent buffers are being destroyed for it.
    Deleting,
    /// The job has its nodes; what they still lack is brought.
    PreRun,
    /// The nodes were taken back before anything ran. What is on its way comes to its end, then the data is there for the next start.
    Revoked,
    InUse,
    /// The run has ended; its processes may still be there.
    PostRun,
    StagingOut,
    TearingDown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PersistentPhase {
    #[default]
    Creating,
    Ready,
    /// Goes when nobody uses it any more.
    Condemned,
    Destroying,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferKind {
    #[default]
    File,
    Directory,
    /// A file that names others.
    List,
    /// A command line of the user's; `source` holds it.
    Command,
}

/// After which ends of the job data is staged out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    #[default]
    Always,
    Success,
    Failure,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Symlinks {
    #[default]
    Preserve,
    /// Never out of the source's tree.
    Follow,
    Skip,
    Fail,
}

/// What users read as BurstBufferState.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BufferState {
    Pending,
    Allocating,
    Allocated,
    Deleting,
    Deleted,
    StagingIn,
    StagedIn,
    PreRun,
    AllocRevoke,
    Running,
    Suspended,
    PostRun,
    StagingOut,
    StagedOut,
    Teardown,
    TeardownFail,
    Complete,
}

impl BufferRequest {
    /// What the request counts for as a resource, worked out of its spaces and creations.
    pub fn count_megabytes(&mut self) {
        const MIB: u64 = 1 << 20;
        let of = |access| self.spaces.iter().filter(move |space| space.access == access).map(|space| space.bytes);
        let created: u64 = self.creates.iter().map(|creation| creation.bytes).fold(0, u64::saturating_add);
        let shared = of(Access::Shared).fold(created, u64::saturating_add) / MIB;
        let private = of(Access::Private).fold(0, u64::saturating_add) / MIB;
        (self.tres_mb, self.tres_mb_created, self.tres_mb_per_node) = (shared, created / MIB, private);
    }

    /// What is moved in this direction by the agent of a place with this access.
    pub fn transfers(&self, access: Access, direction: Direction) -> impl Iterator<Item = &Transfer> {
        let room = Room::of(self);
        self.transfers
            .iter()
            .filter(move |transfer| transfer.direction == direction && self.access_of(transfer, &room) == access)
    }

    /// Anything below a private directory is moved by each node, all else by one agent.
    fn access_of(&self, transfer: &Transfer, room: &Room) -> Access {
        let own = if room.has_private && !self.has_shared_place() { Access::Private } else { Access::Shared };
        let path = match transfer.direction {
            Direction::In => &transfer.destination,
            Direction::Out => &transfer.source,
        };
        match transfer.kind {
            TransferKind::Command => own,
            _ => inside(path, room).map_or(own, |inside| inside.access.unwrap_or(Access::Shared)),
        }
    }

    pub fn has_private_space(&self) -> bool {
        self.spaces.iter().any(|space| space.access == Access::Private)
    }

    pub fn asks_shared_pools(&self) -> bool {
        !self.creates.is_empty() || self.spaces.iter().any(|space| space.access == Access::Shared)
    }

    /// The job itself has something to do with buffers, besides making and destroying persistent ones.
    pub fn is_used_by_job(&self) -> bool {
        self.plugin == Plugin::Lua || !self.spaces.is_empty() || !self.uses.is_empty()
    }

    /// What a node gets depends on its number among the job's nodes, which nobody knows before it has them.
    pub fn depends_on_rank(&self) -> bool {
        let has_rank = |transfer: &Transfer| {
            [&transfer.source, &transfer.destination, &transfer.manifest].iter().any(|text| text.contains("%t"))
        };
        self.transfers(Access::Private, Direction::In).any(has_rank)
    }

    /// Whether an agent works for the job besides those of its nodes.
    pub fn has_shared_place(&self) -> bool {
        if self.plugin.is_external() {
            return self.is_used_by_job();
        }
        let has_private = self.spaces.iter().any(|space| space.access == Access::Private);
        let has_shared = self.spaces.iter().any(|space| space.access == Access::Shared);
        has_shared || !self.uses.is_empty() || (!self.transfers.is_empty() && !has_private)
    }
}

impl Buffer {
    /// All of its space together.
    pub fn bytes(&self) -> u64 {
        self.spaces.iter().map(|space| space.bytes).sum()
    }

    /// What the place's directory is named by.
    pub fn epoch_of(&self, place: &Place) -> u32 {
        if place.epoch == 0 { self.epoch } else { place.epoch }
    }

    pub fn home(&self, place: &Place) -> Home {
        Home::Job { job: self.job, epoch: self.epoch_of(place), access: place.access }
    }
}

impl BufferState {
    pub fn word(self) -> &'static str {
        match self {
            BufferState::Pending => "pending",
            BufferState::Allocating => "allocating",
            BufferState::Allocated => "allocated",
            BufferState::Deleting => "deleting",
            BufferState::Deleted => "deleted",
            BufferState::StagingIn => "staging-in",
            BufferState::StagedIn => "staged-in",
            BufferState::PreRun => "pre-run",
            BufferState::AllocRevoke => "alloc-revoke",
            BufferState::Running => "running",
            BufferState::Suspended => "suspended",
            BufferState::PostRun => "post-run",
            BufferState::StagingOut => "staging-out",
            BufferState::StagedOut => "staged-out",
            BufferState::Teardown => "teardown",
            BufferState::TeardownFail => "teardown-fail",
            BufferState::Complete => "complete",
        }
    }
}
