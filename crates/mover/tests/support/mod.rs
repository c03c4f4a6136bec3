//! Directories that go with their test, and how one errand is run.
#![allow(dead_code)]
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mover::{Fence, Files, Kind, Order, Outcome, Place, Status, Transfer};

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mover-test-{}-{next}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn files(&self) -> Files {
        let open =
            |name| File::options().read(true).write(true).create(true).truncate(false).open(self.path(name)).unwrap();
        let journal = File::options().read(true).append(true).create(true).open(self.path("journal")).unwrap();
        Files { journal, status: Some(open("status")), scratch: mover::scratch_in(&self.0).unwrap(), peer: None }
    }

    /// In a process of its own, confined as an agent's.
    pub fn run(&self, order: &Order) -> Status {
        let executable = Path::new(env!("CARGO_BIN_EXE_mover-test"));
        let mut child = mover::process::start(executable, order, self.files(), false, None).unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it takes too long");
            std::thread::sleep(Duration::from_millis(2));
        }
        mover::read_status(&File::open(self.path("status")).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::process::Command::new("chmod").arg("-R").arg("u+rwx").arg(&self.0).status();
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file system that is soon full.
pub struct Tmpfs(PathBuf);

impl Tmpfs {
    /// None: only root can mount.
    pub fn mount(path: &Path, size: &str) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Tmpfs(path.to_owned()))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// In a process of its own, which can be another user's.
pub fn run_apart(folder: &Folder, order: &Order) -> Outcome {
    outcome(folder.run(order))
}

pub fn outcome(status: Status) -> Outcome {
    status.outcome.expect("an errand that is over says how it ended")
}

/// One transfer between two outside places.
pub fn order(kind: Kind, source: &str, destination: &str) -> Order {
    let transfer = Transfer {
        kind,
        source: Place::outside(source),
        destination: Place::outside(destination),
        ..Transfer::default()
    };
    Order { transfers: vec![transfer], retry_pause_millis: 1, ..Order::default() }
}

/// From outside into a fence.
pub fn order_in(kind: Kind, source: &str, fence: &str, inside: &str) -> Order {
    let mut order = order(kind, source, "");
    order.fences = vec![Fence { path: fence.to_owned(), is_unread: true, ..Fence::default() }];
    order.transfers[0].destination = Place::inside(0, inside);
    order
}

/// From a fence to the outside.
pub fn order_out(kind: Kind, fence: &str, inside: &str, destination: &str) -> Order {
    let mut order = order(kind, "", destination);
    order.fences = vec![Fence { path: fence.to_owned(), ..Fence::default() }];
    order.transfers[0].source = Place::inside(0, inside);
    order
}

/// Bytes that are nowhere alike.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Every path below, with kind, mode, time and content.
pub fn listing(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    collect(root, root, &mut found);
    found.sort();
    found
}

fn collect(root: &Path, at: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let what = if metadata.is_symlink() {
            format!("link to {}", fs::read_link(&path).unwrap().display())
        } else if metadata.is_dir() {
            collect(root, &path, found);
            "directory".to_owned()
        } else {
            format!(
                "{:x}",
                fs::read(&path).unwrap().iter().fold(7u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte))
            )
        };
        let mode = if metadata.is_symlink() { 0 } else { metadata.mode() & 0o777 };
        found.push(format!("{name} {what} {mode:o} {}.{}", metadata.mtime(), metadata.mtime_nsec()));
    }
}
