//! A node as its viewers see it: what is derived from the record rather than stored in it.
use std::collections::{BTreeMap, HashMap, HashSet};

use model::accounts::Amounts;
use model::amount::Amount;
use model::capacity::{self, billing_by_node};
use model::config::Config;
use model::gres::Gres;
use model::node_state::Base;
use model::partition::OverSubscribe;
use model::request::NodeView;
use model::size;
use model::{NodeName, Partition};

/// The partitions that nodes belong to, in configured order, and what nodes are billed as for it.
pub struct Memberships<'a> {
    partitions: HashMap<&'a NodeName, Vec<&'a str>>,
    billing: BTreeMap<&'a NodeName, u64>,
}

impl<'a> Memberships<'a> {
    pub fn of(config: &'a Config) -> Self {
        let mut partitions: HashMap<&NodeName, Vec<&str>> = HashMap::with_capacity(config.nodes.len());
        for partition in &config.partitions {
            for node in &partition.nodes {
                partitions.entry(node).or_default().push(&partition.name);
            }
        }
        Memberships { partitions, billing: billing_by_node(config) }
    }

    pub fn partitions(&self, node: &NodeName) -> &[&'a str] {
        self.partitions.get(node).map_or(&[], Vec::as_slice)
    }
}

/// Those of the nodes that have one of these names.
pub fn named<'a, 'b>(nodes: &'a [NodeView], names: impl IntoIterator<Item = &'b NodeName>) -> Vec<&'a NodeView> {
    let names: HashSet<&NodeName> = names.into_iter().collect();
    nodes.iter().filter(|view| names.contains(&view.node.name)).collect()
}

/// `NO`, `EXCLUSIVE`, `FORCE:4` …
pub fn oversubscribe(partition: &Partition) -> String {
    match partition.exclusive_nodes {
        true => OverSubscribe::Exclusive.word(),
        false => partition.oversubscribe.word(),
    }
}

/// Sockets, cores a socket, threads a core; what is not configured counts as one thread a socket.
pub fn sockets(node: &NodeView) -> (u32, u32, u32) {
    let config = &node.node.config;
    let (cores, threads) = (config.cores_per_socket.max(1), config.threads_per_core.max(1));
    let sockets = if config.sockets > 0 { config.sockets } else { config.all_cpus() / (cores * threads) };
    (sockets.max(1), cores, threads)
}

/// The port on which other machines reach the agent; 0: none.
pub fn port(node: &NodeView) -> u32 {
    node.node.machine.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0)
}

/// Where the machine is: where its agent is heard, as configured, or as it calls itself.
pub fn address(node: &NodeView) -> &str {
    if let Some((host, _)) = node.node.machine.address.rsplit_once(':') {
        return host;
    }
    match node.node.config.address.as_str() {
        "" => match node.node.machine.hostname.as_str() {
            "" => host(node),
            machine => machine,
        },
        address => address,
    }
}

/// `0.25`, as the last minute had it.
pub fn cpu_load(node: &NodeView) -> String {
    node.load.as_ref().map_or("N/A".into(), |load| hundredths(load.cpu_hundredths))
}

pub fn hundredths(number: u32) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// In megabytes.
pub fn free_memory(node: &NodeView) -> String {
    node.load.as_ref().map_or("N/A".into(), |load| load.free_mb.to_string())
}

/// What the site says its machine is called, or the node's own name: several nodes may share a machine, and users tell them
/// apart by name.
pub fn host(node: &NodeView) -> &str {
    let configured = node.node.config.hostname.as_str();
    if configured.is_empty() { node.node.name.as_str() } else { configured }
}

/// `gpu:2`, or empty.
pub fn gres(node: &NodeView) -> String {
    let all: Vec<String> = node.node.config.gres.iter().map(Gres::to_string).collect();
    all.join(",")
}

/// `gpu:1`, also where nothing of it is used.
pub fn gres_used(node: &NodeView) -> String {
    let used = |gres: &Gres| {
        let held = node.node.used.gres.iter().filter(|held| held.name == gres.name && held.kind == gres.kind);
        Gres { count: held.map(|held| held.units.len()).sum(), ..gres.clone() }.to_string()
    };
    let all: Vec<String> = node.node.config.gres.iter().map(used).collect();
    all.join(",")
}

/// `cpu=8,mem=4000M,billing=8`
pub fn configured_tres(node: &NodeView, memberships: &Memberships) -> String {
    let config = &node.node.config;
    let billing = memberships.billing.get(&node.node.name).copied().unwrap_or(config.cpus.into());
    let mut text = format!("cpu={},mem={},billing={billing}", config.cpus, size::show_megabytes(config.memory_mb));
    let mut all = Amount::default();
    config.gres.iter().for_each(|gres| all.add_gres(&gres.name, "", gres.count.into()));
    all.gres.iter().for_each(|(name, count)| text.push_str(&format!(",gres/{name}={count}")));
    text
}

/// `cpu=16,mem=8000M,node=2,billing=16,gres/gpu=4`
pub fn partition_tres(partition: &Partition, config: &Config) -> String {
    let all = capacity::whole(config, Some(partition));
    let memory = size::show_megabytes(all.mem);
    let mut text = format!("cpu={},mem={memory},node={},billing={}", all.cpu, all.node, all.billing);
    devices(&all).for_each(|(name, count)| text.push_str(&format!(",{name}={count}")));
    text
}

/// Devices of each name, as `gres/gpu`; kinds (`gres/gpu:a100`) are parts of them.
pub fn devices(all: &Amounts) -> impl Iterator<Item = (&str, u64)> {
    let named = all.others.iter().map(|(name, count)| (name.as_str(), *count));
    named.filter(|(name, _)| name.starts_with("gres/") && !name.contains(':'))
}

/// `cpu=8,mem=800M`, empty when nothing is used.
pub fn used_tres(node: &NodeView) -> String {
    let used = &node.node.used;
    let mut parts = Vec::new();
    if !used.cpus.is_empty() {
        parts.push(format!("cpu={}", used.cpus.len()));
    }
    if used.memory_mb > 0 {
        parts.push(format!("mem={}", size::show_megabytes(used.memory_mb)));
    }
    let mut held = Amount::default();
    used.gres.iter().for_each(|gres| held.add_gres(&gres.name, "", gres.units.len().into()));
    parts.extend(held.gres.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("gres/{name}={count}")));
    parts.join(",")
}

/// How a node counts in `A/I/O/T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Allocated,
    Idle,
    Other,
}

pub fn usage(node: &NodeView) -> Usage {
    let state = node.state();
    let busy = matches!(state.base, Base::Allocated | Base::Mixed);
    match state.base {
        Base::Unknown | Base::Down => Usage::Other,
        _ if busy || state.completing => Usage::Allocated,
        _ if state.drain || state.failed => Usage::Other,
        _ => Usage::Idle,
    }
}

/// Allocated, idle, other and all CPUs.
pub fn cpu_counts(node: &NodeView) -> [u32; 4] {
    let state = node.state();
    let (all, used) = (node.node.config.cpus, node.node.used.cpus.len());
    let rest = all.saturating_sub(used);
    let unusable = state.drain || state.failed || matches!(state.base, Base::Unknown | Base::Down);
    if unusable { [used, 0, rest, all] } else { [used, rest, 0, all] }
}
