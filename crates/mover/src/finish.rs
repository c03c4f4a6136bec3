//! The end of an errand: directories get their modes and times, and what must last is flushed.
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{self, Mode};
use rustix::io::Errno;

use crate::attributes;
use crate::copy::Work;
use crate::copy::target::times;
use crate::fence;
use crate::plan::Directory;
use crate::trouble::{Side, Trouble};

pub fn finish(work: &Work) {
    loop {
        if work.stop.is_set() {
            return;
        }
        let directory = work.plan.lock().expect("no panic while held").pop_directory();
        match directory {
            Ok(Some(directory)) => {
                if let Err(trouble) = finish_directory(work, &directory) {
                    work.counters.failed(&trouble);
                }
            }
            Ok(None) => break,
            Err(error) => {
                return work.counters.failed(&Trouble::permanent(format!("cannot read the plan: {error}")));
            }
        }
    }
    if work.order.syncs {
        sync(work);
    }
}

fn finish_directory(work: &Work, directory: &Directory) -> Result<(), Trouble> {
    let side = if directory.target.fence.is_some() { Side::InsideDestination } else { Side::OutsideDestination };
    let trouble =
        |doing: &str, errno: Errno| Trouble::of(errno, side, doing, &work.fences.path_of(&directory.target, b""));
    let fd = work.fences.directory_made(&directory.target).map_err(|errno| trouble("make", errno))?;
    if directory.keeps_own {
        return Ok(());
    }
    attributes::write(&fd, &directory.attributes).map_err(|errno| trouble("set the attributes of", errno))?;
    fs::futimens(&fd, &times(directory.mtime_secs, directory.mtime_nanos)).map_err(|errno| trouble("date", errno))?;
    // Whoever brings what has failed must be able to write there.
    let besides = if work.counters.lacks(&directory.target) { 0o300 } else { 0 };
    fs::fchmod(&fd, Mode::from_raw_mode(directory.mode | besides)).map_err(|errno| trouble("set the mode of", errno))
}

/// Each file system once; nothing counts as copied before it is on the disk.
fn sync(work: &Work) {
    let mut flushed = Vec::new();
    for transfer in &work.order.transfers {
        let whole = fence::whole(&transfer.destination);
        let parent = fence::split(&transfer.destination).0;
        // Nothing was copied there if neither is to be found.
        let Ok(fd) = work.fences.directory(&whole).or_else(|_| work.fences.directory(&parent)) else { continue };
        let Ok(stat) = fs::fstat(&fd) else { continue };
        if flushed.contains(&stat.st_dev) {
            continue;
        }
        flushed.push(stat.st_dev);
        if let Err(errno) = syncfs(fd.as_fd()) {
            let path = Path::new(&transfer.destination.path);
            work.counters.failed(&Trouble::of(errno, Side::OutsideDestination, "flush the file system of", path));
        }
    }
}

fn syncfs(fd: impl AsFd) -> rustix::io::Result<()> {
    fs::syncfs(fd)
}
