//! The sender: a process of the tree's owner that reads it for another node, and ends with the socket.
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::line::Line;
use super::{
    CHUNK, CHUNK_END, DATA, DATA_BYTES, DEPTH_MAX, DIRECTORY, END, FILE, FILE_END, HAVE, HELLO, IN, LINK, READY, SAME,
    TOTAL, TROUBLE, VERSION, WANT, pack_attributes, place, push,
};
use crate::attributes;
use crate::confine::{filter_calls, reach_of_sender, restrict_paths};
use crate::copy::batch::version_of;
use crate::fence::Fences;
use crate::hash::ChunkHash;
use crate::journal;
use crate::order::Order;
use crate::pace::Stop;
use crate::pack::{self, Unpack};
use crate::process::{self, NAME, ORDER_FD};
use crate::trouble::{shown, words};

/// The descriptor it speaks on; beside the order it is all that it has.
const LINE_FD: i32 = ORDER_FD + 1;
/// Its argument.
pub const SEND: &str = "send";

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);
const OPEN_DIRECTORY: OFlags = OPEN.union(OFlags::DIRECTORY);

/// Starts a sender of the order's only fence. It ends when the socket does.
pub fn start(executable: &Path, order: &Order, socket: OwnedFd, joins: Option<&Path>) -> std::io::Result<Child> {
    let mut order_file = File::from(rustix::fs::memfd_create("order", rustix::fs::MemfdFlags::CLOEXEC)?);
    order_file.write_all(&msgpack::encode(order).map_err(std::io::Error::other)?)?;
    order_file.seek(std::io::SeekFrom::Start(0))?;
    let mut command = Command::new(executable);
    command.arg0(NAME).arg(SEND).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    process::give(&mut command, vec![order_file.as_raw_fd(), socket.as_raw_fd()], joins);
    command.spawn()
}

/// What the process does.
pub fn serve() -> i32 {
    // SAFETY: whoever starts a sender gives it exactly these descriptors; nothing else in this process knows of them.
    let [order, socket] = unsafe { [ORDER_FD, LINE_FD].map(|fd| OwnedFd::from_raw_fd(fd)) };
    process::stand_alone(LINE_FD + 1);
    match prepared(File::from(order)).and_then(|(order, stop)| send(&order, socket.into(), &stop)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{NAME}: {error}");
            1
        }
    }
}

fn prepared(mut file: File) -> std::io::Result<(Order, std::sync::Arc<Stop>)> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let order: Order = msgpack::decode(&bytes).map_err(std::io::Error::other)?;
    process::give_way();
    process::hold_back_signals();
    if let Some(identity) = &order.identity {
        process::become_user(identity)?;
    }
    restrict_paths(&reach_of_sender(&order))?;
    let stop = process::listen()?;
    filter_calls()?;
    Ok((order, stop))
}

fn send(order: &Order, socket: UnixStream, stop: &Stop) -> std::io::Result<()> {
    let mut line = Line::new(socket, stop)?;
    let wants = greet(&mut line)?;
    let opened = Fences::open(&order.fences).map_err(|(path, errno)| format!("{}: {}", shown(&path), words(errno)));
    let mut sender = Sender { line, wants, path: Vec::new(), buffer: vec![0; DATA_BYTES], n_files: 0 };
    let sent = opened.map_err(Ill::Told).and_then(|fences| {
        let (files, bytes) = count(fences.root(0).0, 0).map_err(|errno| Ill::Told(words(errno)))?;
        let mut body = Vec::new();
        pack::number(&mut body, files);
        pack::number(&mut body, bytes);
        sender.line.say(TOTAL, &body)?;
        sender.directory(fences.root(0).0, 0)
    });
    match sent {
        Ok(()) => {
            let mut body = Vec::new();
            pack::number(&mut body, sender.n_files);
            body.extend_from_slice(&sender.line.said().to_le_bytes());
            sender.line.say(END, &body)?;
        }
        Err(Ill::Told(why)) => sender.line.say(TROUBLE, why.as_bytes())?,
        Err(Ill::Line(error)) => return Err(error),
    }
    sender.line.flush()
}

struct Wants {
    chunk_bytes: u64,
    split_bytes: u64,
    with_attributes: bool,
    have: HashSet<u64>,
}

fn greet(line: &mut Line) -> std::io::Result<Wants> {
    let strange = || std::io::Error::new(std::io::ErrorKind::InvalidData, "the other end speaks otherwise");
    let (kind, body) = line.hear()?;
    let mut unpack = Unpack(body);
    if kind != HELLO || unpack.number() != Some(VERSION) {
        return Err(strange());
    }
    let mut number = || unpack.number().ok_or_else(strange);
    let (chunk_bytes, split_bytes, with_attributes) = (number()?.max(1), number()?, number()? == 1);
    let mut have = HashSet::new();
    loop {
        match line.hear()? {
            (HAVE, body) => {
                have.extend(body.chunks_exact(8).map(|key| u64::from_le_bytes(key.try_into().expect("eight bytes"))));
            }
            (READY, _) => return Ok(Wants { chunk_bytes, split_bytes, with_attributes, have }),
            _ => return Err(strange()),
        }
    }
}

/// What ends the sending: a broken line, or something the other end is told.
enum Ill {
    Line(std::io::Error),
    Told(String),
}

impl From<std::io::Error> for Ill {
    fn from(error: std::io::Error) -> Self {
        Ill::Line(error)
    }
}

fn names(directory: impl AsFd) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(found)
}

/// Files and links, and their bytes.
fn count(directory: impl AsFd, depth: usize) -> Result<(u64, u64), Errno> {
    let (mut files, mut bytes) = (0, 0);
    for (name, _) in names(&directory)? {
        let name = OsStr::from_bytes(&name);
        let stat = fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth < DEPTH_MAX => {
                let (more, their) = count(fs::openat(&directory, name, OPEN_DIRECTORY, Mode::empty())?, depth + 1)?;
                (files, bytes) = (files + more, bytes + their);
            }
            FileType::RegularFile => (files, bytes) = (files + 1, bytes + stat.st_size as u64),
            FileType::Symlink => files += 1,
            _ => {}
        }
    }
    Ok((files, bytes))
}

struct Sender<'a> {
    line: Line<'a>,
    wants: Wants,
    path: Vec<u8>,
    buffer: Vec<u8>,
    n_files: u64,
}

impl Sender<'_> {
    fn told(&self, name: &[u8], errno: Errno) -> Ill {
        let mut path = self.path.clone();
        push(&mut path, name);
        Ill::Told(format!("{}: {}", shown(Path::new(OsStr::from_bytes(&path))), words(errno)))
    }

    fn directory(&mut self, directory: impl AsFd, depth: usize) -> Result<(), Ill> {
        if depth > DEPTH_MAX {
            return Err(self.told(b"", Errno::NAMETOOLONG));
        }
        let stat = fs::fstat(&directory).map_err(|errno| self.told(b"", errno))?;
        let names = names(&directory).map_err(|errno| self.told(b"", errno))?;
        self.line.say(IN, &self.path.clone())?;
        let mut below = Vec::new();
        for (name, _) in names {
            let at = OsStr::from_bytes(&name);
            let found =
                fs::statat(&directory, at, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| self.told(&name, errno))?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => below.push(name),
                FileType::RegularFile => self.file(&directory, &name)?,
                FileType::Symlink => self.link(&directory, &name, &found)?,
                _ => {}
            }
        }
        for name in below {
            let opened = fs::openat(&directory, OsStr::from_bytes(&name), OPEN_DIRECTORY, Mode::empty());
            let opened = opened.map_err(|errno| self.told(&name, errno))?;
            let length = self.path.len();
            push(&mut self.path, &name);
            self.directory(&opened, depth + 1)?;
            self.path.truncate(length);
        }
        // The head is the other agent's to make.
        if depth == 0 {
            return Ok(());
        }
        let mut body = Vec::new();
        pack::bytes(&mut body, &self.path);
        pack_stat(&mut body, &stat);
        if self.wants.with_attributes {
            let found = attributes::read(&directory).map_err(|errno| self.told(b"", errno))?;
            pack_attributes(&mut body, &found);
        }
        Ok(self.line.say(DIRECTORY, &body)?)
    }

    fn link(&mut self, directory: impl AsFd, name: &[u8], stat: &Stat) -> Result<(), Ill> {
        let text = fs::readlinkat(&directory, OsStr::from_bytes(name), Vec::new());
        let text = text.map_err(|errno| self.told(name, errno))?;
        let mut body = Vec::new();
        pack::bytes(&mut body, name);
        pack_stat(&mut body, stat);
        pack::bytes(&mut body, text.to_bytes());
        self.n_files += 1;
        Ok(self.line.say(LINK, &body)?)
    }

    fn file(&mut self, directory: impl AsFd, name: &[u8]) -> Result<(), Ill> {
        let opened = fs::openat(&directory, OsStr::from_bytes(name), OPEN, Mode::empty());
        let file = opened.map_err(|errno| self.told(name, errno))?;
        let before = fs::fstat(&file).map_err(|errno| self.told(name, errno))?;
        if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
            return Err(self.told(name, Errno::INVAL));
        }
        let size_bytes = before.st_size as u64;
        let key = journal::key(&place(&self.path), name, &version_of(&before));
        self.n_files += 1;
        let mut body = Vec::new();
        if self.wants.have.contains(&key) {
            pack::number(&mut body, size_bytes);
            return Ok(self.line.say(SAME, &body)?);
        }
        pack::bytes(&mut body, name);
        pack_stat(&mut body, &before);
        pack::number(&mut body, size_bytes);
        if self.wants.with_attributes {
            let found = attributes::read(&file).map_err(|errno| self.told(name, errno))?;
            pack_attributes(&mut body, &found);
        }
        self.line.say(FILE, &body)?;
        let n_chunks = size_bytes.div_ceil(self.wants.chunk_bytes).max(1);
        let is_wanted = if size_bytes > self.wants.split_bytes { self.wanted(n_chunks)? } else { None };
        for index in 0..n_chunks {
            if is_wanted.as_ref().is_none_or(|wanted: &HashSet<u64>| wanted.contains(&index)) {
                self.chunk(&file, name, &before, index)?;
            }
        }
        let after = fs::fstat(&file).map_err(|errno| self.told(name, errno))?;
        if version_of(&after) != version_of(&before) {
            return Err(Ill::Told(format!("{} has changed meanwhile", shown(Path::new(OsStr::from_bytes(name))))));
        }
        Ok(self.line.say(FILE_END, &[])?)
    }

    /// What the other end lacks of a large file.
    fn wanted(&mut self, n_chunks: u64) -> Result<Option<HashSet<u64>>, Ill> {
        self.line.flush()?;
        let (kind, body) = self.line.hear()?;
        if kind != WANT {
            return Err(Ill::Told("an answer to another question".into()));
        }
        let mut unpack = Unpack(body);
        let mut found = HashSet::new();
        while !unpack.0.is_empty() {
            found.extend(unpack.number().filter(|index| *index < n_chunks));
        }
        Ok(Some(found))
    }

    fn chunk(&mut self, file: &OwnedFd, name: &[u8], stat: &Stat, index: u64) -> Result<(), Ill> {
        let start = index * self.wants.chunk_bytes;
        let end = (start + self.wants.chunk_bytes).min(stat.st_size as u64);
        let mut body = Vec::new();
        pack::number(&mut body, index);
        self.line.say(CHUNK, &body)?;
        let is_sparse = (stat.st_blocks as u64).saturating_mul(512) < stat.st_size as u64;
        let mut hash = ChunkHash::new();
        let mut at = start;
        while at < end {
            let (data, hole) = if is_sparse { extent(file, at, end) } else { Ok((at, end)) }
                .map_err(|errno| self.told(name, errno))?;
            hash.update_zeros(data - at);
            at = data;
            while at < hole {
                let length = DATA_BYTES.min((hole - at) as usize);
                let mut read = 0;
                while read < length {
                    match rustix::io::pread(file, &mut self.buffer[read..length], at + read as u64) {
                        Ok(0) => return Err(self.told(name, Errno::IO)),
                        Ok(more) => read += more,
                        Err(Errno::INTR) => {}
                        Err(errno) => return Err(self.told(name, errno)),
                    }
                }
                hash.update(&self.buffer[..length]);
                let mut body = Vec::with_capacity(length + 10);
                pack::number(&mut body, at);
                body.extend_from_slice(&self.buffer[..length]);
                self.line.say(DATA, &body)?;
                at += length as u64;
            }
        }
        Ok(self.line.say(CHUNK_END, &hash.finish().to_le_bytes())?)
    }
}

/// The next data at or after a place, and where it ends.
fn extent(file: &OwnedFd, at: u64, end: u64) -> Result<(u64, u64), Errno> {
    let data = match fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(end),
        Err(Errno::NXIO) => return Ok((end, end)),
        Err(Errno::INVAL | Errno::NOTSUP) => return Ok((at, end)),
        Err(errno) => return Err(errno),
    };
    if data == end {
        return Ok((end, end));
    }
    Ok((data, fs::seek(file, SeekFrom::Hole(data))?.min(end)))
}

fn pack_stat(out: &mut Vec<u8>, stat: &Stat) {
    pack::number(out, u64::from(stat.st_mode & 0o1777));
    pack::signed(out, stat.st_mtime);
    pack::number(out, stat.st_mtime_nsec);
}
