//! The bytes themselves, from one descriptor to another.
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Mutex;

use rustix::fs::{self, Advice, FallocateFlags, SeekFrom, Stat};
use rustix::io::{self, Errno};

use super::Work;
use crate::hash::{self, ChunkHash};

/// What a worker reads at once where every call may go to a server.
pub const BLOCK_BYTES: usize = 512 << 10;
/// Where the kernel keeps the pages: so much stays in a core's own cache from the read over the hash to the write, and others wait
/// their turn seldom enough.
const LOCAL_BLOCK_BYTES: usize = 256 << 10;
/// Written by one call: `cp` asks for memory of this size too, so that each finds what the other has left.
const LOCAL_PIECE_BYTES: usize = 64 << 10;
/// The kernel keeps what one call writes in stretches of memory that are as long as their place in the file is round: a block that
/// begins one page off is kept in five pieces of 4 to 32 KiB.
const OFF_ROUND_BYTES: usize = 4 << 10;

/// What stopped a copy, and on which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Read(Errno),
    Write(Errno),
    /// The source is shorter than it was.
    Short,
    Cancelled,
}

pub struct Copy<'a> {
    pub work: &'a Work<'a>,
    pub source: BorrowedFd<'a>,
    pub target: BorrowedFd<'a>,
    /// Holes are looked for.
    is_sparse: bool,
    is_local: bool,
    /// Read, hashed and written in one turn.
    block_bytes: usize,
    /// Written by one call.
    piece_bytes: usize,
    /// The first block of a stretch.
    first_bytes: usize,
    /// Held while a block is written, where workers share a file.
    turn: Option<&'a Mutex<()>>,
    /// Bytes that have been added to the progress, to be taken back when the file is tried again.
    pub counted: u64,
}

impl<'a> Copy<'a> {
    pub fn new(work: &'a Work<'a>, source: BorrowedFd<'a>, target: BorrowedFd<'a>, stat: &Stat) -> Self {
        let size_bytes = stat.st_size as u64;
        let is_sparse = has_holes(stat);
        let is_local = size_bytes > LOCAL_BLOCK_BYTES as u64 && is_local(target);
        let (block_bytes, piece_bytes) =
            if is_local { (LOCAL_BLOCK_BYTES, LOCAL_PIECE_BYTES) } else { (BLOCK_BYTES, BLOCK_BYTES) };
        let first_bytes = block_bytes;
        Copy {
            work,
            source,
            target,
            is_sparse,
            is_local,
            block_bytes,
            piece_bytes,
            first_bytes,
            turn: None,
            counted: 0,
        }
    }

    /// One of several that write to the same file, each a chunk. A local file system lets in one writer of a file at a time, and
    /// whoever stands at its door spins there: whoever waits here sleeps, and the others read and hash meanwhile.
    ///
    /// Every other chunk is written off the round places. Memory in long stretches and memory in shreds then serve alike; whoever
    /// asks for one kind only soon gets pages that nobody has touched for long, which a virtual machine has to ask its host for.
    pub fn in_turn(mut self, turn: &'a Mutex<()>, chunk: u64) -> Self {
        if self.is_local {
            self.turn = Some(turn);
            if chunk % 2 == 1 {
                self.first_bytes = OFF_ROUND_BYTES;
            }
        }
        self
    }
}

/// Less is stored than the file is long.
fn has_holes(stat: &Stat) -> bool {
    (stat.st_blocks as u64).saturating_mul(512) < stat.st_size as u64
}

const EXT4: u64 = 0xef53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;
const TMPFS: u64 = 0x0102_1994;

/// A file system of this machine's, as far as they are known.
fn is_local(fd: BorrowedFd) -> bool {
    is_one_of(fd, &[EXT4, XFS, BTRFS, TMPFS])
}

fn is_one_of(fd: BorrowedFd, kinds: &[u64]) -> bool {
    fs::fstatfs(fd).is_ok_and(|stat| kinds.contains(&(stat.f_type as u64)))
}

/// Gives a file its length. Where blocks that are found beforehand make each write cheaper they are, and a disk that is too small
/// is noticed before anything was copied.
pub fn lengthen(target: BorrowedFd, source: &Stat) -> io::Result<()> {
    let size_bytes = source.st_size as u64;
    if size_bytes > 0 && !has_holes(source) && is_one_of(target, &[EXT4, XFS]) {
        match fs::fallocate(target, FallocateFlags::empty(), 0, size_bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {}
            done => return done,
        }
    }
    fs::ftruncate(target, size_bytes)
}

impl Copy<'_> {
    pub fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    /// One stretch, no longer than a chunk; gives its hash if one is wanted.
    pub fn range(&mut self, start: u64, length: u64, buffer: &mut [u8]) -> Result<Option<u128>, Fault> {
        let wants_hash = self.work.order.verify.hashes();
        let end = start + length;
        if !self.is_sparse {
            if !wants_hash {
                return self.plain(start, end, buffer).map(|()| None);
            }
            // A small file is one read, one hash, one write.
            if length <= self.block_bytes as u64 {
                let block = &mut buffer[..length as usize];
                self.read_block(start, block)?;
                let hash = xxhash_rust::xxh3::xxh3_128(block);
                self.write_block(start, block)?;
                return Ok(Some(hash));
            }
            let mut hash = ChunkHash::new();
            self.blocks(start, end, buffer, Some(&mut hash))?;
            return Ok(Some(hash.finish()));
        }
        let mut hash = wants_hash.then(ChunkHash::new);
        let mut at = start;
        while at < end {
            let (data, hole) = self.next_data(at, end)?;
            if data == end && at == start && length == self.work.order.chunk_bytes && wants_hash {
                self.count(length);
                return Ok(Some(hash::of_hole(length)));
            }
            if let Some(hash) = &mut hash {
                hash.update_zeros(data - at);
            }
            self.count(data - at);
            self.blocks(data, hole, buffer, hash.as_mut())?;
            at = hole;
        }
        Ok(hash.map(|hash| hash.finish()))
    }

    /// The next data at or after a place, and where it ends.
    fn next_data(&self, at: u64, end: u64) -> Result<(u64, u64), Fault> {
        let data = match fs::seek(self.source, SeekFrom::Data(at)) {
            Ok(data) => data.min(end),
            Err(Errno::NXIO) => end,
            Err(Errno::INVAL | Errno::NOTSUP) => return Ok((at, end)),
            Err(errno) => return Err(Fault::Read(errno)),
        };
        if data == end {
            return Ok((end, end));
        }
        let hole = fs::seek(self.source, SeekFrom::Hole(data)).map_err(Fault::Read)?;
        Ok((data, hole.min(end)))
    }

    fn blocks(
        &mut self,
        start: u64,
        end: u64,
        buffer: &mut [u8],
        mut hash: Option<&mut ChunkHash>,
    ) -> Result<(), Fault> {
        let (mut at, mut block_bytes) = (start, self.first_bytes);
        while at < end {
            let length = block_bytes.min((end - at) as usize);
            block_bytes = self.block_bytes;
            let block = &mut buffer[..length];
            self.read_block(at, block)?;
            if let Some(hash) = &mut hash {
                hash.update(block);
            }
            self.write_block(at, block)?;
            at += length as u64;
        }
        Ok(())
    }

    fn read_block(&self, at: u64, block: &mut [u8]) -> Result<(), Fault> {
        if self.work.stop.is_set() {
            return Err(Fault::Cancelled);
        }
        self.work.bandwidth.take(block.len() as u64, self.work.stop);
        read_exact(self.source, at, block)
    }

    fn write_block(&mut self, at: u64, block: &[u8]) -> Result<(), Fault> {
        let turn = self.turn.map(|turn| turn.lock().expect("no panic while held"));
        for (index, piece) in block.chunks(self.piece_bytes).enumerate() {
            write_all(self.target, at + (index * self.piece_bytes) as u64, piece)?;
        }
        drop(turn);
        self.count(block.len() as u64);
        Ok(())
    }

    /// Inside the kernel, or on the server, where that is faster; nobody looks at the bytes.
    fn plain(&mut self, start: u64, end: u64, buffer: &mut [u8]) -> Result<(), Fault> {
        use std::sync::atomic::Ordering::Relaxed;
        const PIECE_BYTES: u64 = 8 << 20;
        let (mut from, mut to) = (start, start);
        // The detour over the kernel's pipe is dearer than two calls for a small file, and holds up other writers of a local one.
        let is_worth_it = !self.is_local && end - start > buffer.len() as u64;
        while from < end && is_worth_it && self.work.ranges_work.load(Relaxed) {
            if self.work.stop.is_set() {
                return Err(Fault::Cancelled);
            }
            let length = PIECE_BYTES.min(end - from);
            self.work.bandwidth.take(length, self.work.stop);
            match fs::copy_file_range(self.source, Some(&mut from), self.target, Some(&mut to), length as usize) {
                Ok(0) => return Err(Fault::Short),
                Ok(length) => self.count(length as u64),
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::PERM | Errno::BADF) => {
                    self.work.ranges_work.store(false, Relaxed);
                }
                Err(errno) => return Err(Fault::Write(errno)),
            }
        }
        self.blocks(from, end, buffer, None)
    }

    fn count(&mut self, n_bytes: u64) {
        self.counted += n_bytes;
        self.work.counters.bytes_done.fetch_add(n_bytes, std::sync::atomic::Ordering::Relaxed);
    }
}

fn read_exact(fd: BorrowedFd, at: u64, block: &mut [u8]) -> Result<(), Fault> {
    let mut done = 0;
    while done < block.len() {
        match io::pread(fd, &mut block[done..], at + done as u64) {
            Ok(0) => return Err(Fault::Short),
            Ok(length) => done += length,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::Read(errno)),
        }
    }
    Ok(())
}

fn write_all(fd: BorrowedFd, at: u64, block: &[u8]) -> Result<(), Fault> {
    let mut done = 0;
    while done < block.len() {
        match io::pwrite(fd, &block[done..], at + done as u64) {
            Ok(0) => return Err(Fault::Write(Errno::IO)),
            Ok(length) => done += length,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Fault::Write(errno)),
        }
    }
    Ok(())
}

/// Waits until these pages are on the disk; not the file's other pages, which other workers write.
fn flush_range(fd: BorrowedFd, start: u64, length: u64) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: plain call on an open descriptor.
    let result = unsafe { libc::sync_file_range(fd.as_raw_fd(), start as i64, length as i64, flags) };
    match result {
        0 => Ok(()),
        _ => match Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO) {
            // Some file systems have no such call.
            Errno::SPIPE | Errno::INVAL | Errno::NOSYS => fs::fdatasync(fd),
            errno => Err(errno),
        },
    }
}

/// The hash of what is there; from the disk if it can be had.
pub fn read_back(
    work: &Work,
    fd: impl AsFd,
    start: u64,
    length: u64,
    buffer: &mut [u8],
    is_from_disk: bool,
) -> Result<u128, Fault> {
    let fd = fd.as_fd();
    if is_from_disk {
        flush_range(fd, start, length).map_err(Fault::Write)?;
        let _ = fs::fadvise(fd, start, std::num::NonZero::new(length), Advice::DontNeed);
    }
    if length <= buffer.len() as u64 {
        let block = &mut buffer[..length as usize];
        read_exact(fd, start, block)?;
        return Ok(xxhash_rust::xxh3::xxh3_128(block));
    }
    let mut hash = ChunkHash::new();
    let (mut at, end) = (start, start + length);
    while at < end {
        if work.stop.is_set() {
            return Err(Fault::Cancelled);
        }
        let n_bytes = buffer.len().min((end - at) as usize);
        read_exact(fd, at, &mut buffer[..n_bytes])?;
        hash.update(&buffer[..n_bytes]);
        at += n_bytes as u64;
    }
    Ok(hash.finish())
}
