//! The exact choice among leaves. With `k` the fewest leaves that hold `need` nodes, the `k` fullest hold at most `slack` too
//! many, and `slack` is less than one leaf. Measure every choice by its *deficit* against the `k` fullest: a leaf fuller than
//! the k-th that is left out costs the difference, and so does an emptier one that is taken in. A choice of `k` leaves is
//! enough if its deficit is at most `slack`, and best if it is closest to it. Deficits are small, so a set of them is a few
//! words of bits, and dynamic programming over the leaves finds all that can be reached.
use super::counts::Counts;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    pub leaf: u32,
    pub count: u32,
    /// What it costs to take it, and to leave it out.
    pub take: u32,
    pub leave: u32,
    /// The child of the common switch that it is below, counted in the order of preference.
    pub pod: u32,
}

/// Beyond so many words the number of switches in between is left to chance; a decision stays far below a millisecond.
const WORK_MAX: usize = 120_000;

/// The switches used below `switch`, the nodes left over, and the `k` leaves.
pub(super) fn choose(counts: &Counts, switch: u32, mut items: Vec<Item>, k: u32, need: u32) -> (u32, u32, Vec<u32>) {
    items.sort_unstable_by_key(|item| std::cmp::Reverse(item.count));
    let threshold = items[k as usize - 1].count;
    let slack = items[..k as usize].iter().map(|item| item.count).sum::<u32>() - need;
    for item in &mut items {
        item.take = threshold.saturating_sub(item.count);
        item.leave = item.count.saturating_sub(threshold);
    }
    items.retain(|item| item.take <= slack);
    let (n_pods, deficit, leaves) = below(counts, switch, items, k, Aim::AtMost(slack));
    (n_pods, slack - deficit, leaves)
}

#[derive(Clone, Copy)]
enum Aim {
    AtMost(u32),
    Exactly(u32),
}

/// Fewest children of `switch` first, then the aim; then the same below each child.
fn below(counts: &Counts, switch: u32, mut items: Vec<Item>, k: u32, aim: Aim) -> (u32, u32, Vec<u32>) {
    let order = |item: &Item| (item.pod, std::cmp::Reverse(item.count), counts.tree.leaf_order(item.leaf));
    // Without a thought for the switches in between: one pod, open already.
    items.iter_mut().for_each(|item| item.pod = 0);
    items.sort_unstable_by_key(order);
    let (_, deficit, plain) = Table::solve(&items, &[true], 0, k, aim).expect("the k fullest reach it");
    let children = children(counts, switch);
    if children.len() == counts.tree.under(switch).len() || children.len() < 2 {
        return (k, deficit, plain.iter().map(|at| items[*at].leaf).collect());
    }
    let open = name_pods(counts, &children, &mut items);
    let n_pods_of = |leaves: &[u32], items: &[Item]| {
        let mut pods: Vec<u32> = items.iter().filter(|i| leaves.contains(&i.leaf)).map(|i| i.pod).collect();
        pods.sort_unstable();
        pods.dedup();
        pods.into_iter().filter(|pod| !open[*pod as usize]).count() as u32
    };
    let plain: Vec<u32> = plain.iter().map(|at| items[*at].leaf).collect();
    let most_pods = n_pods_of(&plain, &items);
    items.sort_unstable_by_key(order);
    let words = items.len() * 2 * (most_pods as usize + 1) * (k as usize + 1);
    if words > WORK_MAX {
        return (most_pods, deficit, plain);
    }
    let Some((n_pods, deficit, chosen)) = Table::solve(&items, &open, most_pods, k, aim) else {
        return (most_pods, deficit, plain);
    };
    let leaves = refine(counts, &children, &items, &chosen);
    (n_pods, deficit, leaves)
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

/// Gives each item its pod, those with the most free nodes first; says which pods the job is in already.
fn name_pods(counts: &Counts, children: &[u32], items: &mut [Item]) -> Vec<bool> {
    let total = |child: u32| counts.free[counts.tree.under(child)].iter().sum::<u32>();
    let mut order: Vec<u32> = children.to_vec();
    order.sort_by_key(|child| (std::cmp::Reverse(total(*child)), *child));
    for item in items {
        let pod = order.iter().position(|child| counts.tree.is_above(*child, item.leaf));
        item.pod = pod.expect("every leaf is below a child") as u32;
    }
    order.iter().map(|child| counts.open[counts.tree.under(*child)].contains(&true)).collect()
}

/// The same choice again below each child that has switches of its own, with as many leaves and the same deficit.
fn refine(counts: &Counts, children: &[u32], items: &[Item], chosen: &[usize]) -> Vec<u32> {
    let mut leaves = Vec::new();
    for child in children {
        let is_below = |item: &Item| counts.tree.is_above(*child, item.leaf);
        let own: Vec<usize> = chosen.iter().copied().filter(|at| is_below(&items[*at])).collect();
        if counts.tree.switches[*child as usize].level < 2 || own.is_empty() {
            leaves.extend(own.iter().map(|at| items[*at].leaf));
            continue;
        }
        let all: Vec<Item> = items.iter().copied().filter(is_below).collect();
        let deficit = (0..items.len()).filter(|at| is_below(&items[*at])).map(|at| match own.contains(&at) {
            true => items[at].take,
            false => items[at].leave,
        });
        let aim = Aim::Exactly(deficit.sum());
        leaves.extend(below(counts, *child, all, own.len() as u32, aim).2);
    }
    leaves
}

/// For each item on, whether its pod is open, pods that may still be opened, and leaves still to take: which deficits the rest
/// can bring.
struct Table {
    bits: Vec<u64>,
    n_words: usize,
    n_pods: usize,
    k: usize,
}

impl Table {
    /// Fewest pods, then the deficit aimed at: pods opened, deficit, places of the chosen items.
    fn solve(items: &[Item], open: &[bool], most_pods: u32, k: u32, aim: Aim) -> Option<(u32, u32, Vec<usize>)> {
        let (Aim::AtMost(most) | Aim::Exactly(most)) = aim;
        let n_words = most as usize / 64 + 1;
        let (n_pods, k) = (most_pods as usize, k as usize);
        let n_cells = (items.len() + 1) * 2 * (n_pods + 1) * (k + 1);
        let mut table = Table { bits: vec![0; n_cells * n_words], n_words, n_pods, k };
        for pods in 0..=n_pods {
            for is_open in [false, true] {
                let at = table.cell(items.len(), is_open, pods, 0);
                table.bits[at] = 1;
            }
        }
        for at in (0..items.len()).rev() {
            table.fill(items, open, at, most);
        }
        let start_open = items.first().is_some_and(|item| open[item.pod as usize]);
        for pods in 0..=n_pods {
            let cell = table.cell(0, start_open, pods, k);
            let found = (0..=most).rev().find(|deficit| table.has(cell, *deficit));
            let found = found.filter(|deficit| matches!(aim, Aim::AtMost(_)) || *deficit == most);
            if let Some(deficit) = found {
                return Some((pods as u32, deficit, table.walk(items, open, start_open, pods, deficit)));
            }
        }
        None
    }

    fn cell(&self, at: usize, is_open: bool, pods: usize, k: usize) -> usize {
        (((at * 2 + usize::from(is_open)) * (self.n_pods + 1) + pods) * (self.k + 1) + k) * self.n_words
    }

    fn has(&self, cell: usize, deficit: u32) -> bool {
        self.bits[cell + deficit as usize / 64] >> (deficit % 64) & 1 == 1
    }

    fn fill(&mut self, items: &[Item], open: &[bool], at: usize, most: u32) {
        let item = items[at];
        for is_open in [false, true] {
            for pods in 0..=self.n_pods {
                // No more leaves can be taken than there are.
                for k in 0..=self.k.min(items.len() - at) {
                    let to = self.cell(at, is_open, pods, k);
                    let next_open = next_is_open(items, open, at, is_open);
                    let left_out = self.cell(at + 1, next_open, pods, k);
                    self.add(to, left_out, item.leave, most);
                    if k > 0 && (is_open || pods > 0) {
                        let next_open = next_is_open(items, open, at, true);
                        let pods = pods - usize::from(!is_open);
                        let taken = self.cell(at + 1, next_open, pods, k - 1);
                        self.add(to, taken, item.take, most);
                    }
                }
            }
        }
    }

    /// Adds the deficits of one cell, each more by `shift`, to another; those above `most` fall away.
    fn add(&mut self, to: usize, from: usize, shift: u32, most: u32) {
        if shift > most {
            return;
        }
        let (words, bits) = (shift as usize / 64, shift % 64);
        for at in (words..self.n_words).rev() {
            let mut word = self.bits[from + at - words] << bits;
            if bits > 0 && at > words {
                word |= self.bits[from + at - words - 1] >> (64 - bits);
            }
            self.bits[to + at] |= word;
        }
        let over = most % 64;
        if over < 63 {
            self.bits[to + self.n_words - 1] &= (1 << (over + 1)) - 1;
        }
    }

    /// The choice behind a deficit: whatever can be taken early is.
    fn walk(&self, items: &[Item], open: &[bool], mut is_open: bool, mut pods: usize, mut deficit: u32) -> Vec<usize> {
        let mut k = self.k;
        let mut chosen = Vec::with_capacity(k);
        for (at, item) in items.iter().enumerate() {
            let may_take = k > 0 && (is_open || pods > 0) && item.take <= deficit;
            let pods_then = pods - usize::from(may_take && !is_open);
            let open_then = next_is_open(items, open, at, true);
            let takes = may_take && self.has(self.cell(at + 1, open_then, pods_then, k - 1), deficit - item.take);
            if takes {
                chosen.push(at);
                (k, pods, deficit, is_open) = (k - 1, pods_then, deficit - item.take, open_then);
            } else {
                deficit -= item.leave;
                is_open = next_is_open(items, open, at, is_open);
            }
        }
        chosen
    }
}

/// Whether the pod of the item after this one is open.
fn next_is_open(items: &[Item], open: &[bool], at: usize, is_open: bool) -> bool {
    match items.get(at + 1) {
        Some(next) if next.pod == items[at].pod => is_open,
        Some(next) => open[next.pod as usize],
        None => false,
    }
}
