//! `NodeName`, `DownNodes` and `NodeSet` lines.
use std::collections::{BTreeMap, BTreeSet};

use model::config::NamedNode;
use model::gres::{self, Gres};
use model::node::{NodeConfig, NodeStart};
use model::{CpuSet, hostlist, size};

use super::lines::Pair;
use super::values::{Notes, Values};
use crate::nearest::nearest;

/// Everything that the file says about nodes, as its lines are read.
#[derive(Default)]
pub(crate) struct Nodes {
    defaults: Values,
    pub list: Vec<NamedNode>,
    seen: BTreeMap<String, usize>,
    /// Nodes that do not exist yet: they may be named, and are left out.
    future: BTreeSet<String>,
    /// They are made now.
    pub takes_future: bool,
    down: Vec<Values>,
    sets: Vec<Values>,
}

impl Nodes {
    pub fn line(&mut self, values: Values, notes: &Notes) {
        let Some(name) = values.get("NodeName").cloned() else { return };
        if name.value.eq_ignore_ascii_case("DEFAULT") {
            self.defaults = values.or(&self.defaults);
            return;
        }
        let values = values.or(&self.defaults);
        let names = hosts(&name, notes);
        if let Some(wrong) = names.iter().find(|name| !crate::node::is_host_name(name)) {
            let rule = "letters, digits, `-`, `_` and `.` only";
            return notes.wrong(&name.at, format!("{wrong:?} cannot be a node's name: {rule}"));
        }
        let twice: Vec<&String> = names.iter().filter(|name| self.seen.contains_key(*name)).collect();
        if !twice.is_empty() {
            notes.wrong(&name.at, format!("node named twice: {}", hostlist::compress(twice)));
        }
        self.seen.extend(names.iter().map(|node| (node.clone(), self.list.len())));
        let addresses = for_each(&values, "NodeAddr", names.len(), notes);
        let hostnames = for_each(&values, "NodeHostname", names.len(), notes);
        let (config, is_future) = settings(&values, notes);
        if is_future && !self.takes_future {
            self.future.extend(names);
            return;
        }
        for (index, name) in names.iter().enumerate() {
            let own = |list: &[String]| list.get(index).or(list.first()).cloned().unwrap_or_default();
            let (address, hostname) = (own(&addresses), own(&hostnames));
            let hostname = if hostname == *name { String::new() } else { hostname };
            let config = NodeConfig { address, hostname, ..config.clone() };
            self.list.push(NamedNode { name: name.as_str().into(), config });
        }
    }

    pub fn down_line(&mut self, values: Values) {
        self.down.push(values);
    }

    pub fn set_line(&mut self, values: Values) {
        self.sets.push(values);
    }

    /// What can be told only when all nodes are known.
    pub fn finish(&mut self, notes: &Notes) {
        for values in std::mem::take(&mut self.down) {
            let Some(names) = values.get("DownNodes") else { continue };
            let chosen: BTreeSet<String> = self.named(names, notes).into_iter().collect();
            let start = start(&values, notes).unwrap_or(Start::As(NodeStart::Down));
            for node in self.list.iter_mut().filter(|node| chosen.contains(node.name.as_str())) {
                if let Start::As(start) = start {
                    node.config.starts_as = start;
                }
                node.config.start_reason = values.text("Reason").unwrap_or_default().to_string();
            }
        }
    }

    /// Nodes that a partition, or `DownNodes`, names: a hostlist, `ALL`, or sets.
    pub fn named(&self, pair: &Pair, notes: &Notes) -> Vec<String> {
        if pair.value.eq_ignore_ascii_case("ALL") {
            return self.all();
        }
        let mut names = Vec::new();
        let mut unknown = Vec::new();
        for name in hosts(pair, notes) {
            match self.set(&name) {
                Some(set) => names.extend(self.members(set, notes)),
                None if self.future.contains(&name) => {}
                None if self.seen.contains_key(&name) => names.push(name),
                None if name.eq_ignore_ascii_case("ALL") => names.extend(self.all()),
                None => unknown.push(name),
            }
        }
        if let Some(first) = unknown.first() {
            let sets = self.sets.iter().filter_map(|set| set.text("NodeSet"));
            let hint = match nearest(first, self.seen.keys().map(String::as_str).chain(sets)) {
                Some(name) if unknown.len() == 1 => format!("; did you mean `{name}`?"),
                _ => String::new(),
            };
            notes.wrong(&pair.at, format!("no NodeName line names {}{hint}", hostlist::compress(&unknown)));
        }
        names.sort_by(|a, b| hostlist::natural_cmp(a, b));
        names.dedup();
        names
    }

    fn all(&self) -> Vec<String> {
        self.list.iter().map(|node| node.name.to_string()).collect()
    }

    fn set(&self, name: &str) -> Option<&Values> {
        self.sets.iter().find(|set| set.text("NodeSet") == Some(name))
    }

    fn members(&self, set: &Values, notes: &Notes) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(feature) = set.text("Features") {
            let has = |node: &&NamedNode| node.config.features.iter().any(|one| one == feature);
            names.extend(self.list.iter().filter(has).map(|node| node.name.to_string()));
        }
        if let Some(list) = set.get("Nodes") {
            let is_set = |name: &String| self.set(name).is_some();
            // A set of sets could be endless.
            match hosts(list, notes).iter().find(|name| is_set(name)) {
                Some(inner) => notes.wrong(&list.at, format!("{inner} is a node set itself")),
                None => names.extend(self.named(list, notes)),
            }
        }
        names
    }
}

fn hosts(pair: &Pair, notes: &Notes) -> Vec<String> {
    hostlist::expand(&pair.value).unwrap_or_else(|error| {
        notes.wrong(&pair.at, error.to_string());
        Vec::new()
    })
}

/// One for all nodes of the line, or one for each.
fn for_each(values: &Values, key: &str, n_names: usize, notes: &Notes) -> Vec<String> {
    let Some(pair) = values.get(key) else { return Vec::new() };
    let list = hosts(pair, notes);
    if list.len() > 1 && list.len() != n_names {
        notes.wrong(&pair.at, format!("`{key}` names {} machines for {n_names} nodes", list.len()));
    }
    list
}

#[derive(Clone, Copy)]
enum Start {
    As(NodeStart),
    /// Not there until it is made.
    Future,
}

fn start(values: &Values, notes: &Notes) -> Option<Start> {
    let expected = "UNKNOWN, IDLE, DOWN, DRAIN, FAIL, CLOUD or FUTURE";
    values.read("State", expected, notes, |text| match text.to_uppercase().as_str() {
        "UNKNOWN" | "IDLE" | "CLOUD" => Some(Start::As(NodeStart::Usable)),
        "DRAIN" => Some(Start::As(NodeStart::Drained)),
        "DOWN" | "FAIL" | "FAILING" => Some(Start::As(NodeStart::Down)),
        "FUTURE" => Some(Start::Future),
        _ => None,
    })
}

fn settings(values: &Values, notes: &Notes) -> (NodeConfig, bool) {
    let mut config = NodeConfig { weight: 1, ..NodeConfig::default() };
    let number = |key: &str, max: u32| values.number(key, 1..=max, notes);
    let boards = number("Boards", 1024);
    let per_board = number("SocketsPerBoard", 1024);
    config.sockets = match (number("Sockets", 1024), boards, per_board) {
        (Some(sockets), ..) => sockets,
        (None, None, None) => 0,
        (None, boards, per_board) => boards.unwrap_or(1) * per_board.unwrap_or(1),
    };
    config.cores_per_socket = number("CoresPerSocket", 65_536).unwrap_or(0);
    config.threads_per_core = number("ThreadsPerCore", 64).unwrap_or(0);
    let per_socket = config.cores_per_socket.max(1) * config.threads_per_core.max(1);
    let cpus = number("CPUs", 65_536);
    // Slurm derives what is missing of the shape from the number of CPUs.
    if config.sockets == 0 && config.cores_per_socket + config.threads_per_core > 0 {
        config.sockets = cpus.map_or(1, |cpus| (cpus / per_socket).max(1));
    }
    let product = config.sockets.max(1) * per_socket;
    config.cpus = cpus.unwrap_or(product);
    let fits = config.cpus == product || config.cpus * config.threads_per_core.max(1) == product;
    if config.sockets > 0 && config.cores_per_socket + config.threads_per_core > 0 && !fits {
        let at = &values.get("CPUs").or(values.get("NodeName")).expect("every line has its name").at;
        let text = format!("`CPUs` is {}, but sockets × cores × threads is {product}, which counts", config.cpus);
        notes.warn(at, text);
        config.cpus = product;
    }
    config.memory_mb = values.megabytes("RealMemory", notes).unwrap_or(1);
    keep_from_jobs(values, &mut config, notes);
    config.tmp_disk_mb = values.megabytes("TmpDisk", notes).unwrap_or(0);
    config.weight = values.number("Weight", 0..=u32::MAX, notes).unwrap_or(1);
    config.features = words(values.text("Features"));
    config.start_reason = values.text("Reason").unwrap_or_default().to_string();
    config.gres = generic_resources(values, notes);
    config.topology = values.text("Topology").map(str::to_string);
    match start(values, notes) {
        Some(Start::Future) => (config, true),
        Some(Start::As(start)) => (NodeConfig { starts_as: start, ..config }, false),
        None => (config, false),
    }
}

/// `CoreSpecCount`, `CpuSpecList` and `MemSpecLimit`.
fn keep_from_jobs(values: &Values, config: &mut NodeConfig, notes: &Notes) {
    let cores = values.number("CoreSpecCount", 0..=65_536, notes).unwrap_or(0);
    let cpus = values.read("CpuSpecList", "CPU numbers such as 0,4-5", notes, |text| text.parse::<CpuSet>().ok());
    let cpus = cpus.unwrap_or_default();
    let wrong = |key: &str, text: String| {
        let at = &values.get(key).expect("it was read").at;
        notes.wrong(at, text);
    };
    if cores > 0 && !cpus.is_empty() {
        wrong("CpuSpecList", "`CoreSpecCount` and `CpuSpecList` exclude each other".into());
    } else if cores > 0 && !config.keep_cores(cores) {
        wrong("CoreSpecCount", format!("`CoreSpecCount` is {cores}, but the node has {} CPUs", config.cpus));
    } else if !cpus.is_empty() && !config.keep_cpus(cpus.clone()) {
        wrong("CpuSpecList", format!("`CpuSpecList` {cpus} names CPUs that the node does not have, or all of them"));
    }
    let megabytes = values.megabytes("MemSpecLimit", notes).unwrap_or(0);
    if megabytes > 0 && !config.keep_memory(megabytes) {
        wrong("MemSpecLimit", format!("`MemSpecLimit` leaves nothing of {} MB", config.memory_mb));
    }
}

fn words(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_string).collect()
}

fn generic_resources(values: &Values, notes: &Notes) -> Vec<Gres> {
    let Some(pair) = values.get("Gres") else { return Vec::new() };
    // Where the units are (`(S:0-1)`) and that they are not handed out (`no_consume`) is not for us to keep.
    let bare: Vec<&str> = pair.value.split(',').map(|item| item.split('(').next().unwrap_or(item)).collect();
    let mut list = Vec::new();
    for item in bare {
        if item.split(':').any(|word| word.eq_ignore_ascii_case("no_consume")) {
            notes.warn(&pair.at, format!("no_consume has no effect here: {item} is handed out"));
        }
        let item: Vec<&str> = item.split(':').filter(|word| !word.eq_ignore_ascii_case("no_consume")).collect();
        match gres::parse_list(&item.join(":")) {
            Ok(found) => list.extend(found),
            Err(error) => notes.wrong(&pair.at, error.to_string()),
        }
    }
    list.into_iter().map(|one| Gres { name: one.name, kind: one.kind, count: one.count, ..Gres::default() }).collect()
}

/// A count as gres.conf has it: `4`, `2K`.
pub(crate) fn count(text: &str) -> Option<u32> {
    size::parse_bytes(text, 1).and_then(|count| u32::try_from(count).ok())
}
