//! The nodes of blocks for one job. Every placement, also that of each segment, keeps to the extent its size allows.
use std::ops::Range;

use model::topology::TopologyRules;

use super::Blocks;
use super::counts::{Counts, Takes};
use super::tasks::Counted;
use crate::ask::{self, Ask, Candidate, Unfit};

/// The candidates, by block.
pub(super) struct Field<'a> {
    pub blocks: &'a Blocks,
    pub candidates: &'a [Candidate],
    pub block: Vec<Option<u32>>,
}

/// What is still free while segments are placed.
#[derive(Clone)]
struct Left {
    /// Places in the list of candidates, of each block, the best to take last.
    members: Vec<Vec<usize>>,
}

impl Left {
    fn counts(&self) -> Counts {
        Counts(self.members.iter().map(|own| own.len() as u32).collect())
    }
}

/// How the parts of a group are used.
#[derive(Clone, Copy)]
enum Fill {
    Tidy,
    RestsFirst,
}

impl Blocks {
    pub(crate) fn pick(&self, rules: &TopologyRules, candidates: &[Candidate], ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let field = Field {
            blocks: self,
            candidates,
            block: candidates.iter().map(|candidate| self.block_of(candidate.node)).collect(),
        };
        if field.block.iter().all(Option::is_none) {
            return field.outside(ask);
        }
        let n_required = candidates.iter().filter(|candidate| candidate.is_required).count() as u32;
        let least = ask.min_nodes.max(n_required).max(1);
        let n_sizes = ask.max_nodes.saturating_sub(least) + 1;
        let unrolls = rules.max_size_unroll > 0 && n_sizes < rules.max_size_unroll;
        let most = if unrolls { ask.max_nodes } else { least };
        let mut why = Unfit::NoUnit;
        for n in (least..=most).rev() {
            match field.of_size(rules, n, ask) {
                Ok(chosen) => return Ok(chosen),
                Err(unfit) => why = unfit,
            }
        }
        let counted = field.for_tasks(rules, least, ask).or_else(|| field.in_equal_parts(rules, most, ask));
        counted.ok_or(why).or_else(|why| field.outside(ask).map_err(|_| why))
    }
}

impl Field<'_> {
    /// `n` nodes that take the tasks in equal parts: of the lightest weights that suffice.
    fn of_size(&self, rules: &TopologyRules, n: u32, ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let mut why = Unfit::TooFew;
        for weight in self.weights(rules) {
            match self.up_to_weight(weight, n, ask) {
                Ok(chosen) => return Ok(chosen),
                Err(Unfit::TooFew) => {}
                Err(unfit) => why = unfit,
            }
        }
        Err(why)
    }

    fn weights(&self, rules: &TopologyRules) -> Vec<u32> {
        match rules.network_before_weight {
            true => vec![u32::MAX],
            false => ask::weights(self.candidates),
        }
    }

    fn up_to_weight(&self, weight: u32, n: u32, ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let is_segmented = ask.segment > 0 && ask.segment < n;
        if is_segmented && !n.is_multiple_of(ask.segment) {
            return Err(Unfit::NoUnitForSegment);
        }
        let left = self.left(weight, ask.n_tasks_each(n));
        let n_left: usize = left.members.iter().map(Vec::len).sum();
        if (n_left as u32) < n {
            return Err(Unfit::TooFew);
        }
        if !is_segmented {
            return self.one(left, n);
        }
        let chosen = self.segments(left, n / ask.segment, ask)?;
        let is_named = |at: &usize| self.candidates[*at].is_required;
        let n_named = (0..self.candidates.len()).filter(is_named).count();
        match chosen.iter().filter(|at| is_named(at)).count() < n_named {
            true => Err(Unfit::RequiredApart),
            false => Ok(chosen),
        }
    }

    /// The fewest nodes that take all tasks, be it some more and others less; in equal parts if so few can.
    fn for_tasks(&self, rules: &TopologyRules, least: u32, ask: &Ask) -> Option<Vec<usize>> {
        let n_tasks = ask.n_tasks?;
        self.weights(rules).into_iter().find_map(|weight| {
            let chosen = Counted::new(self, ask, n_tasks, weight).place(least)?;
            self.up_to_weight(weight, chosen.len() as u32, ask).ok().or(Some(chosen))
        })
    }

    /// Nodes in no block, which are near to nobody: they take no segments but those of one node.
    fn outside(&self, ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let places: Vec<usize> = (0..self.candidates.len()).filter(|at| self.block[*at].is_none()).collect();
        let outside: Vec<Candidate> = places.iter().map(|at| self.candidates[*at]).collect();
        let n_named = |among: &[Candidate]| among.iter().filter(|candidate| candidate.is_required).count();
        if n_named(&outside) < n_named(self.candidates) {
            return Err(Unfit::RequiredApart);
        }
        let most = if ask.segment > 0 { 1 } else { ask.max_nodes };
        if ask.min_nodes > most {
            return Err(Unfit::NoUnitForSegment);
        }
        let ask = Ask { max_nodes: most, n_nodes: ask.n_nodes.min(most), ..*ask };
        Ok(ask::in_order(&outside, &ask)?.into_iter().map(|at| places[at]).collect())
    }

    /// More nodes, when those of the least size cannot take all tasks.
    fn in_equal_parts(&self, rules: &TopologyRules, most: u32, ask: &Ask) -> Option<Vec<usize>> {
        let n_tasks = ask.n_tasks?;
        let mut each = ask.n_tasks_each(most);
        while each > 1 {
            // The next size at which fewer tasks on each node are enough.
            let n = n_tasks.div_ceil(each - 1).max(most + 1);
            if n > ask.max_nodes || n as usize > self.candidates.len() {
                return None;
            }
            if let Ok(chosen) = self.of_size(rules, n, ask) {
                return Some(chosen);
            }
            each = n_tasks.div_ceil(n).min(each - 1);
        }
        None
    }

    fn left(&self, weight: u32, each: u32) -> Left {
        let mut members = vec![Vec::new(); self.blocks.list.len()];
        for (at, candidate) in self.candidates.iter().enumerate() {
            let is_able = candidate.n_tasks >= each && (candidate.weight <= weight || candidate.is_required);
            if let Some(block) = self.block[at].filter(|_| is_able) {
                members[block as usize].push(at);
            }
        }
        let order = |at: &usize| {
            let candidate = &self.candidates[*at];
            std::cmp::Reverse((!candidate.is_required, candidate.weight, !candidate.is_in_use, *at))
        };
        members.iter_mut().for_each(|own| own.sort_by_key(order));
        Left { members }
    }

    /// The whole job at once; what it named is in it.
    fn one(&self, mut left: Left, n: u32) -> Result<Vec<usize>, Unfit> {
        let extent = self.blocks.extent(n);
        let mut required: Vec<usize> = Vec::new();
        let all = (0..self.candidates.len()).filter(|at| self.candidates[*at].is_required);
        for at in all {
            let block = self.block[at].ok_or(Unfit::RequiredApart)? as usize;
            let member = left.members[block].iter().position(|own| *own == at).ok_or(Unfit::RequiredBusy)?;
            left.members[block].remove(member);
            required.push(at);
        }
        let mut open: Vec<usize> = required.iter().filter_map(|at| self.block[*at]).map(|at| at as usize).collect();
        open.sort_unstable();
        open.dedup();
        let n_more = n - required.len() as u32;
        let holds_open = |group: &Range<usize>| open.iter().all(|block| group.contains(block));
        let groups: Vec<Range<usize>> = self.blocks.groups(extent.group).into_iter().filter(holds_open).collect();
        if groups.is_empty() {
            return Err(Unfit::RequiredApart);
        }
        let mut counts = left.counts();
        let group = counts.tightest(&groups, n_more, extent, &open);
        let group = group.ok_or(if required.is_empty() { Unfit::NoUnit } else { Unfit::RequiredApart })?;
        let takes = counts.fill(group, n_more, extent.sub, &open);
        required.extend(Self::take(&mut left, takes));
        Ok(required)
    }

    /// Every segment by itself, all or none.
    fn segments(&self, left: Left, n_segments: u32, ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let all = 0..self.blocks.list.len();
        if !ask.consolidates {
            return self.segments_in(left, all, n_segments, ask).ok_or(Unfit::NoUnitForSegment);
        }
        let level = self.blocks.group_for(n_segments, ask.segment, ask.spreads);
        let mut groups = self.blocks.groups(level);
        groups.reverse();
        let counts = left.counts();
        groups.sort_by_key(|group| counts.of(group.clone()));
        let mut places = groups.into_iter().filter_map(|group| self.segments_in(left.clone(), group, n_segments, ask));
        places.next().ok_or(Unfit::NoUnitForSegment)
    }

    /// Tidily if that goes; else so that the smallest rests are used up first.
    fn segments_in(&self, left: Left, within: Range<usize>, n_segments: u32, ask: &Ask) -> Option<Vec<usize>> {
        let ways = [Fill::Tidy, Fill::RestsFirst];
        ways.into_iter().find_map(|way| self.segments_by(way, left.clone(), within.clone(), n_segments, ask))
    }

    fn segments_by(
        &self,
        way: Fill,
        mut left: Left,
        within: Range<usize>,
        n_segments: u32,
        ask: &Ask,
    ) -> Option<Vec<usize>> {
        let extent = self.blocks.extent(ask.segment);
        let groups = self.blocks.groups_within(extent.group, within);
        let mut chosen = Vec::new();
        for _ in 0..n_segments {
            let mut counts = left.counts();
            let group = counts.tightest(&groups, ask.segment, extent, &[])?;
            let takes = match way {
                Fill::Tidy => counts.fill(group, ask.segment, extent.sub, &[]),
                Fill::RestsFirst => counts.use_up(group, ask.segment, extent),
            };
            let touched: Vec<usize> = takes.iter().map(|(block, _)| *block).collect();
            let segment = Self::take(&mut left, takes);
            if segment.len() < ask.segment as usize {
                return None;
            }
            if ask.spreads {
                touched.into_iter().for_each(|block| left.members[block].clear());
            }
            chosen.extend(segment);
        }
        Some(chosen)
    }

    /// The nodes behind the numbers.
    fn take(left: &mut Left, takes: Takes) -> Vec<usize> {
        let mut chosen = Vec::new();
        for (block, n) in takes {
            let own = &mut left.members[block];
            chosen.extend(own.drain(own.len() - n as usize..).rev());
        }
        chosen
    }
}
