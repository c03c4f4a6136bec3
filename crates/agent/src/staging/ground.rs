//! The agent's side of a pool: its root, the homes in it, and their end. Every step is by descriptor, follows no link, and leaves
//! no file system.
use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use model::JobId;
use model::pool::{Pool, PoolReport};
use model::staging::{Access, Home};
use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use super::{quota, removal};
use crate::sys;

pub const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PASSED_THROUGH: Mode = Mode::from_bits_retain(0o711);
pub const OWN: Mode = Mode::from_bits_retain(0o700);
pub const RECORDS: &str = ".spur";
const TRASH: &str = ".trash";

/// A root that nobody but the agent can change, with the directories it needs.
pub fn open_root(root: &str) -> std::result::Result<OwnedFd, String> {
    let path = Path::new(root);
    if !path.is_absolute() {
        return Err(format!("{root} is not an absolute path"));
    }
    let said = |errno: Errno| format!("{root}: {}", words(errno));
    if fs::lstat(path).is_err_and(|errno| errno == Errno::NOENT) {
        std::fs::create_dir_all(path).map_err(|error| format!("{root}: {error}"))?;
        fs::chmod(path, PASSED_THROUGH).map_err(said)?;
    }
    let fd = fs::openat(CWD, path, DIRECTORY, Mode::empty()).map_err(|errno| match errno {
        Errno::LOOP | Errno::NOTDIR => format!("{root} is not a directory"),
        errno => said(errno),
    })?;
    let stat = fs::fstat(&fd).map_err(said)?;
    if stat.st_uid != sys::own_uid() {
        return Err(format!("{root} belongs to uid {}, not to the agent's user", stat.st_uid));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(format!("{root} can be written by others (mode {:o})", stat.st_mode & 0o7777));
    }
    for (name, mode) in [("jobs", PASSED_THROUGH), ("persistent", PASSED_THROUGH), (RECORDS, OWN), (TRASH, OWN)] {
        make_own(&fd, name, mode).map_err(said)?;
    }
    Ok(fd)
}

fn make_own(parent: impl AsFd, name: &str, mode: Mode) -> Result<OwnedFd> {
    let is_new = match fs::mkdirat(&parent, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let fd = fs::openat(parent, name, DIRECTORY, Mode::empty())?;
    if is_new {
        // The umask has taken something away.
        fs::fchmod(&fd, mode)?;
    } else if fs::fstat(&fd)?.st_uid != sys::own_uid() {
        return Err(Errno::PERM);
    }
    Ok(fd)
}

/// Names in paths are what they should be, whatever an order says.
fn check_name(home: &Home) -> std::result::Result<(), String> {
    let Home::Persistent { name } = home else { return Ok(()) };
    let is_good = name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|each| each.is_ascii_alphanumeric() || "._-".contains(each));
    if is_good { Ok(()) } else { Err(format!("{name:?} is not the name of a buffer")) }
}

/// The parent directory below the root, what it holds, and the home's own name.
fn parts(home: &Home) -> (&'static str, Option<String>, String) {
    match home {
        Home::Job { job, epoch, access } => ("jobs", Some(format!("{job}.{epoch}")), access_word(*access).to_owned()),
        Home::Persistent { name } => ("persistent", None, name.clone()),
    }
}

fn access_word(access: Access) -> &'static str {
    match access {
        Access::Shared => "shared",
        Access::Private => "private",
    }
}

/// For the names of records.
pub fn key(home: &Home) -> String {
    match home {
        Home::Job { job, epoch, access } => format!("job-{job}.{epoch}-{}", access_word(*access)),
        Home::Persistent { name } => format!("persistent-{name}"),
    }
}

/// Which directory a home is, so that nobody takes another one for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    device: u64,
    inode: u64,
}

/// None: there is no such home.
pub fn mark(root: &str, home: &Home) -> Option<Mark> {
    let stat = fs::fstat(open_home(root, home).ok()?).ok()?;
    Some(Mark { device: stat.st_dev, inode: stat.st_ino })
}

impl Mark {
    /// Devices have other numbers on other machines, and in another life of this one.
    pub fn is_same(self, other: Mark, in_same_life: bool) -> bool {
        self.inode == other.inode && (self.device == other.device || !in_same_life)
    }
}

/// The data directory, owned by the user. True: the kernel keeps it below its capacity.
pub fn make_home(root: &str, home: &Home, uid: u32, gid: u32, bytes: u64) -> std::result::Result<bool, String> {
    check_name(home)?;
    let root_fd = open_root(root)?;
    let path = home.directory(root);
    let said = |errno: Errno| format!("cannot make {path}: {}", words(errno));
    let (above, middle, name) = parts(home);
    let mut parent = fs::openat(&root_fd, above, DIRECTORY, Mode::empty()).map_err(said)?;
    if let Some(middle) = middle {
        parent = make_own(&parent, &middle, PASSED_THROUGH).map_err(said)?;
    }
    match fs::mkdirat(&parent, name.as_str(), OWN) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(said(errno)),
    }
    let fd = fs::openat(&parent, name.as_str(), DIRECTORY, Mode::empty()).map_err(said)?;
    let stat = fs::fstat(&fd).map_err(said)?;
    if stat.st_uid != uid && stat.st_uid != sys::own_uid() {
        return Err(format!("{path} belongs to uid {}", stat.st_uid));
    }
    let is_limited = bytes > 0
        && quota::limit(&fd, &path, bytes).unwrap_or_else(|error| {
            tracing::warn!(path, %error, "a buffer has no quota: it is only measured");
            false
        });
    if stat.st_uid != uid {
        fs::fchown(&fd, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(said)?;
    }
    Ok(is_limited)
}

pub fn has_home(root: &str, home: &Home) -> bool {
    check_name(home).is_ok() && open_home(root, home).is_ok()
}

fn open_home(root: &str, home: &Home) -> Result<OwnedFd> {
    let (parent, name) = open_parent(root, home)?;
    fs::openat(parent, name.as_str(), DIRECTORY, Mode::empty())
}

fn open_parent(root: &str, home: &Home) -> Result<(OwnedFd, String)> {
    let (above, middle, name) = parts(home);
    let mut parent = fs::openat(CWD, root, DIRECTORY, Mode::empty())?;
    for step in [Some(above.to_owned()), middle].into_iter().flatten() {
        parent = fs::openat(&parent, step.as_str(), DIRECTORY, Mode::empty())?;
    }
    Ok((parent, name))
}

/// Renamed out of the way first, so that the name is free at once; returns when nothing of it is left.
pub fn remove_home(root: &str, home: &Home) -> std::result::Result<(), String> {
    check_name(home)?;
    let path = home.directory(root);
    let said = |errno: Errno| format!("cannot remove {path}: {}", obstacle(errno));
    let trash_name = key(home);
    regain(root, home);
    match open_parent(root, home) {
        Ok((parent, name)) => {
            let root_fd = open_root(root)?;
            let trash = fs::openat(&root_fd, TRASH, DIRECTORY, Mode::empty()).map_err(said)?;
            quota::open_to_all(&trash);
            // What an earlier removal has left there goes first.
            empty(&trash, &trash_name).map_err(said)?;
            match fs::renameat(&parent, name.as_str(), &trash, trash_name.as_str()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(said(errno)),
            }
            if let (above, Some(middle), _) = parts(home) {
                let above = fs::openat(&root_fd, above, DIRECTORY, Mode::empty()).map_err(said)?;
                match fs::unlinkat(&above, middle.as_str(), AtFlags::REMOVEDIR) {
                    // The job's other home is still there.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                    Err(errno) => return Err(said(errno)),
                }
            }
        }
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(said(errno)),
    }
    let Ok(trash) = fs::openat(CWD, Path::new(root).join(TRASH), DIRECTORY, Mode::empty()) else { return Ok(()) };
    empty(&trash, &trash_name).map_err(said)
}

/// An entry of the trash, and its quota.
fn empty(trash: &OwnedFd, name: &str) -> Result<()> {
    if let Ok(old) = fs::openat(trash, name, DIRECTORY, Mode::empty()) {
        quota::forget(&old);
    }
    removal::remove(trash, name)
}

/// What is in the way of a removal.
fn obstacle(errno: Errno) -> String {
    match errno {
        Errno::XDEV | Errno::BUSY => "another file system is mounted in it".into(),
        errno => words(errno),
    }
}

/// An agent that is not root works for its own user, who may have taken away the rights that a rename needs.
fn regain(root: &str, home: &Home) {
    if sys::own_uid() == 0 {
        return;
    }
    let (above, middle, name) = parts(home);
    let mut path = Path::new(root).join(above);
    for step in middle.into_iter().chain([name]) {
        path.push(step);
        let is_locked = fs::lstat(&path).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_mode & 0o700 != 0o700
        });
        if is_locked {
            // Whatever still stands in the way is told by what is tried next.
            let _ = fs::chmod(&path, OWN);
        }
    }
}

/// Every home below a root.
pub fn homes(root: &str) -> Vec<Home> {
    let mut found = Vec::new();
    let root = Path::new(root);
    for name in directories(&root.join("jobs")) {
        let Some((job, epoch)) = name.split_once('.') else { continue };
        let (Ok(job), Ok(epoch)) = (job.parse(), epoch.parse()) else { continue };
        for access in [Access::Shared, Access::Private] {
            let home = Home::Job { job: JobId(job), epoch, access };
            if fs::lstat(root.join("jobs").join(&name).join(access_word(access))).is_ok() {
                found.push(home);
            }
        }
    }
    let named = directories(&root.join("persistent")).into_iter().map(|name| Home::Persistent { name });
    found.extend(named.filter(|home| check_name(home).is_ok()));
    found
}

fn directories(path: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flatten().filter(is_dir).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// For how long a home has been there: since it, or what holds it, was last written in, whichever is longer ago.
pub fn age(root: &str, home: &Home) -> Duration {
    let path = Path::new(root).join(home.directory(root));
    let written = |path: &Path| std::fs::symlink_metadata(path).and_then(|stat| stat.modified()).ok();
    let oldest = [Some(path.as_path()), path.parent()].into_iter().flatten().filter_map(written).min();
    oldest.and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// What a home takes on the disk. A file with several names is there once.
pub fn used_bytes(root: &str, home: &Home) -> u64 {
    open_home(root, home).map_or(0, |fd| below(fd, 0, &mut HashSet::new()))
}

fn below(directory: OwnedFd, depth: u32, linked: &mut HashSet<u64>) -> u64 {
    const DEPTH_MAX: u32 = 500;
    let Ok(entries) = Dir::read_from(&directory) else { return 0 };
    let mut total = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_directory || stat.st_nlink < 2 || linked.insert(stat.st_ino) {
            total += stat.st_blocks as u64 * 512;
        }
        if is_directory && depth < DEPTH_MAX {
            let opened = fs::openat(&directory, name, DIRECTORY, Mode::empty());
            total += opened.map_or(0, |fd| below(fd, depth + 1, linked));
        }
    }
    total
}

/// What the controller is told of a pool's file system.
pub fn report(pool: &Pool) -> PoolReport {
    let mut report = PoolReport { pool: pool.name.clone(), ..PoolReport::default() };
    match open_root(&pool.root).and_then(|fd| fs::fstatvfs(fd).map_err(words)) {
        Ok(stat) => {
            report.total_bytes = stat.f_blocks * stat.f_frsize;
            report.available_bytes = stat.f_bavail * stat.f_frsize;
        }
        Err(problem) => report.problem = problem,
    }
    report
}

pub fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_goes_whatever_rights_its_user_has_left() {
        let root = std::env::temp_dir().join(format!("spur-ground-{}", std::process::id()));
        let text = root.to_str().unwrap();
        let of_job = Home::Job { job: JobId(7), epoch: 1, access: Access::Private };
        for home in [of_job, Home::Persistent { name: "library".into() }] {
            make_home(text, &home, sys::own_uid(), 0, 0).unwrap();
            let path = std::path::PathBuf::from(home.directory(text));
            std::fs::create_dir(path.join("below")).unwrap();
            for locked in [path.join("below"), path.clone(), path.parent().unwrap().to_owned()] {
                if locked.file_name().unwrap() != "persistent" {
                    fs::chmod(&locked, Mode::empty()).unwrap();
                }
            }
            remove_home(text, &home).unwrap();
            assert!(fs::lstat(&path).is_err() && homes(text).is_empty());
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
