//! The server of the process manager interface (`--mpi=pmi2`): through it the tasks of a step tell each other where they are.
//!
//! ```text
//! task ── socket ── this ── FromStep::Fence ──▶ srun ── ToStep::Fence ──▶ the servers of all nodes
//! ```
//! What tasks put is theirs until a fence, which every task enters; then all know all. On one node no client is needed.
mod wire;

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
/// Longer than any message (`wire`).
const INCOMING_BYTES_MAX: usize = 2 << 20;
/// A task that does not read its answers is not heard meanwhile.
const OUTGOING_BYTES_MAX: usize = 2 << 20;
/// What the tasks here may put, all together.
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
    /// How much of what is known was put here.
    put_bytes: usize,
    fence: u32,
    is_fencing: bool,
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
            put_bytes: 0,
            fence: 0,
            is_fencing: false,
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
                if line.outgoing.len() > OUTGOING_BYTES_MAX {
                    line.write();
                }
                // It goes on when the task has read.
                if line.outgoing.len() > OUTGOING_BYTES_MAX {
                    break;
                }
                match wire::take(&mut line.incoming, line.version) {
                    Ok(Some(message)) => self.answer(index, &message, &mut news),
                    Ok(None) => break,
                    Err(()) => {
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
            "put" => match self.put(get("key"), get("value")) {
                true => Message::new("put_result").with("rc", 0).with("msg", "success"),
                false => Message::new("put_result").with("rc", -1).with("msg", "no_room"),
            },
            "get" => match self.look_up(&get("key")) {
                Some(value) => Message::new("get_result").with("rc", 0).with("msg", "success").with("value", value),
                None => Message::new("get_result").with("rc", -1).with("msg", "key_not_found").with("value", "unknown"),
            },
            "kvs-put" => {
                let rc = if self.put(get("key"), get("value")) { 0 } else { -1 };
                respond("kvs-put-response").with("rc", rc)
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
            "info-putnodeattr" => {
                let (key, new) = (get("key"), get("value"));
                if !self.takes(key.len() + new.len()) {
                    self.lines[index].say(&respond("info-putnodeattr-response").with("rc", -1));
                    return;
                }
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

    /// False: the tasks here have put enough.
    fn put(&mut self, key: String, value: String) -> bool {
        let is_taken = self.takes(key.len() + value.len());
        if is_taken {
            self.fresh.push((key, value));
        }
        is_taken
    }

    fn takes(&mut self, n_bytes: usize) -> bool {
        const ENTRY_BYTES: usize = 128;
        let n_bytes = self.put_bytes + n_bytes + ENTRY_BYTES;
        if n_bytes <= PUT_BYTES_MAX {
            self.put_bytes = n_bytes;
        }
        n_bytes <= PUT_BYTES_MAX
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
        // A task that says more than it hears waits.
        while let Some(fd) = self.fd.as_ref().filter(|_| self.incoming.len() <= INCOMING_BYTES_MAX) {
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

    #[test]
    fn the_mapping_tells_the_node_of_every_rank() {
        assert_eq!(mapping(&[vec![0, 1], vec![2, 3]]), "(vector,(0,2,2))");
        assert_eq!(mapping(&[vec![0, 1, 2], vec![3]]), "(vector,(0,1,3),(1,1,1))");
        assert_eq!(mapping(&[vec![0, 2], vec![1, 3]]), "(vector,(0,2,1),(0,2,1))");
    }
}
