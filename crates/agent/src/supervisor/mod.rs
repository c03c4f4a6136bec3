//! The fork server, and behind each of its forks a supervisor: small, single-threaded, without a runtime.
//!
//! The agent starts its own binary once as `spurstepd`; each launch then costs a fork of that small process instead of an exec
//! of a large one. The server knows nothing of runs: it passes a socket on, and looks users up. A supervisor whose run is over
//! can have the next one of its user.
mod binding;
mod carried_out;
mod clearing;
mod control;
mod debugged;
mod delivered;
mod environment;
mod files;
mod freezer;
mod gpu_environment;
mod het_environment;
mod identity;
mod lower;
mod measure;
mod memory;
mod notes;
mod pmi;
mod pmix;
mod streams;
mod task;
mod task_scripts;
mod watch;
mod work;

use std::collections::HashMap;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::codec;
use prolog::inheritance::reset_signals;

use crate::protocol::{Birth, BirthTrade};
use crate::{sys, writing};
pub use control::through;
pub use environment::TAG;
pub use identity::Identity;
pub use pmix::{NAME as PMIX_NAME, serve as serve_pmix};

/// Both process manager interfaces, as the tasks of a user speak them.
#[doc(hidden)]
pub mod foreign_bytes {
    pub use super::pmi::wire::{Message as PmiMessage, Version as PmiVersion, take as take_pmi_message};
    pub use super::pmi::{News as PmiNews, Server as PmiServer};
    pub use super::pmix::protocol::{FromServer, ToServer};
}

/// The descriptor on which the fork server finds its socket.
pub const SERVER_FD: i32 = 3;
/// How long a user's groups are remembered.
const IDENTITY_KEPT: Duration = Duration::from_secs(60);

/// Forks supervisors until the agent closes the socket on descriptor 3.
pub fn serve(_arguments: impl IntoIterator<Item = std::ffi::OsString>) -> i32 {
    // SAFETY: the agent gives the socket at this number; a foreign caller gets an error from the first read.
    let socket = unsafe { OwnedFd::from_raw_fd(SERVER_FD) };
    reset_signals();
    // SAFETY: plain calls in a process that has just begun. Children are reaped by the kernel.
    unsafe {
        libc::setsid();
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::fcntl(SERVER_FD, libc::F_SETFD, libc::FD_CLOEXEC);
        // Whoever started the agent may have left descriptors open; jobs must not see them.
        libc::syscall(libc::SYS_close_range, SERVER_FD + 1, u32::MAX, 0);
        libc::prctl(libc::PR_SET_NAME, c"spurstepd".as_ptr());
    }
    lower::give_up_daemons_favours();
    let mut identities: HashMap<(u32, u32, String), (Instant, Identity)> = HashMap::new();
    let mut buffer = vec![0; 4096];
    loop {
        let (length, fds) = match sys::receive_with_fds(socket.as_fd(), &mut buffer) {
            Ok((0, _)) => return 0,
            Ok(received) => received,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                eprintln!("spurstepd: started by the agent only: {error}");
                return 1;
            }
        };
        // What is not understood is dropped: the agent sees its end of the socket closed.
        let Ok(birth) = codec::decode::<Birth>(&buffer[..length]) else { continue };
        let Ok([control]) = <[OwnedFd; 1]>::try_from(fds) else { continue };
        let trade = birth.trade;
        let key = (birth.uid, birth.gid, birth.user);
        let now = Instant::now();
        identities.retain(|_, (since, _)| now.duration_since(*since) < IDENTITY_KEPT);
        let (_, identity) =
            identities.entry(key).or_insert_with_key(|(uid, gid, user)| (now, Identity::look_up(*uid, *gid, user)));
        // SAFETY: this process has one thread, so the child may go on as it likes.
        if unsafe { libc::fork() } == 0 {
            drop(socket);
            match trade {
                BirthTrade::Supervisor => watch::supervise_all(UnixStream::from(control), identity),
                BirthTrade::Writer => writing::serve(UnixStream::from(control), identity),
            }
            // SAFETY: ends without the server's exit handlers.
            unsafe { libc::_exit(0) };
        }
    }
}
