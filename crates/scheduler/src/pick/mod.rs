//! Which nodes of a partition. One file a topology: all nodes are alike in `flat`; trees and blocks of switches stand beside it.
use model::Partition;
use model::plan::Grant;
use model::spec::Size;

use crate::room::{PoolId, Room};

mod flat;

/// Nodes for the job with what it gets of each, in natural order of their names; none if it cannot start now.
pub(crate) fn pick(room: &Room, pool: PoolId, partition: &Partition, size: &Size) -> Option<Vec<Grant>> {
    let bounds = bounds(partition, size)?;
    flat::pick(room, pool, size, bounds)
}

/// The fewest and the most nodes, as job and partition together allow.
pub(crate) fn bounds(partition: &Partition, size: &Size) -> Option<(u32, u32)> {
    let (min, max) = size.node_bounds();
    let bounds = (min.max(partition.min_nodes), max.min(partition.max_nodes.unwrap_or(u32::MAX)));
    (bounds.0 <= bounds.1).then_some(bounds)
}

/// The partition's nodes that are up could serve the job if nothing else ran.
pub(crate) fn could_start(room: &Room, pool: PoolId, partition: &Partition, size: &Size) -> bool {
    bounds(partition, size).is_some_and(|bounds| flat::could_start(room, pool, size, bounds))
}
