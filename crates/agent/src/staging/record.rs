//! What the agent keeps of each work until its home is removed: below the pool's own root, so that it goes where the data goes.
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::codec;
use model::staging::{Direction, Home, StageResult, StageWork};
use rustix::fs::FallocateFlags;
use serde::{Deserialize, Serialize};

use super::ground;

/// What is set aside of each file. A journal that finds no more room is only shorter.
const LATER: [(&str, u64); 3] = [("new", 16 << 10), ("journal", 16 << 10), ("status", 40 << 10)];

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
        let (fresh, known) = (self.path("new"), self.path("record"));
        let bytes = codec::encode(record);
        match write_whole(&fresh, &bytes) {
            Err(error) if is_full(&error) && known.exists() => {
                let _ = fs::remove_file(&fresh);
                write_over(&known, &bytes)
            }
            other => other.and_then(|()| fs::rename(&fresh, known)),
        }
    }

    /// Room for the papers of what is brought back later: by then the job may have filled the disk to the last byte.
    pub fn set_aside(&self) {
        for (kind, bytes) in LATER {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.later(kind));
            // Without it a full disk is in the way of bringing anything back, as it was before.
            let _ = file.map(|file| rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes));
        }
    }

    /// What was set aside when the home was filled, by whichever agent, becomes papers of bringing back.
    pub fn take_over(&self, root: &str, home: &Home) {
        for filled in Papers::all(root, home) {
            for (kind, _) in LATER {
                if !self.path(kind).exists() {
                    let _ = fs::rename(filled.later(kind), self.path(kind));
                }
            }
        }
    }

    fn later(&self, kind: &str) -> PathBuf {
        self.path(&format!("later-{kind}"))
    }

    /// For reading how far a mover is.
    pub fn status(&self) -> Option<mover::Status> {
        mover::read_status(&File::open(self.path("status")).ok()?)
    }

    pub fn journal(&self) -> io::Result<File> {
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(self.path("journal"))
    }

    /// For reading what was moved; none is made.
    pub fn old_journal(&self) -> io::Result<File> {
        File::open(self.path("journal"))
    }

    /// Is a mover at it? It holds the lock of its journal as long as it lives.
    pub fn has_mover(&self) -> bool {
        let Ok(journal) = self.old_journal() else { return false };
        use rustix::fs::{FlockOperation, flock};
        flock(&journal, FlockOperation::NonBlockingLockShared)
            .is_err_and(|errno| errno == rustix::io::Errno::WOULDBLOCK)
    }

    /// What a new mover writes in.
    pub fn files(&self) -> io::Result<mover::Files> {
        let status = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.path("status"))?;
        // An old mover's status would be taken for its own. Cut off, its room might be another's at once.
        if status.metadata()?.len() > 0 && status.write_all_at(&[0; mover::STATUS_HEAD_BYTES], 0).is_err() {
            status.set_len(0)?;
        }
        let scratch = mover::scratch_in(&self.dir)?;
        Ok(mover::Files { journal: self.journal()?, status: Some(status), scratch, peer: None })
    }

    pub fn remove(&self) {
        for path in self.paths() {
            let _ = fs::remove_file(path);
        }
    }

    /// What they take on the disk.
    pub fn used_bytes(&self) -> u64 {
        self.paths().filter_map(|path| fs::metadata(path).ok()).map(|stat| stat.blocks() * 512).sum()
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let own = ["record", "new", "journal", "status"].map(|kind| self.path(kind));
        own.into_iter().chain(LATER.map(|(kind, _)| self.later(kind)))
    }
}

/// Without losing the room that the file has already.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all_at(bytes, 0)?;
    if file.metadata()?.len() > bytes.len() as u64 {
        file.set_len(bytes.len() as u64)?;
    }
    file.sync_data()
}

/// The room of what it replaces is all that there is. What finds no room there either leaves it as it was.
fn write_over(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let before = fs::read(path)?;
    write_whole(path, bytes).inspect_err(|_| {
        let _ = write_whole(path, &before);
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool on a disk of 1 MiB; none: only root can mount.
    fn small_pool(dir: &Path) -> Option<String> {
        fs::create_dir_all(dir).unwrap();
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=1m,mode=0755", "none"]).arg(dir).output();
        if !mounted.is_ok_and(|mounted| mounted.status.success()) {
            eprintln!("SKIPPED: only root can make a small file system");
            return None;
        }
        fs::create_dir(dir.join(ground::RECORDS)).unwrap();
        Some(dir.display().to_string())
    }

    #[test]
    fn a_full_disk_takes_no_record_away() {
        let dir = std::env::temp_dir().join(format!("spur-record-{}", std::process::id()));
        let Some(root) = small_pool(&dir) else { return };
        let home = Home::Persistent { name: "library".into() };
        let papers = Papers::new(&root, &home, "n1", Direction::In);
        let record = |seconds: u64, n_bytes: usize| Record {
            work: StageWork { home: Some(home.clone()), work_dir: "x".repeat(n_bytes), ..StageWork::default() },
            started_secs: seconds,
            ..Record::default()
        };
        papers.write(&record(1, 100)).unwrap();
        fs::write(dir.join("ballast"), vec![7; 2 << 20]).unwrap_err();
        papers.write(&record(2, 50)).expect("there is room in the place of the first");
        papers.write(&record(3, 9000)).expect_err("there is no room for that");
        assert_eq!(papers.read().map(|record| record.started_secs), Some(2));
        papers.write(&record(4, 100)).expect("and still there is");
        assert_eq!(Papers::all(&root, &home).len(), 1);
        assert_eq!(papers.read().map(|record| record.started_secs), Some(4));
        assert!(std::process::Command::new("umount").arg("-l").arg(&dir).status().unwrap().success());
        fs::remove_dir(&dir).unwrap();
    }

    /// Of a shared pool another agent may be asked to bring the data back.
    #[test]
    fn whoever_brings_the_data_back_has_the_room_that_was_set_aside() {
        let root = std::env::temp_dir().join(format!("spur-aside-{}", std::process::id()));
        fs::create_dir_all(root.join(ground::RECORDS)).unwrap();
        let text = root.display().to_string();
        let home = Home::Persistent { name: "library".into() };
        let filled = Papers::new(&text, &home, "n1", Direction::In);
        filled.set_aside();
        let work = StageWork { home: Some(home.clone()), ..StageWork::default() };
        filled.write(&Record { work, ..Record::default() }).unwrap();
        let back = Papers::new(&text, &home, "n2", Direction::Out);
        back.take_over(&text, &home);
        for (kind, _) in LATER {
            assert!(back.path(kind).exists() && !filled.later(kind).exists(), "{kind}");
        }
        filled.remove();
        back.remove();
        assert_eq!(fs::read_dir(root.join(ground::RECORDS)).unwrap().count(), 0, "nothing is left of either");
        fs::remove_dir_all(&root).unwrap();
    }
}
