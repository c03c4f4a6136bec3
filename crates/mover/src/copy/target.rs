//! The new file while it is being written: under a name of its own, or straight away where nobody looks.
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::{Errno, Result};

const NAME_MAX_BYTES: usize = 255;

pub struct Target {
    directory: Arc<OwnedFd>,
    name: Vec<u8>,
    part: Option<Vec<u8>>,
    pub fd: OwnedFd,
    is_kept: bool,
}

/// `.name.spurbb-tag.part`, or a shorter one.
pub fn part_name(name: &[u8], tag: &str) -> Vec<u8> {
    let whole = [b".", name, b".spurbb-", tag.as_bytes(), b".part"].concat();
    if whole.len() <= NAME_MAX_BYTES {
        return whole;
    }
    format!(".{:016x}.spurbb-{tag}.part", xxhash_rust::xxh3::xxh3_64(name)).into_bytes()
}

/// What `part_name` ends in.
pub fn part_ending(tag: &str) -> Vec<u8> {
    format!(".spurbb-{tag}.part").into_bytes()
}

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
const NEW: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Target {
    /// Straight under its name if nobody looks there and it is new; else under another until it is whole.
    pub fn create(directory: &Arc<OwnedFd>, name: &[u8], tag: &str, is_unread: bool) -> Result<Self> {
        if is_unread {
            match fs::openat(directory, OsStr::from_bytes(name), NEW, PRIVATE) {
                Ok(fd) => return Ok(Target::new(directory, name, None, fd)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        let part = part_name(name, tag);
        let path = OsStr::from_bytes(&part);
        let fd = match fs::openat(directory, path, NEW, PRIVATE) {
            // Of a mover that was killed.
            Err(Errno::EXIST) => {
                fs::unlinkat(directory, path, AtFlags::empty())?;
                fs::openat(directory, path, NEW, PRIVATE)?
            }
            other => other?,
        };
        Ok(Target::new(directory, name, Some(part), fd))
    }

    /// Goes on with the part of a mover that was killed; None if there is none.
    pub fn resume(directory: &Arc<OwnedFd>, name: &[u8], tag: &str) -> Option<Self> {
        let part = part_name(name, tag);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = fs::openat(directory, OsStr::from_bytes(&part), flags, Mode::empty()).ok()?;
        let stat = fs::fstat(&fd).ok()?;
        let is_ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
        is_ours.then(|| Target::new(directory, name, Some(part), fd))
    }

    fn new(directory: &Arc<OwnedFd>, name: &[u8], part: Option<Vec<u8>>, fd: OwnedFd) -> Self {
        Target { directory: directory.clone(), name: name.to_vec(), part, fd, is_kept: false }
    }

    /// Gives it the mode and time of the source, and its name.
    pub fn commit(&mut self, source: &Stat) -> Result<()> {
        self.finish(source.st_mode & 0o777, source.st_mtime, source.st_mtime_nsec as u32)
    }

    pub fn finish(&mut self, mode: u32, mtime_secs: i64, mtime_nanos: u32) -> Result<()> {
        fs::fchmod(&self.fd, Mode::from_raw_mode(mode))?;
        fs::futimens(&self.fd, &times(mtime_secs, mtime_nanos))?;
        if let Some(part) = &self.part {
            // Another mover of the same errand, whose agent was given up, may have begun it anew under our feet.
            if !self.is_named(part) {
                return Err(Errno::AGAIN);
            }
            let (part, name) = (OsStr::from_bytes(part), OsStr::from_bytes(&self.name));
            fs::renameat(&self.directory, part, &self.directory, name)?;
        }
        self.is_kept = true;
        Ok(())
    }
}

impl Target {
    /// Whether this name is still that of our file.
    fn is_named(&self, name: &[u8]) -> bool {
        let there = fs::statat(&self.directory, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
        let ours = fs::fstat(&self.fd);
        matches!((there, ours), (Ok(there), Ok(ours)) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino))
    }

    /// Unfinished, for whoever goes on with it.
    pub fn leave(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_kept {
            let name = self.part.as_deref().unwrap_or(&self.name);
            // What another mover has put there is not ours to remove.
            if !self.is_named(name) {
                return;
            }
            let _ = fs::unlinkat(&self.directory, OsStr::from_bytes(name), AtFlags::empty());
        }
    }
}

pub fn times(mtime_secs: i64, mtime_nanos: u32) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: mtime_secs, tv_nsec: mtime_nanos as _ },
    }
}

/// A link is made whole; one that is there is replaced.
pub fn make_link(directory: impl AsFd, name: &[u8], text: &OsStr, tag: &str, source: &Stat) -> Result<()> {
    make_link_at(directory, name, text, tag, source.st_mtime, source.st_mtime_nsec as u32)
}

pub fn make_link_at(
    directory: impl AsFd,
    name: &[u8],
    text: &OsStr,
    tag: &str,
    mtime_secs: i64,
    mtime_nanos: u32,
) -> Result<()> {
    let directory = directory.as_fd();
    let path = OsStr::from_bytes(name);
    let part = part_name(name, tag);
    let part = OsStr::from_bytes(&part);
    let is_new = match fs::symlinkat(text, directory, path) {
        Ok(()) => true,
        Err(Errno::EXIST) => {
            let _ = fs::unlinkat(directory, part, AtFlags::empty());
            fs::symlinkat(text, directory, part)?;
            false
        }
        Err(errno) => return Err(errno),
    };
    let made = if is_new { path } else { part };
    let stamp = times(mtime_secs, mtime_nanos);
    fs::utimensat(directory, made, &stamp, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_new && let Err(errno) = fs::renameat(directory, part, directory, path) {
        let _ = fs::unlinkat(directory, part, AtFlags::empty());
        return Err(errno);
    }
    Ok(())
}
