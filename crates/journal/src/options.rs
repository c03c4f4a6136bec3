//! How a journal is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::files::{Files, RealFiles};
use crate::network::Transport;

/// Where the journal lives and how it behaves. `Options::new` is right for one member.
#[derive(Clone)]
pub struct Options {
    /// Directory of this journal alone; made when missing.
    pub dir: PathBuf,
    /// This member's number. It is written into the journal; another number is refused later.
    pub member: u64,
    /// All members and their addresses when the journal is first made. Empty: this member is alone.
    pub members: BTreeMap<u64, String>,
    /// A new journal that is not the beginning of anything: it waits until the members of another one add it.
    pub joins: bool,
    /// Carries requests to the other members; a lone member needs none.
    pub transport: Option<Arc<dyn Transport>>,
    /// A snapshot is taken after this many entries.
    pub snapshot_every_entries: u64,
    /// Or after so many bytes of entries, whichever is first.
    pub snapshot_every_bytes: u64,
    /// A segment is closed when it has grown to this size.
    pub segment_bytes: u64,
    /// How many batches behind the snapshot stay in the log, for members that are only a little late.
    pub keep_batches: u64,
    /// How often a leader of several members is heard. An election starts after four to eight times this silence.
    pub heartbeat: Duration,
    /// How long to wait for another process that still holds the directory.
    pub wait_for_lock: Duration,
    /// Kept on the disk for when it is full; 0: nothing is.
    pub reserve_bytes: u64,
    /// The file layer; tests put a faulty one here.
    pub files: Arc<dyn Files>,
}

impl Options {
    pub fn new(dir: impl Into<PathBuf>, member: u64) -> Self {
        Options { dir: dir.into(), member, ..Options::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            dir: PathBuf::from("journal"),
            member: 1,
            members: BTreeMap::new(),
            joins: false,
            transport: None,
            snapshot_every_entries: 20_000,
            snapshot_every_bytes: 128 << 20,
            segment_bytes: 16 << 20,
            keep_batches: 256,
            heartbeat: Duration::from_millis(250),
            wait_for_lock: Duration::ZERO,
            reserve_bytes: 0,
            files: Arc::new(RealFiles),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("dir", &self.dir)
            .field("member", &self.member)
            .field("members", &self.members)
            .field("snapshot_every_entries", &self.snapshot_every_entries)
            .field("snapshot_every_bytes", &self.snapshot_every_bytes)
            .field("segment_bytes", &self.segment_bytes)
            .field("keep_batches", &self.keep_batches)
            .field("heartbeat", &self.heartbeat)
            .finish_non_exhaustive()
    }
}
