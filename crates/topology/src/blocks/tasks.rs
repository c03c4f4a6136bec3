//! Blocks for a job that is counted in tasks, where nodes take different numbers of them: the fewest nodes that take all.
//! So many nodes are within the extent of their number, and every segment within its own.
use std::cmp::Reverse;
use std::ops::{Range, RangeInclusive};

use super::Blocks;
use super::pick::Field;
use super::richest::{Part, richest};
use super::sizes::Extent;
use crate::ask::Ask;

/// The candidates of each block, those with the most room first.
type Members = Vec<Vec<usize>>;

/// A job on candidates of some weights.
pub(super) struct Counted<'a> {
    pub field: &'a Field<'a>,
    pub ask: &'a Ask,
    pub n_tasks: u64,
    members: Members,
    required: Vec<usize>,
}

impl<'a> Counted<'a> {
    /// Candidates up to this weight, and those that the job named.
    pub fn new(field: &'a Field<'a>, ask: &'a Ask, n_tasks: u32, weight: u32) -> Self {
        let mut members = vec![Vec::new(); field.blocks.list.len()];
        let mut required = Vec::new();
        for (at, candidate) in field.candidates.iter().enumerate() {
            match field.block[at] {
                _ if candidate.is_required => required.push(at),
                Some(block) if candidate.weight <= weight => members[block as usize].push(at),
                _ => {}
            }
        }
        for own in &mut members {
            own.sort_by_key(|at| {
                let candidate = &field.candidates[*at];
                (Reverse(candidate.n_tasks), candidate.weight, !candidate.is_in_use, *at)
            });
        }
        Counted { field, ask, n_tasks: u64::from(n_tasks), members, required }
    }

    /// The fewest nodes, at least so many, that take all tasks.
    pub fn place(&self, least: u32) -> Option<Vec<usize>> {
        let n_nodes = self.members.iter().map(Vec::len).sum::<usize>() + self.required.len();
        let most = self.ask.max_nodes.min(n_nodes as u32);
        let least = least.max(self.fewest()?);
        let segment = match self.ask.segment {
            0 => return self.together(least, most),
            segment => segment,
        };
        self.together(least, most.min(segment)).or_else(|| {
            let (first, last) = (least.max(segment + 1).div_ceil(segment), most / segment);
            self.in_segments(first..=last)
        })
    }

    /// No fewer nodes than this take all tasks, wherever they are.
    fn fewest(&self) -> Option<u32> {
        let mut others: Vec<u64> = self.members.iter().flatten().map(|at| self.room(*at)).collect();
        others.sort_unstable_by(|a, b| b.cmp(a));
        let named = self.required.iter().map(|at| self.room(*at));
        let (mut n, mut held) = (0, 0);
        for (at, room) in named.chain(others).enumerate() {
            if held >= self.n_tasks && at >= self.required.len() {
                break;
            }
            (n, held) = (n + 1, held + room);
        }
        (held >= self.n_tasks).then_some(n)
    }

    fn room(&self, at: usize) -> u64 {
        u64::from(self.field.candidates[at].n_tasks)
    }

    fn takes_all(&self, chosen: &[usize]) -> bool {
        chosen.iter().map(|at| self.room(*at)).sum::<u64>() >= self.n_tasks
    }

    /// All nodes within one extent, for every number of nodes in turn that makes it larger.
    fn together(&self, least: u32, most: u32) -> Option<Vec<usize>> {
        let mut first = least.max(1);
        while first <= most {
            let extent = self.field.blocks.extent(first);
            let part = self.field.blocks.base << extent.sub;
            let last = first.div_ceil(part).saturating_mul(part).min(most);
            if let Some(chosen) = self.within(extent, first, last) {
                return Some(self.fewer(extent, first, last, chosen));
            }
            first = last + 1;
        }
        None
    }

    /// As few nodes as will do: where so many are enough, more are as well.
    fn fewer(&self, extent: Extent, first: u32, last: u32, mut chosen: Vec<usize>) -> Vec<usize> {
        let (mut low, mut high) = (first, last.min(chosen.len() as u32));
        while low < high {
            let middle = low.midpoint(high);
            match self.within(extent, first, middle) {
                Some(fewer) => (high, chosen) = (middle, fewer),
                None => low = middle + 1,
            }
        }
        chosen
    }

    /// From `first` to `last` nodes that take all tasks: of the group with the fewest nodes that has them.
    fn within(&self, extent: Extent, first: u32, last: u32) -> Option<Vec<usize>> {
        let blocks = self.field.blocks;
        let n_required = self.required.len() as u32;
        let open: Vec<usize> =
            self.required.iter().map(|at| Some(self.field.block[*at]? as usize)).collect::<Option<_>>()?;
        let mut groups = blocks.groups(extent.group);
        groups.retain(|group| open.iter().all(|block| group.contains(block)));
        groups.reverse();
        groups.sort_by_key(|group| self.members[group.clone()].iter().map(Vec::len).sum::<usize>());
        groups.into_iter().find_map(|group| {
            let parts = self.parts(&self.members, group, extent, &open);
            let n_open = parts.iter().filter(|part| part.is_open).count() as u32;
            let n_parts = extent.most_subs.checked_sub(n_open)?;
            let n_nodes = first.saturating_sub(n_required)..=last.checked_sub(n_required)?;
            let mut chosen = richest(&parts, n_parts as usize, n_nodes)?;
            chosen.extend(&self.required);
            self.takes_all(&chosen).then_some(chosen)
        })
    }

    fn parts(&self, members: &Members, group: Range<usize>, extent: Extent, open: &[usize]) -> Vec<Part> {
        let part = |blocks: Range<usize>| {
            let is_open = open.iter().any(|block| blocks.contains(block));
            let mut nodes: Vec<(u64, usize)> =
                members[blocks].iter().flatten().map(|at| (self.room(*at), *at)).collect();
            // The blocks' own orders are kept among equals.
            nodes.sort_by_key(|(room, _)| Reverse(*room));
            Part { nodes, is_open }
        };
        super::counts::subs(&group, extent.sub).into_iter().map(part).collect()
    }

    /// Whole segments, so many of them.
    fn in_segments(&self, numbers: RangeInclusive<u32>) -> Option<Vec<usize>> {
        if numbers.is_empty() {
            return None;
        }
        let blocks = self.field.blocks;
        let is_whole = |chosen: &Vec<usize>| self.required.iter().all(|at| chosen.contains(at));
        let mut members = self.members.clone();
        for at in &self.required {
            members[self.field.block[*at]? as usize].insert(0, *at);
        }
        if !self.ask.consolidates {
            return self.segments(&members, 0..blocks.list.len(), numbers).filter(is_whole);
        }
        let (mut first, last) = numbers.into_inner();
        while first <= last {
            let level = self.group_of(blocks, first);
            let next = (first..=last).find(|n| self.group_of(blocks, *n) != level).unwrap_or(last + 1);
            let mut groups = blocks.groups(level);
            groups.reverse();
            groups.sort_by_key(|group| members[group.clone()].iter().map(Vec::len).sum::<usize>());
            let place = |group| self.segments(&members, group, first..=next - 1).filter(is_whole);
            let found = groups.into_iter().find_map(place);
            if found.is_some() {
                return found;
            }
            first = next;
        }
        None
    }

    fn group_of(&self, blocks: &Blocks, n_segments: u32) -> Option<u32> {
        blocks.group_for(n_segments, self.ask.segment, self.ask.spreads)
    }

    /// The segments that take the most tasks, one after the other, until they take all.
    fn segments(&self, members: &Members, within: Range<usize>, numbers: RangeInclusive<u32>) -> Option<Vec<usize>> {
        let size = self.ask.segment;
        let extent = self.field.blocks.extent(size);
        let groups = self.field.blocks.groups_within(extent.group, within);
        let mut members = members.clone();
        let best = |members: &Members, group: &Range<usize>| -> Option<(u64, Vec<usize>)> {
            let parts = self.parts(members, group.clone(), extent, &[]);
            let chosen = richest(&parts, extent.most_subs as usize, size..=size)?;
            Some((chosen.iter().map(|at| self.room(*at)).sum(), chosen))
        };
        let mut bests: Vec<Option<(u64, Vec<usize>)>> = groups.iter().map(|group| best(&members, group)).collect();
        let mut chosen = Vec::new();
        for n in 1..=*numbers.end() {
            let free = |at: &usize| members[groups[*at].clone()].iter().map(Vec::len).sum::<usize>();
            let next = (0..groups.len())
                .filter(|at| bests[*at].is_some())
                .max_by_key(|at| (bests[*at].as_ref().map(|(room, _)| *room), Reverse(free(at)), *at))?;
            let (_, segment) = bests[next].take()?;
            for at in &segment {
                let own = &mut members[self.field.block[*at]? as usize];
                match self.ask.spreads {
                    true => own.clear(),
                    false => own.retain(|other| other != at),
                }
            }
            chosen.extend(segment);
            if n >= *numbers.start() && self.takes_all(&chosen) {
                return Some(chosen);
            }
            bests[next] = best(&members, &groups[next]);
        }
        None
    }
}
