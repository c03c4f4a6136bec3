//! Which nodes of a partition. One file a topology: all nodes are alike in `flat`; trees and blocks of switches stand beside it.
//!
//! A choice sees an `Offer`, the nodes as they are during one interval, and nothing else: it is the same for a job that
//! starts now and for one that is promised a place in the future.
use model::Job;
use model::plan::Grant;
use model::spec::Size;
use topology::Unfit;

use crate::room::{PoolId, Room, SpotId};

mod features;
mod flat;
mod network;
mod offer;
mod over;
mod total;

pub(crate) use flat::least_cpus;
pub(crate) use offer::Offer;
pub(crate) use over::{Overs, overs};

/// Nodes for the job with what it gets of each, in the order of their ranks in the job; none if it cannot have them then.
pub(crate) fn pick(offer: &Offer) -> Option<Vec<Grant>> {
    preferred(offer).or_else(|| choose(offer))
}

fn choose(offer: &Offer) -> Option<Vec<Grant>> {
    if !offer.size().feature_sets.is_empty() {
        return features::first(offer, |offer, spot| offer.n_tasks_fitting(spot), choose);
    }
    let bounds = offer.bounds()?;
    if !offer.size().gres_total.is_empty() {
        return total::pick(offer, bounds);
    }
    match offer.shape() {
        Some(shape) => network::pick(offer, shape, bounds),
        None => flat::pick(offer, bounds),
    }
}

/// Nodes that also have what the job would rather have (`--prefer`).
fn preferred(offer: &Offer) -> Option<Vec<Grant>> {
    let size = offer.size();
    let preference = size.preference.clone()?;
    let constraint = match size.constraint.clone() {
        Some(required) => required.and(preference),
        None => preference,
    };
    choose(&offer.with_size(&Size { constraint: Some(constraint), ..size.clone() }))
}

/// The fewest and the most nodes, as job and partition together allow.
pub(crate) fn bounds(room: &Room, pool: PoolId, job: &Job, size: &Size) -> Option<(u32, u32)> {
    let (min, max) = size.node_bounds();
    let (fewest, most) = state::nodes_allowed(room.cluster, room.partition(pool), &job.spec.qos);
    let bounds = (min.max(fewest), max.min(most));
    (bounds.0 <= bounds.1).then_some(bounds)
}

fn fits_alone(offer: &Offer, spot: SpotId) -> Option<u32> {
    offer.n_tasks_fitting_alone(spot)
}

/// The partition's nodes that are up could serve the job if nothing else ran.
pub(crate) fn could_start(offer: &Offer) -> bool {
    if !offer.size().feature_sets.is_empty() {
        return features::first(offer, fits_alone, |offer| could_start(offer).then_some(())).is_some();
    }
    offer.bounds().is_some_and(|bounds| match offer.shape() {
        _ if !offer.size().gres_total.is_empty() => total::could_start(offer, bounds),
        Some(shape) => network::could_start(offer, shape, bounds),
        None => flat::could_start(offer, bounds),
    })
}

/// The level of the switch below which the job would be if nothing else ran; none where there is no tree.
pub(crate) fn lowest_level(offer: &Offer) -> Option<u32> {
    if !offer.size().feature_sets.is_empty() {
        return features::first(offer, fits_alone, lowest_level);
    }
    network::lowest_level(offer, offer.shape()?, offer.bounds()?)
}

/// What the network has to say about a job that finds no place.
pub(crate) fn why_not(offer: &Offer) -> Option<Unfit> {
    if !offer.size().feature_sets.is_empty() {
        return None;
    }
    let shape = offer.shape().filter(|_| offer.size().gres_total.is_empty())?;
    network::why_not(offer, shape, offer.bounds()?)
}
