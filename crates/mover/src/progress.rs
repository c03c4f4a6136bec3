//! How far an errand is: counters of the workers, and the status file in which another process reads them.
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::journal::directory_key;
use crate::plan::Where;
use crate::trouble::{Class, Trouble};

/// A complete report has no use for more.
pub const ERRORS_KEPT: usize = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    #[default]
    Planning,
    Copying,
    /// Modes and times of directories, flushing.
    Finishing,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    pub phase: Phase,
    pub files_done: u64,
    pub files_total: u64,
    pub bytes_done: u64,
    pub bytes_total: u64,
    /// Of the done ones, those an earlier mover had done.
    pub files_resumed: u64,
    /// Neither files nor directories, and so not copied.
    pub files_skipped: u64,
    pub retries: u64,
    pub n_errors: u64,
    /// The first error, or what is waited for.
    pub note: String,
    pub elapsed_millis: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    #[default]
    Done,
    Failed,
    Cancelled,
    /// The other node it copied from is of no more use; what is done is journalled.
    Parted,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    pub ending: Ending,
    pub errors: Vec<String>,
    pub n_errors: u64,
    pub warnings: Vec<String>,
}

impl Outcome {
    /// `<first error> (<n> more)`
    pub fn text(&self) -> String {
        let first = self.errors.first().map_or("unknown error", |error| error.as_str());
        match self.n_errors {
            0 | 1 => first.to_owned(),
            n_errors => format!("{first} ({} more)", n_errors - 1),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Of the mover, which leads a session and a process group of its own.
    pub pid: u32,
    pub snapshot: Snapshot,
    pub outcome: Option<Outcome>,
}

#[derive(Default)]
pub struct Errors {
    pub kept: Vec<String>,
    pub n_all: u64,
    /// Something of this kind ends all the rest as well.
    pub has_full_fence: bool,
}

pub struct Counters {
    phase: AtomicU8,
    pub files_done: AtomicU64,
    pub files_total: AtomicU64,
    pub bytes_done: AtomicU64,
    pub bytes_total: AtomicU64,
    pub files_resumed: AtomicU64,
    pub files_skipped: AtomicU64,
    pub retries: AtomicU64,
    pub errors: Mutex<Errors>,
    /// Directories of the destination that are without something, there or further down, because it has failed.
    lacking: Mutex<HashSet<u64>>,
    pub warnings: Mutex<Vec<String>>,
    pub waiting: Mutex<Option<String>>,
    shown_bytes: AtomicU64,
    started: Instant,
}

impl Counters {
    pub fn new() -> Self {
        Counters {
            phase: AtomicU8::new(0),
            files_done: AtomicU64::new(0),
            files_total: AtomicU64::new(0),
            bytes_done: AtomicU64::new(0),
            bytes_total: AtomicU64::new(0),
            files_resumed: AtomicU64::new(0),
            files_skipped: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            errors: Mutex::default(),
            lacking: Mutex::default(),
            warnings: Mutex::default(),
            waiting: Mutex::default(),
            shown_bytes: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    pub fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    pub fn failed(&self, trouble: &Trouble) {
        let mut errors = self.errors.lock().expect("no panic while held");
        errors.n_all += 1;
        errors.has_full_fence |= trouble.class == Class::Capacity;
        if errors.kept.len() < ERRORS_KEPT {
            errors.kept.push(trouble.text.clone());
        }
    }

    /// What belongs into a directory of the destination has failed.
    pub fn failed_in(&self, trouble: &Trouble, directory: &Where) {
        self.failed(trouble);
        let mut lacking = self.lacking.lock().expect("no panic while held");
        let mut place = directory.clone();
        // Whatever is above one that is known is known.
        while lacking.insert(directory_key(&place)) && !place.below.is_empty() {
            let above = place.below.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            place.below.truncate(above);
        }
    }

    pub fn lacks(&self, directory: &Where) -> bool {
        self.lacking.lock().expect("no panic while held").contains(&directory_key(directory))
    }

    pub fn n_failed(&self) -> u64 {
        self.errors.lock().expect("no panic while held").n_all
    }

    pub fn warn(&self, text: String) {
        let mut warnings = self.warnings.lock().expect("no panic while held");
        if warnings.len() < ERRORS_KEPT {
            warnings.push(text);
        }
    }

    /// Without a journal a later mover copies again what this one has copied; that is no reason to fail.
    pub fn check_journal(&self, noted: io::Result<()>) {
        if let Err(error) = noted {
            self.warn(format!("cannot write the journal: {error}"));
        }
    }

    /// Never goes back: a file that is tried again counts as far as it had been.
    pub fn snapshot(&self) -> Snapshot {
        let bytes_done = self.bytes_done.load(Relaxed).min(self.bytes_total.load(Relaxed));
        let bytes_done = self.shown_bytes.fetch_max(bytes_done, Relaxed).max(bytes_done);
        let waiting = self.waiting.lock().expect("no panic while held").clone();
        let errors = self.errors.lock().expect("no panic while held");
        Snapshot {
            phase: [Phase::Planning, Phase::Copying, Phase::Finishing][self.phase.load(Relaxed) as usize % 3],
            files_done: self.files_done.load(Relaxed),
            files_total: self.files_total.load(Relaxed),
            bytes_done,
            bytes_total: self.bytes_total.load(Relaxed),
            files_resumed: self.files_resumed.load(Relaxed),
            files_skipped: self.files_skipped.load(Relaxed),
            retries: self.retries.load(Relaxed),
            n_errors: errors.n_all,
            note: waiting.or_else(|| errors.kept.first().cloned()).unwrap_or_default(),
            elapsed_millis: self.started.elapsed().as_millis() as u64,
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters::new()
    }
}

/// Length and sum of what follows; none of a status when they are zero.
pub const STATUS_HEAD_BYTES: usize = 8;

/// One write, checked by its sum: a reader in between sees the old or the new, or looks again.
pub fn write_status(file: &File, status: &Status) -> io::Result<()> {
    let body = msgpack::encode(status).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(body.len() + STATUS_HEAD_BYTES);
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
    frame.extend_from_slice(&body);
    file.write_all_at(&frame, 0)
}

/// None: nothing has been written yet, or it was just being written.
pub fn read_status(file: &File) -> Option<Status> {
    (0..5).find_map(|_| {
        let mut head = [0; STATUS_HEAD_BYTES];
        file.read_exact_at(&mut head, 0).ok()?;
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
        let mut body = vec![0; length.min(1 << 20) as usize];
        file.read_exact_at(&mut body, STATUS_HEAD_BYTES as u64).ok()?;
        let is_whole = crc32fast::hash(&body).to_le_bytes() == head[4..];
        is_whole.then(|| msgpack::decode(&body).ok()).flatten()
    })
}
