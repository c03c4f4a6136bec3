//! Nodes that are near to each other. The choice itself is the `topology` crate's; here is what it may choose from.
use model::plan::Grant;
use model::topology::TopologyKind;
use topology::{Ask, Candidate, Shape, Unfit};

use super::{Offer, flat};
use crate::room::SpotId;
use crate::units::Each;

pub(super) fn pick(offer: &Offer, shape: &Shape, bounds: (u32, u32)) -> Option<Vec<Grant>> {
    let size = offer.size();
    if flat::too_little_is_left(offer, size, bounds) {
        return None;
    }
    let ask = ask(offer, bounds);
    let chosen = quickly(offer, shape, &ask).or_else(|| carefully(offer, shape, &ask).ok());
    let chosen = match chosen {
        None if is_optional(offer, shape) => return flat::pick(offer, bounds),
        None => return None,
        Some(chosen) => chosen,
    };
    flat::grants(offer, size, in_order(offer, shape, chosen))
}

/// Why the job finds no place now.
pub(super) fn why_not(offer: &Offer, shape: &Shape, bounds: (u32, u32)) -> Option<Unfit> {
    carefully(offer, shape, &ask(offer, bounds)).err()
}

fn ask(offer: &Offer, bounds: (u32, u32)) -> Ask {
    let (most_leaves, most_level) = (offer.most_leaves(), offer.most_level());
    Ask { most_leaves, most_level, ..state::network_ask(offer.size(), bounds) }
}

/// The level of the common switch if nothing else ran.
pub(super) fn lowest_level(offer: &Offer, shape: &Shape, bounds: (u32, u32)) -> Option<u32> {
    let ask = state::network_ask(offer.size(), bounds);
    let chosen = choose(offer, shape, &ask, fitting_alone(offer)).ok()?;
    shape.common_level(chosen.iter().map(|(spot, _)| offer.spot(*spot).node.rank))
}

fn fitting_alone(offer: &Offer) -> Vec<(SpotId, u32)> {
    let fitting = |spot: &SpotId| offer.n_tasks_fitting_alone(*spot).map(|n_tasks| (*spot, n_tasks));
    offer.members().iter().filter_map(fitting).collect()
}

/// The nodes that are up could serve the job if nothing else ran.
pub(super) fn could_start(offer: &Offer, shape: &Shape, bounds: (u32, u32)) -> bool {
    let ask = state::network_ask(offer.size(), bounds);
    choose(offer, shape, &ask, fitting_alone(offer)).is_ok()
        || (is_optional(offer, shape) && flat::could_start(offer, bounds))
}

/// Jobs need no common switch where the site says so, unless they ask for few.
fn is_optional(offer: &Offer, shape: &Shape) -> bool {
    let size = offer.size();
    offer.rules().is_optional && shape.kind() == TopologyKind::Tree && !size.network.needs_switch()
}

/// Without a close look at every node: the best choice if CPUs were all that matters. If those chosen can serve the job, then
/// there is no better one.
fn quickly(offer: &Offer, shape: &Shape, ask: &Ask) -> Option<Vec<(SpotId, u32)>> {
    let size = offer.size();
    let is_simple = size.nodes.is_empty() && ask.segment == 0 && !size.network.owns_units && !offer.rules().dragonfly;
    if !is_simple || ask.min_nodes != ask.n_nodes {
        return None;
    }
    let each = ask.n_tasks.map_or(1, |n_tasks| n_tasks.div_ceil(ask.n_nodes.max(1)));
    let fitting = |spot: SpotId| offer.n_tasks_fitting(spot).filter(|n_tasks| *n_tasks >= each).map(|n| (spot, n));
    if ask.n_nodes == 1 && !size.wants_whole_nodes() {
        let first = offer.fullest(size.least_cpus_for(each)).find_map(fitting)?;
        if !offer.spot(first.0).is_empty {
            return Some(vec![first]);
        }
    }
    let of_each = if size.wants_whole_nodes() { Each::Whole } else { Each::Cpus(size.least_cpus_for(each)) };
    let alike = offer.alike(of_each)?;
    let takes = match alike.tightest(ask.n_nodes) {
        Some(unit) => vec![(unit, ask.n_nodes)],
        None => shape.choose(&alike.counts(), ask)?,
    };
    let mut chosen = Vec::with_capacity(ask.n_nodes as usize);
    for (unit, n) in takes {
        chosen.extend(alike.of(unit).take(n as usize).filter_map(fitting));
    }
    (chosen.len() == ask.n_nodes as usize).then_some(chosen)
}

/// Looks at every node that has room.
fn carefully(offer: &Offer, shape: &Shape, ask: &Ask) -> Result<Vec<(SpotId, u32)>, Unfit> {
    let size = offer.size();
    let fitting = |spot| offer.n_tasks_fitting(spot).map(|n_tasks| (spot, n_tasks));
    let least = size.least_cpus_for(size.n_tasks_each().unwrap_or(1));
    let mut spots: Vec<(SpotId, u32)> = offer.fullest(least).filter_map(fitting).collect();
    spots.sort_unstable();
    spots.dedup();
    if size.network.owns_units && !offer.spares_units(shape) {
        spots.retain(|(spot, _)| offer.is_unit_free(shape, *spot));
    }
    choose(offer, shape, ask, spots)
}

fn choose(offer: &Offer, shape: &Shape, ask: &Ask, spots: Vec<(SpotId, u32)>) -> Result<Vec<(SpotId, u32)>, Unfit> {
    let size = offer.size();
    let candidate = |(spot, n_tasks): &(SpotId, u32)| {
        let spot = offer.spot(*spot);
        Candidate {
            node: spot.node.rank,
            weight: spot.node.config.weight,
            n_tasks: *n_tasks,
            is_required: !size.nodes.is_empty() && size.nodes.contains(&spot.node.name),
            is_in_use: !spot.is_empty,
        }
    };
    let candidates: Vec<Candidate> = spots.iter().map(candidate).collect();
    if candidates.iter().filter(|one| one.is_required).count() < size.nodes.len() {
        return Err(Unfit::RequiredBusy);
    }
    let chosen = shape.pick(offer.rules(), &candidates, ask)?;
    Ok(chosen.into_iter().map(|at| spots[at]).collect())
}

/// Ranks follow the network: unit for unit.
fn in_order(offer: &Offer, shape: &Shape, mut chosen: Vec<(SpotId, u32)>) -> Vec<(SpotId, u32)> {
    chosen.sort_unstable_by_key(|(spot, _)| shape.rank(offer.spot(*spot).node.rank));
    chosen
}
