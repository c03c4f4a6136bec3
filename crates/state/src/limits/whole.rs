//! What there is in all, of which limits of a `Relative` QOS are parts: of the cluster, or of the partition whose QOS it is.
use model::Partition;
use model::accounts::Amounts;

use crate::Cluster;

pub fn whole(cluster: &Cluster, partition: Option<&Partition>) -> Amounts {
    model::capacity::whole(&cluster.config, partition)
}

/// So many hundredths of it.
pub(super) fn part(whole: &Amounts, name: &str, percent: u64) -> u64 {
    (u128::from(whole.get(name)) * u128::from(percent) / 100) as u64
}
