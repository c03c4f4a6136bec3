//! Room on the disk: a reserve beside the log, given up when the disk is full, so that what was begun is written and what is
//! vital still can be. Everything else is refused until the reserve stands again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::files::{self, Files, OpenFile, TEMPORARY};

const RESERVE: &str = "reserve";
const CHUNK_BYTES: u64 = 1 << 20;
/// A full disk is tried again after this long.
const PAUSE: Duration = Duration::from_millis(100);

/// So long may somebody wait for room before being told.
const WAITS_MAX: Duration = Duration::from_secs(2);

/// How much room the disk of the log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskRoom {
    Ample,
    /// The reserve is being used up: only what is vital is taken.
    Reserve,
    /// Nothing can be written.
    None,
}

/// An error that goes away when somebody makes room. After any other, nobody knows what the disk holds.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

pub(crate) struct LogRoom {
    files: Arc<dyn Files>,
    dir: PathBuf,
    reserve_bytes: u64,
    now: watch::Sender<DiskRoom>,
    is_stopping: AtomicBool,
    /// How many snapshots were given up.
    given_up: watch::Sender<u64>,
    /// One is to be taken when there is room again.
    owes_snapshot: AtomicBool,
    /// Notified when a snapshot should be taken.
    pub snapshot_wanted: Arc<Notify>,
}

impl LogRoom {
    pub fn new(files: Arc<dyn Files>, dir: PathBuf, reserve_bytes: u64) -> LogRoom {
        LogRoom {
            files,
            dir,
            reserve_bytes,
            now: watch::Sender::new(DiskRoom::Ample),
            is_stopping: AtomicBool::new(false),
            given_up: watch::Sender::new(0),
            owes_snapshot: AtomicBool::new(false),
            snapshot_wanted: Arc::new(Notify::new()),
        }
    }

    pub fn now(&self) -> DiskRoom {
        *self.now.borrow()
    }

    pub fn watched(&self) -> watch::Receiver<DiskRoom> {
        self.now.subscribe()
    }

    /// From now on a full disk is a failure: nobody waits for room any more.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Before the same write is tried again: gives up the reserve, or waits if there is none. False: it is not tried again.
    pub fn make(&self, error: &io::Error) -> bool {
        if self.give_up_reserve() {
            tracing::error!(
                dir = %self.dir.display(), %error,
                "the disk is full: changes are refused until there is room, but for jobs that end or are cancelled"
            );
            self.now.send_replace(DiskRoom::Reserve);
            return true;
        }
        if self.is_stopping() {
            return false;
        }
        if self.now.send_replace(DiskRoom::None) != DiskRoom::None {
            tracing::error!(dir = %self.dir.display(), %error, "the disk is full, and so is the reserve: nothing is changed");
        }
        std::thread::sleep(PAUSE);
        true
    }

    /// Whether there was one.
    pub fn give_up_reserve(&self) -> bool {
        self.files.remove(&self.dir.join(RESERVE)).is_ok()
    }

    /// Resolves when nothing could be written for a while.
    pub async fn gone(&self) {
        let mut now = self.watched();
        loop {
            // The sender lives as long as this.
            let _ = now.wait_for(|room| *room == DiskRoom::None).await;
            if tokio::time::timeout(WAITS_MAX, now.wait_for(|room| *room != DiskRoom::None)).await.is_err() {
                return;
            }
        }
    }

    /// Something was written.
    pub fn written(&self) {
        if self.now() == DiskRoom::None {
            self.now.send_replace(DiskRoom::Reserve);
        }
    }

    /// Makes the reserve, if it is not there; then there is ample room.
    pub fn restore(&self) {
        let is_back = match self.make_reserve() {
            Ok(()) => true,
            Err(error) if is_full(&error) => false,
            Err(error) => {
                tracing::warn!(dir = %self.dir.display(), %error, "the log has no reserve for a full disk");
                true
            }
        };
        let now = if is_back { DiskRoom::Ample } else { DiskRoom::Reserve };
        let before = self.now.send_replace(now);
        if now == DiskRoom::Ample && before != DiskRoom::Ample {
            tracing::info!(dir = %self.dir.display(), "the disk has room again");
            if self.owes_snapshot.swap(false, Ordering::Relaxed) {
                self.snapshot_wanted.notify_one();
            }
        } else if now != DiskRoom::Ample && before == DiskRoom::Ample {
            tracing::error!(dir = %self.dir.display(), "the disk has no room for the log's reserve: changes are refused");
        }
    }

    fn make_reserve(&self) -> io::Result<()> {
        let path = self.dir.join(RESERVE);
        let is_whole = |file: Box<dyn OpenFile>| file.read_at(&mut [0], self.reserve_bytes - 1).is_ok_and(|n| n == 1);
        if self.reserve_bytes == 0 || self.files.open(&path).is_ok_and(is_whole) {
            return Ok(());
        }
        let fresh = path.with_extension(TEMPORARY);
        let made = self.files.create(&fresh).and_then(|file| {
            // More than a hole, also where holes are cheap: what the log needs is written blocks.
            for at in (0..self.reserve_bytes).step_by(CHUNK_BYTES as usize) {
                let n_bytes = CHUNK_BYTES.min(self.reserve_bytes - at) as usize;
                files::write_all(&*file, &vec![0; n_bytes], at)?;
            }
            self.files.rename(&fresh, &path)
        });
        if made.is_err() {
            let _ = self.files.remove(&fresh);
        }
        made
    }

    /// There is no room for one more file: a snapshot is taken when there is.
    pub fn owe_snapshot(&self) {
        self.owes_snapshot.store(true, Ordering::Relaxed);
    }

    /// There was no room for a snapshot: the next is tried when it is due.
    pub fn give_up_snapshot(&self) {
        self.given_up.send_modify(|count| *count += 1);
    }

    /// Changes when a snapshot is given up.
    pub fn snapshots_given_up(&self) -> watch::Receiver<u64> {
        self.given_up.subscribe()
    }
}
