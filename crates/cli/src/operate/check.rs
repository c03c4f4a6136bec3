//! `spur config check FILE`: everything that is wrong, at once. `spur config convert FILE`: the same cluster as a spur.conf.
use std::path::Path;

use config::Problems;

use super::Call;

const USAGE: &str = "usage: spur config check FILE, or spur config convert FILE";

pub fn run(call: &Call) -> Result<i32, String> {
    let [what, file] = call.arguments else {
        return Err(USAGE.into());
    };
    match what.as_str() {
        "check" => Ok(check(file)),
        "convert" => Ok(convert(file)),
        _ => Err(format!("no such action: {what}; {USAGE}")),
    }
}

fn check(file: &str) -> i32 {
    match config::load_with_warnings(Path::new(file)) {
        Ok((config, warnings)) => {
            warn(&warnings);
            let (n_nodes, n_partitions) = (config.nodes.len(), config.partitions.len());
            say!("{file}: good ({}, {})", count(n_nodes, "node"), count(n_partitions, "partition"));
            0
        }
        Err(problems) => {
            say!("{problems}");
            eprintln!("{}", count(problems.list.len(), "problem"));
            1
        }
    }
}

/// What the file leaves open stays open.
fn convert(file: &str) -> i32 {
    match config::read_with_warnings(Path::new(file)) {
        Ok((config, warnings)) => {
            warn(&warnings);
            crate::output::print(&format!("# Converted from {file}.\n{}", config::render(&config)));
            0
        }
        Err(problems) => {
            eprintln!("{problems}");
            1
        }
    }
}

fn warn(warnings: &Problems) {
    warnings.to_string().lines().for_each(|line| eprintln!("{line}"));
}

/// `1 node`, `2 nodes`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
