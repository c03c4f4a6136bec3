//! What must survive the agent: one record file a run, from before its launch until its end has been acknowledged.
//!
//! ```text
//!  DIR/lock                 held by the agent that uses DIR
//!  DIR/killed               runs that must not be launched any more
//!  DIR/runs/41.1.batch      frames: Launched, Born, Result; locked by the supervisor while it lives
//!  DIR/runs/41.1.batch.sock where the supervisor listens once its agent is gone
//!  DIR/slot-3/slurm_script  of the run that has this slot; the directory stays for the next
//! ```
//! Every change is one write, so that a kill at any moment leaves whole frames; nothing is synced: a power loss loses the
//! processes too, and the boot id tells.
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use model::command::Exited;
use serde::{Deserialize, Serialize};

use crate::frame::{self, Incoming};
use crate::protocol::RunId;
use crate::sys;

#[derive(Debug, Serialize, Deserialize)]
pub enum Mark {
    Launched { run: RunId, uid: u32, boot: String, slot: u32 },
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
        DirBuilder::new().recursive(true).mode(0o700).create(&runs)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(dir.join("lock"))?;
        if !sys::try_lock(lock.as_fd()) {
            let why = format!("another agent uses {}", dir.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Spool { dir, runs, boot, _lock: lock })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A new record, locked; an error if there is one already.
    pub fn create(&self, run: RunId, uid: u32, slot: u32) -> io::Result<File> {
        let mut file =
            OpenOptions::new().append(true).read(true).create_new(true).mode(0o600).open(self.record_path(run))?;
        sys::try_lock(file.as_fd());
        file.write_all(&frame::encode(&Mark::Launched { run, uid, boot: self.boot.clone(), slot }))?;
        Ok(file)
    }

    /// Adds the result to a record whose supervisor is gone.
    pub fn conclude(&self, run: RunId, exited: &Exited) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.record_path(run))?;
        file.write_all(&frame::encode(&Mark::Result(exited.clone())))
    }

    pub fn read(&self, run: RunId) -> io::Result<Option<Record>> {
        let mut file = File::open(self.record_path(run))?;
        read_record(&mut file)
    }

    /// Whether somebody has the run in hand: a supervisor, or a launch that is under way to one.
    pub fn is_supervised(&self, run: RunId) -> bool {
        File::open(self.record_path(run)).is_ok_and(|file| !sys::try_lock(file.as_fd()))
    }

    pub fn forget(&self, run: RunId) {
        let _ = fs::remove_file(self.record_path(run));
    }

    pub fn forget_socket(&self, run: RunId) {
        let _ = fs::remove_file(self.runs.join(socket_name(run)));
    }

    /// All records; unreadable ones are removed.
    pub fn records(&self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        for entry in fs::read_dir(&self.runs)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "sock") {
                continue;
            }
            match File::open(&path).and_then(|mut file| read_record(&mut file)) {
                Ok(Some(record)) => records.push(record),
                Ok(None) => {
                    tracing::warn!(path = %path.display(), "a record without content is removed");
                    let _ = fs::remove_file(&path);
                }
                Err(error) => tracing::error!(path = %path.display(), %error, "unreadable record"),
            }
        }
        records.sort_by_key(|record| record.run);
        Ok(records)
    }

    fn record_path(&self, run: RunId) -> PathBuf {
        self.runs.join(run.to_string())
    }

    pub fn runs_dir(&self) -> &Path {
        &self.runs
    }
}

pub fn socket_name(run: RunId) -> String {
    format!("{run}.sock")
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
fn read_record(file: &mut File) -> io::Result<Option<Record>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut incoming = Incoming::default();
    incoming.push(&bytes);
    let mut record = None;
    while let Ok(Some(mark)) = incoming.next::<Mark>() {
        match (mark, &mut record) {
            (Mark::Launched { run, uid, boot, slot }, None) => {
                record = Some(Record { run, uid, boot, slot, pid: None, result: None });
            }
            (Mark::Born { pid }, Some(record)) => record.pid = Some(pid),
            (Mark::Result(exited), Some(record)) => record.result = Some(exited),
            (Mark::Launched { .. }, Some(_)) | (_, None) => break,
        }
    }
    Ok(record)
}
