//! `spur config check FILE`: everything that is wrong, at once.
use std::path::Path;

use super::Call;

pub fn run(call: &Call) -> Result<i32, String> {
    let [what, file] = call.arguments else {
        return Err("usage: spur config check FILE".into());
    };
    if what != "check" {
        return Err(format!("no such action: {what}; usage: spur config check FILE"));
    }
    match config::load(Path::new(file)) {
        Ok(config) => {
            let (n_nodes, n_partitions) = (config.nodes.len(), config.partitions.len());
            say!("{file}: good ({}, {})", count(n_nodes, "node"), count(n_partitions, "partition"));
            Ok(0)
        }
        Err(problems) => {
            say!("{problems}");
            eprintln!("{}", count(problems.list.len(), "problem"));
            Ok(1)
        }
    }
}

/// `1 node`, `2 nodes`.
pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
