//! Nodes that are all alike: small jobs fill the fullest nodes, wide ones take the emptiest, so that few nodes are broken into.
use model::fit::Candidate;
use model::plan::Grant;
use model::spec::Size;

use super::Offer;
use crate::room::SpotId;

pub(super) fn pick(offer: &Offer, bounds: (u32, u32)) -> Option<Vec<Grant>> {
    let size = offer.size();
    if too_little_is_left(offer, size, bounds) {
        return None;
    }
    let chosen = match size.nodes.is_empty() && !size.contiguous {
        true => quickly(offer, size, bounds).or_else(|| carefully(offer, size, bounds)),
        false => carefully(offer, size, bounds),
    };
    let mut chosen = chosen?;
    chosen.sort_unstable();
    grants(offer, size, chosen)
}

/// A look at the sums tells most failures apart.
pub(super) fn too_little_is_left(offer: &Offer, size: &Size, (min, _): (u32, u32)) -> bool {
    offer.most_free_cpus() < least_cpus(size, min) || offer.emptiest(size.least_cpus_for(1)).next().is_none()
}

/// With fewer CPUs than this, on whatever nodes, such a job cannot start.
pub(crate) fn least_cpus(size: &Size, min_nodes: u32) -> u64 {
    match size.n_tasks {
        Some(n_tasks) if !size.overcommit && size.spared.is_none() => {
            u64::from(n_tasks) * u64::from(size.n_cpus_per_task())
        }
        _ => u64::from(min_nodes) * u64::from(size.least_cpus_for(size.n_tasks_each().unwrap_or(1))),
    }
}

/// Finds a good place without looking at every node, or may miss one where nodes differ much.
fn quickly(offer: &Offer, size: &Size, bounds: (u32, u32)) -> Option<Vec<(SpotId, u32)>> {
    let wanted = size.n_nodes_wanted(bounds);
    let with_room = |spot| offer.n_tasks_fitting(spot).map(|n_tasks| (spot, n_tasks));
    let Some(n_tasks) = size.n_tasks.filter(|n_tasks| *n_tasks > wanted) else {
        // One task, or the same number, on each.
        let least = size.least_cpus_for(size.n_tasks_each().unwrap_or(1));
        let chosen: Vec<_> = offer.fullest(least).filter_map(with_room).take(wanted as usize).collect();
        let fitting: u64 = chosen.iter().map(|(_, n)| u64::from(*n)).sum();
        let is_filled = fitting >= u64::from(size.n_tasks.unwrap_or(0));
        return (chosen.len() as u32 >= bounds.0 && is_filled).then_some(chosen);
    };
    if wanted == 1 {
        let mut alone = offer.fullest(size.least_cpus_for(n_tasks)).filter_map(with_room);
        if let Some(one) = alone.find(|(_, fitting)| *fitting >= n_tasks) {
            return Some(vec![one]);
        }
    }
    let mut chosen = Vec::new();
    let mut fitting: u64 = 0;
    for (spot, n) in offer.emptiest(size.least_cpus_for(1)).filter_map(with_room) {
        chosen.push((spot, n));
        fitting += u64::from(n);
        let is_filled = fitting >= u64::from(n_tasks);
        if chosen.len() as u32 >= wanted && is_filled {
            return Some(chosen);
        }
        if chosen.len() as u32 >= bounds.1 {
            return None;
        }
    }
    (chosen.len() as u32 >= bounds.0 && fitting >= u64::from(n_tasks)).then_some(chosen)
}

/// Looks at every node, and finds a place if there is one.
fn carefully(offer: &Offer, size: &Size, bounds: (u32, u32)) -> Option<Vec<(SpotId, u32)>> {
    // With the same number of tasks on each, `quickly` has looked at every node.
    if size.n_tasks.is_none() && size.nodes.is_empty() && !size.contiguous {
        return None;
    }
    // Nodes without a free CPU need not be asked.
    let mut spots: Vec<SpotId> = offer.fullest(size.least_cpus_for(1)).collect();
    spots.sort_unstable();
    choose(offer, &spots, bounds, |spot| offer.n_tasks_fitting(spot))
}

/// The nodes that are up could serve the job if nothing else ran.
pub(super) fn could_start(offer: &Offer, bounds: (u32, u32)) -> bool {
    choose(offer, offer.members(), bounds, |spot| offer.n_tasks_fitting_alone(spot)).is_some()
}

fn choose(
    offer: &Offer,
    spots: &[SpotId],
    bounds: (u32, u32),
    n_tasks_fitting: impl Fn(SpotId) -> Option<u32>,
) -> Option<Vec<(SpotId, u32)>> {
    let size = offer.size();
    let fitting: Vec<(SpotId, u32)> =
        spots.iter().filter_map(|spot| n_tasks_fitting(*spot).map(|n_tasks| (*spot, n_tasks))).collect();
    let candidate = |(spot, n_tasks): &(SpotId, u32)| {
        let node = offer.spot(*spot).node;
        Candidate { rank: node.rank, n_tasks: *n_tasks, is_required: size.nodes.contains(&node.name) }
    };
    let candidates: Vec<Candidate> = fitting.iter().map(candidate).collect();
    let chosen = size.choose(bounds, &candidates)?;
    Some(chosen.into_iter().map(|at| fitting[at]).collect())
}

/// What the job gets of each, in this order of nodes.
pub(super) fn grants(offer: &Offer, size: &Size, chosen: Vec<(SpotId, u32)>) -> Option<Vec<Grant>> {
    let capacities: Vec<u32> = chosen.iter().map(|(_, n_tasks)| *n_tasks).collect();
    let counts = size.lay_out(&capacities, |at| &offer.spot(chosen[at].0).node.config)?;
    let grant = |(&(spot, _), n_tasks): (&(SpotId, u32), u32)| {
        let node = offer.spot(spot).node;
        let part = size.part_of(&node.config, n_tasks);
        let (n_cpus, memory_mb) = (part.n_cpus, part.memory_mb);
        Grant { node: node.name.clone(), n_cpus, memory_mb, n_tasks, gres: Vec::new() }
    };
    Some(chosen.iter().zip(counts).map(grant).collect())
}
