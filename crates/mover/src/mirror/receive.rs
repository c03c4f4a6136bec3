//! The receiver: writes what a sender reads, inside the errand's only fence, and journals it as if it came from the source.
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::line::Line;
use super::{
    CHUNK, CHUNK_END, DATA, DEPTH_MAX, DIRECTORY, END, FILE, FILE_END, HAVE, HELLO, IN, LINK, READY, SAME, TOTAL,
    TROUBLE, VERSION, WANT, is_name, place, push, unpack_attributes,
};
use crate::attributes::{self, Attribute};
use crate::copy::Work;
use crate::copy::batch::{hash_of, mismatch, target_trouble, version_of};
use crate::copy::bytes::{BLOCK_BYTES, Fault, read_back};
use crate::copy::target::{Target, make_link_at, times};
use crate::hash::{self, ChunkHash};
use crate::journal::{self, DoneFile, Version};
use crate::order::Verify;
use crate::pack::{self, Unpack};
use crate::plan::Where;
use crate::trouble::{Class, Trouble};

/// Smaller files are read back from memory.
const FROM_DISK_BYTES: u64 = 4 << 20;
/// What is done is journalled after so many files.
const NOTED_FILES: usize = 256;
const KEYS_AT_ONCE: usize = 64 << 10;

/// Until all of it is here. What is done stays done, whatever ends it.
pub fn receive(work: &Work, socket: UnixStream) -> Result<(), Trouble> {
    let mut line = Line::new(socket, work.stop).map_err(broken)?;
    let mut state = Receiver {
        work,
        place: place(b""),
        directory: None,
        file: None,
        done: Vec::new(),
        buffer: vec![0; BLOCK_BYTES],
        n_files: 0,
    };
    let received = greet(&mut line, &mut state).and_then(|()| state.all(&mut line));
    if let Some(file) = state.file.take().filter(|file| file.is_large && received.is_err()) {
        // Its chunks are journalled: whoever goes on has use for them.
        file.target.leave();
    }
    state.note();
    received
}

fn broken(error: std::io::Error) -> Trouble {
    Trouble::new(Class::Transient, format!("the connection to the other node: {error}"))
}

fn strange() -> Trouble {
    Trouble::new(Class::Transient, "the other node says what it should not")
}

fn greet(line: &mut Line, state: &mut Receiver) -> Result<(), Trouble> {
    let order = state.work.order;
    let mut body = Vec::new();
    let with_attributes = order.transfers.iter().any(|transfer| transfer.with_attributes);
    for value in [VERSION, order.chunk_bytes, order.split_bytes, u64::from(with_attributes)] {
        pack::number(&mut body, value);
    }
    line.say(HELLO, &body).map_err(broken)?;
    let mut keys = Vec::new();
    if !state.work.past.is_empty() {
        let head = state.work.fences.root(0).0;
        state.look(head, &mut Vec::new(), 0, &mut keys);
    }
    for some in keys.chunks(KEYS_AT_ONCE) {
        let body: Vec<u8> = some.iter().flat_map(|key: &u64| key.to_le_bytes()).collect();
        line.say(HAVE, &body).map_err(broken)?;
    }
    line.say(READY, &[]).map_err(broken)?;
    line.flush().map_err(broken)
}

struct Receiver<'a> {
    work: &'a Work<'a>,
    /// Where files are put now, opened when the first comes.
    place: Where,
    directory: Option<Arc<OwnedFd>>,
    file: Option<Incoming>,
    done: Vec<DoneFile>,
    buffer: Vec<u8>,
    n_files: u64,
}

struct Incoming {
    name: Vec<u8>,
    version: Version,
    mode: u32,
    attributes: Vec<Attribute>,
    key: u64,
    is_large: bool,
    target: Target,
    chunks: Vec<Option<u128>>,
    /// The chunk under way: its number, how far it is, where it ends.
    chunk: Option<(u64, u64, u64)>,
    hash: ChunkHash,
}

/// Mode and time, as a sender packs them.
fn unpack_stat(unpack: &mut Unpack) -> Option<(u32, i64, u32)> {
    Some((unpack.number()? as u32 & 0o1777, unpack.signed()?, unpack.number()? as u32))
}

impl Receiver<'_> {
    /// The keys of files that an earlier mover has journalled and that are still there as it left them.
    fn look(&mut self, directory: impl AsFd, path: &mut Vec<u8>, depth: usize, keys: &mut Vec<u64>) {
        let Ok(entries) = Dir::read_from(&directory) else { return };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            let at = OsStr::from_bytes(name);
            let Ok(stat) = fs::statat(&directory, at, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if is_name(name) && depth < DEPTH_MAX => {
                    let Ok(below) = fs::openat(&directory, at, flags | OFlags::DIRECTORY, Mode::empty()) else {
                        continue;
                    };
                    let length = path.len();
                    push(path, name);
                    self.look(&below, path, depth + 1, keys);
                    path.truncate(length);
                }
                FileType::RegularFile => {
                    let version = version_of(&stat);
                    let key = journal::key(&place(path), name, &version);
                    let Some(half) = self.work.past.hash_of(key) else { continue };
                    let is_sure = !self.work.past.is_doubtful || {
                        let opened = fs::openat(&directory, at, flags, Mode::empty());
                        let hash = opened
                            .map_err(Fault::Read)
                            .and_then(|fd| hash_of(self.work, &fd, version.size_bytes, &mut self.buffer, false));
                        half != 0 && hash.is_ok_and(|hash| journal::half(Some(hash)) == half)
                    };
                    if is_sure {
                        keys.push(key);
                    }
                }
                _ => {}
            }
        }
    }

    fn all(&mut self, line: &mut Line) -> Result<(), Trouble> {
        let counters = self.work.counters;
        loop {
            if self.work.stop.is_set() {
                return Err(Trouble::cancelled());
            }
            let (kind, body) = line.hear().map_err(broken)?;
            let mut unpack = Unpack(body);
            match kind {
                TOTAL => {
                    counters.files_total.store(unpack.number().ok_or_else(strange)?, Relaxed);
                    counters.bytes_total.store(unpack.number().ok_or_else(strange)?, Relaxed);
                    counters.enter(crate::Phase::Copying);
                }
                IN => self.enter(body)?,
                SAME => {
                    counters.bytes_done.fetch_add(unpack.number().ok_or_else(strange)?, Relaxed);
                    counters.files_resumed.fetch_add(1, Relaxed);
                    self.count_file();
                }
                LINK => self.link(&mut unpack)?,
                FILE => {
                    if let Some(wanted) = self.open(&mut unpack)? {
                        line.say(WANT, &wanted).map_err(broken)?;
                        line.flush().map_err(broken)?;
                    }
                }
                CHUNK => self.begin_chunk(&mut unpack)?,
                DATA => {
                    let at = unpack.number().ok_or_else(strange)?;
                    self.data(at, unpack.0)?;
                }
                CHUNK_END => self.end_chunk(&mut unpack)?,
                FILE_END => self.end_file()?,
                DIRECTORY => self.directory(&mut unpack)?,
                END => {
                    let is_all = self.file.is_none() && unpack.number() == Some(self.n_files);
                    let said = unpack.wide().ok_or_else(strange)?;
                    return if is_all && said == line.heard() { Ok(()) } else { Err(strange()) };
                }
                TROUBLE => {
                    let why: String = String::from_utf8_lossy(body).chars().take(300).collect();
                    return Err(Trouble::new(Class::Transient, format!("the other node: {why}")));
                }
                _ => return Err(strange()),
            }
        }
    }

    fn count_file(&mut self) {
        self.n_files += 1;
        self.work.counters.files_done.fetch_add(1, Relaxed);
    }

    fn note(&mut self) {
        self.work.note_done(0, &self.place, &mut self.done);
    }

    fn enter(&mut self, path: &[u8]) -> Result<(), Trouble> {
        if self.file.is_some()
            || path.split(|byte| *byte == b'/').any(|part| part == b".." || part.contains(&0))
            || path.starts_with(b"/")
        {
            return Err(strange());
        }
        self.note();
        self.place = place(path);
        self.directory = None;
        Ok(())
    }

    /// The directory of the present place, made if it is not there.
    fn here(&mut self) -> Result<Arc<OwnedFd>, Trouble> {
        if let Some(directory) = &self.directory {
            return Ok(directory.clone());
        }
        let made = self.work.fences.directory_made(&self.place);
        let made = Arc::new(made.map_err(|errno| target_trouble(self.work, &self.place, b"", errno))?);
        let noted = self.work.journal.lock().expect("no panic while held").begun(&self.place);
        self.work.counters.check_journal(noted);
        self.directory = Some(made.clone());
        Ok(made)
    }

    fn link(&mut self, unpack: &mut Unpack) -> Result<(), Trouble> {
        let name = unpack.bytes().filter(|name| is_name(name)).ok_or_else(strange)?.to_vec();
        let (_, secs, nanos) = unpack_stat(unpack).ok_or_else(strange)?;
        let text = unpack.bytes().ok_or_else(strange)?;
        let directory = self.here()?;
        let made = make_link_at(directory, &name, OsStr::from_bytes(text), &self.work.order.tag, secs, nanos);
        made.map_err(|errno| target_trouble(self.work, &self.place, &name, errno))?;
        self.count_file();
        Ok(())
    }

    /// For a large file: the chunks that are wanted.
    fn open(&mut self, unpack: &mut Unpack) -> Result<Option<Vec<u8>>, Trouble> {
        let name = unpack.bytes().filter(|name| is_name(name)).ok_or_else(strange)?.to_vec();
        let (mode, mtime_secs, mtime_nanos) = unpack_stat(unpack).ok_or_else(strange)?;
        let size_bytes = unpack.number().filter(|size| *size <= i64::MAX as u64).ok_or_else(strange)?;
        let attributes = unpack_attributes(unpack).ok_or_else(strange)?;
        if self.file.is_some() {
            return Err(strange());
        }
        let work = self.work;
        let version = Version { size_bytes, mtime_secs, mtime_nanos };
        let key = journal::key(&self.place, &name, &version);
        let is_large = size_bytes > work.order.split_bytes;
        let directory = self.here()?;
        let n_chunks = size_bytes.div_ceil(work.order.chunk_bytes).max(1);
        let trouble = |errno| target_trouble(work, &self.place, &name, errno);
        let mut chunks = vec![None; n_chunks as usize];
        let known = if is_large { work.past.chunks_of(key) } else { &[] };
        let old = (!known.is_empty()).then(|| Target::resume(&directory, &name, &work.order.tag)).flatten();
        let old = old.filter(|old| fs::fstat(&old.fd).is_ok_and(|stat| stat.st_size as u64 == size_bytes));
        let target = match old {
            Some(target) => {
                for (index, hash) in known {
                    let start = index * work.order.chunk_bytes;
                    let length = work.order.chunk_bytes.min(size_bytes.saturating_sub(start));
                    let is_sure = !work.past.is_doubtful
                        || read_back(work, &target.fd, start, length, &mut self.buffer, false)
                            .is_ok_and(|there| there == *hash);
                    if let Some(chunk) = chunks.get_mut(*index as usize).filter(|_| is_sure) {
                        *chunk = Some(*hash);
                        work.counters.bytes_done.fetch_add(length, Relaxed);
                    }
                }
                target
            }
            None => {
                let is_unread = !is_large && work.is_unread(&self.place);
                let target = Target::create(&directory, &name, &work.order.tag, is_unread).map_err(trouble)?;
                fs::ftruncate(&target.fd, size_bytes).map_err(trouble)?;
                target
            }
        };
        let missing = chunks.iter().enumerate().filter(|(_, chunk)| chunk.is_none());
        let wanted = is_large.then(|| {
            let mut body = Vec::new();
            missing.for_each(|(index, _)| pack::number(&mut body, index as u64));
            body
        });
        let hash = ChunkHash::new();
        self.file =
            Some(Incoming { name, version, mode, attributes, key, is_large, target, chunks, chunk: None, hash });
        Ok(wanted)
    }

    fn begin_chunk(&mut self, unpack: &mut Unpack) -> Result<(), Trouble> {
        let index = unpack.number().ok_or_else(strange)?;
        let file = self.file.as_mut().filter(|file| file.chunk.is_none()).ok_or_else(strange)?;
        if index >= file.chunks.len() as u64 {
            return Err(strange());
        }
        let start = index * self.work.order.chunk_bytes;
        let end = (start + self.work.order.chunk_bytes).min(file.version.size_bytes);
        file.chunk = Some((index, start, end));
        file.hash = ChunkHash::new();
        Ok(())
    }

    fn data(&mut self, at: u64, bytes: &[u8]) -> Result<(), Trouble> {
        let file = self.file.as_mut().ok_or_else(strange)?;
        let (index, done, end) = file.chunk.ok_or_else(strange)?;
        let until = at.checked_add(bytes.len() as u64).filter(|until| at >= done && *until <= end);
        let until = until.ok_or_else(strange)?;
        self.work.bandwidth.take(bytes.len() as u64, self.work.stop);
        file.hash.update_zeros(at - done);
        file.hash.update(bytes);
        let mut written = 0;
        while written < bytes.len() {
            match rustix::io::pwrite(&file.target.fd, &bytes[written..], at + written as u64) {
                Ok(0) => return Err(target_trouble(self.work, &self.place, &file.name, Errno::IO)),
                Ok(length) => written += length,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(target_trouble(self.work, &self.place, &file.name, errno)),
            }
        }
        file.chunk = Some((index, until, end));
        self.work.counters.bytes_done.fetch_add(until - done, Relaxed);
        Ok(())
    }

    fn end_chunk(&mut self, unpack: &mut Unpack) -> Result<(), Trouble> {
        let theirs = unpack.wide().ok_or_else(strange)?;
        let work = self.work;
        let file = self.file.as_mut().ok_or_else(strange)?;
        let (index, done, end) = file.chunk.take().ok_or_else(strange)?;
        file.hash.update_zeros(end - done);
        work.counters.bytes_done.fetch_add(end - done, Relaxed);
        let mut ours = file.hash.finish();
        if work.order.verify == Verify::Full {
            let start = index * work.order.chunk_bytes;
            let is_from_disk = file.version.size_bytes >= FROM_DISK_BYTES;
            let there = read_back(work, &file.target.fd, start, end - start, &mut self.buffer, is_from_disk);
            ours = there.map_err(|fault| match fault {
                Fault::Cancelled => Trouble::cancelled(),
                _ => mismatch(work, &self.place, &file.name),
            })?;
        }
        if ours != theirs {
            return Err(mismatch(work, &self.place, &file.name));
        }
        file.chunks[index as usize] = Some(ours);
        if file.is_large {
            let noted = work.journal.lock().expect("no panic while held").chunk(file.key, index, Some(ours));
            work.counters.check_journal(noted);
        }
        Ok(())
    }

    fn end_file(&mut self) -> Result<(), Trouble> {
        let mut file = self.file.take().filter(|file| file.chunk.is_none()).ok_or_else(strange)?;
        let chunks: Vec<u128> = file.chunks.iter().copied().flatten().collect();
        if chunks.len() != file.chunks.len() {
            return Err(strange());
        }
        let trouble = |errno| target_trouble(self.work, &self.place, &file.name, errno);
        attributes::write(&file.target.fd, &file.attributes).map_err(trouble)?;
        let Version { mtime_secs, mtime_nanos, .. } = file.version;
        file.target.finish(file.mode & 0o777, mtime_secs, mtime_nanos).map_err(trouble)?;
        let hash = self.work.order.verify.hashes().then(|| hash::combine(&chunks));
        self.done.push(DoneFile { name: file.name, version: file.version, hash });
        self.count_file();
        if self.done.len() >= NOTED_FILES {
            self.note();
        }
        Ok(())
    }

    /// All that is below it is here.
    fn directory(&mut self, unpack: &mut Unpack) -> Result<(), Trouble> {
        let path = unpack.bytes().ok_or_else(strange)?.to_vec();
        let (mode, secs, nanos) = unpack_stat(unpack).ok_or_else(strange)?;
        let found = unpack_attributes(unpack).ok_or_else(strange)?;
        self.enter(&path)?;
        let directory = self.here()?;
        self.directory = None;
        let trouble = |errno| target_trouble(self.work, &self.place, b"", errno);
        attributes::write(&directory, &found).map_err(trouble)?;
        fs::futimens(&directory, &times(secs, nanos)).map_err(trouble)?;
        fs::fchmod(&directory, Mode::from_raw_mode(mode)).map_err(trouble)
    }
}
