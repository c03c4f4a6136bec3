//! The process with the PMIx server: the library has threads of its own, which a supervisor must not have, and hears the
//! user's programs, so it runs as the user.
use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pmix::{Event, Job, Server};

use super::protocol::{FromServer, ToServer};
use crate::frame::{self, Incoming};

/// The descriptor of the supervisor's line.
pub const LINE_FD: i32 = 3;

/// Serves until the supervisor hangs up.
pub fn serve() -> i32 {
    // SAFETY: the supervisor gives the socket at this number; a foreign caller gets an error from the first read.
    let line = unsafe {
        libc::fcntl(LINE_FD, libc::F_SETFD, libc::FD_CLOEXEC);
        UnixStream::from(OwnedFd::from_raw_fd(LINE_FD))
    };
    let Ok(writer) = line.try_clone() else { return 1 };
    let writer = Arc::new(Mutex::new(writer));
    let say = move |message: &FromServer| {
        let mut line = writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A supervisor that is gone is noticed by the reader.
        let _ = line.write_all(&frame::encode(message));
    };
    let mut hear = Hear { line, incoming: Incoming::default() };
    let Some(ToServer::Setup(job)) = hear.next() else {
        eprintln!("spurpmixd: started by a supervisor only");
        return 1;
    };
    let directory = PathBuf::from(format!("/tmp/spur-pmix-{}-{}-{}", job.id, job.here, std::process::id()));
    let tell = say.clone();
    let job = Job { directory: directory.clone(), ..job };
    let server = match start(job, move |event| tell(&FromServer::Said(event)), &say) {
        Ok(server) => server,
        Err(why) => {
            say(&FromServer::Failed { why });
            clear(&directory);
            return 1;
        }
    };
    while let Some(message) = hear.next() {
        match message {
            ToServer::Setup(_) => {}
            ToServer::Answer { number, status, data } => server.answer(number, status, data),
            ToServer::Fetch { number, rank } => server.fetch(number, rank),
        }
    }
    clear(&directory);
    // At once: the library's threads and exit handlers have nothing more to do.
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}

/// Where shared memory of the tasks goes on a machine with several nodes, whose tasks Open MPI 4 would mix up.
fn shared_memory(directory: &Path) -> PathBuf {
    Path::new("/dev/shm").join(directory.file_name().unwrap_or_default())
}

fn clear(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
    let _ = std::fs::remove_dir_all(shared_memory(directory));
}

/// The node is one of several on this machine: its name is not the machine's.
fn is_one_of_several(node: &str) -> bool {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let short = |name: &str| name.trim().split('.').next().unwrap_or_default().to_owned();
    short(&host) != short(node)
}

fn start(job: Job, tell: impl Fn(Event) + Send + Sync + 'static, say: &impl Fn(&FromServer)) -> Result<Server, String> {
    let directory = job.directory.clone();
    DirBuilder::new().mode(0o700).create(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let own = job.nodes.get(job.here).ok_or("no place among the nodes")?;
    let (name, here) = (own.name.clone(), own.ranks.clone());
    let server = Server::start(job, tell)?;
    let shared = shared_memory(&directory);
    let own_memory = is_one_of_several(&name) && DirBuilder::new().mode(0o700).create(&shared).is_ok();
    let of_task = |rank: u32| {
        let mut variables = server.variables(rank)?;
        if own_memory {
            variables.push(("OMPI_MCA_btl_vader_backing_directory".into(), shared.display().to_string()));
        }
        Ok((rank, variables))
    };
    let variables = here.into_iter().map(of_task).collect::<Result<_, String>>()?;
    say(&FromServer::Ready { variables });
    Ok(server)
}

struct Hear {
    line: UnixStream,
    incoming: Incoming,
}

impl Hear {
    /// None when the supervisor has hung up, or says what cannot be read.
    fn next(&mut self) -> Option<ToServer> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.incoming.take() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(_) => return None,
            }
            match self.line.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.incoming.push(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
