//! A cluster of 512 nodes at 80 % load in the real state and scheduler, placed by three rules: first fit (no topology), a greedy rule as
//! Slurm's manual describes it (the same plans, the nodes of every start chosen anew among those that are promised to nobody while it
//! runs), and ours. "careless": the greedy rule on all free nodes, whatever is promised.
//! `cargo run --release -p replay --example placement [SEED] [JOBS]`
#![allow(clippy::disallowed_types, reason = "measures; not part of the crate")]
use std::collections::{BTreeMap, BTreeSet};

use model::config::NamedNode;
use model::node::NodeConfig;
use model::plan::Grant;
use model::topology::{Switch, Topology, TopologyKind};
use model::{Config, JobId, NodeName, Partition, Plan, Timestamp, hostlist};
use replay::{Request, Workload, run_with};
use state::Cluster;
use topology::{Form, Network, Tree};

const N_PODS: usize = 4;
const LEAVES_IN_POD: usize = 8;
const NODES_ON_LEAF: usize = 16;
const N_NODES: usize = N_PODS * LEAVES_IN_POD * NODES_ON_LEAF;
const LOAD: f64 = 0.8;
const MEAN_SECS: f64 = 3600.0;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Which rule chooses the nodes of a start.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    FirstFit,
    Careless,
    Greedy,
    Ours,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |usual: u64| arguments.next().map_or(usual, |text| text.parse().expect("a number"));
    let (seed, n_jobs) = (argument(1), argument(20_000) as usize);
    let workload = workload(seed, n_jobs);
    println!("{n_jobs} jobs of 1 to 64 nodes on {N_NODES} nodes, load {:.0} %, seed {seed}", LOAD * 100.0);
    println!(
        "{:12} {:>10} {:>10} {:>10} {:>14} {:>12} {:>12}",
        "rule", "leaves x", "one leaf", "levels", "whole leaves", "mean wait", "utilisation"
    );
    let rules =
        [("first fit", Rule::FirstFit), ("careless", Rule::Careless), ("greedy", Rule::Greedy), ("ours", Rule::Ours)];
    for (name, rule) in rules {
        let mut seen = Seen::default();
        let topologies = if rule == Rule::Ours { vec![topology()] } else { Vec::new() };
        let outcome = run_with(&config(topologies), &workload, &mut |_| (), &mut |cluster, plan| {
            seen.look(cluster, plan, rule);
        });
        let summary = outcome.summary(&workload);
        assert_eq!((outcome.n_never_started, outcome.refused.len()), (0, 0));
        println!(
            "{name:12} {:>10.3} {:>9.1}% {:>10.3} {:>13.1}% {:>10.0} s {:>11.1}%",
            seen.leaf_ratio / seen.n_jobs,
            seen.on_one_leaf / seen.n_small * 100.0,
            seen.level / seen.n_jobs,
            seen.whole_leaves / seen.n_looks * 100.0,
            summary.mean_wait,
            summary.utilisation * 100.0
        );
    }
}

fn name(node: usize) -> NodeName {
    format!("n{node}").into()
}

fn topology() -> Topology {
    let mut switches = Vec::new();
    for leaf in 0..N_PODS * LEAVES_IN_POD {
        let nodes = (leaf * NODES_ON_LEAF..(leaf + 1) * NODES_ON_LEAF).map(name).collect();
        switches.push(Switch { name: format!("leaf{leaf}"), nodes, ..Switch::default() });
    }
    for pod in 0..N_PODS {
        let below = (pod * LEAVES_IN_POD..(pod + 1) * LEAVES_IN_POD).map(|leaf| format!("leaf{leaf}")).collect();
        switches.push(Switch { name: format!("pod{pod}"), switches: below, ..Switch::default() });
    }
    let pods = (0..N_PODS).map(|pod| format!("pod{pod}")).collect();
    switches.push(Switch { name: "root".into(), switches: pods, ..Switch::default() });
    Topology { kind: TopologyKind::Tree, is_default: true, switches, ..Topology::default() }
}

/// Nodes of one CPU, so that every job has its nodes alone.
fn config(topologies: Vec<Topology>) -> Config {
    let names: Vec<NodeName> = (0..N_NODES).map(name).collect();
    let node = NodeConfig { cpus: 1, memory_mb: 1 << 30, ..NodeConfig::default() };
    let nodes = names.iter().map(|name| NamedNode { name: name.clone(), config: node.clone() }).collect();
    let partition = Partition { name: "all".into(), nodes: names, is_default: true, ..Partition::default() };
    Config { nodes, partitions: vec![partition], topologies, ..Config::default() }
}

fn workload(seed: u64, n_jobs: usize) -> Workload {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // Small jobs are as common as large ones on a scale of doublings.
    let sizes: Vec<u32> =
        (0..n_jobs).map(|_| (65f64.ln() * dice.unit()).exp().floor().clamp(1.0, 64.0) as u32).collect();
    let mean_size = sizes.iter().map(|n| f64::from(*n)).sum::<f64>() / n_jobs as f64;
    let gap = mean_size * MEAN_SECS / (LOAD * N_NODES as f64);
    let mut at = 0.0;
    let request = |(number, n): (usize, u32)| {
        at += dice.exponential(gap);
        let run_time = dice.exponential(MEAN_SECS).max(1.0) as u64;
        // People ask for up to twice the time they need.
        let limit = (run_time as f64 * (1.0 + dice.unit())) as u64 + 60;
        Request {
            name: number.to_string(),
            submitted: at as u64,
            n_cpus: n,
            n_nodes: Some(n),
            run_time,
            limit,
            user: "somebody".into(),
            ..Request::default()
        }
    };
    Workload { requests: sizes.into_iter().enumerate().map(request).collect(), ..Workload::default() }
}

/// Sums over all starts, and over all plans that started something.
#[derive(Default)]
struct Seen {
    network: Option<Network>,
    n_jobs: f64,
    n_small: f64,
    n_looks: f64,
    /// Leaves used for each leaf that an empty cluster would need.
    leaf_ratio: f64,
    on_one_leaf: f64,
    level: f64,
    /// Share of the leaves on which every node is free.
    whole_leaves: f64,
}

impl Seen {
    fn look(&mut self, cluster: &Cluster, plan: &mut Plan, rule: Rule) {
        if plan.starts.is_empty() {
            return;
        }
        let network =
            self.network.get_or_insert_with(|| Network::over((0..N_NODES).map(name).collect(), &[topology()], &[]));
        let Form::Tree(tree) = &network.shapes[0].form else { unreachable!("it was made a tree") };
        let free =
            cluster.nodes().filter(|node| node.jobs.is_empty()).filter_map(|node| network.find(node.name.as_str()));
        let mut free: BTreeSet<u32> = free.collect();
        let promised = if rule == Rule::Greedy { promised(cluster, plan, network) } else { BTreeMap::new() };
        for start in &mut plan.starts {
            if matches!(rule, Rule::Greedy | Rule::Careless) {
                let limit =
                    cluster.job(start.job).and_then(|job| job.spec.time_limit?.span()).expect("all have limits");
                let ends = cluster.now() + limit;
                let is_open = |node: &&u32| promised.get(node).is_none_or(|begins| ends <= *begins);
                let open: BTreeSet<u32> = free.iter().filter(is_open).copied().collect();
                let chosen = greedy(tree, &open, start.nodes.len());
                // What was placed anew before it may have taken what it would have had.
                let is_enough = chosen.len() == start.nodes.len();
                let chosen = if is_enough { chosen } else { greedy(tree, &free, start.nodes.len()) };
                let put = |(grant, node): (&mut Grant, u32)| grant.node = network.name(node).clone();
                start.nodes.iter_mut().zip(chosen).for_each(put);
            }
            let chosen: Vec<u32> = start.nodes.iter().filter_map(|grant| network.find(grant.node.as_str())).collect();
            chosen.iter().for_each(|node| assert!(free.remove(node), "it was free"));
            let leaves = leaves_of(tree, &chosen);
            let least = chosen.len().div_ceil(NODES_ON_LEAF);
            self.n_jobs += 1.0;
            self.leaf_ratio += leaves.len() as f64 / least as f64;
            if least == 1 {
                self.n_small += 1.0;
                self.on_one_leaf += f64::from(u8::from(leaves.len() == 1));
            }
            let common = tree.common(&leaves).expect("one root");
            self.level += f64::from(tree.switches[common as usize].level);
        }
        self.n_looks += 1.0;
        let is_whole =
            |leaf: &usize| (leaf * NODES_ON_LEAF..(leaf + 1) * NODES_ON_LEAF).all(|node| free.contains(&(node as u32)));
        let n_leaves = N_PODS * LEAVES_IN_POD;
        self.whole_leaves += (0..n_leaves).filter(is_whole).count() as f64 / n_leaves as f64;
    }
}

/// From when on nodes are promised to jobs that wait.
fn promised(cluster: &Cluster, plan: &Plan, network: &Network) -> BTreeMap<u32, Timestamp> {
    let mut expected: BTreeMap<JobId, (Option<Timestamp>, &str)> = BTreeMap::new();
    for job in cluster.jobs().filter(|job| job.expected_start.is_some()) {
        expected.insert(job.id, (job.expected_start, &job.expected_nodes));
    }
    for news in &plan.expected_starts {
        expected.insert(news.job, (news.at, &news.nodes));
    }
    for start in &plan.starts {
        expected.remove(&start.job);
    }
    let mut promised: BTreeMap<u32, Timestamp> = BTreeMap::new();
    for (at, nodes) in expected.into_values() {
        let Some(at) = at else { continue };
        for node in hostlist::expand(nodes).expect("a hostlist").iter().filter_map(|name| network.find(name)) {
            let begins = promised.entry(node).or_insert(at);
            *begins = at.min(*begins);
        }
    }
    promised
}

fn leaves_of(tree: &Tree, chosen: &[u32]) -> Vec<u32> {
    let mut leaves: Vec<u32> = chosen.iter().filter_map(|node| tree.leaf_of(*node)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// The smallest leaf that fits; else the pod that fits with the fewest free nodes, or all; in there the fullest leaves first, and
/// the tightest last.
fn greedy(tree: &Tree, free: &BTreeSet<u32>, n: usize) -> Vec<u32> {
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); tree.n_leaves()];
    for node in free {
        members[tree.leaf_of(*node).expect("every node is on a leaf") as usize].push(*node);
    }
    let pods = (0..N_PODS).map(|pod| pod * LEAVES_IN_POD..(pod + 1) * LEAVES_IN_POD);
    let total = |leaves: &std::ops::Range<usize>| members[leaves.clone()].iter().map(Vec::len).sum::<usize>();
    let pod = pods.filter(|pod| total(pod) >= n).min_by_key(|pod| total(pod));
    let mut leaves: Vec<usize> = pod.unwrap_or(0..tree.n_leaves()).collect();
    if (0..tree.n_leaves()).any(|leaf| members[leaf].len() >= n) {
        leaves = (0..tree.n_leaves()).collect();
    }
    let mut chosen = Vec::new();
    while chosen.len() < n && !leaves.is_empty() {
        let rest = n - chosen.len();
        let tightest =
            leaves.iter().copied().filter(|leaf| members[*leaf].len() >= rest).min_by_key(|leaf| members[*leaf].len());
        let fullest = leaves.iter().copied().max_by_key(|leaf| (members[*leaf].len(), std::cmp::Reverse(*leaf)));
        let Some(leaf) = tightest.or(fullest) else { break };
        leaves.retain(|other| *other != leaf);
        chosen.extend(members[leaf].iter().take(rest));
    }
    chosen
}
