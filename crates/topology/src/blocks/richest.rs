//! Of a few parts of a group, the nodes that take the most tasks.
use std::cmp::Reverse;
use std::ops::RangeInclusive;

/// A part of a group of blocks: its nodes with the tasks they take, the most first.
pub(super) struct Part {
    pub nodes: Vec<(u64, usize)>,
    /// The job has it already.
    pub is_open: bool,
}

/// Beyond so many steps not every set of parts is weighed against every other.
const MOST_STEPS: usize = 4_000_000;

/// So many nodes that together take the most tasks, on the open parts and on `n_parts` others.
pub(super) fn richest(parts: &[Part], n_parts: usize, n_nodes: RangeInclusive<u32>) -> Option<Vec<usize>> {
    let (least, most) = (*n_nodes.start() as usize, *n_nodes.end() as usize);
    let (open, mut others): (Vec<&Part>, Vec<&Part>) =
        parts.iter().filter(|part| !part.nodes.is_empty()).partition(|part| part.is_open);
    if others.len() > n_parts {
        let n_all: usize = open.iter().chain(&others).map(|part| part.nodes.len().min(most)).sum();
        if n_all.saturating_mul(n_parts + 1).saturating_mul(most) <= MOST_STEPS {
            return weighed(&open, &others, n_parts, least, most);
        }
        others.sort_by_key(|part| Reverse(part.nodes.iter().take(most).map(|(room, _)| room).sum::<u64>()));
        others.truncate(n_parts);
    }
    let mut nodes: Vec<(u64, usize)> = open.iter().chain(&others).flat_map(|part| part.nodes.iter().copied()).collect();
    nodes.sort_by_key(|(room, _)| Reverse(*room));
    nodes.truncate(most);
    (nodes.len() >= least).then(|| nodes.into_iter().map(|(_, at)| at).collect())
}

/// Part for part, the most tasks for every number of parts and of nodes so far, and how many nodes of the part that takes.
fn weighed(open: &[&Part], others: &[&Part], n_parts: usize, least: usize, most: usize) -> Option<Vec<usize>> {
    let width = most + 1;
    let cell = |n_parts: usize, n_nodes: usize| n_parts * width + n_nodes;
    let mut best: Vec<Option<u64>> = vec![None; (n_parts + 1) * width];
    best[cell(0, 0)] = Some(0);
    let all: Vec<(&Part, usize)> =
        open.iter().map(|part| (*part, 0)).chain(others.iter().map(|part| (*part, 1))).collect();
    let mut taken: Vec<Vec<u32>> = Vec::with_capacity(all.len());
    for (part, cost) in &all {
        let mut taken_here = vec![0u32; best.len()];
        // From the back: what is read is still without this part.
        for n_used in (*cost..=n_parts).rev() {
            for n in (1..=most).rev() {
                let mut room = 0;
                for (before, (more, _)) in part.nodes.iter().take(n).enumerate() {
                    room += more;
                    let with = best[cell(n_used - cost, n - before - 1)].map(|so_far| so_far + room);
                    if with > best[cell(n_used, n)] {
                        best[cell(n_used, n)] = with;
                        taken_here[cell(n_used, n)] = before as u32 + 1;
                    }
                }
            }
        }
        taken.push(taken_here);
    }
    let ends = (0..=n_parts).flat_map(|n_used| (least..=most).map(move |n| (n_used, n)));
    let (mut n_used, mut n) = ends
        .filter(|(n_used, n)| best[cell(*n_used, *n)].is_some())
        .max_by_key(|(n_used, n)| (best[cell(*n_used, *n)], Reverse(*n_used), Reverse(*n)))?;
    let mut chosen = Vec::with_capacity(n);
    for ((part, cost), taken) in all.iter().zip(&taken).rev() {
        let some = taken[cell(n_used, n)] as usize;
        if some > 0 {
            chosen.extend(part.nodes[..some].iter().map(|(_, at)| *at));
            (n_used, n) = (n_used - cost, n - some);
        }
    }
    Some(chosen)
}
