//! Where everybody stands: what is in use, what was used, and what that makes of each share. Computed for readers, never kept.
use std::collections::BTreeMap;

use super::{Amounts, AssociationId};
use crate::Timestamp;

record! {
    pub struct Standing {
        pub at: Timestamp,
        /// Seconds; 0: nothing is forgotten.
        pub half_life_secs: u64,
        /// None: shares are weighed by the fair tree.
        pub classic: Option<Classic>,
        pub associations: BTreeMap<AssociationId, Place>,
        pub qos: BTreeMap<String, QosUse>,
    }

    /// How the older formula, 2^(-use/share/dampening), is applied.
    pub struct Classic {
        pub is_depth_oblivious: bool,
        pub dampening: u32,
    }

    /// An association in the tree; where there is no fair tree, shares and use are parts of the whole cluster's.
    pub struct Place {
        /// Among its siblings, from 0 to 1.
        pub shares_norm: f64,
        /// All shares of its level together.
        pub level_shares: u64,
        /// Of all that was used, and of what its parent's children used, from 0 to 1.
        pub usage_norm: f64,
        pub usage_effective: f64,
        /// Share over use; None: nothing was used, which is infinite.
        pub level_fs: Option<f64>,
        /// For users: their rank among all, from 0 to 1; without a fair tree, for accounts too.
        pub fair_share: Option<f64>,
        /// The one that priorities were computed with last.
        pub weighed_with: f64,
        pub now: Use,
    }

    pub struct QosUse {
        pub all: Use,
        pub users: BTreeMap<String, Use>,
        pub accounts: BTreeMap<String, Use>,
    }

    pub struct Use {
        pub jobs: u64,
        pub submitted: u64,
        pub accruing: u64,
        pub held: Amounts,
        /// In seconds of each resource; `billing` is what shares are compared by.
        pub used: Amounts<f64>,
        /// What running jobs may still use, in seconds.
        pub run_secs: Amounts,
        pub wall_secs: f64,
    }
}
