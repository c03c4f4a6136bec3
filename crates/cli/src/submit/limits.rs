//! Resource limits of the submitting shell, which go along with the job (`--propagate`).
use model::spec::ResourceLimit;
use rustix::process::{Resource, getrlimit};

use super::Problem;

/// The names that `--propagate` knows, and those that always go along.
const LIMITS: &[(&str, Resource, u32)] = &[
    ("CPU", Resource::Cpu, libc::RLIMIT_CPU),
    ("FSIZE", Resource::Fsize, libc::RLIMIT_FSIZE),
    ("DATA", Resource::Data, libc::RLIMIT_DATA),
    ("STACK", Resource::Stack, libc::RLIMIT_STACK),
    ("CORE", Resource::Core, libc::RLIMIT_CORE),
    ("RSS", Resource::Rss, libc::RLIMIT_RSS),
    ("NPROC", Resource::Nproc, libc::RLIMIT_NPROC),
    ("NOFILE", Resource::Nofile, libc::RLIMIT_NOFILE),
    ("MEMLOCK", Resource::Memlock, libc::RLIMIT_MEMLOCK),
    ("AS", Resource::As, libc::RLIMIT_AS),
];

/// The limits of this process.
pub fn current() -> Vec<ResourceLimit> {
    let read = |(_, kind, number): &(&str, Resource, u32)| {
        let limit = getrlimit(*kind);
        ResourceLimit {
            resource: *number,
            soft: limit.current.unwrap_or(ResourceLimit::INFINITY),
            hard: limit.maximum.unwrap_or(ResourceLimit::INFINITY),
        }
    };
    LIMITS.iter().map(read).collect()
}

/// Refuses a list with a name that is not known.
pub fn check(list: &str) -> Result<(), Problem> {
    let is_known = |name: &str| {
        let name = name.strip_prefix("RLIMIT_").unwrap_or(name);
        name == "ALL" || name == "NONE" || LIMITS.iter().any(|(known, ..)| *known == name)
    };
    match list.split(',').find(|name| !is_known(&name.to_ascii_uppercase())) {
        None => Ok(()),
        Some(unknown) => {
            let mut problem = Problem::error(format!("Bad rlimit name: {unknown}"));
            problem.lines.push(super::problem::Line::Error(format!("--propagate={list} is not valid.")));
            Err(problem)
        }
    }
}

/// Those of `limits` that a list names; all of them without a list.
pub fn chosen(limits: &[ResourceLimit], list: Option<&str>) -> Vec<ResourceLimit> {
    let list = list.unwrap_or("ALL").to_ascii_uppercase();
    let names: Vec<&str> = list.split(',').map(|name| name.strip_prefix("RLIMIT_").unwrap_or(name)).collect();
    if names.contains(&"NONE") {
        return Vec::new();
    }
    let is_named = |limit: &&ResourceLimit| {
        let named = |(name, _, number): &(&str, Resource, u32)| *number == limit.resource && names.contains(name);
        names.contains(&"ALL") || LIMITS.iter().any(named)
    };
    limits.iter().filter(is_named).cloned().collect()
}
