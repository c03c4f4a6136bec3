//! The nodes of a tree for a job that is counted in tasks, where nodes take different numbers of them: the lowest switch whose
//! nodes suffice, the fewest leaves, the fewest nodes. A place is found if there is one.
use std::cmp::Reverse;

use super::pick::Field;
use crate::ask::{self, Ask, Unfit};

pub(super) fn pick(field: &Field, ask: &Ask) -> Result<Vec<usize>, Unfit> {
    let Some(n_tasks) = ask.n_tasks.map(u64::from) else { return Err(Unfit::TooSmall) };
    let switches = field.switches_above_required(ask.most_level)?;
    for weight in ask::weights(field.candidates) {
        let mut found: Option<(u32, usize, Vec<usize>)> = None;
        for switch in &switches {
            let level = field.tree.switches[*switch as usize].level;
            if found.as_ref().is_some_and(|(lowest, ..)| *lowest < level) && ask.most_leaves.is_none() {
                break;
            }
            let Some(chosen) = below(field, *switch, weight, ask, n_tasks) else { continue };
            let n_leaves = n_leaves(field, &chosen);
            if ask.most_leaves.is_some_and(|most| n_leaves > most as usize) {
                continue;
            }
            if found.as_ref().is_none_or(|(lowest, fewest, _)| (level, n_leaves) < (*lowest, *fewest)) {
                found = Some((level, n_leaves, chosen));
            }
        }
        if let Some((.., chosen)) = found {
            return Ok(chosen);
        }
    }
    alone(field, ask, n_tasks).ok_or(Unfit::TooSmall)
}

/// One node, on no switch.
fn alone(field: &Field, ask: &Ask, n_tasks: u64) -> Option<Vec<usize>> {
    let suffices = |at: &usize| field.leaf[*at].is_none() && u64::from(field.candidates[*at].n_tasks) >= n_tasks;
    let is_allowed = ask.min_nodes <= 1 && field.required.iter().all(suffices) && field.required.len() <= 1;
    (0..field.candidates.len())
        .find(|at| is_allowed && suffices(at) && (field.required.is_empty() || field.required.contains(at)))
        .map(|at| vec![at])
}

fn n_leaves(field: &Field, chosen: &[usize]) -> usize {
    let mut leaves: Vec<u32> = chosen.iter().filter_map(|at| field.leaf[*at]).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves.len()
}

/// Nodes below the switch that take all tasks, on few leaves.
fn below(field: &Field, switch: u32, weight: u32, ask: &Ask, n_tasks: u64) -> Option<Vec<usize>> {
    let tasks = |at: usize| u64::from(field.candidates[at].n_tasks);
    let is_member = |at: &usize| {
        let candidate = &field.candidates[*at];
        let is_below = field.leaf[*at].is_some_and(|leaf| field.tree.is_above(switch, leaf));
        is_below && (candidate.weight <= weight || candidate.is_required)
    };
    let mut members: Vec<usize> = (0..field.candidates.len()).filter(is_member).collect();
    members.sort_by_key(|at| (!field.candidates[*at].is_required, Reverse(tasks(*at)), *at));
    // The roomiest nodes that the job may have: if they do not suffice, nothing here does.
    let roomiest = &members[..members.len().min(ask.max_nodes as usize)];
    let suffices = |chosen: &[usize]| {
        chosen.len() as u32 >= ask.min_nodes && chosen.iter().map(|at| tasks(*at)).sum::<u64>() >= n_tasks
    };
    if !suffices(roomiest) {
        return None;
    }
    let mut leaves: Vec<(u32, Vec<usize>)> = Vec::new();
    let (mut chosen, others): (Vec<usize>, Vec<usize>) =
        members.iter().copied().partition(|at| field.candidates[*at].is_required);
    let open: Vec<Option<u32>> = chosen.iter().map(|at| field.leaf[*at]).collect();
    for at in others {
        let leaf = field.leaf[at]?;
        match leaves.iter_mut().find(|(known, _)| *known == leaf) {
            Some((_, own)) => own.push(at),
            None => leaves.push((leaf, vec![at])),
        }
    }
    let room = |own: &[usize]| own.iter().map(|at| tasks(*at)).sum::<u64>();
    let is_open = |leaf: u32| open.contains(&Some(leaf));
    // Leaves with required nodes, then the fullest, until one leaf covers what is left: of those the tightest.
    leaves.sort_by_key(|(leaf, own)| (!is_open(*leaf), Reverse(room(own)), field.tree.leaf_order(*leaf)));
    while !leaves.is_empty() && !suffices(&chosen) {
        let left = n_tasks.saturating_sub(room(&chosen));
        let n_left = (ask.min_nodes as usize).saturating_sub(chosen.len());
        let covers = |own: &[usize]| room(own) >= left && own.len() >= n_left;
        let tightest = (0..leaves.len()).filter(|at| covers(&leaves[*at].1)).min_by_key(|at| room(&leaves[*at].1));
        let next = if is_open(leaves[0].0) { 0 } else { tightest.unwrap_or(0) };
        for at in leaves.remove(next).1 {
            if suffices(&chosen) {
                break;
            }
            chosen.push(at);
        }
    }
    if chosen.len() as u32 > ask.max_nodes || !suffices(&chosen) {
        chosen = roomiest.to_vec();
    }
    Some(chosen)
}
