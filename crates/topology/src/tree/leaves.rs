//! The exact choice among leaves. With `k` the fewest leaves that hold `need` nodes, the `k` fullest hold at most `slack` too
//! many, and `slack` is less than one leaf. Measure every choice by its *deficit* against the `k` fullest: a leaf fuller than
//! the k-th that is left out costs the difference, and so does an emptier one that is taken in. A choice of `k` leaves is
//! enough if its deficit is at most `slack`, and best if it is closest to it. Every step away from the fullest costs at least
//! one, so few are possible, and those are all looked at: `plain` without, `pods` with a thought for the switches in between.
use std::cmp::Reverse;

use super::counts::Counts;
use super::plain;
use super::pods::{self, Pod};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    pub leaf: u32,
    pub count: u32,
    /// What it costs to take it, and to leave it out.
    pub take: u32,
    pub leave: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Aim {
    AtMost(u32),
    Exactly(u32),
}

impl Aim {
    pub fn most(self) -> u32 {
        let (Aim::AtMost(most) | Aim::Exactly(most)) = self;
        most
    }

    /// The deficits that will do, the best first.
    pub fn deficits(self) -> impl Iterator<Item = u32> {
        let least = match self {
            Aim::AtMost(_) => 0,
            Aim::Exactly(deficit) => deficit,
        };
        (least..=self.most()).rev()
    }
}

struct Choice {
    /// Children of the switch that are used besides those the job is in already.
    n_pods: u32,
    deficit: u32,
    leaves: Vec<u32>,
}

/// The switches used below `switch`, the nodes left over, and the `k` leaves.
pub(super) fn choose(counts: &Counts, switch: u32, mut items: Vec<Item>, k: u32, need: u32) -> (u32, u32, Vec<u32>) {
    items.sort_unstable_by_key(|item| (Reverse(item.count), counts.tree.leaf_order(item.leaf)));
    let threshold = items[k as usize - 1].count;
    let slack = items[..k as usize].iter().map(|item| item.count).sum::<u32>() - need;
    for item in &mut items {
        item.take = threshold.saturating_sub(item.count);
        item.leave = item.count.saturating_sub(threshold);
    }
    items.retain(|item| item.take <= slack);
    let choice = below(counts, switch, &items, k, Aim::AtMost(slack));
    (choice.n_pods, slack - choice.deficit, choice.leaves)
}

/// Fewest children of `switch` first, then the aim; then the same below each child. Items are sorted, the fullest first.
fn below(counts: &Counts, switch: u32, items: &[Item], k: u32, aim: Aim) -> Choice {
    let (deficit, plain) = plain::choose(items, k, aim).expect("the k fullest reach it");
    let all = counts.tree.under(switch);
    let children = if all.len() > 1 { children(counts, switch) } else { Vec::new() };
    match children[..] {
        [child] => return below(counts, child, items, k, aim),
        _ if children.len() == all.len() || children.is_empty() => {
            return Choice { n_pods: k, deficit, leaves: plain };
        }
        _ => (),
    }
    let pods = pods(counts, &children, items);
    let n_pods = pods.iter().filter(|pod| !pod.is_open && plain.iter().any(|leaf| pod.has(counts.tree, *leaf))).count();
    let Some(split) = pods::split(&pods, k, aim, n_pods as u32) else {
        return Choice { n_pods: n_pods as u32, deficit, leaves: plain };
    };
    let mut leaves = Vec::with_capacity(k as usize);
    for part in split.parts {
        let pod = &pods[part.pod];
        leaves.extend(below(counts, pod.switch, &pod.items, part.n_leaves, Aim::Exactly(part.deficit)).leaves);
    }
    Choice { n_pods: split.n_pods, deficit: split.deficit, leaves }
}

/// The children of a switch: ranges of leaves.
fn children(counts: &Counts, switch: u32) -> Vec<u32> {
    let tree = counts.tree;
    let mut children = Vec::new();
    let mut leaf = tree.under(switch).start;
    while leaf < tree.under(switch).end {
        let above = tree.ancestors(tree.leaf_switch(leaf as u32));
        let child = above.take_while(|at| *at != switch).last().expect("the leaf is below the switch");
        leaf = tree.under(child).end;
        children.push(child);
    }
    children
}

/// The children with their leaves, those with the most free nodes first.
fn pods(counts: &Counts, children: &[u32], items: &[Item]) -> Vec<Pod> {
    // Children are in the order of their leaves.
    let ends: Vec<usize> = children.iter().map(|child| counts.tree.under(*child).end).collect();
    let mut own: Vec<Vec<Item>> = vec![Vec::new(); children.len()];
    for item in items {
        own[ends.partition_point(|end| *end <= item.leaf as usize)].push(*item);
    }
    let is_open = |child: u32| counts.open[counts.tree.under(child)].contains(&true);
    let mut pods: Vec<Pod> =
        children.iter().zip(own).map(|(child, items)| Pod::new(*child, is_open(*child), items)).collect();
    let total = |child: u32| counts.free[counts.tree.under(child)].iter().sum::<u32>();
    pods.sort_by_cached_key(|pod| (Reverse(total(pod.switch)), pod.switch));
    pods
}
