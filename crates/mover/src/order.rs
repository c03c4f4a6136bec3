//! What a mover is asked to do: which trees, from where to where, how carefully and how fast.
use serde::{Deserialize, Serialize};

/// One errand of one process. Nothing in it is ever seen by a shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Order {
    /// Marks the unfinished files of this errand; the same for every attempt at it.
    pub tag: String,
    /// Directories that no path below them may leave.
    pub fences: Vec<Fence>,
    pub transfers: Vec<Transfer>,
    pub verify: Verify,
    /// None: as many as suit this machine.
    pub n_workers: Option<u32>,
    /// Larger files are copied by several workers at once, in pieces of `chunk_bytes`.
    pub split_bytes: u64,
    pub chunk_bytes: u64,
    /// Of all workers together.
    pub bytes_per_sec: Option<u64>,
    /// Flush the destinations' file systems before the errand counts as done.
    pub syncs: bool,
    /// Give way to whatever else the machine does.
    pub is_background: bool,
    /// A full or read-only destination outside the fences is tried again this often, for so long.
    pub full_retry_secs: u64,
    pub full_patience_secs: u64,
    /// First pause before a failed file is tried again; it doubles.
    pub retry_pause_millis: u64,
    /// Run by the user's shell, one after the other, when everything is copied. Only a process of its own does that.
    pub commands: Vec<String>,
    pub work_dir: String,
    /// `NAME=value`
    pub environment: Vec<String>,
    /// Who to be; only root can become somebody.
    pub identity: Option<Identity>,
}

impl Default for Order {
    fn default() -> Self {
        Order {
            tag: "copy".into(),
            fences: Vec::new(),
            transfers: Vec::new(),
            verify: Verify::Stream,
            n_workers: None,
            split_bytes: 256 << 20,
            chunk_bytes: 64 << 20,
            bytes_per_sec: None,
            syncs: false,
            is_background: false,
            full_retry_secs: 300,
            full_patience_secs: 86_400,
            retry_pause_millis: 1000,
            commands: Vec::new(),
            work_dir: "/".into(),
            environment: Vec::new(),
            identity: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fence {
    pub path: String,
    /// What may be put there; the plan is compared with it before the first byte moves.
    pub capacity_bytes: Option<u64>,
    /// Nobody reads there before the errand is over, so that new files need no temporary name.
    pub is_unread: bool,
    /// Other spellings of the directory at the head of a list's line, such as `$BUFFER`.
    pub aliases: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transfer {
    pub kind: Kind,
    pub source: Place,
    pub destination: Place,
    /// Where the sources of a list are, when its lines do not say it; for lists only.
    pub list_base: Option<Place>,
    pub links: Links,
    /// A source that is not there is no error.
    pub is_optional: bool,
    /// The user's own sums of what is copied, as `sha256sum` writes them; empty: none.
    pub manifest: String,
    /// Extended attributes and access lists are copied, too.
    pub with_attributes: bool,
}

/// A path beneath a fence, or an absolute path where the file permissions alone decide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    pub fence: Option<u32>,
    pub path: String,
}

impl Place {
    pub fn outside(path: impl Into<String>) -> Self {
        Place { fence: None, path: path.into() }
    }

    pub fn inside(fence: u32, path: impl Into<String>) -> Self {
        Place { fence: Some(fence), path: path.into() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    #[default]
    File,
    Directory,
    List,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Links {
    /// Copied as links, their text unchanged.
    #[default]
    Preserve,
    /// What they lead to is copied, unless that is out of the tree.
    Follow,
    Skip,
    Fail,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verify {
    /// The copy's size only.
    None,
    Size,
    /// A hash is taken of what is read and written; the destination itself is not read.
    #[default]
    Stream,
    /// The destination is read back and compared; large files from the disk.
    Full,
}

impl Verify {
    pub fn hashes(self) -> bool {
        self >= Verify::Stream
    }
}
