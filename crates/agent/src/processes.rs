//! Finding processes by their kinship, for machines without cgroups and for supervisors that died.
use std::collections::{HashMap, HashSet};
use std::fs;

struct Process {
    pid: i32,
    parent: i32,
    session: i32,
    is_zombie: bool,
    is_stopped: bool,
}

/// Every living descendant. A supervisor is the reaper of its orphans, so nothing of a run escapes this.
pub fn descendants(ancestor: i32) -> Vec<i32> {
    let all = all();
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    all.iter().for_each(|process| children.entry(process.parent).or_default().push(process));
    let mut found = Vec::new();
    let mut queue = vec![ancestor];
    while let Some(parent) = queue.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            queue.push(child.pid);
            if !child.is_zombie {
                found.push(child.pid);
            }
        }
    }
    found
}

/// Every living process that carries this entry in its first environment, and its kin: descendants, and those of its session.
pub fn marked(entry: &str) -> Vec<i32> {
    let all = all();
    let own = std::process::id() as i32;
    let mut found: HashSet<i32> = HashSet::new();
    let mut sessions: HashSet<i32> = HashSet::new();
    for process in &all {
        if process.pid != own && has_entry(process.pid, entry.as_bytes()) {
            found.insert(process.pid);
            // Only a session that one of ours leads is ours.
            if process.session == process.pid {
                sessions.insert(process.session);
            }
        }
    }
    loop {
        let kin = |process: &&Process| {
            !found.contains(&process.pid)
                && (found.contains(&process.parent) || sessions.contains(&process.session))
                && process.pid != own
        };
        let more: Vec<i32> = all.iter().filter(kin).map(|process| process.pid).collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let living: HashSet<i32> = all.iter().filter(|process| !process.is_zombie).map(|process| process.pid).collect();
    found.intersection(&living).copied().collect()
}

/// Nothing of it runs: it is stopped, or dead.
pub fn stands_still(pid: i32) -> bool {
    read(pid).is_none_or(|process| process.is_stopped || process.is_zombie)
}

/// It is gone, or only its parent has still to notice.
pub fn is_dead(pid: i32) -> bool {
    read(pid).is_none_or(|process| process.is_zombie)
}

fn has_entry(pid: i32, entry: &[u8]) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    environment.split(|byte| *byte == 0).any(|each| each == entry)
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(read).collect()
}

fn read(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in brackets and may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        session,
        is_zombie: matches!(state, "Z" | "X"),
        is_stopped: matches!(state, "T" | "t"),
    })
}
/// What a process does about a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heed {
    /// Whatever the kernel does.
    Default,
    /// It has a handler of its own, or does not want to hear of it.
    Own,
}

/// As the kernel tells; of one that is gone, the default.
pub fn heed(pid: i32, signal: i32) -> Heed {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let has = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    };
    if has("SigCgt:") || has("SigIgn:") { Heed::Own } else { Heed::Default }
}
