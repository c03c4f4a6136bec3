//! Small files: many of one directory by one worker, with both directories open.
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Work;
use super::bytes::{Copy, Fault, read_back};
use super::target::{Target, make_link};
use crate::fence;
use crate::hash;
use crate::journal::{self, DoneFile, Version};
use crate::order::Verify;
use crate::plan::{Batch, Follow, Item, ItemKind, Where};
use crate::trouble::{Class, Side, Trouble, shown};

/// Smaller files are read back from memory: flushing each would cost more than all the rest.
const FROM_DISK_BYTES: u64 = 4 << 20;

/// Both directories of a batch.
pub struct Sides {
    pub source: OwnedFd,
    pub target: Arc<OwnedFd>,
}

pub fn copy(work: &Work, batch: &Batch, buffer: &mut [u8]) {
    let opened = open_sides(work, batch);
    let sides = match opened.or_else(|trouble| work.persist(trouble, || open_sides(work, batch))) {
        Ok(sides) => sides,
        Err(trouble) => return fail(work, batch, &trouble),
    };
    if !work.is_unread(&batch.target) {
        let noted = work.journal.lock().expect("no panic while held").begun(&batch.target);
        work.counters.check_journal(noted);
    }
    let mut done = Vec::with_capacity(batch.items.len());
    for item in &batch.items {
        if work.stop.is_set() {
            break;
        }
        let copied = copy_item(work, batch, item, &sides, buffer).or_else(|trouble| {
            work.note_done(batch.transfer, &batch.target, &mut done);
            work.persist(trouble, || copy_item(work, batch, item, &sides, buffer))
        });
        match copied {
            Ok(file) => {
                work.counters.files_done.fetch_add(1, Relaxed);
                done.extend(file);
            }
            Err(trouble) => fail(work, batch, &trouble),
        }
        if work.is_hopeless() {
            break;
        }
    }
    work.note_done(batch.transfer, &batch.target, &mut done);
}

pub fn fail(work: &Work, batch: &Batch, trouble: &Trouble) {
    if trouble.class != Class::Cancelled {
        work.counters.failed_in(trouble, &batch.target);
    }
}

pub fn open_sides(work: &Work, batch: &Batch) -> Result<Sides, Trouble> {
    let source = match batch.follow {
        Follow::Within => {
            let head = work.fences.directory(&Where { below: Vec::new(), ..batch.source.clone() });
            let below = if batch.source.below.is_empty() { &b"."[..] } else { &batch.source.below };
            head.and_then(|head| fence::open_followed(head, below, OFlags::RDONLY | OFlags::DIRECTORY))
        }
        Follow::Never | Follow::Freely => work.fences.directory(&batch.source),
    };
    let path = |place| work.fences.path_of(place, b"");
    let source = source.map_err(|errno| Trouble::of(errno, Side::Source, "open", &path(&batch.source)))?;
    let target = work.fences.directory_made(&batch.target);
    let target = target.map_err(|errno| {
        let trouble = Trouble::of(errno, side_of(&batch.target), "make", &path(&batch.target));
        room(work, &batch.target, trouble)
    })?;
    regain(work, &batch.target, &target);
    Ok(Sides { source, target: Arc::new(target) })
}

/// Whoever has filled a job's own buffer before has left the directory with its own mode, which may keep even its owner from writing
/// there; it gets that mode again in the end.
fn regain(work: &Work, place: &Where, directory: &OwnedFd) {
    let is_ours = work.is_unread(place);
    let mode = if is_ours { fs::fstat(directory).ok().map(|stat| stat.st_mode & 0o7777) } else { None };
    if let Some(mode) = mode.filter(|mode| mode & 0o300 != 0o300) {
        // Whatever still stands in the way is told by what is tried next.
        let _ = fs::fchmod(directory, Mode::from_raw_mode(mode | 0o300));
    }
}

pub fn side_of(target: &Where) -> Side {
    if target.fence.is_some() { Side::InsideDestination } else { Side::OutsideDestination }
}

/// None: an earlier mover had done it.
fn copy_item(
    work: &Work,
    batch: &Batch,
    item: &Item,
    sides: &Sides,
    buffer: &mut [u8],
) -> Result<Option<DoneFile>, Trouble> {
    match item.kind {
        ItemKind::Link => copy_link(work, batch, item, sides).map(|()| None),
        ItemKind::File => {
            let (source, stat) = open_source(work, batch, item, sides)?;
            if is_done(work, batch, item, sides, &stat, buffer) {
                work.counters.bytes_done.fetch_add(item.size_bytes, Relaxed);
                work.counters.files_resumed.fetch_add(1, Relaxed);
                return Ok(None);
            }
            copy_file(work, batch, item, sides, (&source, &stat), buffer).map(Some)
        }
    }
}

pub fn open_source(work: &Work, batch: &Batch, item: &Item, sides: &Sides) -> Result<(OwnedFd, Stat), Trouble> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let name = OsStr::from_bytes(&item.source);
    let path = || work.fences.path_of(&batch.source, &item.source);
    let opened = match batch.follow {
        Follow::Never => fs::openat(&sides.source, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        Follow::Freely => fs::openat(&sides.source, name, flags, Mode::empty()),
        Follow::Within => {
            let head = work.fences.directory(&Where { below: Vec::new(), ..batch.source.clone() });
            let mut below = batch.source.below.clone();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&item.source);
            head.and_then(|head| fence::open_followed(head, &below, flags))
        }
    };
    let source = opened.map_err(|errno| Trouble::of(errno, Side::Source, "open", &path()))?;
    let stat = fs::fstat(&source).map_err(|errno| Trouble::of(errno, Side::Source, "read", &path()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Trouble::permanent(format!("{} is not a regular file", shown(&path()))));
    }
    Ok((source, stat))
}

pub fn version_of(stat: &Stat) -> Version {
    Version { size_bytes: stat.st_size as u64, mtime_secs: stat.st_mtime, mtime_nanos: stat.st_mtime_nsec as u32 }
}

/// Journalled in this version, and still there as it was left.
pub fn is_done(work: &Work, batch: &Batch, item: &Item, sides: &Sides, stat: &Stat, buffer: &mut [u8]) -> bool {
    if work.past.is_empty() {
        return false;
    }
    let version = version_of(stat);
    let key = journal::key(&batch.target, item.destination(), &version);
    let Some(half) = work.past.hash_of(key) else { return false };
    let name = OsStr::from_bytes(item.destination());
    let Ok(there) = fs::statat(&sides.target, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile || version_of(&there) != version {
        return false;
    }
    if !work.past.is_doubtful {
        return true;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(fd) = fs::openat(&sides.target, name, flags, Mode::empty()) else { return false };
    half != 0
        && hash_of(work, &fd, version.size_bytes, buffer, false).is_ok_and(|hash| journal::half(Some(hash)) == half)
}

pub fn hash_of(
    work: &Work,
    fd: &OwnedFd,
    size_bytes: u64,
    buffer: &mut [u8],
    is_from_disk: bool,
) -> Result<u128, Fault> {
    let mut chunks = Vec::new();
    for (start, length) in chunks_of(size_bytes, work.order.chunk_bytes) {
        chunks.push(read_back(work, fd, start, length, buffer, is_from_disk)?);
    }
    Ok(hash::combine(&chunks))
}

/// At least one, so that an empty file has a hash.
fn chunks_of(size_bytes: u64, chunk_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = size_bytes.div_ceil(chunk_bytes).max(1);
    (0..count).map(move |index| (index * chunk_bytes, chunk_bytes.min(size_bytes - index * chunk_bytes)))
}

fn copy_file(
    work: &Work,
    batch: &Batch,
    item: &Item,
    sides: &Sides,
    (source, before): (&OwnedFd, &Stat),
    buffer: &mut [u8],
) -> Result<DoneFile, Trouble> {
    let name = item.destination();
    let target_trouble = |errno| target_trouble(work, &batch.target, name, errno);
    let mut target =
        Target::create(&sides.target, name, &work.order.tag, work.is_unread(&batch.target)).map_err(target_trouble)?;
    let size_bytes = before.st_size as u64;
    let mut copy = Copy::new(work, source.as_fd(), target.fd.as_fd(), before);
    let filled = fill(&mut copy, size_bytes, buffer);
    let counted = copy.counted;
    let checked = filled.map_err(|fault| fault_trouble(work, batch, item, fault)).and_then(|hash| {
        check_stable(work, batch, item, source, before)?;
        if size_bytes == 0 {
            check_empty(work, batch, item, source)?;
        }
        if let (Verify::Full, Some(hash)) = (work.order.verify, hash) {
            let is_from_disk = size_bytes >= FROM_DISK_BYTES;
            let there = hash_of(work, &target.fd, size_bytes, buffer, is_from_disk);
            if there.map_err(|fault| fault_trouble(work, batch, item, fault))? != hash {
                return Err(mismatch(work, &batch.target, name));
            }
        }
        work.commit(batch, item, source, &mut target, before)?;
        Ok(DoneFile { name: name.to_vec(), version: version_of(before), hash })
    });
    if checked.is_err() {
        work.counters.bytes_done.fetch_sub(counted, Relaxed);
    }
    checked
}

fn fill(copy: &mut Copy, size_bytes: u64, buffer: &mut [u8]) -> Result<Option<u128>, Fault> {
    let work = copy.work;
    if size_bytes > 0 && work.clones_work.load(Relaxed) {
        match fs::ioctl_ficlone(copy.target, copy.source) {
            Ok(()) => {
                copy.counted = size_bytes;
                work.counters.bytes_done.fetch_add(size_bytes, Relaxed);
                return Ok(None);
            }
            Err(Errno::NOSPC | Errno::DQUOT) => return Err(Fault::Write(Errno::NOSPC)),
            Err(_) => work.clones_work.store(false, Relaxed),
        }
    }
    if copy.is_sparse() {
        fs::ftruncate(copy.target, size_bytes).map_err(Fault::Write)?;
    }
    let mut chunks = Vec::with_capacity(1);
    for (start, length) in chunks_of(size_bytes, work.order.chunk_bytes) {
        chunks.extend(copy.range(start, length, buffer)?);
    }
    Ok((!chunks.is_empty()).then(|| hash::combine(&chunks)))
}

pub fn check_stable(work: &Work, batch: &Batch, item: &Item, source: &OwnedFd, before: &Stat) -> Result<(), Trouble> {
    let after = fs::fstat(source).map_err(|errno| fault_trouble(work, batch, item, Fault::Read(errno)))?;
    if version_of(&after) == version_of(before) {
        return Ok(());
    }
    Err(changed(work, batch, item))
}

/// What the kernel makes up when it is read says that it is empty.
fn check_empty(work: &Work, batch: &Batch, item: &Item, source: &OwnedFd) -> Result<(), Trouble> {
    match rustix::io::pread(source, &mut [0_u8], 0) {
        Ok(1..) => {
            let path = work.fences.path_of(&batch.source, &item.source);
            Err(Trouble::permanent(format!("{} does not say how large it is", shown(&path))))
        }
        _ => Ok(()),
    }
}

fn changed(work: &Work, batch: &Batch, item: &Item) -> Trouble {
    let path = work.fences.path_of(&batch.source, &item.source);
    Trouble::new(Class::Data, format!("source changed during copy: {}", shown(&path)))
}

pub fn mismatch(work: &Work, target: &Where, name: &[u8]) -> Trouble {
    let path = work.fences.path_of(target, name);
    Trouble::new(Class::Data, format!("checksum mismatch: {}", shown(&path)))
}

pub fn fault_trouble(work: &Work, batch: &Batch, item: &Item, fault: Fault) -> Trouble {
    match fault {
        Fault::Read(errno) => {
            Trouble::of(errno, Side::Source, "read", &work.fences.path_of(&batch.source, &item.source))
        }
        Fault::Write(errno) => target_trouble(work, &batch.target, item.destination(), errno),
        Fault::Short => changed(work, batch, item),
        Fault::Cancelled => Trouble::cancelled(),
    }
}

pub fn target_trouble(work: &Work, target: &Where, name: &[u8], errno: Errno) -> Trouble {
    let trouble = Trouble::of(errno, side_of(target), "write", &work.fences.path_of(target, name));
    room(work, target, trouble)
}

/// A full fence is told with what was needed and what there is.
fn room(work: &Work, target: &Where, mut trouble: Trouble) -> Trouble {
    if let (Class::Capacity, Some(fence)) = (trouble.class, target.fence) {
        let needs = crate::walk::human(work.counters.bytes_total.load(Relaxed));
        let copied = crate::walk::human(work.counters.bytes_done.load(Relaxed));
        let free = fs::fstatvfs(work.fences.root(fence).0).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
        let free = crate::walk::human(free);
        trouble.text = format!("{} (needs {needs}, {copied} copied, {free} available)", trouble.text);
    }
    trouble
}

fn copy_link(work: &Work, batch: &Batch, item: &Item, sides: &Sides) -> Result<(), Trouble> {
    let name = OsStr::from_bytes(&item.source);
    let source_trouble =
        |errno| Trouble::of(errno, Side::Source, "read", &work.fences.path_of(&batch.source, &item.source));
    let text = fs::readlinkat(&sides.source, name, Vec::new()).map_err(source_trouble)?;
    let stat = fs::statat(&sides.source, name, AtFlags::SYMLINK_NOFOLLOW).map_err(source_trouble)?;
    let text = OsStr::from_bytes(text.to_bytes());
    let made = make_link(&sides.target, item.destination(), text, &work.order.tag, &stat);
    made.map_err(|errno| target_trouble(work, &batch.target, item.destination(), errno))
}
