//! How many leaves of each child of a switch: the fewest children first, then the deficit aimed at.
//!
//! Fuller leaves are taken unless they are left out, emptier ones are left unless they are taken in; either costs at least one
//! of the deficit. So with `balance` the number taken in less the number left out, a choice has as many leaves as the fuller
//! ones, plus the balance, plus any number of those that are just as full: what must be known of the pods from one on is only
//! the most of these that they have, for each number of pods, deficit and balance.
use super::Tree;
use super::leaves::{Aim, Item};
use super::plain::Parts;

pub(super) struct Pod {
    pub switch: u32,
    /// The job is in it already.
    pub is_open: bool,
    /// Sorted, the fullest first.
    pub items: Vec<Item>,
    n_above: i32,
    n_equal: i16,
    /// What it costs not to use it.
    unused: u32,
}

/// So many leaves of a pod.
pub(super) struct Part {
    pub pod: usize,
    pub n_leaves: u32,
    pub deficit: u32,
}

pub(super) struct Split {
    pub n_pods: u32,
    pub deficit: u32,
    pub parts: Vec<Part>,
}

/// A step away from the fullest: its cost, and what it does to the balance.
type Step = (u32, i32);

/// Beyond so many cells large deficits are left out of account, so that a decision stays far below a millisecond.
const WORK_MAX: usize = 1_000_000;

const NEVER: i16 = -1;

impl Pod {
    pub fn new(switch: u32, is_open: bool, items: Vec<Item>) -> Pod {
        let parts = Parts::new(&items, 0);
        let (n_above, n_equal) = (parts.n_above as i32, i16::try_from(parts.n_equal).unwrap_or(i16::MAX));
        let unused = items.iter().fold(0u32, |sum, item| sum.saturating_add(item.leave));
        Pod { switch, is_open, items, n_above, n_equal, unused }
    }

    pub fn has(&self, tree: &Tree, leaf: u32) -> bool {
        tree.is_above(self.switch, leaf)
    }

    fn steps(&self, most: u32) -> Vec<Step> {
        let parts = Parts::new(&self.items, most);
        let out = parts.loose.iter().map(|at| (self.items[*at].leave, -1));
        out.chain(parts.spare.iter().map(|at| (self.items[*at].take, 1))).collect()
    }

    /// Using it counts as one more pod.
    fn price(&self) -> usize {
        usize::from(!self.is_open)
    }
}

/// With at most so many pods that are not open; none if that cannot be found out in time.
pub(super) fn split(pods: &[Pod], k: u32, aim: Aim, most_pods: u32) -> Option<Split> {
    let mut most = aim.most();
    let work = |most: u32| {
        let n_steps: usize = pods.iter().map(|pod| 2 + pod.steps(most).len()).sum();
        n_steps * (most_pods as usize + 1) * (most as usize + 1) * (2 * most as usize + 1)
    };
    while most > 0 && work(most) > WORK_MAX {
        most = most * 3 / 4;
    }
    let aim = match aim {
        Aim::AtMost(_) => Aim::AtMost(most),
        Aim::Exactly(deficit) if deficit == most => aim,
        Aim::Exactly(_) => return None,
    };
    let n_above: i32 = pods.iter().map(|pod| pod.n_above).sum();
    let search =
        Search { pods, most, wanted: k as i32 - n_above, steps: pods.iter().map(|pod| pod.steps(most)).collect() };
    let mut layers: Vec<Vec<Grid>> = Vec::new();
    for n_pods in 0..=most_pods as usize {
        let layer = search.layer(layers.last());
        layers.push(layer);
        let found = aim.deficits().find(|deficit| search.is_enough(&layers[n_pods][0], *deficit));
        if let Some(deficit) = found {
            let parts = search.walk(&layers, n_pods, deficit);
            return Some(Split { n_pods: n_pods as u32, deficit, parts });
        }
    }
    None
}

/// For each deficit and balance, the most leaves there are of those just as full as the last of the fullest.
#[derive(Clone)]
struct Grid {
    cells: Vec<i16>,
    most: usize,
}

impl Grid {
    fn nothing(most: u32) -> Grid {
        let most = most as usize;
        Grid { cells: vec![NEVER; (most + 1) * (2 * most + 1)], most }
    }

    fn row(&self, deficit: usize) -> &[i16] {
        let width = 2 * self.most + 1;
        &self.cells[deficit * width..][..width]
    }

    /// The balances of a deficit that can be had.
    fn balances(&self, deficit: u32) -> impl Iterator<Item = (i32, i16)> {
        let middle = self.most as i32;
        let row = self.row(deficit as usize).iter().copied().zip(0..);
        row.filter(|(cell, _)| *cell != NEVER).map(move |(cell, at)| (at - middle, cell))
    }

    /// Whatever could be had before can be had with this step besides.
    fn step(&mut self, (cost, balance): Step) {
        let (width, cost) = (2 * self.most + 1, cost as usize);
        for deficit in (cost..=self.most).rev() {
            let (low, high) = self.cells.split_at_mut(deficit * width);
            let (from, to) = (&low[(deficit - cost) * width..][..width], &mut high[..width]);
            let (from, to) = match balance {
                1 => (&from[..width - 1], &mut to[1..]),
                _ => (&from[1..], &mut to[..width - 1]),
            };
            to.iter_mut().zip(from).for_each(|(to, from)| *to = (*to).max(*from));
        }
    }

    /// The better of both; the other costs more and has another balance.
    fn join(&mut self, other: &Grid, cost: u32, balance: i32) {
        for deficit in cost as usize..=self.most {
            let from = other.row(deficit - cost as usize);
            let width = from.len();
            let by = (balance.unsigned_abs() as usize).min(width);
            let to = &mut self.cells[deficit * width..][..width];
            to[..width - by].iter_mut().zip(&from[by..]).for_each(|(to, from)| *to = (*to).max(*from));
        }
    }
}

struct Search<'p> {
    pods: &'p [Pod],
    most: u32,
    /// Leaves besides the fuller ones.
    wanted: i32,
    steps: Vec<Vec<Step>>,
}

impl Search<'_> {
    /// Of the pods from each one on, with one pod more than the layer before had.
    fn layer(&self, before: Option<&Vec<Grid>>) -> Vec<Grid> {
        let mut end = Grid::nothing(self.most);
        end.cells[self.most as usize] = 0;
        let mut layer = vec![end];
        for (pod, steps) in self.pods.iter().zip(&self.steps).rev() {
            let next = layer.last().expect("the end is there");
            let at = layer.len() - 1;
            let others = match pod.is_open {
                true => Some(next),
                false => before.map(|before| &before[before.len() - 1 - at]),
            };
            let mut grid = match others {
                Some(others) => {
                    let mut grid = others.clone();
                    let more =
                        |cell: &mut i16| *cell = if *cell == NEVER { NEVER } else { cell.saturating_add(pod.n_equal) };
                    grid.cells.iter_mut().for_each(more);
                    steps.iter().for_each(|step| grid.step(*step));
                    grid
                }
                None => Grid::nothing(self.most),
            };
            if !pod.is_open && pod.unused <= self.most {
                grid.join(next, pod.unused, -pod.n_above);
            }
            layer.push(grid);
        }
        layer.reverse();
        layer
    }

    fn is_enough(&self, grid: &Grid, deficit: u32) -> bool {
        grid.balances(deficit).any(|(balance, n_equal)| {
            let wanted = self.wanted - balance;
            0 <= wanted && wanted <= i32::from(n_equal)
        })
    }

    /// As many leaves of the first pods as can be.
    fn walk(&self, layers: &[Vec<Grid>], mut n_pods: usize, mut deficit: u32) -> Vec<Part> {
        let (mut parts, mut wanted) = (Vec::new(), self.wanted);
        for (at, pod) in self.pods.iter().enumerate() {
            let used = n_pods.checked_sub(pod.price());
            match used.and_then(|n_pods| self.best_of(at, &layers[n_pods][at + 1], deficit, wanted)) {
                Some(best) => {
                    n_pods -= pod.price();
                    deficit -= best.deficit;
                    wanted -= best.balance + best.n_equal;
                    let n_leaves = (pod.n_above + best.balance + best.n_equal) as u32;
                    if n_leaves > 0 {
                        parts.push(Part { pod: at, n_leaves, deficit: best.deficit });
                    }
                }
                None => {
                    deficit -= pod.unused;
                    wanted += pod.n_above;
                }
            }
        }
        parts
    }

    /// The most leaves of a pod with which the others can still give the rest.
    fn best_of(&self, at: usize, others: &Grid, deficit: u32, wanted: i32) -> Option<Own> {
        let mut own = Grid::nothing(self.most);
        own.cells[self.most as usize] = 0;
        self.steps[at].iter().for_each(|step| own.step(*step));
        let mut best: Option<Own> = None;
        for here in 0..=deficit {
            for (balance, _) in own.balances(here) {
                for (others_balance, others_equal) in others.balances(deficit - here) {
                    let left = wanted - balance - others_balance;
                    let n_equal = left.min(i32::from(self.pods[at].n_equal));
                    if left < 0 || left - n_equal > i32::from(others_equal) {
                        continue;
                    }
                    let found = Own { balance, n_equal, deficit: here };
                    if best.as_ref().is_none_or(|best| found.n_besides() > best.n_besides()) {
                        best = Some(found);
                    }
                }
            }
        }
        best
    }
}

struct Own {
    balance: i32,
    n_equal: i32,
    deficit: u32,
}

impl Own {
    /// Leaves besides the fuller ones.
    fn n_besides(&self) -> i32 {
        self.balance + self.n_equal
    }
}
