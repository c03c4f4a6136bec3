//! Devices asked for in all: nodes give what they have of them, some more and some less.
use model::plan::Grant;
use model::share_out::Giver;
use model::spec::Size;

use super::Offer;
use crate::room::SpotId;

pub(super) fn pick(offer: &Offer, bounds: (u32, u32)) -> Option<Vec<Grant>> {
    let fitting = |size: &Size, spot| offer.for_part(size).n_tasks_fitting(spot);
    let chosen = choose(offer, bounds, fitting)?;
    let size = offer.size();
    let sized: Vec<_> = chosen.iter().map(|(spot, part)| (*spot, size.on_node(part))).collect();
    let capacities = sized.iter().map(|(spot, size)| fitting(size, *spot)).collect::<Option<Vec<u32>>>()?;
    let counts = size.lay_out(&capacities, |at| &offer.spot(sized[at].0).node.config)?;
    let grant = |(((spot, gres), (_, sized)), n_tasks): ((&(SpotId, _), &(SpotId, _)), u32)| {
        let (gres, sized): (&Vec<_>, &std::borrow::Cow<Size>) = (gres, sized);
        let node = offer.spot(*spot).node;
        let part = sized.part_of(&node.config, n_tasks);
        let (n_cpus, memory_mb) = (part.n_cpus, part.memory_mb);
        Grant { node: node.name.clone(), n_cpus, memory_mb, n_tasks, gres: gres.clone() }
    };
    Some(chosen.iter().zip(&sized).zip(counts).map(grant).collect())
}

/// The nodes that are up could serve the job if nothing else ran.
pub(super) fn could_start(offer: &Offer, bounds: (u32, u32)) -> bool {
    choose(offer, bounds, |size, spot| offer.for_part(size).n_tasks_fitting_alone(spot)).is_some()
}

fn choose(
    offer: &Offer,
    bounds: (u32, u32),
    fitting: impl Fn(&Size, SpotId) -> Option<u32>,
) -> Option<Vec<(SpotId, Vec<model::gres::GresRequest>)>> {
    let size = offer.size();
    let giver = |spot: &SpotId| {
        let is_required = size.nodes.contains(&offer.spot(*spot).node.name);
        let giver = size.giver(is_required, |size| fitting(size, *spot))?;
        Some((*spot, giver))
    };
    let (spots, givers): (Vec<SpotId>, Vec<Giver>) = offer.members().iter().filter_map(giver).unzip();
    let parts = size.share_out(bounds, &givers)?;
    Some(parts.into_iter().map(|(at, part)| (spots[at], part)).collect())
}
