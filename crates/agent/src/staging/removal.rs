//! Deleting what users have left, however they have piled it up. By descriptor, no link followed, no file system left; a tree
//! that is deeper than descriptors and stacks reach is taken apart in the trash.
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{self, AtFlags, Dir, Mode};
use rustix::io::{Errno, Result};

use super::ground::{DIRECTORY, OWN};
use crate::sys;

/// Each level costs two descriptors and a stack frame.
const DEPTH_MAX: u32 = 100;
const NAMES_AT_ONCE: usize = 4096;

/// An entry of the trash, with all that an earlier removal has cut off it. Gone already is as good.
pub fn remove(trash: impl AsFd, name: &str) -> Result<()> {
    let trash = trash.as_fd();
    let mut cut = Cut { trash, name, n_cut: cut_off(trash, name)?.last().map_or(0, |last| last + 1) };
    remove_entry(&mut cut, trash, name.as_bytes(), 0)?;
    // What is cut off may be deep itself.
    loop {
        let left = cut_off(trash, name)?;
        if left.is_empty() {
            return Ok(());
        }
        for number in left {
            let part = cut.part(number);
            remove_entry(&mut cut, trash, part.as_bytes(), 0)?;
        }
    }
}

/// Where deep trees go meanwhile.
struct Cut<'a> {
    trash: std::os::fd::BorrowedFd<'a>,
    name: &'a str,
    n_cut: u64,
}

impl Cut<'_> {
    fn part(&self, number: u64) -> String {
        format!("{}~{number}", self.name)
    }
}

/// The numbers of what lies cut off in the trash.
fn cut_off(trash: impl AsFd, name: &str) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(&trash)? {
        let entry = entry?;
        let number = entry.file_name().to_str().ok().and_then(|part| part.strip_prefix(name)?.strip_prefix('~'));
        found.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    found.sort_unstable();
    Ok(found)
}

/// A file, or a whole tree.
fn remove_entry(cut: &mut Cut, parent: impl AsFd, name: &[u8], depth: u32) -> Result<()> {
    let name = OsStr::from_bytes(name);
    let refused = match fs::unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(errno @ (Errno::ISDIR | Errno::PERM | Errno::ACCESS)) => errno,
        Err(errno) => return Err(errno),
    };
    if depth >= DEPTH_MAX {
        if sys::own_uid() != 0 {
            fs::chmodat(&parent, name, OWN, AtFlags::empty())?;
        }
        let number = cut.n_cut;
        cut.n_cut += 1;
        return match fs::renameat(&parent, name, cut.trash, cut.part(number)) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        };
    }
    let directory = match fs::openat(&parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // Only where the agent is not root: its user may have taken its own rights away.
            fs::chmodat(&parent, name, OWN, AtFlags::empty())?;
            fs::openat(&parent, name, DIRECTORY, Mode::empty())?
        }
        Err(Errno::NOENT) => return Ok(()),
        // A file that may not be removed.
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(refused),
        other => other?,
    };
    let (own, above) = (fs::fstat(&directory)?, fs::fstat(&parent)?);
    if own.st_dev != above.st_dev {
        return Err(Errno::XDEV);
    }
    if sys::own_uid() != 0 && own.st_mode & 0o700 != 0o700 {
        fs::fchmod(&directory, OWN)?;
    }
    loop {
        let names = some_names(&directory)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            remove_entry(cut, &directory, &name, depth + 1)?;
        }
    }
    match fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn some_names(directory: impl AsFd) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
        if names.len() >= NAMES_AT_ONCE {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkdirat, openat};

    #[test]
    fn a_tree_of_any_depth_goes() {
        let dir = std::env::temp_dir().join(format!("spur-removal-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let trash = openat(CWD, &dir, DIRECTORY, Mode::empty()).unwrap();
        let mut at = openat(&trash, ".", DIRECTORY, Mode::empty()).unwrap();
        for level in 0..3000 {
            let name = if level == 0 { "job-7" } else { "deeper" };
            mkdirat(&at, name, OWN).unwrap();
            at = openat(&at, name, DIRECTORY, Mode::empty()).unwrap();
        }
        drop(at);
        // Of a removal that was killed, and of somebody else.
        mkdirat(&trash, "job-7~5", OWN).unwrap();
        mkdirat(&trash, "job-71", OWN).unwrap();
        remove(&trash, "job-7").unwrap();
        let left: Vec<_> = std::fs::read_dir(&dir).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["job-71"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
