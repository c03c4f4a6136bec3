//! Files that `sbcast` brings, written by a process that is the user's: forked by the fork server for a few pieces of one
//! caller, it becomes that user for good, and is killed when it takes too long. No thread of the agent is ever a user, who could
//! stop or kill the whole agent through it.
//!
//! ```text
//! agent ── frame: WriteOrder ──▶ writer (spurstepd) ── frame: Written ──▶ agent
//! ```
use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::ask::Piece;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use wire::peer::Peer;

use crate::frame::{self, Incoming};
use crate::launcher::Order;
use crate::protocol::{Birth, BirthTrade};
use crate::supervisor::Identity;
use crate::sys::{self, SocketKind};
use crate::table::Agent;

/// A piece that takes longer is not waited for: its file is not a file, or its file system hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Writers of one user at a time; further ones wait for their turn.
const WRITERS_MAX: usize = 4;

#[derive(Debug, Serialize, Deserialize)]
enum WriteOrder {
    Piece(Piece),
    Directory { path: String },
}

/// The turns of each user that writes now.
#[derive(Clone, Default)]
pub struct WriterTurns {
    users: Arc<Mutex<HashMap<u32, Arc<Semaphore>>>>,
}

impl WriterTurns {
    fn of(&self, uid: u32) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, turns| Arc::strong_count(turns) > 1);
        users.entry(uid).or_insert_with(|| Arc::new(Semaphore::new(WRITERS_MAX))).clone()
    }
}

pub async fn write(agent: &Agent, caller: Peer, piece: Piece) -> Result<(), String> {
    by_caller(agent, caller, WriteOrder::Piece(piece)).await
}

pub async fn make_directory(agent: &Agent, caller: Peer, path: String) -> Result<(), String> {
    by_caller(agent, caller, WriteOrder::Directory { path }).await
}

async fn by_caller(agent: &Agent, caller: Peer, order: WriteOrder) -> Result<(), String> {
    let own = sys::own_uid();
    if own != 0 && own != caller.uid {
        return Err(format!("this agent runs as uid {own} and cannot write files of uid {}", caller.uid));
    }
    let turns = agent.writers.of(caller.uid);
    let turn = turns.acquire_owned().await.map_err(|error| error.to_string())?;
    let (near, far) = sys::socket_pair(SocketKind::Stream).map_err(|error| describe(&error))?;
    let birth = Birth { uid: caller.uid, gid: caller.gid, user: String::new(), trade: BirthTrade::Writer };
    let given = agent.launcher.try_send(Order { birth, control: far });
    given.map_err(|_| "too many processes wait to be started".to_owned())?;
    let written = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        ask_writer(near, &order)
    });
    written.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Blocks, but not for long. The writer says first which process it is, so that it can be killed even if its user stops it.
fn ask_writer(line: OwnedFd, order: &WriteOrder) -> Result<(), String> {
    let failed = |error: io::Error| format!("the file could not be written: {}", describe(&error));
    let mut stream = UnixStream::from(line);
    stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE))).map_err(failed)?;
    let mut hello = [0; 1];
    let (_, fds) = sys::receive_with_fds(stream.as_fd(), &mut hello).map_err(failed)?;
    let writer = fds.into_iter().next();
    let answer = exchange(&mut stream, order);
    if answer.is_err()
        && let Some(writer) = &writer
    {
        let _ = pidfd_send_signal(writer, Signal::KILL);
    }
    answer.unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err("Connection timed out".into()),
        _ => Err(failed(error)),
    })
}

fn exchange(stream: &mut UnixStream, order: &WriteOrder) -> io::Result<Result<(), String>> {
    stream.write_all(&frame::encode(order))?;
    receive(stream, Incoming::of_users())?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn receive<T: serde::de::DeserializeOwned>(stream: &mut UnixStream, mut incoming: Incoming) -> io::Result<Option<T>> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match incoming.take() {
            Ok(Some(value)) => return Ok(Some(value)),
            Ok(None) => {}
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => incoming.push(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The writer's life, in a process just forked: one order.
pub fn serve(mut line: UnixStream, identity: &Identity) {
    let me = pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
    let fds: Vec<i32> = me.iter().map(AsRawFd::as_raw_fd).collect();
    if sys::send_with_fds(line.as_fd(), b"w", &fds).is_err() {
        return;
    }
    drop(me);
    if identity.assume().is_err() {
        return;
    }
    // SAFETY: plain calls in a process with one thread.
    unsafe {
        libc::setsid();
        libc::umask(0o077);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    }
    let done = match receive(&mut line, Incoming::default()) {
        Ok(Some(WriteOrder::Piece(piece))) => put(&piece),
        Ok(Some(WriteOrder::Directory { path })) => make(&path),
        Ok(None) | Err(_) => return,
    };
    let _ = line.write_all(&frame::encode(&done.map_err(|error| describe(&error))));
}

fn make(path: &str) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::symlink_metadata(path)?.is_dir() => Ok(()),
        done => done,
    }
}

fn put(piece: &Piece) -> io::Result<()> {
    let file = open(piece)?;
    // What has a reader, a driver or another end is no file to leave a copy in.
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(Errno::INVAL));
    }
    if piece.offset == 0 && piece.replaces {
        file.set_len(0)?;
    }
    file.write_all_at(&piece.data, piece.offset)?;
    let Some(end) = &piece.last else { return Ok(()) };
    file.set_len(end.size)?;
    file.set_permissions(fs::Permissions::from_mode(end.mode & 0o7777))?;
    if let Some(times) = &end.times {
        let stamp = |secs| libc::timespec { tv_sec: secs, tv_nsec: 0 };
        let times = [stamp(times.accessed_secs), stamp(times.modified_secs)];
        // SAFETY: the descriptor and both stamps are valid.
        sys::check(unsafe { libc::futimens(file.as_raw_fd(), times.as_ptr()) })?;
    }
    Ok(())
}

/// Waits for no reader of a pipe and no lease, and follows no link that stands for something of this process.
fn open(piece: &Piece) -> io::Result<fs::File> {
    let create = match (piece.offset == 0, piece.replaces) {
        (true, true) => OFlags::CREATE,
        (true, false) => OFlags::CREATE | OFlags::EXCL,
        (false, _) => OFlags::empty(),
    };
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | create;
    let mode = if create.is_empty() { Mode::empty() } else { Mode::from_raw_mode(0o600) };
    match rustix::fs::openat2(CWD, piece.path.as_str(), flags, mode, ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => {}
        Err(Errno::NXIO) => return Err(Errno::INVAL.into()),
        opened => return Ok(opened?.into()),
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(flags);
    options.create(create == OFlags::CREATE).create_new(create.contains(OFlags::EXCL)).open(&piece.path)
}

fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
