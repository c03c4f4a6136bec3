//! What the agent keeps of each work until its home is removed: below the pool's own root, so that it goes where the data goes.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::codec;
use model::staging::{Direction, Home, StageResult, StageWork};
use serde::{Deserialize, Serialize};

use super::ground;

/// One work and how it ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub work: StageWork,
    pub started_secs: u64,
    pub result: Option<StageResult>,
    /// The machine's life in which it ended.
    pub boot: String,
    /// The directory that was made for it.
    pub mark: Option<ground::Mark>,
    pub node: String,
}

/// Where the files of one home's work in one direction are, for one agent: movers of a shared pool do not share them.
#[derive(Clone, Debug)]
pub struct Papers {
    dir: PathBuf,
    stem: String,
}

impl Papers {
    pub fn new(root: &str, home: &Home, node: &str, direction: Direction) -> Self {
        let direction = match direction {
            Direction::In => "in",
            Direction::Out => "out",
        };
        let stem = format!("{}.{node}.{direction}", ground::key(home));
        Papers { dir: Path::new(root).join(ground::RECORDS), stem }
    }

    /// Of whichever agents have worked for the home, up to this attempt, and are at it no more.
    pub fn left(root: &str, home: &Home, attempt: u32) -> Vec<Papers> {
        let is_old = |papers: &Papers| papers.read().is_some_and(|record| record.work.attempt <= attempt);
        Papers::all(root, home).into_iter().filter(|papers| is_old(papers) && !papers.has_mover()).collect()
    }

    /// Of whichever agents have worked for the home.
    pub fn all(root: &str, home: &Home) -> Vec<Papers> {
        let dir = Path::new(root).join(ground::RECORDS);
        let start = format!("{}.", ground::key(home));
        let names =
            fs::read_dir(&dir).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let stems = names
            .filter_map(|name| name.strip_suffix(".record").filter(|stem| stem.starts_with(&start)).map(str::to_owned));
        let papers = stems.map(|stem| Papers { dir: dir.clone(), stem });
        let is_its = |record: Record| record.work.home.as_ref() == Some(home);
        papers.filter(|papers| papers.read().is_some_and(is_its)).collect()
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.dir.join(format!("{}.{kind}", self.stem))
    }

    pub fn read(&self) -> Option<Record> {
        codec::decode(&fs::read(self.path("record")).ok()?).ok()
    }

    pub fn write(&self, record: &Record) -> io::Result<()> {
        let fresh = self.path("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&codec::encode(record))?;
        file.sync_data()?;
        fs::rename(&fresh, self.path("record"))
    }

    /// For reading how far a mover is.
    pub fn status(&self) -> Option<mover::Status> {
        mover::read_status(&File::open(self.path("status")).ok()?)
    }

    pub fn journal(&self) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(self.path("journal"))
    }

    /// Is a mover at it? It holds the lock of its journal as long as it lives.
    pub fn has_mover(&self) -> bool {
        let Ok(journal) = File::open(self.path("journal")) else { return false };
        use rustix::fs::{FlockOperation, flock};
        flock(&journal, FlockOperation::NonBlockingLockShared)
            .is_err_and(|errno| errno == rustix::io::Errno::WOULDBLOCK)
    }

    /// What a new mover writes in; an old mover's status would be taken for its own.
    pub fn files(&self) -> io::Result<mover::Files> {
        let status = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.path("status"))?;
        let scratch = mover::scratch_in(&self.dir)?;
        Ok(mover::Files { journal: self.journal()?, status: Some(status), scratch, peer: None })
    }

    pub fn remove(&self) {
        for kind in ["record", "new", "journal", "status"] {
            let _ = fs::remove_file(self.path(kind));
        }
    }
}

pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
