//! What there is in all, of which limits of a `Relative` QOS are parts: of the cluster, or of the partition whose QOS it is.
use std::collections::BTreeSet;

use model::accounts::Amounts;
use model::amount::Amount;
use model::config::NamedNode;
use model::{NodeName, Partition};

use super::demand;
use crate::Cluster;

pub fn whole(cluster: &Cluster, partition: Option<&Partition>) -> Amounts {
    let config = &cluster.config;
    let mut all = Amount::default();
    let mut add = |node: &NamedNode| {
        all.n_nodes += 1;
        all.n_cpus += node.config.cpus;
        all.memory_mb += node.config.memory_mb;
        for gres in &node.config.gres {
            all.add_gres(&gres.name, &gres.kind, gres.count.into());
        }
    };
    match partition {
        None => config.nodes.iter().for_each(&mut add),
        Some(partition) => {
            let members: BTreeSet<&NodeName> = partition.nodes.iter().collect();
            config.nodes.iter().filter(|node| members.contains(&node.name)).for_each(&mut add);
        }
    }
    demand::billed(cluster, partition, Amounts::new(&all, &config.licenses))
}

/// So many hundredths of it.
pub(super) fn part(whole: &Amounts, name: &str, percent: u64) -> u64 {
    (u128::from(whole.get(name)) * u128::from(percent) / 100) as u64
}
