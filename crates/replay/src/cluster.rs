//! The cluster a workload runs on: a site's own configuration, or a plain machine that is large enough.
use model::config::NamedNode;
use model::node::NodeConfig;
use model::time::Span;
use model::{Config, NodeName, Partition};

use crate::Workload;

/// Nodes that are all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub n_nodes: u32,
    pub cpus_per_node: u32,
}

/// What the workload says of the machine it is from, as far as nothing else is asked for; else room for its widest request.
pub fn machine(workload: &Workload, n_nodes: Option<u32>, cpus_per_node: Option<u32>) -> Machine {
    let widest = workload.requests.iter().map(|request| request.n_cpus).max().unwrap_or(1);
    let n_cpus = workload.n_cpus.unwrap_or(widest).max(1);
    let told = workload.n_nodes.filter(|n_nodes| (1..=n_cpus).contains(n_nodes));
    match (n_nodes, cpus_per_node) {
        (Some(n_nodes), Some(cpus_per_node)) => Machine { n_nodes, cpus_per_node },
        (Some(n_nodes), None) => Machine { n_nodes, cpus_per_node: n_cpus.div_ceil(n_nodes) },
        (None, Some(cpus_per_node)) => Machine { n_nodes: n_cpus.div_ceil(cpus_per_node), cpus_per_node },
        (None, None) => {
            let n_nodes = told.unwrap_or_else(|| n_cpus.div_ceil(16));
            Machine { n_nodes, cpus_per_node: n_cpus.div_ceil(n_nodes) }
        }
    }
}

impl Machine {
    pub fn config(self) -> Config {
        let names: Vec<NodeName> = (1..=self.n_nodes).map(|number| format!("n{number}").as_str().into()).collect();
        let node = NodeConfig { cpus: self.cpus_per_node, memory_mb: 1 << 40, ..Default::default() };
        let partition = Partition { name: "all".into(), nodes: names.clone(), is_default: true, ..Default::default() };
        let nodes = names.into_iter().map(|name| NamedNode { name, config: node.clone() }).collect();
        Config { nodes, partitions: vec![partition], ..Default::default() }
    }
}

/// The same rules, without what only a running cluster needs.
pub(crate) fn for_replay(config: &Config) -> Config {
    let mut config = config.clone();
    config.controller.min_job_age = Span::default();
    config.accounting.records = false;
    config
}

pub(crate) fn n_cpus(config: &Config) -> u64 {
    config.nodes.iter().map(|node| u64::from(node.config.cpus)).sum()
}
