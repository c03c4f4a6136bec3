//! Which leaves, when only numbers of nodes matter: the lowest common switch, then the fewest leaves there are, then the
//! fewest switches below the common one, then the least left over.
use super::Tree;
use super::leaves::{self, Item};

/// What stands on the leaves.
pub(crate) struct Counts<'a> {
    pub tree: &'a Tree,
    /// Nodes that may be chosen, of each leaf.
    pub free: &'a [u32],
    /// Leaves that the job is on in any case.
    pub open: &'a [bool],
}

/// Nodes to take of each leaf.
pub(crate) type Takes = Vec<(u32, u32)>;

/// How good a place is; less is better. All parts are in the order of importance.
type Rank = (u32, u32, u32, u32);

impl Counts<'_> {
    /// Chooses `n` nodes below one of the switches, which are given with lower levels first; on at most so many leaves.
    pub fn choose(&self, switches: &[u32], n: u32, most_leaves: Option<u32>) -> Option<Takes> {
        let n_open = self.open.iter().filter(|open| **open).count() as u32;
        let level = |at: &u32| self.tree.switches[*at as usize].level;
        let mut from = 0;
        while from < switches.len() {
            let to = from + switches[from..].partition_point(|at| level(at) == level(&switches[from]));
            let fewest = switches[from..to].iter().filter_map(|at| Some((*at, self.fewest(*at, n)?)));
            let fewest: Vec<(u32, u32)> =
                fewest.filter(|(_, k)| most_leaves.is_none_or(|most| n_open + k <= most)).collect();
            if let Some(least) = fewest.iter().map(|(_, k)| *k).min() {
                let equals = fewest.iter().filter(|(_, k)| *k == least);
                // Of single leaves the best is known without working out every one.
                if equals.clone().all(|(at, _)| self.tree.under(*at).len() == 1) {
                    let (best, k) = equals.min_by_key(|(at, _)| self.rank_of_leaf(*at, n))?;
                    return Some(self.solve(*best, n, *k).1);
                }
                let best = equals.map(|(at, k)| self.solve(*at, n, *k));
                return best.min_by_key(|(rank, _)| *rank).map(|(_, takes)| takes);
            }
            from = to;
        }
        None
    }

    /// The fewest leaves, besides the open ones, that have `n` nodes.
    fn fewest(&self, switch: u32, n: u32) -> Option<u32> {
        let under = self.tree.under(switch);
        let total: u64 = self.free[under.clone()].iter().map(|free| u64::from(*free)).sum();
        if total < u64::from(n) {
            return None;
        }
        if under.len() == 1 {
            return Some(u32::from(n > 0 && !self.open[under.start]));
        }
        let mut need = u64::from(n).saturating_sub(self.on_open(under.clone()));
        let mut counts: Vec<u32> = under.filter(|leaf| !self.open[*leaf]).map(|leaf| self.free[leaf]).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut k = 0;
        while need > 0 {
            need = need.saturating_sub(u64::from(counts[k]));
            k += 1;
        }
        Some(k as u32)
    }

    /// Of a switch that is a leaf and has enough.
    fn rank_of_leaf(&self, switch: u32, n: u32) -> Rank {
        let leaf = self.tree.under(switch).start;
        let free = self.free[leaf];
        if self.open[leaf] || n == 0 { (0, 0, free, switch) } else { (1, free - n, free, switch) }
    }

    fn on_open(&self, under: std::ops::Range<usize>) -> u64 {
        under.filter(|leaf| self.open[*leaf]).map(|leaf| u64::from(self.free[leaf])).sum()
    }

    /// The best `k` leaves below the switch, and what is taken of each.
    fn solve(&self, switch: u32, n: u32, k: u32) -> (Rank, Takes) {
        let under = self.tree.under(switch);
        let total: u32 = self.free[under.clone()].iter().sum();
        let mut left = n;
        let mut takes = Takes::new();
        let take = |leaf: u32, left: &mut u32, takes: &mut Takes| {
            let some = self.free[leaf as usize].min(*left);
            *left -= some;
            if some > 0 {
                takes.push((leaf, some));
            }
        };
        for leaf in under.clone().filter(|leaf| self.open[*leaf]) {
            take(leaf as u32, &mut left, &mut takes);
        }
        if left == 0 || k == 0 {
            return ((0, 0, total, switch), takes);
        }
        if under.len() == 1 {
            take(under.start as u32, &mut left, &mut takes);
            return (self.rank_of_leaf(switch, n), takes);
        }
        let (n_pods, waste, mut chosen) = leaves::choose(self, switch, self.items(switch), k, left);
        chosen.sort_by_key(|leaf| (std::cmp::Reverse(self.free[*leaf as usize]), self.tree.leaf_order(*leaf)));
        for leaf in chosen {
            take(leaf, &mut left, &mut takes);
        }
        ((n_pods, waste, total, switch), takes)
    }

    /// The leaves that could be chosen, with the child of the switch that each is below.
    pub(super) fn items(&self, switch: u32) -> Vec<Item> {
        let mut items = Vec::new();
        for leaf in self.tree.under(switch) {
            if self.open[leaf] || self.free[leaf] == 0 {
                continue;
            }
            items.push(Item { leaf: leaf as u32, count: self.free[leaf], ..Item::default() });
        }
        items
    }
}
