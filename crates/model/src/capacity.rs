//! How much there is in all, by Slurm's names: of the cluster, of a partition, of a node.
use std::collections::{BTreeMap, BTreeSet};

use crate::accounts::Amounts;
use crate::amount::Amount;
use crate::config::Config;
use crate::node::NodeConfig;
use crate::{NodeName, Partition, billing};

fn sum<'a>(nodes: impl Iterator<Item = &'a NodeConfig>) -> Amount {
    let mut all = Amount::default();
    for node in nodes {
        all.n_nodes += 1;
        all.n_cpus += node.cpus;
        all.memory_mb += node.memory_mb;
        for gres in &node.gres {
            all.add_gres(&gres.name, &gres.kind, gres.count.into());
        }
    }
    all
}

/// Of the partition, or without one of the cluster; licences are everybody's.
pub fn whole(config: &Config, partition: Option<&Partition>) -> Amounts {
    let all = match partition {
        None => sum(config.nodes.iter().map(|node| &node.config)),
        Some(partition) => {
            let members: BTreeSet<&NodeName> = partition.nodes.iter().collect();
            sum(config.nodes.iter().filter(|node| members.contains(&node.name)).map(|node| &node.config))
        }
    };
    billing::billed(config, partition, Amounts::new(&all, &config.licenses))
}

/// What each node is billed as: the most that any of its partitions charges for it, or its CPUs where none has weights.
pub fn billing_by_node(config: &Config) -> BTreeMap<&NodeName, u64> {
    let mut by_node: BTreeMap<&NodeName, u64> = BTreeMap::new();
    let amounts = |node: &NodeConfig| Amounts::new(&sum(std::iter::once(node)), &[]);
    for partition in config.partitions.iter().filter(|partition| !partition.billing_weights.is_empty()) {
        let members: BTreeSet<&NodeName> = partition.nodes.iter().collect();
        for node in config.nodes.iter().filter(|node| members.contains(&node.name)) {
            let charged = billing::billed(config, Some(partition), amounts(&node.config)).billing;
            let most = by_node.entry(&node.name).or_default();
            *most = (*most).max(charged);
        }
    }
    for node in &config.nodes {
        let billing = by_node.entry(&node.name).or_default();
        *billing = if *billing == 0 { node.config.cpus.into() } else { *billing };
    }
    by_node
}

/// What sizes of jobs are compared with. Worked out once for many jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    pub n_nodes: f64,
    pub n_cpus: f64,
    /// By partition; only where single resources are weighed.
    partitions: BTreeMap<String, Amounts>,
}

impl Measures {
    pub fn of(config: &Config) -> Measures {
        let weighs_tres = !config.scheduler.priority.weight_tres.is_empty();
        let partitions = config.partitions.iter().filter(|_| weighs_tres);
        Measures {
            n_nodes: config.nodes.len().max(1) as f64,
            n_cpus: config.nodes.iter().map(|node| f64::from(node.config.cpus.max(1))).sum::<f64>().max(1.0),
            partitions: partitions.map(|one| (one.name.clone(), whole(config, Some(one)))).collect(),
        }
    }

    /// How much of that resource the partition has.
    pub fn amount(&self, partition: &str, tres: &str) -> u64 {
        self.partitions.get(partition).map_or(0, |has| has.get(tres))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NamedNode;
    use crate::gres::Gres;

    #[test]
    fn partitions_and_nodes_are_billed_by_their_weights() {
        let node = |name: &str, gpus| {
            let gres = vec![Gres { name: "gpu".into(), count: gpus, ..Default::default() }];
            NamedNode { name: name.into(), config: NodeConfig { cpus: 4, memory_mb: 2048, gres, ..Default::default() } }
        };
        let partition = |name: &str, nodes: &[&str], billing_weights: &str| Partition {
            name: name.into(),
            nodes: nodes.iter().map(|name| (*name).into()).collect(),
            billing_weights: billing_weights.into(),
            ..Default::default()
        };
        let mut config = Config { nodes: vec![node("a", 2), node("b", 0)], ..Default::default() };
        config.partitions = vec![partition("all", &["a", "b"], ""), partition("dear", &["a"], "cpu=1,gres/gpu=10")];
        assert_eq!(whole(&config, None).billing, 8);
        let dear = whole(&config, Some(&config.partitions[1]));
        assert_eq!((dear.cpu, dear.mem, dear.node, dear.billing, dear.get("gres/gpu")), (4, 2048, 1, 24, 2));
        assert_eq!(billing_by_node(&config).into_values().collect::<Vec<_>>(), [24, 4]);
    }
}
