//! The nodes of a tree for one job: which switches may serve, which nodes are given by their weight or by name, which leaves.
use model::topology::TopologyRules;

use super::counts::Counts;
use super::{Tree, tasks};
use crate::ask::{self, Ask, Candidate, Unfit};

/// The candidates, by leaf.
pub(super) struct Field<'a> {
    pub tree: &'a Tree,
    pub candidates: &'a [Candidate],
    /// Of each candidate; those on no switch have none.
    pub leaf: Vec<Option<u32>>,
    pub required: Vec<usize>,
}

impl Tree {
    /// Nodes on leaves that have so many free: what to take of each.
    pub(crate) fn choose(&self, free: &[u32], ask: &Ask) -> Option<Vec<(u32, u32)>> {
        let open = vec![false; free.len()];
        let switches = &self.by_level[..self.n_up_to(ask.most_level)];
        Counts { tree: self, free, open: &open }.choose(switches, ask.n_nodes, ask.most_leaves)
    }

    /// So many switches, lower levels first, are of no higher level.
    fn n_up_to(&self, most_level: Option<u32>) -> usize {
        let Some(most) = most_level else { return self.by_level.len() };
        self.by_level.partition_point(|at| self.switches[*at as usize].level <= most)
    }

    pub(crate) fn pick(&self, rules: &TopologyRules, candidates: &[Candidate], ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let kept: Vec<usize> = narrowed(candidates, ask);
        if kept.len() < candidates.len() {
            let fewer: Vec<Candidate> = kept.iter().map(|at| candidates[*at]).collect();
            if let Ok(chosen) = self.pick_any(rules, &fewer, ask) {
                return Ok(chosen.into_iter().map(|at| kept[at]).collect());
            }
        }
        self.pick_any(rules, candidates, ask)
    }

    fn pick_any(&self, rules: &TopologyRules, candidates: &[Candidate], ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let field = Field::new(self, candidates);
        let each = ask.n_tasks_each(ask.n_nodes);
        if candidates.iter().all(|candidate| candidate.n_tasks >= each) {
            let chosen = field.by_count(rules, ask)?;
            let room: u64 = chosen.iter().map(|at| u64::from(candidates[*at].n_tasks)).sum();
            // Fewer nodes than were wanted may not take all tasks.
            return match ask.n_tasks.is_none_or(|n_tasks| room >= u64::from(n_tasks)) {
                true => Ok(chosen),
                false => tasks::pick(&field, ask),
            };
        }
        // Nodes that all take the same number of tasks, if there are enough of them; else any that suffice.
        let able: Vec<usize> = (0..candidates.len()).filter(|at| candidates[*at].n_tasks >= each).collect();
        let has_required = able.iter().filter(|at| candidates[**at].is_required).count() == field.required.len();
        if has_required && able.len() as u32 >= ask.n_nodes {
            let only: Vec<Candidate> = able.iter().map(|at| candidates[*at]).collect();
            if let Ok(chosen) = Field::new(self, &only).by_count(rules, &Ask { min_nodes: ask.n_nodes, ..*ask }) {
                return Ok(chosen.into_iter().map(|at| able[at]).collect());
            }
        }
        tasks::pick(&field, ask)
    }
}

/// For a job of one node, whichever that is, those that others have a part of, if there are any: whole nodes stay whole.
fn narrowed(candidates: &[Candidate], ask: &Ask) -> Vec<usize> {
    let all = || (0..candidates.len()).collect();
    if ask.n_nodes != 1 || candidates.iter().any(|candidate| candidate.is_required) {
        return all();
    }
    let lightest = candidates.iter().map(|candidate| candidate.weight).min();
    let is_wanted = |candidate: &Candidate| candidate.is_in_use && Some(candidate.weight) == lightest;
    let kept: Vec<usize> = (0..candidates.len()).filter(|at| is_wanted(&candidates[*at])).collect();
    if kept.is_empty() { all() } else { kept }
}

impl<'a> Field<'a> {
    pub fn new(tree: &'a Tree, candidates: &'a [Candidate]) -> Self {
        Field {
            tree,
            candidates,
            leaf: candidates.iter().map(|candidate| tree.leaf_of(candidate.node)).collect(),
            required: (0..candidates.len()).filter(|at| candidates[*at].is_required).collect(),
        }
    }

    /// Nodes count one each.
    fn by_count(&self, rules: &TopologyRules, ask: &Ask) -> Result<Vec<usize>, Unfit> {
        let n_required = self.required.len() as u32;
        if ask.max_nodes < n_required || (self.candidates.len() as u32) < ask.min_nodes {
            return Err(Unfit::TooFew);
        }
        let switches = self.switches_above_required(ask.most_level)?;
        let most = self.most(&switches);
        if most < ask.min_nodes {
            return if n_required > 0 { Err(Unfit::RequiredApart) } else { Err(Unfit::NoUnit) };
        }
        let n_most = most.min(ask.n_nodes.max(n_required)).max(ask.min_nodes);
        if n_most == 1
            && let Some(alone) = self.off_the_tree(rules)
        {
            return Ok(vec![alone]);
        }
        if rules.dragonfly && n_required == 0 && ask.most_leaves.is_none_or(|most| most > 1) {
            return self.spread(&switches, n_most);
        }
        // With a limit on leaves, fewer nodes are better than none.
        let least = if ask.most_leaves.is_some() { ask.min_nodes } else { n_most };
        for n in (least..=n_most).rev() {
            if let Some(chosen) = self.of_size(rules, &switches, n, ask.most_leaves) {
                return Ok(chosen);
            }
        }
        Err(Unfit::TooManyLeaves)
    }

    /// The switches above every node that the job named, lower levels first.
    pub(super) fn switches_above_required(&self, most_level: Option<u32>) -> Result<Vec<u32>, Unfit> {
        let leaves: Vec<u32> = self.required.iter().filter_map(|at| self.leaf[*at]).collect();
        if leaves.len() < self.required.len() && self.required.len() > 1 {
            return Err(Unfit::RequiredApart);
        }
        let (first, last) = (leaves.iter().min(), leaves.iter().max());
        let is_above = |at: &u32| {
            first.is_none_or(|leaf| self.tree.is_above(*at, *leaf))
                && last.is_none_or(|leaf| self.tree.is_above(*at, *leaf))
        };
        let low = &self.tree.by_level[..self.tree.n_up_to(most_level)];
        let switches: Vec<u32> = low.iter().copied().filter(is_above).collect();
        if switches.is_empty() && !leaves.is_empty() { Err(Unfit::RequiredApart) } else { Ok(switches) }
    }

    /// The most nodes that have a common switch.
    fn most(&self, switches: &[u32]) -> u32 {
        let mut free = vec![0u32; self.tree.n_leaves()];
        self.leaf.iter().flatten().for_each(|leaf| free[*leaf as usize] += 1);
        let below = |at: &u32| free[self.tree.under(*at)].iter().sum();
        let lone = u32::from(!self.candidates.is_empty());
        switches.iter().map(below).max().unwrap_or(0).max(lone)
    }

    /// For a job of one node: the first candidate on no switch, since no other job can use it as well.
    fn off_the_tree(&self, rules: &TopologyRules) -> Option<usize> {
        if let [required] = self.required[..] {
            return Some(required);
        }
        let lightest = ask::weights(self.candidates).first().copied();
        (0..self.candidates.len()).find(|at| {
            let is_light = rules.network_before_weight || Some(self.candidates[*at].weight) == lightest;
            self.leaf[*at].is_none() && is_light
        })
    }

    /// Exactly `n` nodes: the lightest that have a common switch, and of those the nearest.
    fn of_size(&self, rules: &TopologyRules, switches: &[u32], n: u32, most_leaves: Option<u32>) -> Option<Vec<usize>> {
        let weights = match rules.network_before_weight {
            true => vec![u32::MAX],
            false => ask::weights(self.candidates),
        };
        if weights.len() == 1 {
            return self.of_class(switches, n, &|_| false, &|_| true, most_leaves);
        }
        for (class, weight) in weights.iter().enumerate() {
            let best = self.most_of_lighter(switches, n, &weights[..=class]);
            if best.is_empty() {
                continue;
            }
            let is_lighter = |at: usize| self.candidates[at].weight < *weight;
            let is_last = |at: usize| self.candidates[at].weight == *weight;
            let chosen = self.of_class(&best, n, &is_lighter, &is_last, most_leaves);
            if chosen.is_some() {
                return chosen;
            }
            // A limit on leaves may need heavier nodes.
        }
        None
    }

    /// Of the switches with `n` nodes of these weights, those that need the fewest of the heaviest, then of the next.
    fn most_of_lighter(&self, switches: &[u32], n: u32, weights: &[u32]) -> Vec<u32> {
        // On each leaf, the nodes of each weight and of all lighter ones.
        let mut counts = vec![vec![0u32; self.tree.n_leaves()]; weights.len()];
        for (candidate, leaf) in self.candidates.iter().zip(&self.leaf) {
            let Some(leaf) = leaf else { continue };
            let from = if candidate.is_required { 0 } else { weights.partition_point(|w| *w < candidate.weight) };
            counts[from.min(weights.len())..].iter_mut().for_each(|count| count[*leaf as usize] += 1);
        }
        let count = |switch: u32, class: usize| counts[class][self.tree.under(switch)].iter().sum::<u32>();
        let last = weights.len() - 1;
        let mut best: Vec<u32> = switches.iter().copied().filter(|at| count(*at, last) >= n).collect();
        for class in (0..last).rev() {
            let most = best.iter().map(|at| count(*at, class)).max().unwrap_or(0);
            best.retain(|at| count(*at, class) == most);
        }
        best
    }

    /// Below one of the switches: all that are `given` or required, and of the `choosable` as many as are needed besides.
    fn of_class(
        &self,
        switches: &[u32],
        n: u32,
        given: &dyn Fn(usize) -> bool,
        choosable: &dyn Fn(usize) -> bool,
        most_leaves: Option<u32>,
    ) -> Option<Vec<usize>> {
        let has_given = (0..self.candidates.len()).any(given);
        if !has_given {
            return self.below(switches, n, &self.required, choosable, most_leaves);
        }
        // What is given differs from switch to switch; the lowest that serves is taken.
        switches.iter().find_map(|switch| {
            let is_below = |at: usize| self.leaf[at].is_some_and(|leaf| self.tree.is_above(*switch, leaf));
            let is_fixed = |at: &usize| self.candidates[*at].is_required || (given(*at) && is_below(*at));
            let fixed: Vec<usize> = (0..self.candidates.len()).filter(is_fixed).collect();
            self.below(&[*switch], n, &fixed, choosable, most_leaves)
        })
    }

    fn below(
        &self,
        switches: &[u32],
        n: u32,
        fixed: &[usize],
        choosable: &dyn Fn(usize) -> bool,
        most_leaves: Option<u32>,
    ) -> Option<Vec<usize>> {
        let n_leaves = self.tree.n_leaves();
        let (mut free, mut open) = (vec![0u32; n_leaves], vec![false; n_leaves]);
        let mut is_fixed = vec![false; self.candidates.len()];
        for at in fixed {
            is_fixed[*at] = true;
            open[self.leaf[*at]? as usize] = true;
        }
        let may_choose = |at: usize| !is_fixed[at] && choosable(at);
        for at in (0..self.candidates.len()).filter(|at| may_choose(*at)) {
            if let Some(leaf) = self.leaf[at] {
                free[leaf as usize] += 1;
            }
        }
        let counts = Counts { tree: self.tree, free: &free, open: &open };
        let takes = counts.choose(switches, n.checked_sub(fixed.len() as u32)?, most_leaves)?;
        let mut left = vec![0u32; n_leaves];
        takes.iter().for_each(|(leaf, n)| left[*leaf as usize] = *n);
        let mut order: Vec<usize> = (0..self.candidates.len()).filter(|at| may_choose(*at)).collect();
        order.sort_by_key(|at| (self.candidates[*at].weight, !self.candidates[*at].is_in_use, *at));
        let mut chosen = fixed.to_vec();
        for at in order {
            if let Some(leaf) = self.leaf[at]
                && left[leaf as usize] > 0
            {
                left[leaf as usize] -= 1;
                chosen.push(at);
            }
        }
        Some(chosen)
    }

    /// Dragonfly: the emptiest leaf that has all, else one node of each leaf in turn.
    fn spread(&self, switches: &[u32], n: u32) -> Result<Vec<usize>, Unfit> {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.tree.n_leaves()];
        for (at, leaf) in self.leaf.iter().enumerate() {
            members[(*leaf).ok_or(Unfit::NoUnit)? as usize].push(at);
        }
        members.iter_mut().for_each(|own| own.sort_by_key(|at| (self.candidates[*at].weight, *at)));
        let whole = members.iter().filter(|own| own.len() as u32 >= n).max_by_key(|own| own.len());
        if let Some(whole) = whole {
            return Ok(whole[..n as usize].to_vec());
        }
        let total = |at: &u32| members[self.tree.under(*at)].iter().map(Vec::len).sum::<usize>();
        let switch = switches.iter().find(|at| total(at) as u32 >= n).ok_or(Unfit::NoUnit)?;
        let mut chosen = Vec::new();
        let mut round = 0;
        while (chosen.len() as u32) < n {
            let next = members[self.tree.under(*switch)].iter().filter_map(|own| own.get(round));
            chosen.extend(next.take(n as usize - chosen.len()));
            round += 1;
        }
        Ok(chosen)
    }
}
