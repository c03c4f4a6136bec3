//! The server of the process manager interface (`--mpi=pmi2`): through it the tasks of a step tell each other where they are.
//!
//! ```text
//! task ── socket ── this ── FromStep::Fence ──▶ srun ── ToStep::Fence ──▶ the servers of all nodes
//! ```
//! What tasks put is theirs until a fence, which every task enters; then all know all. On one node no client is needed.
pub(super) mod wire;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use model::agent::Launch;
use model::step::Mpi;

use crate::sys::{self, SocketKind};
use wire::{Message, Version};

/// What the variables of a task are called; those of an outer step must not shine through.
pub const VARIABLES: [&str; 5] = ["PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID", "PMI_SPAWNED"];
const KEY_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 1024;
/// Of one task at a time, so that the others have their turn; a message takes as many turns as it needs.
const READS_AT_ONCE: usize = 4;
/// Answers that a task leaves unread. One that leaves more does not speak the protocol.
const UNREAD_BYTES_MAX: usize = 2 << 20;
/// All that the tasks here put, and what they wait for, while the step lives.
const PUT_BYTES_MAX: usize = 64 << 20;

pub struct Server {
    job: String,
    size: u32,
    n_nodes: usize,
    mapping: String,
    lines: Vec<Line>,
    /// What all know, and what the tasks here have put since the last fence.
    known: BTreeMap<String, String>,
    fresh: Vec<(String, String)>,
    node_attributes: BTreeMap<String, String>,
    fence: u32,
    is_fencing: bool,
    put_bytes: usize,
}

struct Line {
    rank: u32,
    fd: Option<OwnedFd>,
    version: Version,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// Has entered the fence; its thread's mark, to be given back.
    waits: Option<Option<String>>,
    /// Attributes of the node that it waits for.
    wanted: Vec<(String, Option<String>)>,
}

const TOO_MUCH: &str = "too much was put";

/// What the rest of the step must learn.
pub enum News {
    Fence { sequence: u32, entries: Vec<(String, String)> },
    Abort { rank: u32, text: String },
}

impl Server {
    /// None for steps that want none.
    pub fn new(launch: &Launch) -> Option<Self> {
        let spec = launch.step_spec.as_ref().filter(|spec| spec.mpi == Mpi::Pmi2)?;
        let ranks = spec.ranks(&launch.step_shares, launch.n_tasks);
        Some(Server {
            job: format!("{}.{}", launch.job, launch.step),
            size: launch.n_tasks,
            n_nodes: launch.step_shares.len(),
            mapping: mapping(&ranks),
            lines: Vec::new(),
            known: BTreeMap::new(),
            fresh: Vec::new(),
            node_attributes: BTreeMap::new(),
            fence: 0,
            is_fencing: false,
            put_bytes: 0,
        })
    }

    /// The task's end of a new line, and its variables.
    pub fn add_task(&mut self, rank: u32) -> std::io::Result<(OwnedFd, Vec<(&'static str, String)>)> {
        let (near, far) = sys::socket_pair(SocketKind::Stream)?;
        sys::set_nonblocking(near.as_fd())?;
        self.lines.push(Line {
            rank,
            fd: Some(near),
            version: Version::One,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            waits: None,
            wanted: Vec::new(),
        });
        let [fd, own_rank, size, job, spawned] = VARIABLES;
        let variables = vec![
            (fd, far.as_raw_fd().to_string()),
            (own_rank, rank.to_string()),
            (size, self.size.to_string()),
            (job, self.job.clone()),
            (spawned, "0".to_owned()),
        ];
        Ok((far, variables))
    }

    pub fn poll_fds(&self) -> impl Iterator<Item = libc::pollfd> {
        self.lines.iter().filter_map(|line| {
            let events = if line.outgoing.is_empty() { libc::POLLIN } else { libc::POLLIN | libc::POLLOUT };
            Some(libc::pollfd { fd: line.fd.as_ref()?.as_raw_fd(), events, revents: 0 })
        })
    }

    /// Hears all that the tasks have said.
    pub fn attend(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for index in 0..self.lines.len() {
            self.lines[index].read();
            loop {
                let line = &mut self.lines[index];
                match wire::take(&mut line.incoming, line.version) {
                    Ok(Some(message)) => self.answer(index, &message, &mut news),
                    Ok(None) => break,
                    Err(wire::NoPmiMessage) => {
                        line.fd = None;
                        line.incoming.clear();
                        break;
                    }
                }
            }
            self.lines[index].write();
        }
        news
    }

    /// All nodes have entered the fence; this is what all of them have put.
    pub fn fenced(&mut self, sequence: u32, entries: Vec<(String, String)>) {
        if !self.is_fencing || sequence != self.fence {
            return;
        }
        self.known.extend(entries);
        self.is_fencing = false;
        self.fence += 1;
        for line in &mut self.lines {
            let Some(thread) = line.waits.take() else { continue };
            let reply = match line.version {
                Version::One => Message::new("barrier_out").with("rc", 0),
                Version::Two => of_thread(Message::new("kvs-fence-response"), &thread).with("rc", 0),
            };
            line.say(&reply);
        }
    }

    fn answer(&mut self, index: usize, message: &Message, news: &mut Vec<News>) {
        let thread = message.get("thrid").map(str::to_owned);
        let get = |name: &str| message.get(name).unwrap_or_default().to_owned();
        let respond = |name: &str| of_thread(Message::new(name), &thread);
        let value = |name: &str, found: Option<&String>| match found {
            Some(value) => respond(name).with("found", "TRUE").with("value", value).with("rc", 0),
            None => respond(name).with("found", "FALSE").with("rc", 0),
        };
        let rank = self.lines[index].rank;
        let reply = match message.command.as_str() {
            "init" => {
                let is_two = get("pmi_version") == "2";
                let (version, subversion) = if is_two { (2, 0) } else { (1, 1) };
                let hello = Message::new("response_to_init").with("rc", 0);
                self.lines[index].say(&hello.with("pmi_version", version).with("pmi_subversion", subversion));
                if is_two {
                    self.lines[index].version = Version::Two;
                }
                return;
            }
            "fullinit" => respond("fullinit-response")
                .with("rc", 0)
                .with("pmi-version", 2)
                .with("pmi-subversion", 0)
                .with("rank", rank)
                .with("size", self.size)
                .with("appnum", 0)
                .with("debugged", "FALSE")
                .with("pmiverbose", "FALSE"),
            "get_maxes" => Message::new("maxes")
                .with("kvsname_max", KEY_BYTES_MAX)
                .with("keylen_max", KEY_BYTES_MAX)
                .with("vallen_max", VALUE_BYTES_MAX),
            "get_appnum" => Message::new("appnum").with("appnum", 0),
            "get_my_kvsname" => Message::new("my_kvsname").with("kvsname", &self.job),
            "get_universe_size" => Message::new("universe_size").with("size", self.size),
            "get_ranks2hosts" => Message::new("put_result").with("rc", -1).with("msg", "not_supported"),
            "put" => match self.has_room(message) {
                true => {
                    self.fresh.push((get("key"), get("value")));
                    Message::new("put_result").with("rc", 0).with("msg", "success")
                }
                false => Message::new("put_result").with("rc", -1).with("msg", "too_much_was_put"),
            },
            "get" => match self.look_up(&get("key")) {
                Some(value) => Message::new("get_result").with("rc", 0).with("msg", "success").with("value", value),
                None => Message::new("get_result").with("rc", -1).with("msg", "key_not_found").with("value", "unknown"),
            },
            "kvs-put" if !self.has_room(message) => respond("kvs-put-response").with("rc", 1).with("errmsg", TOO_MUCH),
            "kvs-put" => {
                self.fresh.push((get("key"), get("value")));
                respond("kvs-put-response").with("rc", 0)
            }
            "kvs-get" => value("kvs-get-response", self.look_up(&get("key")).as_ref()),
            "job-getid" => respond("job-getid-response").with("jobid", &self.job).with("rc", 0),
            "info-getjobattr" => {
                let found = match get("key").as_str() {
                    "PMI_process_mapping" => Some(self.mapping.clone()),
                    "universeSize" => Some(self.size.to_string()),
                    _ => None,
                };
                value("info-getjobattr-response", found.as_ref())
            }
            "info-putnodeattr" | "info-getnodeattr" if !self.has_room(message) => {
                respond(&format!("{}-response", message.command)).with("rc", 1).with("errmsg", TOO_MUCH)
            }
            "info-putnodeattr" => {
                let (key, new) = (get("key"), get("value"));
                self.node_attributes.insert(key.clone(), new.clone());
                for line in &mut self.lines {
                    let (ready, later) =
                        std::mem::take(&mut line.wanted).into_iter().partition(|(wanted, _)| *wanted == key);
                    line.wanted = later;
                    let ready: Vec<(String, Option<String>)> = ready;
                    for (_, thread) in ready {
                        let reply = of_thread(Message::new("info-getnodeattr-response"), &thread);
                        line.say(&reply.with("found", "TRUE").with("value", &new).with("rc", 0));
                    }
                }
                respond("info-putnodeattr-response").with("rc", 0)
            }
            "info-getnodeattr" => {
                let key = get("key");
                if get("wait").eq_ignore_ascii_case("TRUE") && !self.node_attributes.contains_key(&key) {
                    self.lines[index].wanted.push((key, thread));
                    return;
                }
                value("info-getnodeattr-response", self.node_attributes.get(&key))
            }
            "barrier_in" | "kvs-fence" => {
                self.lines[index].waits = Some(thread);
                if self.lines.iter().all(|line| line.waits.is_some()) && !self.is_fencing {
                    self.enter_fence(news);
                }
                return;
            }
            "finalize" => match self.lines[index].version {
                Version::One => Message::new("finalize_ack").with("rc", 0),
                Version::Two => respond("finalize-response").with("rc", 0),
            },
            "abort" => {
                news.push(News::Abort { rank, text: get("msg") });
                return;
            }
            other => {
                let name = format!("{other}-response");
                respond(&name).with("rc", 1).with("errmsg", "not supported by this version of Spur")
            }
        };
        self.lines[index].say(&reply);
    }

    /// Whether the tasks may put as much more as the message holds.
    fn has_room(&mut self, message: &Message) -> bool {
        let n_bytes: usize = message.arguments.iter().map(|(name, value)| name.len() + value.len()).sum();
        let is_room = self.put_bytes + n_bytes <= PUT_BYTES_MAX;
        self.put_bytes += if is_room { n_bytes } else { 0 };
        is_room
    }

    /// Version 1 has the mapping among the values; what was put here is known here at once.
    fn look_up(&self, key: &str) -> Option<String> {
        let own = self.fresh.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.clone());
        let mapping = || (key == "PMI_process_mapping").then(|| self.mapping.clone());
        own.or_else(|| self.known.get(key).cloned()).or_else(mapping)
    }

    fn enter_fence(&mut self, news: &mut Vec<News>) {
        self.is_fencing = true;
        let entries = std::mem::take(&mut self.fresh);
        if self.n_nodes <= 1 {
            return self.fenced(self.fence, entries);
        }
        news.push(News::Fence { sequence: self.fence, entries });
    }
}

impl Line {
    fn read(&mut self) {
        let mut buffer = [0; 16 * 1024];
        for _ in 0..READS_AT_ONCE {
            let Some(fd) = &self.fd else { return };
            match sys::read(fd.as_fd(), &mut buffer) {
                Ok(0) => self.fd = None,
                Ok(length) => self.incoming.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => self.fd = None,
            }
        }
    }

    fn say(&mut self, message: &Message) {
        let bytes = message.write(self.version);
        self.outgoing.extend(bytes);
        self.write();
        if self.outgoing.len() > UNREAD_BYTES_MAX {
            self.fd = None;
            self.outgoing.clear();
        }
    }

    fn write(&mut self) {
        while let Some(fd) = &self.fd
            && !self.outgoing.is_empty()
        {
            match sys::write(fd.as_fd(), &self.outgoing) {
                Ok(length) => drop(self.outgoing.drain(..length)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => self.fd = None,
            }
        }
    }
}

fn of_thread(message: Message, thread: &Option<String>) -> Message {
    match thread {
        Some(thread) => message.with("thrid", thread),
        None => message,
    }
}

/// `(vector,(0,2,4))`: from node 0 on, on each of two nodes, four ranks in their order.
fn mapping(ranks: &[Vec<u32>]) -> String {
    let mut nodes: Vec<(u32, usize)> =
        ranks.iter().enumerate().flat_map(|(node, ranks)| ranks.iter().map(move |rank| (*rank, node))).collect();
    nodes.sort_unstable();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (_, node) in nodes {
        match runs.last_mut() {
            Some((last, count)) if *last == node => *count += 1,
            _ => runs.push((node, 1)),
        }
    }
    let mut blocks: Vec<(usize, usize, usize)> = Vec::new();
    for (node, count) in runs {
        match blocks.last_mut() {
            Some((first, n_nodes, each)) if *first + *n_nodes == node && *each == count => *n_nodes += 1,
            _ => blocks.push((node, 1, count)),
        }
    }
    let blocks: Vec<String> =
        blocks.iter().map(|(first, n_nodes, each)| format!("({first},{n_nodes},{each})")).collect();
    format!("(vector,{})", blocks.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_of_one_task() -> (Server, std::fs::File) {
        let spec = model::StepSpec { mpi: Mpi::Pmi2, ..Default::default() };
        let shares = vec![model::NodeShare { n_tasks: 1, ..Default::default() }];
        let launch = Launch { step_spec: Some(Box::new(spec)), step_shares: shares, n_tasks: 1, ..Launch::default() };
        let mut server = Server::new(&launch).expect("the step wants one");
        let (task, _) = server.add_task(0).unwrap();
        sys::set_nonblocking(task.as_fd()).unwrap();
        (server, task.into())
    }

    /// What a task says over and over, until it has said so much or the server has given it up.
    fn flood(server: &mut Server, task: &mut std::fs::File, word: &[u8], n_bytes: usize) -> bool {
        use std::io::Write;
        let words = word.repeat((64 << 10) / word.len());
        let mut n_said = 0;
        while n_said < n_bytes {
            match task.write(&words) {
                Ok(n_written) => n_said += n_written,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
            // A word that was cut is nothing the server knows: only whole ones count here.
            server.lines[0].incoming.clear();
            server.attend();
        }
        true
    }

    #[test]
    fn task_that_reads_no_answers_is_given_up() {
        let (mut server, mut task) = server_of_one_task();
        assert!(!flood(&mut server, &mut task, b"cmd=get_universe_size\n", 16 << 20));
        assert!(server.lines[0].outgoing.capacity() <= 4 * UNREAD_BYTES_MAX);
    }

    #[test]
    fn task_keeps_server_busy_for_a_moment_at_a_time() {
        use std::io::Write;
        let (mut server, mut task) = server_of_one_task();
        let mut n_said = 0;
        while let Ok(n_written) = task.write(&[b'x'; 4096]) {
            n_said += n_written;
        }
        server.attend();
        let n_read = server.lines[0].incoming.len();
        assert!(n_read <= READS_AT_ONCE * 16 * 1024 && n_read < n_said, "{n_read} of {n_said}");
    }

    #[test]
    fn what_tasks_put_has_an_end() {
        let (mut server, _task) = server_of_one_task();
        let put = Message::new("put").with("key", "k").with("value", "v".repeat(1 << 20));
        let n_taken = (0..100).take_while(|_| server.has_room(&put)).count();
        assert_eq!(n_taken, 63);
    }

    #[test]
    fn the_mapping_tells_the_node_of_every_rank() {
        assert_eq!(mapping(&[vec![0, 1], vec![2, 3]]), "(vector,(0,2,2))");
        assert_eq!(mapping(&[vec![0, 1, 2], vec![3]]), "(vector,(0,1,3),(1,1,1))");
        assert_eq!(mapping(&[vec![0, 2], vec![1, 3]]), "(vector,(0,2,1),(0,2,1))");
    }
}
