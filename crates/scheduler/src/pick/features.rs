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
        // Full nodes first, so that few are broken into; the roomiest, if those cannot take all tasks.
        [Order::AsTheyStand, Order::Roomiest].into_iter().find_map(|order| {
            let pinned = pinned(&offer, size, &fitting, order)?;
            choose(&offer.with_size(&pinned))
        })
    })
}

enum Order {
    AsTheyStand,
    Roomiest,
}

fn pinned(offer: &Offer, size: &Size, fitting: impl Fn(&Offer, SpotId) -> Option<u32>, order: Order) -> Option<Size> {
    let with_room = |spot: &SpotId| fitting(offer, *spot).map(|n_tasks| (n_tasks, *spot));
    let mut spots: Vec<(u32, SpotId)> = offer.members().iter().filter_map(with_room).collect();
    match order {
        Order::AsTheyStand => spots.sort_by_key(|(n_tasks, _)| *n_tasks),
        Order::Roomiest => spots.sort_by_key(|(n_tasks, _)| std::cmp::Reverse(*n_tasks)),
    }
    let node = |place: &usize| offer.spot(spots[*place].1).node;
    let asked = (0..spots.len()).map(|place| {
        let node = node(&place);
        (node.features(), size.nodes.contains(&node.name))
    });
    let places = size.feature_sets.pin(asked)?;
    Some(size.with_pinned(places.iter().map(|place| node(place).name.clone())))
}
