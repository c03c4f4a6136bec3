//! How paths are opened. Below an anchor the kernel is told to leave neither the tree nor to follow a link; a link planted by
//! a job can therefore redirect nothing.
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

use crate::order::{Fence, Place};
use crate::plan::Where;

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// The kernel takes no longer paths; longer ways are gone in several hops.
const HOP_BYTES: usize = 3500;

/// The opened fences.
pub struct Fences {
    opened: Vec<(OwnedFd, PathBuf)>,
}

impl Fences {
    pub fn open(fences: &[Fence]) -> std::result::Result<Self, (PathBuf, Errno)> {
        let open = |fence: &Fence| {
            let path = PathBuf::from(&fence.path);
            // The last name must not be a link: the one who owns the parent is trusted, the owner of the tree is not.
            let fd = fs::openat(CWD, &path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
            fd.map(|fd| (fd, path.clone())).map_err(|errno| (path, errno))
        };
        Ok(Fences { opened: fences.iter().map(open).collect::<std::result::Result<_, _>>()? })
    }

    /// The directory itself, for flushing and asking about space.
    pub fn root(&self, fence: u32) -> (&OwnedFd, &Path) {
        let (fd, path) = &self.opened[fence as usize];
        (fd, path)
    }

    pub fn directory(&self, place: &Where) -> Result<OwnedFd> {
        let anchor = self.anchor(place)?;
        if place.below.is_empty() { Ok(anchor) } else { beneath(anchor.as_fd(), &place.below) }
    }

    fn anchor(&self, place: &Where) -> Result<OwnedFd> {
        match place.fence {
            Some(fence) if place.anchor.is_empty() => beneath(self.root(fence).0.as_fd(), b"."),
            Some(fence) => beneath(self.root(fence).0.as_fd(), &place.anchor),
            None => outside(&place.anchor),
        }
    }

    /// As `directory`, but what is missing is made, for this user alone where it is inside a fence.
    pub fn directory_made(&self, place: &Where) -> Result<OwnedFd> {
        match self.directory(place) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        let anchor = match place.fence {
            Some(fence) => make_beneath(beneath(self.root(fence).0.as_fd(), b".")?, &place.anchor, Mode::RWXU)?,
            None => {
                make_outside(Path::new(OsStr::from_bytes(&place.anchor)))?;
                self.anchor(place)?
            }
        };
        make_beneath(anchor, &place.below, Mode::RWXU)
    }

    /// For people.
    pub fn path_of(&self, place: &Where, name: &[u8]) -> PathBuf {
        let mut path = match place.fence {
            Some(fence) => self.root(fence).1.join(OsStr::from_bytes(&place.anchor)),
            None => PathBuf::from(OsStr::from_bytes(&place.anchor)),
        };
        for part in [&place.below[..], name] {
            if !part.is_empty() {
                path.push(OsStr::from_bytes(part));
            }
        }
        path
    }
}

/// The directory of a path and its last name; none for one that ends in a slash or is empty.
pub fn split(place: &Place) -> (Where, Vec<u8>) {
    let bytes = place.path.as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (directory, name) = bytes.split_at(at);
    let trimmed = match directory.iter().rposition(|byte| *byte != b'/') {
        Some(last) => &directory[..=last],
        None if place.fence.is_none() && !directory.is_empty() => b"/",
        None => b"",
    };
    (Where { fence: place.fence, anchor: trimmed.to_vec(), below: Vec::new() }, name.to_vec())
}

/// All of a place as a directory.
pub fn whole(place: &Place) -> Where {
    let bytes = place.path.as_bytes();
    let trimmed = match bytes.iter().rposition(|byte| *byte != b'/') {
        Some(last) => &bytes[..=last],
        None if place.fence.is_none() => b"/",
        None => b"",
    };
    Where { fence: place.fence, anchor: trimmed.to_vec(), below: Vec::new() }
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS
}

/// Follows no link that stands for a place or an open file of a process: the mover's are not what its user means.
fn outside(anchor: &[u8]) -> Result<OwnedFd> {
    let path = OsStr::from_bytes(anchor);
    match fs::openat2(CWD, path, DIRECTORY, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => fs::openat(CWD, path, DIRECTORY, Mode::empty()),
        other => other,
    }
}

fn beneath(anchor: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    if path.len() > HOP_BYTES
        && let Some(cut) = path[..HOP_BYTES].iter().rposition(|byte| *byte == b'/')
    {
        let halfway = beneath(anchor, &path[..cut])?;
        return beneath(halfway, &path[cut + 1..]);
    }
    match fs::openat2(&anchor, OsStr::from_bytes(path), DIRECTORY, Mode::empty(), resolve()) {
        Err(Errno::NOSYS | Errno::PERM) => by_steps(anchor.as_fd(), path),
        // A rename elsewhere in the tree raced with the walk.
        Err(Errno::AGAIN) => by_steps(anchor.as_fd(), path),
        other => other,
    }
}

/// For kernels and sandboxes without openat2.
fn by_steps(anchor: impl AsFd, path: &[u8]) -> Result<OwnedFd> {
    let mut at = fs::openat(&anchor, ".", DIRECTORY, Mode::empty())?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".") {
        if name == b".." {
            return Err(Errno::XDEV);
        }
        at = fs::openat(&at, OsStr::from_bytes(name), DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map_err(is_link)?;
    }
    Ok(at)
}

/// O_NOFOLLOW with O_DIRECTORY says "not a directory" of a link.
fn is_link(errno: Errno) -> Errno {
    if errno == Errno::NOTDIR { Errno::LOOP } else { errno }
}

fn make_beneath(mut at: OwnedFd, path: &[u8], mode: Mode) -> Result<OwnedFd> {
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".") {
        at = match beneath(at.as_fd(), name) {
            Err(Errno::NOENT) => {
                match fs::mkdirat(&at, OsStr::from_bytes(name), mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno),
                }
                beneath(at.as_fd(), name)?
            }
            other => other?,
        };
    }
    Ok(at)
}

fn make_outside(path: &Path) -> Result<()> {
    match fs::mkdirat(CWD, path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).ok_or(Errno::NOENT)?;
            make_outside(parent)?;
            match fs::mkdirat(CWD, path, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
        Err(errno) => Err(errno),
    }
}

/// What a followed link leads to, within the tree of `anchor`.
pub fn open_followed(anchor: impl AsFd, path: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    fs::openat2(anchor, OsStr::from_bytes(path), flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}
