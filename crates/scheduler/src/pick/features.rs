//! Jobs that ask something of their nodes together (`[rack1|rack2]`, `[a*2&b*1]`): the same choice for one kind of node after the
//! other, with the nodes that make the counts right as if they had been named.
use model::spec::Size;

use super::Offer;
use crate::room::SpotId;

/// What the first kind of nodes gives that gives something.
pub(super) fn first<T>(
    offer: &Offer,
    fitting: impl Fn(&Offer, SpotId) -> Option<u32>,
    choose: impl Fn(&Offer) -> Option<T>,
) -> Option<T> {
    let kinds = offer.size().of_each_kind();
    kinds.iter().find_map(|size| {
        let offer = offer.with_size(size);
        if size.feature_sets.counts.is_empty() {
            return choose(&offer);
        }
        let with_room = |spot: &SpotId| fitting(&offer, *spot).map(|n_tasks| (n_tasks, *spot));
        let spots: Vec<(u32, SpotId)> = offer.members().iter().filter_map(with_room).collect();
        let with_pinned = |spots: &[(u32, SpotId)]| choose(&offer.with_size(&pinned(&offer, size, spots)?));
        // Full nodes first, so that few are broken into; the roomiest, if those cannot take all tasks.
        let full_or_roomy = |mut spots: Vec<(u32, SpotId)>| {
            spots.sort_by_key(|(n_tasks, _)| *n_tasks);
            with_pinned(&spots).or_else(|| {
                spots.sort_by_key(|(n_tasks, _)| std::cmp::Reverse(*n_tasks));
                with_pinned(&spots)
            })
        };
        // The network is asked after the counts: it could not bring together what was counted far apart.
        let near = offer.shape().and_then(|shape| {
            let ranks: Vec<u32> = spots.iter().map(|(_, spot)| offer.spot(*spot).node.rank).collect();
            let least = offer.bounds()?.0.max(size.feature_sets.least_nodes());
            let mut near = shape.near_each_other(&ranks, least as usize);
            near.find_map(|places| full_or_roomy(places.into_iter().map(|place| spots[place]).collect()))
        });
        near.or_else(|| full_or_roomy(spots))
    })
}

/// The same size with those of the nodes named that make its counts right.
fn pinned(offer: &Offer, size: &Size, spots: &[(u32, SpotId)]) -> Option<Size> {
    let node = |place: &usize| offer.spot(spots[*place].1).node;
    let asked = (0..spots.len()).map(|place| {
        let node = node(&place);
        (node.features(), size.nodes.contains(&node.name))
    });
    let places = size.feature_sets.pin(asked)?;
    Some(size.with_pinned(places.iter().map(|place| node(place).name.clone())))
}
