//! The rules of blocks, written once more and in the simplest way, to try the picker against.
#![allow(dead_code, reason = "each test uses a part")]
use model::NodeName;
use model::topology::{Block, Topology, TopologyKind};
use topology::Network;

pub fn network(sizes: &[u32], block_sizes: &[u32]) -> Network {
    let (mut blocks, mut nodes) = (Vec::new(), Vec::new());
    for (at, size) in sizes.iter().enumerate() {
        let first = nodes.len();
        let own: Vec<NodeName> = (0..*size as usize).map(|i| NodeName::from(format!("n{}", first + i + 1))).collect();
        nodes.extend(own.clone());
        blocks.push(Block { name: format!("b{}", at + 1), nodes: own });
    }
    let topology = Topology {
        name: "default".into(),
        kind: TopologyKind::Block,
        blocks,
        block_sizes: block_sizes.to_vec(),
        ..Topology::default()
    };
    Network::over(nodes, &[topology], &[])
}

/// The rule itself, on counts of nodes for each base block: one aligned group, few enough of its parts.
pub fn is_allowed(counts: &[u32], n: u32, base: u32, levels: &[u32]) -> bool {
    let level = n.div_ceil(base).next_power_of_two().ilog2();
    let group = levels.iter().find(|enabled| **enabled >= level).map_or(counts.len(), |level| 1 << level);
    let sub = levels.iter().rev().find(|enabled| **enabled < level).map_or(0, |level| *level);
    let used = |size: usize| counts.chunks(size).filter(|part| part.iter().sum::<u32>() > 0).count() as u32;
    used(group) == 1 && used(1 << sub) <= n.div_ceil(base << sub)
}

/// Whether the counts can be cut into segments that are allowed.
pub fn can_be_cut(left: &mut [u32], segment: u32, base: u32, levels: &[u32]) -> bool {
    if left.iter().all(|count| *count == 0) {
        return true;
    }
    let mut part = vec![0; left.len()];
    cut_one(left, &mut part, 0, segment, segment, base, levels)
}

fn cut_one(left: &mut [u32], part: &mut [u32], at: usize, rest: u32, segment: u32, base: u32, levels: &[u32]) -> bool {
    if rest == 0 {
        return is_allowed(part, segment, base, levels) && can_be_cut(left, segment, base, levels);
    }
    if at == left.len() {
        return false;
    }
    (0..=left[at].min(rest)).rev().any(|some| {
        (left[at], part[at]) = (left[at] - some, some);
        let found = cut_one(left, part, at + 1, rest - some, segment, base, levels);
        (left[at], part[at]) = (left[at] + some, 0);
        found
    })
}

/// More cases than the suite tries: `CASES=20000 cargo test -p topology`.
#[allow(clippy::disallowed_methods, reason = "tests may be told how long to try")]
pub fn many(usual: u32) -> u32 {
    std::env::var("CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
