//! What must survive the agent: a record of each run, from before its launch until its end has been acknowledged.
//!
//! ```text
//!  DIR/lock                 held by the agent that uses DIR
//!  DIR/killed               runs that must not be launched any more
//!  DIR/runs/3               frames: Launched, Born, Result; locked by the supervisor while it lives; empty when free
//!  DIR/runs/3.sock          where the supervisor listens once its agent is gone
//!  DIR/slot-3/slurm_script  of the run that has slot 3
//! ```
//! Each run has a slot, and what belongs to a slot is used again by later runs: making and removing files and directories is
//! among the dearest things a launch could do (ext4 shuns inodes that were freed in the last seconds, and searches on).
//!
//! Every change is one write, so that a kill at any moment leaves whole frames; nothing is synced: a power loss loses the
//! processes too, and the boot id tells.
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::command::Exited;
use serde::{Deserialize, Serialize};

use crate::frame::{self, Incoming};
use crate::protocol::RunId;
use crate::sys;

#[derive(Debug, Serialize, Deserialize)]
pub enum Mark {
    Launched { run: RunId, uid: u32, boot: String },
    Born { pid: u32 },
    Result(Exited),
}

/// What a record file says.
#[derive(Debug)]
pub struct Record {
    pub run: RunId,
    pub uid: u32,
    pub boot: String,
    pub slot: u32,
    pub pid: Option<u32>,
    pub result: Option<Exited>,
}

/// An agent that was killed holds its lock until the last of its threads, and of the children it was just making, is gone.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

pub struct Spool {
    dir: PathBuf,
    runs: PathBuf,
    pub boot: String,
    _lock: File,
}

impl Spool {
    /// Takes the directory for this process; fails when another agent has it.
    pub fn open(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
        let dir = dir.canonicalize()?;
        // Users must reach their scripts.
        fs::set_permissions(&dir, Permissions::from_mode(0o755))?;
        let runs = dir.join("runs");
        make_runs(&runs)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(dir.join("lock"))?;
        let end = Instant::now() + PREDECESSOR_PATIENCE;
        while !sys::try_lock(lock.as_fd()) {
            if Instant::now() >= end {
                let why = format!("another agent uses {}", dir.display());
                return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Spool { dir, runs, boot, _lock: lock })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The record of a new run, locked. `WouldBlock`: a supervisor that this agent does not know still has the slot.
    pub fn create(&self, slot: u32, run: RunId, uid: u32) -> io::Result<File> {
        let path = self.record_path(slot);
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        let mut file = match open() {
            // Somebody has cleaned up too much.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::error!(dir = %self.dir.display(), "the spool is gone; it is made anew");
                DirBuilder::new().recursive(true).mode(0o755).create(&self.dir)?;
                make_runs(&self.runs)?;
                open()?
            }
            opened => opened?,
        };
        if !sys::try_lock(file.as_fd()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mark = frame::encode(&Mark::Launched { run, uid, boot: self.boot.clone() });
        if let Err(error) = file.write_all(&mark) {
            let _ = file.set_len(0);
            return Err(error);
        }
        Ok(file)
    }

    /// Adds the result to a record whose supervisor is gone.
    pub fn conclude(&self, slot: u32, exited: &Exited) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.record_path(slot))?;
        file.write_all(&frame::encode(&Mark::Result(exited.clone())))
    }

    pub fn read(&self, slot: u32) -> io::Result<Option<Record>> {
        read_record(slot, &self.record_path(slot))
    }

    /// Whether somebody has the run in hand: a supervisor, or a launch that is under way to one.
    pub fn is_supervised(&self, slot: u32) -> bool {
        File::open(self.record_path(slot)).is_ok_and(|file| !sys::try_lock(file.as_fd()))
    }

    /// Empties the record.
    pub fn forget(&self, slot: u32) {
        let emptied = OpenOptions::new().write(true).truncate(true).open(self.record_path(slot));
        if let Err(error) = emptied {
            tracing::error!(slot, %error, "cannot empty a record");
        }
    }

    pub fn forget_socket(&self, slot: u32) {
        let _ = fs::remove_file(self.runs.join(socket_name(slot)));
    }

    /// All records that say something.
    pub fn records(&self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        for slot in self.slots()? {
            match self.read(slot) {
                Ok(Some(record)) => records.push(record),
                // Of a launch that was never ordered from anybody, if it is not simply free.
                Ok(None) => self.forget(slot),
                Err(error) => tracing::error!(slot, %error, "unreadable record"),
            }
        }
        records.sort_by_key(|record| record.run);
        Ok(records)
    }

    /// Every slot that was ever used.
    pub fn slots(&self) -> io::Result<Vec<u32>> {
        let mut slots = Vec::new();
        for entry in fs::read_dir(&self.runs)? {
            slots.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(slots)
    }

    fn record_path(&self, slot: u32) -> PathBuf {
        self.runs.join(slot.to_string())
    }

    pub fn runs_dir(&self) -> &Path {
        &self.runs
    }
}

fn make_runs(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

pub fn socket_name(slot: u32) -> String {
    format!("{slot}.sock")
}

/// What a slot's directory and cgroup are called.
pub fn slot_name(slot: u32) -> String {
    format!("slot-{slot}")
}

/// Where the script of the run in this slot is.
pub fn script_path(spool_dir: &Path, slot: u32) -> PathBuf {
    spool_dir.join(slot_name(slot)).join("slurm_script")
}

/// None if not even its first frame is whole: the agent died while it wrote it, so nothing was launched.
fn read_record(slot: u32, path: &Path) -> io::Result<Option<Record>> {
    let bytes = fs::read(path)?;
    let mut incoming = Incoming::default();
    incoming.push(&bytes);
    let mut record = None;
    while let Ok(Some(mark)) = incoming.take::<Mark>() {
        match (mark, &mut record) {
            (Mark::Launched { run, uid, boot }, None) => {
                record = Some(Record { run, uid, boot, slot, pid: None, result: None });
            }
            (Mark::Born { pid }, Some(record)) => record.pid = Some(pid),
            (Mark::Result(exited), Some(record)) => record.result = Some(exited),
            (Mark::Launched { .. }, Some(_)) | (_, None) => break,
        }
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_an_agent_that_is_just_dying_is_waited_for() {
        let dir = std::env::temp_dir().join(format!("spur-spool-{}", std::process::id()));
        let dying = Spool::open(&dir).unwrap();
        let gone = std::thread::spawn(move || {
            std::thread::sleep(20 * LOCK_PAUSE);
            drop(dying);
        });
        Spool::open(&dir).unwrap();
        gone.join().unwrap();
        fs::remove_dir_all(dir).unwrap();
    }
}
