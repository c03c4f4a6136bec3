//! Which base blocks, when only numbers of nodes matter.
use std::ops::Range;

use super::Blocks;
use super::sizes::Extent;

/// Free nodes of each base block.
#[derive(Clone)]
pub(super) struct Counts(pub Vec<u32>);

/// Nodes to take of each block.
pub(super) type Takes = Vec<(usize, u32)>;

impl Blocks {
    /// `n` nodes on blocks that have so many free, as the size allows.
    pub(crate) fn choose(&self, free: &[u32], n: u32) -> Option<Vec<(u32, u32)>> {
        let extent = self.extent(n);
        let mut counts = Counts(free.to_vec());
        let group = counts.tightest(&self.groups(extent.group), n, extent, &[])?;
        let takes = counts.fill(group, n, extent.sub, &[]);
        Some(takes.into_iter().map(|(block, n)| (block as u32, n)).collect())
    }
}

impl Counts {
    pub fn of(&self, group: Range<usize>) -> u32 {
        self.0[group].iter().sum()
    }

    /// The group with the fewest free nodes of those that can take `n` on few enough parts; the last of equals.
    pub fn tightest(&self, groups: &[Range<usize>], n: u32, extent: Extent, open: &[usize]) -> Option<Range<usize>> {
        let mut large: Vec<(u32, &Range<usize>)> =
            groups.iter().rev().map(|group| (self.of(group.clone()), group)).filter(|(free, _)| *free >= n).collect();
        // Most often the first will do.
        let first = (0..large.len()).min_by_key(|at| large[*at].0)?;
        if self.takes(large[first].1, n, extent, open) {
            return Some(large[first].1.clone());
        }
        large.sort_by_key(|(free, _)| *free);
        large.into_iter().map(|(_, group)| group).find(|group| self.takes(group, n, extent, open)).cloned()
    }

    /// The group has `n` on few enough parts.
    fn takes(&self, group: &Range<usize>, n: u32, extent: Extent, open: &[usize]) -> bool {
        let is_open = |sub: &Range<usize>| open.iter().any(|block| sub.contains(block));
        let (used, others): (Vec<_>, Vec<_>) = subs(group, extent.sub).into_iter().partition(is_open);
        let more = (extent.most_subs as usize).checked_sub(used.len());
        let mut free: Vec<u32> = others.into_iter().map(|sub| self.of(sub)).collect();
        free.sort_unstable_by(|a, b| b.cmp(a));
        let on_used: u32 = used.into_iter().map(|sub| self.of(sub)).sum();
        more.is_some_and(|more| on_used + free.iter().take(more).sum::<u32>() >= n)
    }

    /// Takes `n` nodes of a group: parts in use first, then the tightest part that has all the rest, else the fullest.
    pub fn fill(&mut self, group: Range<usize>, n: u32, sub: u32, open: &[usize]) -> Takes {
        let mut takes = Takes::new();
        let mut subs = subs(&group, sub);
        let mut rest = n;
        while rest > 0 {
            let is_open = |sub: &Range<usize>| open.iter().any(|block| sub.contains(block));
            let next = subs.iter().position(&is_open).or_else(|| {
                let free: Vec<u32> = subs.iter().map(|sub| self.of(sub.clone())).collect();
                best(&free, rest)
            });
            let Some(next) = next else { break };
            let sub = subs.remove(next);
            let some = rest.min(self.of(sub.clone()));
            self.fill_sub(sub, some, open, &mut takes);
            rest -= some;
        }
        takes
    }

    /// As `fill`, with the smallest parts first, as long as the fullest others can give the rest.
    pub fn use_up(&mut self, group: Range<usize>, n: u32, extent: Extent) -> Takes {
        let mut takes = Takes::new();
        let mut subs = subs(&group, extent.sub);
        let mut rest = n;
        for n_subs in (0..extent.most_subs as usize).rev() {
            subs.retain(|sub| self.of(sub.clone()) > 0);
            subs.sort_by_key(|sub| self.of(sub.clone()));
            let suffices = |at: usize| {
                let others = subs.iter().enumerate().rev().filter(|(other, _)| *other != at).take(n_subs);
                self.of(subs[at].clone()) + others.map(|(_, sub)| self.of(sub.clone())).sum::<u32>() >= rest
            };
            let Some(next) = (0..subs.len()).find(|at| suffices(*at)) else { break };
            let some = rest.min(self.of(subs[next].clone()));
            self.fill_sub(subs.remove(next), some, &[], &mut takes);
            rest -= some;
            if rest == 0 {
                break;
            }
        }
        takes
    }

    fn fill_sub(&mut self, sub: Range<usize>, n: u32, open: &[usize], takes: &mut Takes) {
        let mut blocks: Vec<usize> = sub.collect();
        let mut rest = n;
        while rest > 0 {
            let next = blocks.iter().position(|block| open.contains(block)).or_else(|| {
                let free: Vec<u32> = blocks.iter().map(|block| self.0[*block]).collect();
                best(&free, rest)
            });
            let Some(next) = next else { return };
            let block = blocks.remove(next);
            let some = rest.min(self.0[block]);
            self.0[block] -= some;
            rest -= some;
            takes.push((block, some));
        }
    }
}

/// The smallest that is enough, else the largest; the first of equals.
fn best(free: &[u32], n: u32) -> Option<usize> {
    let enough = (0..free.len()).filter(|at| free[*at] >= n).min_by_key(|at| free[*at]);
    enough.or_else(|| (0..free.len()).filter(|at| free[*at] > 0).max_by_key(|at| (free[*at], std::cmp::Reverse(*at))))
}

/// The parts of a group.
pub(super) fn subs(group: &Range<usize>, level: u32) -> Vec<Range<usize>> {
    let size = 1usize << level.min(31);
    group.clone().step_by(size).map(|start| start..(start + size).min(group.end)).collect()
}
