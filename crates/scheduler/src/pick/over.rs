//! Nodes that a job may use besides others: with CPUs that they hold, and share or leave.
use std::collections::{BTreeMap, BTreeSet};

use model::JobId;

use crate::room::{PoolId, Room, SpotId};

/// What a node has for such a job.
#[derive(Clone, Copy)]
pub(crate) struct Over {
    /// CPUs that others hold.
    pub n_cpus: u32,
    /// Nobody is there who would stay.
    pub is_empty: bool,
}

pub(crate) type Overs = BTreeMap<SpotId, Over>;

/// The nodes of a partition when up to `most` jobs share a CPU, and these stand still. A node on which this plan has already started such a
/// job has nothing more to share: the next plan sees who holds what.
pub(crate) fn overs(room: &Room, pool: PoolId, most: u32, parks: &BTreeSet<JobId>) -> Overs {
    let partition = room.partition(pool);
    let over = |id: SpotId| {
        let spot = room.spot(id);
        let stays_empty = spot.is_empty || (spot.n_started == 0 && spot.node.jobs.is_subset(parks));
        let n_cpus = match spot.is_shared {
            true => 0,
            false => state::sharing::shareable(room.cluster, spot.node, partition, most, parks).len() as u32,
        };
        (id, Over { n_cpus, is_empty: stays_empty })
    };
    room.members(pool).iter().map(|id| over(*id)).collect()
}
