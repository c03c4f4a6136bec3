//! Removing the unfinished files of an errand whose mover was killed.
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{self, AtFlags, Dir};

use crate::copy::target::part_ending;
use crate::fence::Fences;
use crate::journal;
use crate::order::Order;

/// How many were removed. What cannot be reached any more holds none.
pub fn clean(order: &Order, journal: &File) -> std::io::Result<u64> {
    let Ok(fences) = Fences::open(&order.fences) else { return Ok(0) };
    let ending = part_ending(&order.tag);
    let mut n_removed = 0;
    for place in journal::begun_directories(journal)? {
        let Ok(directory) = fences.directory(&place) else { continue };
        let Ok(entries) = Dir::read_from(&directory) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            let is_ours = name.starts_with(b".") && name.ends_with(&ending);
            if is_ours && fs::unlinkat(&directory, OsStr::from_bytes(name), AtFlags::empty()).is_ok() {
                n_removed += 1;
            }
        }
    }
    Ok(n_removed)
}
