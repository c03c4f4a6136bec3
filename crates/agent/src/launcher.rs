//! The agent's side of the fork server: this binary, started once more as `spurstepd`, and again whenever it is gone.
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use model::codec;
use prolog::inheritance::clean_environment;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::protocol::Birth;
use crate::supervisor::SERVER_FD;
use crate::sys::{self, SocketKind};

/// Births that the fork server has not been told of. Each holds a descriptor.
const ORDERS_MAX: usize = 16_384;

/// A supervisor to be, and its end of the agent's socket.
pub struct Order {
    pub birth: Birth,
    pub control: OwnedFd,
}

/// Starts the server and a task that feeds it. An order that cannot be given is dropped, which its socket tells the agent.
pub fn start() -> io::Result<Sender<Order>> {
    let server = Server::start()?;
    let (give, orders) = channel(ORDERS_MAX);
    tokio::spawn(feed(server, orders));
    Ok(give)
}

/// The limit this process was started with, which jobs inherit unless they bring their own.
static STARTED_WITH: OnceLock<(u64, u64)> = OnceLock::new();

/// Each run costs the agent a descriptor: takes as many as it may.
pub fn raise_open_files_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct is valid.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return;
        }
        let _ = STARTED_WITH.set((limit.rlim_cur, limit.rlim_max));
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

fn open_files_limit() -> Option<libc::rlimit> {
    STARTED_WITH.get().map(|(soft, hard)| libc::rlimit { rlim_cur: *soft, rlim_max: *hard })
}

struct Server {
    socket: AsyncFd<OwnedFd>,
    process: Child,
}

impl Server {
    fn start() -> io::Result<Self> {
        let (near, far) = sys::socket_pair(SocketKind::Packets)?;
        let mut command = Command::new("/proc/self/exe");
        // What the agent was started with is not for processes that users may one day look into.
        clean_environment(&mut command);
        command.arg0("spurstepd").stdin(Stdio::null()).stdout(Stdio::null());
        let fd = far.as_raw_fd();
        let limit = open_files_limit();
        // SAFETY: between fork and exec only async-signal-safe calls are made.
        unsafe {
            command.pre_exec(move || {
                if fd == SERVER_FD {
                    sys::check(libc::fcntl(fd, libc::F_SETFD, 0))?;
                } else {
                    sys::check(libc::dup2(fd, SERVER_FD))?;
                }
                if let Some(limit) = limit {
                    libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
                }
                Ok(())
            });
        }
        let process = command.spawn()?;
        sys::set_nonblocking(near.as_fd())?;
        // SAFETY: the descriptor is owned by what is registered, and closed only with it.
        let socket = unsafe { AsyncFd::register_with_interest(near, Interest::WRITABLE)? };
        Ok(Server { socket, process })
    }

    async fn give(&self, order: &Order) -> io::Result<()> {
        let bytes = codec::encode(&order.birth);
        let fds = [order.control.as_raw_fd()];
        self.socket.async_io(Interest::WRITABLE, |socket| sys::send_with_fds(socket.as_fd(), &bytes, &fds)).await?;
        Ok(())
    }
}

async fn feed(mut server: Server, mut orders: Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        if server.give(&order).await.is_ok() {
            continue;
        }
        tracing::warn!("the fork server is gone; starting another");
        let _ = server.process.kill();
        let _ = server.process.wait();
        match Server::start() {
            Ok(fresh) => server = fresh,
            Err(error) => {
                tracing::error!(%error, "cannot start the fork server");
                continue;
            }
        }
        if let Err(error) = server.give(&order).await {
            tracing::error!(%error, "cannot reach the fork server");
        }
    }
}
