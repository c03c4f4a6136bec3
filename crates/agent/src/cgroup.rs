//! Control groups of version 2, used for membership, killing and freezing only; no controller need be there.
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::birth::{self, DescriptorTable};
use crate::{bounds, sys};

/// The directory for the runs of one agent, if this process may make cgroups: under the root of the hierarchy for root, so
/// that runs outlive a service's cgroup; under its own for anybody else.
pub fn find_parent(name: &str) -> Option<PathBuf> {
    let mount = version_2_mount()?;
    let base = if sys::own_uid() == 0 { mount } else { mount.join(own_path()?) };
    let parent = base.join(name);
    match fs::create_dir(&parent) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => return None,
    }
    bounds::enable(&base, &parent);
    // A directory without the kernel's files is no cgroup.
    let can_kill = fs::OpenOptions::new().write(true).open(parent.join("cgroup.kill")).is_ok();
    (can_kill && can_bear(&parent)).then_some(parent)
}

/// Whether processes can be born into cgroups made here, and live. They die at once when this process's own cgroup was ever killed.
fn can_bear(parent: &Path) -> bool {
    let Ok(cgroup) = Cgroup::create(parent, "trial") else { return false };
    // SAFETY: the child only ends.
    let born = unsafe { birth::start_inside(&mut || 0, cgroup.directory(), DescriptorTable::Own) };
    let Some(Ok(pid)) = born else { return false };
    let mut status = -1;
    // SAFETY: `status` is valid, and the child is ours.
    let is_over = unsafe { libc::waitpid(pid, &mut status, 0) } == pid;
    let _ = fs::remove_dir(&cgroup.path);
    is_over && status == 0
}

fn version_2_mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut points = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (point, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(point.replace("\\040", " ")))
    });
    points.next()
}

fn own_path() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(PathBuf::from(path.trim_start_matches('/')))
}

/// One run's cgroup. They are used again by later runs: making and removing them is slow, and serialised by the kernel.
pub struct Cgroup {
    path: PathBuf,
    directory: File,
    /// Has been killed, and must not be used again: Linux (seen on 6.18) then kills whatever is born into it from elsewhere.
    is_spoiled: Cell<bool>,
}

impl Cgroup {
    pub fn create(parent: &Path, name: &str) -> io::Result<Self> {
        match Cgroup::open(parent, name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(parent.join(name))?;
                Cgroup::open(parent, name)
            }
            other => other,
        }
    }

    pub fn open(parent: &Path, name: &str) -> io::Result<Self> {
        let path = parent.join(name);
        let directory = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_PATH).open(&path)?;
        Ok(Cgroup { path, directory, is_spoiled: Cell::new(false) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// SIGKILL to every process in it, also those born meanwhile.
    pub fn kill(&self) {
        self.is_spoiled.set(true);
        let _ = self.put("cgroup.kill", "1");
    }

    pub fn freeze(&self) {
        let _ = self.put("cgroup.freeze", "1");
    }

    /// Nothing in it runs any more.
    pub fn is_frozen(&self) -> bool {
        fs::read_to_string(self.path.join("cgroup.events")).is_ok_and(|events| events.contains("frozen 1"))
    }

    pub fn thaw(&self) {
        let _ = self.put("cgroup.freeze", "0");
    }

    /// All processes, also those in cgroups that they made themselves.
    pub fn processes(&self) -> Vec<i32> {
        let mut pids = Vec::new();
        collect(&self.path, &mut pids);
        pids
    }

    /// Neither processes in it, nor cgroups that they made; ready for the next run.
    pub fn is_empty(&self) -> bool {
        let Ok(events) = fs::read_to_string(self.path.join("cgroup.events")) else { return true };
        if !events.contains("populated 0") {
            return false;
        }
        // Links of a directory: itself, its name, and one for each directory in it.
        if fs::metadata(&self.path).is_ok_and(|metadata| std::os::unix::fs::MetadataExt::nlink(&metadata) > 2) {
            remove_below(&self.path);
        }
        !self.is_spoiled.get() || fs::remove_dir(&self.path).is_ok()
    }

    fn put(&self, file: &str, text: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).open(self.path.join(file))?.write_all(text.as_bytes())
    }
}

/// Removes an agent's cgroups, as far as they are empty.
pub fn remove_all(parent: &Path) {
    remove_below(parent);
    let _ = fs::remove_dir(parent);
}

fn children(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flatten().filter(is_dir).map(|entry| entry.path()).collect()
}

fn collect(path: &Path, pids: &mut Vec<i32>) {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
    children(path).iter().for_each(|child| collect(child, pids));
}

fn remove_below(path: &Path) {
    for child in children(path) {
        remove_below(&child);
        let _ = fs::remove_dir(&child);
    }
}
