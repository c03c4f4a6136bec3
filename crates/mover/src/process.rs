//! The mover as a process: started by an agent with open files instead of paths, it becomes the user, gives up everything else,
//! does the errand and writes how it ended into the status file.
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::confine::{filter_calls, reach_of, restrict_paths};
use crate::order::{Identity, Order};
use crate::{Ending, Files, Outcome, Status, Stop, commands, run};

/// The descriptors a mover is born with.
pub const ORDER_FD: RawFd = 3;
pub const JOURNAL_FD: RawFd = 4;
pub const STATUS_FD: RawFd = 5;
pub const SCRATCH_FD: RawFd = 6;
/// Only of one that copies from another node (`PEER`).
pub const PEER_FD: RawFd = 7;

/// What a mover is called.
pub const NAME: &str = "spurmover";
/// Its argument when it is only to remove what an earlier one has left.
pub const CLEAN: &str = "clean";
/// Its argument when it has a peer.
const PEER: &str = "peer";

/// Starts a mover in a process of its own. It outlives its starter; its journal stays locked for as long as it lives.
/// `joins`: a cgroup's file that takes its number, written to before anything else is done.
pub fn start(
    executable: &Path,
    order: &Order,
    files: Files,
    is_cleaning: bool,
    joins: Option<&Path>,
) -> std::io::Result<Child> {
    let status = files.status.ok_or_else(|| std::io::Error::other("a mover needs a status file"))?;
    let mut order_file = File::from(rustix::fs::memfd_create("order", rustix::fs::MemfdFlags::CLOEXEC)?);
    order_file.write_all(&msgpack::encode(order).map_err(std::io::Error::other)?)?;
    order_file.seek(std::io::SeekFrom::Start(0))?;
    lock(&files.journal)?;
    let mut given = [&order_file, &files.journal, &status, &files.scratch].map(|file| file.as_raw_fd()).to_vec();
    given.extend(files.peer.as_ref().map(|peer| peer.as_raw_fd()));
    let mut command = Command::new(executable);
    command.arg0(NAME).args(is_cleaning.then_some(CLEAN)).args(files.peer.as_ref().map(|_| PEER)).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    give(&mut command, given, joins);
    command.spawn()
}

/// The child is born with these descriptors, from `ORDER_FD` on, and in this cgroup.
pub(crate) fn give(command: &mut Command, given: Vec<RawFd>, joins: Option<&Path>) {
    use std::os::unix::ffi::OsStrExt;
    let joins = joins.and_then(|file| std::ffi::CString::new(file.as_os_str().as_bytes()).ok());
    let mut high = vec![0; given.len()];
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            if let Some(file) = &joins {
                // It works as well where it is not let in.
                let fd = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                if fd >= 0 {
                    libc::write(fd, c"0".as_ptr().cast(), 1);
                    libc::close(fd);
                }
            }
            // Out of the way first: a descriptor may already have the number that another one gets.
            for (fd, high) in given.iter().zip(&mut high) {
                *high = libc::fcntl(*fd, libc::F_DUPFD_CLOEXEC, 64);
                if *high < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            for (high, fd) in high.iter().zip(ORDER_FD..) {
                if libc::dup2(*high, fd) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Somebody who only looks whether a mover is there shares the lock for an instant, and on a busy machine may not come to let go of it
/// for long. Another mover has it for itself.
fn lock(journal: &File) -> std::io::Result<()> {
    use rustix::fs::FlockOperation::{NonBlockingLockExclusive, NonBlockingLockShared};
    const LOOKS: u32 = 50;
    const PATIENCE: Duration = Duration::from_secs(30);
    let until = Instant::now() + PATIENCE;
    let mut n_left = LOOKS;
    loop {
        let taken = rustix::fs::flock(journal, NonBlockingLockExclusive);
        if taken != Err(rustix::io::Errno::WOULDBLOCK) {
            return Ok(taken?);
        }
        let is_anothers = rustix::fs::flock(journal, NonBlockingLockShared).is_err();
        n_left -= u32::from(is_anothers);
        if n_left == 0 || Instant::now() > until {
            return Ok(taken?);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until no mover holds this journal.
pub fn wait_gone(journal: &File) -> std::io::Result<()> {
    loop {
        match rustix::fs::flock(journal, rustix::fs::FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Exit statuses; what counts is the status file.
const DONE: i32 = 0;
const FAILED: i32 = 1;
const UNUSABLE: i32 = 2;

pub fn serve(arguments: impl Iterator<Item = std::ffi::OsString>) -> i32 {
    let arguments: Vec<_> = arguments.collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has(crate::mirror::SEND) {
        return crate::mirror::serve();
    }
    let is_cleaning = has(CLEAN);
    match prepare(has(PEER)) {
        Ok((order, files, stop)) if is_cleaning => {
            drop(stop);
            if crate::clean(&order, &files.journal).is_ok() { DONE } else { FAILED }
        }
        Ok((order, files, stop)) => {
            // The lock says that somebody is at it: until it is written how that ended, and while commands run, which do not inherit it.
            let _locked = files.journal.try_clone();
            let status = if order.commands.is_empty() {
                run(&order, files, &stop)
            } else {
                commands::run_after(&order, files, &stop)
            };
            let is_done = status.outcome.is_some_and(|outcome| outcome.ending == crate::Ending::Done);
            if is_done { DONE } else { FAILED }
        }
        Err(error) => {
            eprintln!("{NAME}: {error}");
            UNUSABLE
        }
    }
}

fn prepare(has_peer: bool) -> std::io::Result<(Order, Files, Arc<Stop>)> {
    // SAFETY: whoever starts a mover gives it exactly these descriptors; nothing else in this process knows of them.
    let [order, journal, status, scratch] =
        unsafe { [ORDER_FD, JOURNAL_FD, STATUS_FD, SCRATCH_FD].map(|fd| File::from(OwnedFd::from_raw_fd(fd))) };
    // SAFETY: as above.
    let peer = has_peer.then(|| unsafe { UnixStream::from(OwnedFd::from_raw_fd(PEER_FD)) });
    stand_alone(if has_peer { PEER_FD } else { SCRATCH_FD } + 1);
    let mut bytes = Vec::new();
    let mut order_file = order;
    order_file.read_to_end(&mut bytes)?;
    let order: Order = msgpack::decode(&bytes).map_err(std::io::Error::other)?;
    // From here on whoever knows the status file can end this process.
    let _ = crate::write_status(&status, &Status { pid: std::process::id(), ..Status::default() });
    match become_harmless(&order) {
        Ok(stop) => Ok((order, Files { journal, status: Some(status), scratch, peer }, stop)),
        Err(error) => {
            let why = format!("the mover cannot be confined: {error}");
            let outcome = Outcome { ending: Ending::Failed, n_errors: 1, errors: vec![why], ..Outcome::default() };
            let told = Status { pid: std::process::id(), outcome: Some(outcome), ..Status::default() };
            let _ = crate::write_status(&status, &told);
            Err(error)
        }
    }
}

/// Becomes the user, and keeps only what the order needs. Commands of the user's are programs like any other.
fn become_harmless(order: &Order) -> std::io::Result<Arc<Stop>> {
    raise_open_files_limit();
    if order.is_background {
        give_way();
    }
    hold_back_signals();
    if let Some(identity) = &order.identity {
        become_user(identity)?;
    }
    if !order.commands.is_empty() {
        return listen();
    }
    restrict_paths(&reach_of(order))?;
    let stop = listen()?;
    filter_calls()?;
    Ok(stop)
}

/// With no descriptors from this one on, and nobody's terminal.
pub(crate) fn stand_alone(first_fd: RawFd) {
    // SAFETY: plain calls; no other descriptor is in use yet.
    unsafe {
        libc::close_range(first_fd as u32, u32::MAX, 0);
        libc::umask(0o077);
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"spurmover".as_ptr());
    }
}

/// Signals that call the errand off.
pub(crate) const CALL_OFF: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Until a thread waits for them. The mask is inherited by every later thread.
pub(crate) fn hold_back_signals() -> libc::sigset_t {
    // SAFETY: the set is initialised before it is used.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        for signal in CALL_OFF {
            libc::sigaddset(&mut signals, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        signals
    }
}

/// One thread waits for those.
pub(crate) fn listen() -> std::io::Result<Arc<Stop>> {
    let stop = Arc::new(Stop::default());
    let told = stop.clone();
    let signals = hold_back_signals();
    std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
        let mut signal = 0;
        // SAFETY: both are valid.
        unsafe { libc::sigwait(&signals, &mut signal) };
        told.set();
    })?;
    Ok(stop)
}

/// For good. Nothing of root is left: no groups, no capabilities, and no way to gain them by running a program.
pub(crate) fn become_user(identity: &Identity) -> std::io::Result<()> {
    let check = |result: libc::c_int| if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: plain calls on valid values.
    unsafe {
        if libc::geteuid() == 0 {
            if identity.uid != 0 {
                // Not even a program with capabilities of its own could give any back. The kernel says where the list ends.
                let mut capability: libc::c_ulong = 0;
                while libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) == 0 {
                    capability += 1;
                }
            }
            check(libc::setgroups(identity.groups.len(), identity.groups.as_ptr()))?;
            check(libc::setresgid(identity.gid, identity.gid, identity.gid))?;
            // Every thread of the process changes with this one; capabilities go with the last uid 0.
            check(libc::setresuid(identity.uid, identity.uid, identity.uid))?;
            // The user must not be able to write into root's journal through this process.
            check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
    }
    Ok(())
}

fn raise_open_files_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct is valid.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max.min(65_536);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Lowest of the ordinary classes: it still moves on a busy machine, but last.
pub(crate) fn give_way() {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_BEST_EFFORT_LOWEST: libc::c_int = (2 << 13) | 7;
    // SAFETY: plain calls about this process.
    unsafe {
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_BEST_EFFORT_LOWEST);
        libc::setpriority(libc::PRIO_PROCESS, 0, 10);
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    /// Whoever looks may lose the processor between the look and the end of it.
    #[test]
    fn a_journal_that_is_only_looked_at_is_had_in_the_end() {
        let path = std::env::temp_dir().join(format!("spur-lock-{}", std::process::id()));
        let open = || File::options().read(true).append(true).create(true).open(&path).unwrap();
        let looks = open();
        flock(&looks, FlockOperation::LockShared).unwrap();
        let held = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            drop(looks);
        });
        let journal = open();
        lock(&journal).expect("nobody has it for himself");
        held.join().unwrap();
        let another = lock(&open()).expect_err("a mover has it");
        assert_eq!(another.kind(), std::io::ErrorKind::WouldBlock);
        std::fs::remove_file(&path).unwrap();
    }
}
