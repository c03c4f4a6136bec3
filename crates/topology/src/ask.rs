//! What is asked of the picker, and why it may say no.
use std::cmp::Reverse;
use std::fmt;

/// A node that could take part in the job now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its place among all nodes.
    pub node: u32,
    /// Lighter nodes are taken first.
    pub weight: u32,
    /// Tasks it can take; at least one.
    pub n_tasks: u32,
    /// The job named it.
    pub is_required: bool,
    /// Other jobs have a part of it.
    pub is_in_use: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub min_nodes: u32,
    pub max_nodes: u32,
    /// As many as it would rather have.
    pub n_nodes: u32,
    /// Tasks that the nodes must take together.
    pub n_tasks: Option<u32>,
    /// At most so many leaf switches.
    pub most_leaves: Option<u32>,
    /// Below a switch of no higher level than this.
    pub most_level: Option<u32>,
    /// The job is made of parts of so many nodes; 0: it is not.
    pub segment: u32,
    /// No two segments share a base block.
    pub spreads: bool,
    /// All segments are in one larger block.
    pub consolidates: bool,
}

impl Ask {
    /// `n` nodes, whole or not.
    pub fn nodes(n: u32) -> Self {
        Ask { min_nodes: n, max_nodes: n, n_nodes: n, ..Ask::default() }
    }

    /// Tasks on each node, if each of `n` nodes takes the same number.
    pub(crate) fn n_tasks_each(&self, n: u32) -> u32 {
        self.n_tasks.map_or(1, |n_tasks| n_tasks.div_ceil(n.max(1)))
    }
}

/// Why no nodes were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Fewer candidates than nodes are wanted.
    TooFew,
    /// No switch, or group of blocks, has enough of them.
    NoUnit,
    NoUnitForSegment,
    /// Enough nodes, but they cannot take all tasks.
    TooSmall,
    RequiredBusy,
    RequiredApart,
    /// Only over more leaf switches than the job wants.
    TooManyLeaves,
}

impl Unfit {
    pub fn text(self) -> &'static str {
        match self {
            Unfit::TooFew => "No available nodes in topology",
            Unfit::NoUnit | Unfit::TooManyLeaves => "No suitable topology unit found",
            Unfit::NoUnitForSegment => "No suitable topology unit found for segment",
            Unfit::TooSmall => "Insufficient resources in topology unit",
            Unfit::RequiredBusy => "Required nodes lack available resources",
            Unfit::RequiredApart => "Required nodes do not fit topology",
        }
    }
}

impl Unfit {
    /// Whether a job's reason is one of these.
    pub fn is_text(text: &str) -> bool {
        let all = [Unfit::TooFew, Unfit::NoUnit, Unfit::NoUnitForSegment, Unfit::TooSmall, Unfit::RequiredBusy];
        all.into_iter().chain([Unfit::RequiredApart, Unfit::TooManyLeaves]).any(|unfit| unfit.text() == text)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(self.text())
    }
}

/// The first nodes there are, or the roomiest if those do not take all tasks: where the network does not matter.
pub(crate) fn in_order(candidates: &[Candidate], ask: &Ask) -> Result<Vec<usize>, Unfit> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|at| (!candidates[*at].is_required, candidates[*at].weight, *at));
    first(candidates, &order, ask).or_else(|unfit| {
        order.sort_by_key(|at| (!candidates[*at].is_required, Reverse(candidates[*at].n_tasks), *at));
        first(candidates, &order, ask).map_err(|_| unfit)
    })
}

/// As many as are wanted, and more as long as they do not take all tasks.
fn first(candidates: &[Candidate], order: &[usize], ask: &Ask) -> Result<Vec<usize>, Unfit> {
    let n_required = candidates.iter().filter(|candidate| candidate.is_required).count();
    let (mut chosen, mut n_tasks) = (Vec::new(), 0u64);
    for at in order.iter().copied() {
        let is_filled = ask.n_tasks.is_none_or(|wanted| n_tasks >= u64::from(wanted)) && chosen.len() >= n_required;
        if chosen.len() as u32 >= ask.max_nodes || (chosen.len() as u32 >= ask.n_nodes && is_filled) {
            break;
        }
        chosen.push(at);
        n_tasks += u64::from(candidates[at].n_tasks);
    }
    if (chosen.len() as u32) < ask.min_nodes || chosen.len() < n_required {
        return Err(Unfit::TooFew);
    }
    match ask.n_tasks.is_none_or(|wanted| n_tasks >= u64::from(wanted)) {
        true => Ok(chosen),
        false => Err(Unfit::TooSmall),
    }
}

/// The weights of the candidates, lightest first, each once.
pub(crate) fn weights(candidates: &[Candidate]) -> Vec<u32> {
    let mut weights: Vec<u32> = candidates.iter().map(|candidate| candidate.weight).collect();
    weights.sort_unstable();
    weights.dedup();
    weights
}
