//! What a mover is left with, whoever has taken it over through a hostile tree: calls that open, read, write and name
//! files, and the paths that its order is about. All else the kernel refuses for good.
use std::io;
use std::path::Path;

use ::confine::{Access, Reach, calls, give_up_new_rights};

use crate::fence;
use crate::order::{Kind, Order, Place, Transfer};

/// Which boot this is, and how many processors the process's cgroup gives it.
const READ_BY_ALL: [&str; 3] = ["/proc/sys/kernel/random/boot_id", "/proc/self/cgroup", "/sys/fs/cgroup"];

/// Paths first, while there is one thread only: later ones take it over from this one.
pub fn restrict_paths(reach: &Reach) -> io::Result<()> {
    give_up_new_rights()?;
    reach.restrict()
}

/// System calls then, for all threads.
pub fn filter_calls() -> io::Result<()> {
    calls::mover().install()
}

/// Fences, sources and destinations, as far as they are there now.
pub fn reach_of(order: &Order) -> Reach {
    let mut reach = Reach::default();
    READ_BY_ALL.into_iter().for_each(|path| reach.allow(path, Access::Read));
    order.fences.iter().for_each(|fence| reach.allow(&fence.path, Access::Change));
    for transfer in &order.transfers {
        allow_source(&mut reach, transfer);
        if !transfer.manifest.is_empty() {
            reach.allow(&transfer.manifest, Access::Read);
        }
        if transfer.destination.fence.is_none() {
            reach.allow(destination_root(transfer.kind, &transfer.destination), Access::Change);
        }
    }
    reach
}

/// One tree, to be read for another node.
pub fn reach_of_sender(order: &Order) -> Reach {
    let mut reach = Reach::default();
    READ_BY_ALL.into_iter().for_each(|path| reach.allow(path, Access::Read));
    order.fences.iter().for_each(|fence| reach.allow(&fence.path, Access::Read));
    reach
}

/// A list's lines may name whatever its user may read, unless they are about a fence.
fn allow_source(reach: &mut Reach, transfer: &Transfer) {
    if transfer.kind == Kind::List && transfer.list_base.as_ref().is_none_or(|base| base.fence.is_none()) {
        return reach.allow("/", Access::Read);
    }
    if transfer.source.fence.is_some() {
        return;
    }
    reach.allow(&transfer.source.path, Access::Read);
    if transfer.kind != Kind::Directory {
        reach.allow(parent(&transfer.source), Access::List);
    }
}

/// Where new names appear: the directory itself, the one a file goes into, or the nearest that is there.
fn destination_root(kind: Kind, place: &Place) -> String {
    let is_directory = kind != Kind::File || place.path.ends_with('/') || Path::new(&place.path).is_dir();
    let named = if is_directory { place.path.clone() } else { parent(place) };
    let there = Path::new(&named).ancestors().find(|path| path.is_dir());
    there.unwrap_or(Path::new("/")).display().to_string()
}

fn parent(place: &Place) -> String {
    String::from_utf8_lossy(&fence::split(place).0.anchor).into_owned()
}
