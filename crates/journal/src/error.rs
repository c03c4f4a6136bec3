//! Why a journal does not open, and why a proposal is not acknowledged.

use std::io;
use std::path::{Path, PathBuf};

/// A place on disk that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged at byte {offset}: {what}", file.display())]
pub struct Damage {
    pub file: PathBuf,
    pub offset: u64,
    pub what: String,
}

impl Damage {
    pub(crate) fn new(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Damage { file: file.to_path_buf(), offset, what: what.into() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("journal {} is in use by another process", .0.display())]
    InUse(PathBuf),
    #[error(transparent)]
    Damaged(#[from] Damage),
    #[error("{} is missing: {what}", file.display())]
    Missing { file: PathBuf, what: String },
    #[error("journal {} belongs to member {found}, not to member {wanted}", dir.display())]
    OtherMember { dir: PathBuf, found: u64, wanted: u64 },
    #[error("{}: {source}", file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("the state machine refuses the snapshot {}: {why}", file.display())]
    Snapshot { file: PathBuf, why: String },
    #[error("the state machine cannot apply entry {index} of the log: {why}")]
    Entry { index: u64, why: String },
    #[error("the journal stopped while it was opening: {0}")]
    Stopped(String),
}

impl OpenError {
    pub(crate) fn io(file: &Path) -> impl FnOnce(io::Error) -> OpenError {
        let file = file.to_path_buf();
        move |source| OpenError::Io { file, source }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// Nothing was written; ask the leader.
    #[error("this member is not the leader{}", leader.map(|id| format!("; member {id} is")).unwrap_or_default())]
    NotLeader { leader: Option<u64> },
    /// Nothing was written.
    #[error("an entry of {size_bytes} bytes is too large (at most {max_bytes})")]
    TooLarge { size_bytes: usize, max_bytes: usize },
    /// Nothing was written, and nothing will be until somebody makes room.
    #[error("the disk is full")]
    DiskFull,
    /// It waits for room on the disk, and is written when there is some.
    #[error("the disk is full, and the entry waits for room")]
    WaitsForRoom,
    /// Others lead, and their state was taken over as a whole, with or without the entry.
    #[error("this member has lost the lead; whether the entry was written is not known")]
    Unknown,
    /// Whether the entry was kept is unknown until the journal is open again.
    #[error("the journal has stopped: {0}")]
    Stopped(String),
}
