//! A cluster of 512 nodes at 80 % load, placed by three rules: first fit, a greedy rule like Slurm's, and ours.
//! `cargo run --release -p topology --example rules [SEED]`
use std::collections::BTreeMap;

use model::NodeName;
use model::topology::{Switch, Topology, TopologyKind, TopologyRules};
use topology::{Ask, Candidate, Form, Network, Tree};

const N_PODS: usize = 4;
const LEAVES_IN_POD: usize = 8;
const NODES_ON_LEAF: usize = 16;
const N_NODES: usize = N_PODS * LEAVES_IN_POD * NODES_ON_LEAF;
const N_JOBS: usize = 20_000;
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

#[derive(Clone)]
struct Job {
    arrives: f64,
    secs: f64,
    n: u32,
}

type Rule = fn(&Network, &[bool], u32) -> Vec<u32>;

fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    let network = network();
    let jobs = jobs(seed);
    println!("{N_JOBS} jobs of 1 to 64 nodes on {N_NODES} nodes, load {:.0} %, seed {seed}", LOAD * 100.0);
    println!(
        "{:12} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "rule", "leaves x", "one leaf", "levels", "wait", "utilisation"
    );
    let rules: [(&str, Rule); 3] = [("first fit", first_fit), ("greedy", greedy), ("ours", ours)];
    for (name, rule) in rules {
        let result = run(&network, &jobs, rule);
        println!(
            "{name:12} {:>10.3} {:>9.1}% {:>10.3} {:>10.0} s {:>11.1}%",
            result.leaf_ratio,
            result.on_one_leaf * 100.0,
            result.level,
            result.wait,
            result.utilisation * 100.0
        );
    }
}

fn network() -> Network {
    let mut switches = Vec::new();
    let name = |node: usize| NodeName::from(format!("n{node}"));
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
    let topology = Topology { kind: TopologyKind::Tree, switches, ..Topology::default() };
    Network::over((0..N_NODES).map(name).collect(), &[topology], &[])
}

fn jobs(seed: u64) -> Vec<Job> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // Small jobs are as common as large ones on a scale of doublings.
    let sizes: Vec<u32> =
        (0..N_JOBS).map(|_| (65f64.ln() * dice.unit()).exp().floor().clamp(1.0, 64.0) as u32).collect();
    let mean_size = sizes.iter().map(|n| f64::from(*n)).sum::<f64>() / N_JOBS as f64;
    let gap = mean_size * MEAN_SECS / (LOAD * N_NODES as f64);
    let mut at = 0.0;
    let job = |n: u32| {
        at += dice.exponential(gap);
        Job { arrives: at, secs: dice.exponential(MEAN_SECS).max(1.0), n }
    };
    sizes.into_iter().map(job).collect()
}

#[derive(Default)]
struct Outcome {
    /// Leaves used for each leaf that an empty cluster would need.
    leaf_ratio: f64,
    on_one_leaf: f64,
    level: f64,
    wait: f64,
    utilisation: f64,
}

/// Jobs start in order of arrival wherever they fit; a job that does not fit lets later ones pass.
fn run(network: &Network, jobs: &[Job], rule: Rule) -> Outcome {
    let Form::Tree(tree) = &network.shapes[0].form else { unreachable!("it was made a tree") };
    let mut free = vec![true; N_NODES];
    let mut ends: BTreeMap<u64, Vec<Vec<u32>>> = BTreeMap::new();
    let mut waiting: Vec<Job> = Vec::new();
    let mut coming = jobs.iter().cloned().peekable();
    let mut outcome = Outcome::default();
    let (mut n_small, mut busy, mut last) = (0.0, 0.0, 0.0f64);
    let micros = |at: f64| (at * 1e6) as u64;
    while coming.peek().is_some() || !waiting.is_empty() {
        let arrival = coming.peek().map(|job| micros(job.arrives));
        let end = ends.keys().next().copied();
        let now = arrival.into_iter().chain(end).min().expect("something happens");
        if end == Some(now) {
            let done = ends.remove(&now).expect("just seen");
            done.into_iter().flatten().for_each(|node| free[node as usize] = true);
        }
        while coming.peek().is_some_and(|job| micros(job.arrives) <= now) {
            waiting.extend(coming.next());
        }
        waiting.retain(|job| {
            let n_free = free.iter().filter(|free| **free).count();
            if (job.n as usize) > n_free {
                return true;
            }
            let chosen = rule(network, &free, job.n);
            if chosen.is_empty() {
                return true;
            }
            chosen.iter().for_each(|node| free[*node as usize] = false);
            let leaves = leaves_of(tree, &chosen);
            let least = (job.n as usize).div_ceil(NODES_ON_LEAF);
            outcome.leaf_ratio += leaves.len() as f64 / least as f64;
            if least == 1 {
                n_small += 1.0;
                outcome.on_one_leaf += f64::from(u8::from(leaves.len() == 1));
            }
            let common = tree.common(&leaves).expect("one root");
            outcome.level += f64::from(tree.switches[common as usize].level);
            outcome.wait += now as f64 / 1e6 - job.arrives;
            busy += f64::from(job.n) * job.secs;
            last = last.max(now as f64 / 1e6 + job.secs);
            ends.entry(micros(now as f64 / 1e6 + job.secs)).or_default().push(chosen);
            false
        });
    }
    let n = jobs.len() as f64;
    outcome.leaf_ratio /= n;
    outcome.on_one_leaf /= n_small;
    outcome.level /= n;
    outcome.wait /= n;
    outcome.utilisation = busy / (last * N_NODES as f64);
    outcome
}

fn leaves_of(tree: &Tree, chosen: &[u32]) -> Vec<u32> {
    let mut leaves: Vec<u32> = chosen.iter().filter_map(|node| tree.leaf_of(*node)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

fn first_fit(_: &Network, free: &[bool], n: u32) -> Vec<u32> {
    (0..free.len() as u32).filter(|node| free[*node as usize]).take(n as usize).collect()
}

fn ours(network: &Network, free: &[bool], n: u32) -> Vec<u32> {
    let nodes = (0..free.len() as u32).filter(|node| free[*node as usize]);
    let all: Vec<Candidate> = nodes.map(|node| Candidate { node, n_tasks: 1, ..Candidate::default() }).collect();
    let chosen = network.shapes[0].pick(&TopologyRules::default(), &all, &Ask::nodes(n)).unwrap_or_default();
    chosen.into_iter().map(|at| all[at].node).collect()
}

/// The smallest leaf that fits; else the pod that fits with the fewest free nodes, or all; in there the fullest leaves first, and
/// the tightest last.
fn greedy(network: &Network, free: &[bool], n: u32) -> Vec<u32> {
    let Form::Tree(tree) = &network.shapes[0].form else { unreachable!("it was made a tree") };
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); tree.n_leaves()];
    for node in (0..free.len() as u32).filter(|node| free[*node as usize]) {
        members[tree.leaf_of(node).expect("every node is on a leaf") as usize].push(node);
    }
    let n = n as usize;
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
    if chosen.len() == n { chosen } else { Vec::new() }
}
