//! The supervisor's end of its PMIx server (`--mpi=pmix`), a process of its own.
//!
//! ```text
//! tasks ── libpmix ── spurpmixd ── this ── FromStep::{Gather, Fetch, Fetched} ──▶ srun ──▶ the same of the other nodes
//! ```
//! Fences of the tasks of one node need nobody else. Those of several nodes meet in srun, which also carries what one
//! task asks of another (`Fetch`). Groups of ranks fence independently; each has a count of its own.
mod process;
pub(super) mod protocol;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use model::CpuSet;
use model::attach::FromStep;
use model::step::Mpi;
use pmix::{Event, Job, NOT_FOUND, Node, SUCCESS};

use super::identity::Identity;
use super::task;
use crate::birth;
use crate::frame::{self, Incoming};
use crate::protocol::Start;
use crate::sys;
use process::LINE_FD;
pub use process::serve;
use protocol::{FromServer, ToServer};

/// What the server process is called.
pub const NAME: &str = "spurpmixd";
const NAME_TEXT: &CStr = c"spurpmixd";
const PATH_TEXT: &CStr = c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Those of an outer step must not shine through.
pub const VARIABLES: [&str; 2] = ["PMIX_NAMESPACE", "PMIX_RANK"];
/// How long it may take until it can serve, and until it is gone.
const BIRTH_PATIENCE: Duration = Duration::from_secs(30);
const DEATH_PATIENCE: Duration = Duration::from_secs(2);

/// What the server has not taken yet, besides one message of any size.
const OUTGOING_BYTES_MAX: usize = 64 << 20;

pub struct Server {
    pid: i32,
    line: Option<UnixStream>,
    incoming: Incoming,
    outgoing: Vec<u8>,
    /// Of every node of the step.
    ranks: Vec<Vec<u32>>,
    here: usize,
    variables: BTreeMap<u32, Vec<(String, String)>>,
    /// Tasks that have come and not said good-bye.
    present: BTreeSet<u32>,
    /// How often each group has met, and which of the server's numbers waits for it now.
    groups: BTreeMap<String, (u32, u64)>,
    /// Who asked, and under which number, for what the server is looking for.
    fetches: BTreeMap<u64, (u32, u64)>,
    next_fetch: u64,
}

impl Server {
    /// None for steps that want none. The error says why there is none on this node.
    pub fn start(start: &Start, identity: &Identity) -> Result<Option<Self>, String> {
        let launch = &start.launch;
        let Some(spec) = launch.step_spec.as_ref().filter(|spec| spec.mpi == Mpi::Pmix) else { return Ok(None) };
        if launch.het.as_ref().is_some_and(|het| het.step.is_some()) {
            return Err("--mpi=pmix does not work for steps over several components".into());
        }
        let ranks = spec.ranks(&launch.step_shares, launch.n_tasks);
        let names = launch.step_shares.iter().map(|share| share.node.to_string());
        let id = format!("{}.{}", launch.job, launch.step);
        let job = Job {
            namespace: format!("slurm.pmix.{id}"),
            id,
            uid: identity.uid,
            gid: identity.gid,
            nodes: names.zip(ranks.iter().cloned()).map(|(name, ranks)| Node { name, ranks }).collect(),
            here: launch.node_index as usize,
            directory: Default::default(),
        };
        let (pid, line) = spawn(identity).map_err(|error| format!("cannot start a PMIx server: {error}"))?;
        let mut server = Server {
            pid,
            line: Some(line),
            incoming: Incoming::of_users(),
            outgoing: Vec::new(),
            ranks,
            here: job.here,
            variables: BTreeMap::new(),
            present: BTreeSet::new(),
            groups: BTreeMap::new(),
            fetches: BTreeMap::new(),
            next_fetch: 0,
        };
        server.say(&ToServer::Setup(job));
        match server.await_birth() {
            Ok(()) => Ok(Some(server)),
            Err(why) => {
                server.end();
                Err(why)
            }
        }
    }

    fn await_birth(&mut self) -> Result<(), String> {
        let until = Instant::now() + BIRTH_PATIENCE;
        loop {
            match self.incoming.take() {
                Ok(Some(FromServer::Ready { variables })) => {
                    self.variables = variables.into_iter().collect();
                    return Ok(());
                }
                Ok(Some(FromServer::Failed { why })) => return Err(format!("--mpi=pmix cannot be used here: {why}")),
                Ok(Some(_)) => {}
                Ok(None) if self.line.is_none() => return Err("the PMIx server ended before it could serve".into()),
                Ok(None) => {
                    let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
                    if left == 0 {
                        return Err("the PMIx server was not ready in time".into());
                    }
                    sys::poll(&mut [self.poll_fd()], left);
                    self.move_bytes();
                }
                Err(_) => return Err("the PMIx server says what cannot be read".into()),
            }
        }
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// What the task's environment must have.
    pub fn variables(&self, rank: u32) -> &[(String, String)] {
        self.variables.get(&rank).map_or(&[], Vec::as_slice)
    }

    pub fn poll_fd(&self) -> libc::pollfd {
        let events = if self.outgoing.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
        libc::pollfd { fd: self.line.as_ref().map_or(-1, AsRawFd::as_raw_fd), events, revents: 0 }
    }

    /// Hears what the server has said, and gives what others must know.
    pub fn attend(&mut self) -> Vec<FromStep> {
        let was_there = self.line.is_some();
        self.move_bytes();
        let mut news = Vec::new();
        loop {
            match self.incoming.take() {
                Ok(Some(FromServer::Said(event))) => news.extend(self.hear(event)),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    self.line = None;
                    break;
                }
            }
        }
        if was_there && self.line.is_none() {
            let rank = self.ranks[self.here].first().copied().unwrap_or(0);
            news.push(FromStep::Abort { rank, text: "the PMIx server of its node has ended".into() });
        }
        news
    }

    fn hear(&mut self, event: Event) -> Option<FromStep> {
        match event {
            Event::Fence { number, ranks, data } => {
                let taking_part = |own: &&Vec<u32>| own.iter().any(|rank| ranks.binary_search(rank).is_ok());
                let n_nodes = self.ranks.iter().filter(taking_part).count() as u32;
                if n_nodes <= 1 {
                    self.say(&ToServer::Answer { number, status: SUCCESS, data });
                    return None;
                }
                let group = ranks.into_iter().collect::<CpuSet>().to_string();
                let (sequence, waiting) = self.groups.entry(group.clone()).or_default();
                *waiting = number;
                Some(FromStep::Gather { group, n_nodes, sequence: *sequence, data })
            }
            Event::Get { number, rank } => match self.ranks.iter().position(|own| own.contains(&rank)) {
                Some(node) if node != self.here => Some(FromStep::Fetch { number, node: node as u32, rank }),
                Some(_) | None => {
                    self.say(&ToServer::Answer { number, status: NOT_FOUND, data: Vec::new() });
                    None
                }
            },
            Event::Got { number, status, data } => {
                let (to, number) = self.fetches.remove(&number)?;
                Some(FromStep::Fetched { to, number, status, data })
            }
            Event::Abort { rank, text } => Some(FromStep::Abort { rank, text }),
            Event::Came { rank } => {
                self.present.insert(rank);
                None
            }
            Event::Left { rank } => {
                self.present.remove(&rank);
                None
            }
        }
    }

    /// A task has ended. Without a good-bye the others would wait for it for ever.
    pub fn note_end(&mut self, rank: u32) -> Vec<FromStep> {
        let mut news = self.attend();
        if self.present.remove(&rank) {
            news.push(FromStep::Abort { rank, text: "it ended without PMIx_Finalize".into() });
        }
        news
    }

    /// All nodes of the group have met; this is what all of them have brought.
    pub fn gathered(&mut self, group: &str, sequence: u32, data: Vec<u8>) {
        let Some((met, number)) = self.groups.get_mut(group).filter(|(met, _)| *met == sequence) else { return };
        *met += 1;
        let number = *number;
        self.say(&ToServer::Answer { number, status: SUCCESS, data });
    }

    /// Another node wants what a task here has put.
    pub fn fetch(&mut self, from: u32, number: u64, rank: u32) {
        let own = self.next_fetch;
        self.next_fetch += 1;
        self.fetches.insert(own, (from, number));
        self.say(&ToServer::Fetch { number: own, rank });
    }

    pub fn fetched(&mut self, number: u64, status: i32, data: Vec<u8>) {
        self.say(&ToServer::Answer { number, status, data });
    }

    /// Ends the process; it has a moment to clear its files away.
    pub fn end(&mut self) {
        let until = Instant::now() + DEATH_PATIENCE;
        if let Some(line) = &self.line {
            let _ = line.shutdown(Shutdown::Write);
        }
        while self.line.is_some() {
            let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
            if left == 0 {
                break;
            }
            self.outgoing.clear();
            sys::poll(&mut [self.poll_fd()], left);
            self.move_bytes();
        }
        self.line = None;
        sys::kill(self.pid, libc::SIGKILL);
    }

    fn say(&mut self, message: &ToServer) {
        frame::append(&mut self.outgoing, message);
        self.write();
        // It does not take what it is told, as its user may make it: it is as good as gone.
        if self.outgoing.len() > frame::USERS_LENGTH_MAX + OUTGOING_BYTES_MAX {
            self.outgoing = Vec::new();
            self.line = None;
        }
    }

    fn move_bytes(&mut self) {
        self.read();
        self.write();
    }

    /// Only where what has come is heard afterwards: what is read makes the line ready no more.
    fn read(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while let Some(line) = self.line.as_mut().filter(|_| !self.incoming.is_full()) {
            match line.read(&mut buffer) {
                Ok(0) => self.line = None,
                Ok(length) => self.incoming.push(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.line = None,
            }
        }
    }

    fn write(&mut self) {
        while let Some(line) = self.line.as_mut().filter(|_| !self.outgoing.is_empty()) {
            match line.write(&self.outgoing) {
                Ok(length) => drop(self.outgoing.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A line that is broken is noticed by reading.
                Err(_) => break,
            }
        }
    }
}

/// This binary once more, as the user, with the far end of a line. The supervisor does not wait for its exec, which its user may
/// keep from happening.
fn spawn(identity: &Identity) -> io::Result<(i32, UnixStream)> {
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let child = || {
        let arguments = [NAME_TEXT.as_ptr(), std::ptr::null()];
        let environment = [PATH_TEXT.as_ptr(), std::ptr::null()];
        // SAFETY: plain calls on valid descriptors and lists that end with a null pointer.
        unsafe {
            libc::dup2(nothing.as_raw_fd(), 0);
            libc::dup2(nothing.as_raw_fd(), 1);
            match far.as_raw_fd() == LINE_FD {
                true => libc::fcntl(LINE_FD, libc::F_SETFD, 0),
                false => libc::dup2(far.as_raw_fd(), LINE_FD),
            };
            // What the supervisor has open is not the user's to see.
            libc::syscall(libc::SYS_close_range, LINE_FD + 1, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if task::become_user(identity, 0o022).is_err() {
                return 1;
            }
            task::restore_signals();
            libc::execve(c"/proc/self/exe".as_ptr(), arguments.as_ptr(), environment.as_ptr());
        }
        1
    };
    // SAFETY: a supervisor has one thread. It reaps all its children itself.
    let pid = unsafe { birth::start_apart(child, None)? };
    Ok((pid, near))
}
