//! What the network costs: one decision, and whole plans with and without it.
//! `cargo run --release -p scheduler --example network [word of the rows wanted]`
#![allow(clippy::disallowed_types, reason = "measures time; not part of the scheduler")]
use std::time::Duration;

use model::config::NamedNode;
use model::node::NodeConfig;
use model::spec::{JobSpec, Sharing, Size};
use model::topology::{Block, Switch, Topology, TopologyKind, TopologyRules};
use model::{Caller, Command, Config, Entry, NodeName, Partition, Timestamp};
use state::{Cluster, apply};
use topology::{Ask, Candidate, Network};

use self::support::on_cpu;

mod support;

const N_LEAVES: usize = 600;
const LEAVES_IN_POD: usize = 30;
const N_NODES: usize = 10_000;

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted.is_empty() {
        decisions();
    }
    let one = |_: u32| Size { n_tasks: Some(1), ..Size::default() };
    let wide = |number: u32| Size { min_nodes: 2 + number % 30, sharing: Sharing::WholeNodes, ..Size::default() };
    let shared = |number: u32| Size { min_nodes: 2 + number % 7, ..Size::default() };
    println!("\nA pass over 10000 queued jobs, {N_NODES} nodes of 64 CPUs:");
    println!("{:40} {:>12} {:>18} {:>18}", "", "flat", "tree", "blocks");
    for (what, size) in [
        ("one task each", &one as &dyn Fn(u32) -> Size),
        ("2 to 31 whole nodes each", &wide),
        ("2 to 8 nodes each, shared", &shared),
    ]
    .into_iter()
    .filter(|(what, _)| what.contains(&wanted))
    {
        let took: Vec<(Duration, usize)> =
            [TopologyKind::Flat, TopologyKind::Tree, TopologyKind::Block].map(|kind| pass(kind, size)).to_vec();
        let ratio = |at: usize| took[at].0.as_secs_f64() / took[0].0.as_secs_f64();
        println!(
            "{what:40} {:>12.2?} {:>10.2?} ({:.2}x) {:>10.2?} ({:.2}x)   {} {} {} start",
            took[0].0,
            took[1].0,
            ratio(1),
            took[2].0,
            ratio(2),
            took[0].1,
            took[1].1,
            took[2].1,
        );
    }
}

fn name(node: usize) -> NodeName {
    format!("n{node}").into()
}

fn topology(kind: TopologyKind) -> Topology {
    let members = |leaf: usize| -> Vec<NodeName> { (leaf..N_NODES).step_by(N_LEAVES).map(name).collect() };
    let mut switches: Vec<Switch> = (0..N_LEAVES)
        .map(|leaf| Switch { name: format!("l{leaf}"), nodes: members(leaf), ..Switch::default() })
        .collect();
    let n_pods = N_LEAVES / LEAVES_IN_POD;
    for pod in 0..n_pods {
        let below = (pod * LEAVES_IN_POD..(pod + 1) * LEAVES_IN_POD).map(|leaf| format!("l{leaf}")).collect();
        switches.push(Switch { name: format!("p{pod}"), switches: below, ..Switch::default() });
    }
    let pods = (0..n_pods).map(|pod| format!("p{pod}")).collect();
    switches.push(Switch { name: "root".into(), switches: pods, ..Switch::default() });
    let blocks = (0..N_LEAVES).map(|leaf| Block { name: format!("b{leaf}"), nodes: members(leaf) }).collect();
    Topology {
        name: "default".into(),
        is_default: true,
        kind,
        switches,
        blocks,
        block_sizes: vec![16, 32, 64, 128],
        ..Topology::default()
    }
}

/// The picker alone, on a cluster of which a third is free.
fn decisions() {
    let network = Network::over((0..N_NODES).map(name).collect(), &[topology(TopologyKind::Tree)], &[]);
    let is_free = |node: &u32| node.wrapping_mul(2_654_435_761).is_multiple_of(3);
    let all: Vec<Candidate> =
        (0..N_NODES as u32).map(|node| Candidate { node, n_tasks: 1, ..Candidate::default() }).collect();
    let third: Vec<Candidate> = all.iter().copied().filter(|candidate| is_free(&candidate.node)).collect();
    println!("One decision, {N_NODES} nodes on {N_LEAVES} leaves:");
    for (what, candidates) in [("all free", &all), ("a third free", &third)] {
        for n in [1, 4, 16, 64, 200, 1000, 3000] {
            let begin = on_cpu();
            let n_rounds = 50;
            for _ in 0..n_rounds {
                let chosen = network.shapes[0].pick(&TopologyRules::default(), candidates, &Ask::nodes(n));
                assert_eq!(std::hint::black_box(chosen).expect("it fits").len(), n as usize);
            }
            println!("  {what:14} {n:>5} nodes {:>10.2?}", (on_cpu() - begin) / n_rounds);
        }
    }
}

fn pass(kind: TopologyKind, size: &dyn Fn(u32) -> Size) -> (Duration, usize) {
    let config = NodeConfig { cpus: 64, memory_mb: 256_000, ..NodeConfig::default() };
    let nodes = (0..N_NODES).map(|node| NamedNode { name: name(node), config: config.clone() }).collect();
    let names: Vec<NodeName> = (0..N_NODES).map(name).collect();
    let partition = Partition { name: "all".into(), nodes: names.clone(), is_default: true, ..Default::default() };
    let topologies = if kind == TopologyKind::Flat { Vec::new() } else { vec![topology(kind)] };
    let mut config = Config { nodes, partitions: vec![partition], topologies, ..Default::default() };
    config.scheduler.depth = u32::MAX;
    let mut cluster = Cluster::of_today();
    let run = |cluster: &mut Cluster, command: Command| {
        let entry = Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command };
        apply(cluster, &entry).reply.expect("the command is accepted");
    };
    run(&mut cluster, Command::Reconfigure { config: Box::new(config) });
    for node in names {
        run(&mut cluster, Command::RegisterNode { node, machine: Default::default(), runs: Default::default() });
    }
    for number in 0..10_000 {
        let spec = Box::new(JobSpec { size: size(number), ..JobSpec::default() });
        run(&mut cluster, Command::Submit { spec, blobs: Vec::new() });
    }
    let mut best = (Duration::MAX, 0);
    for _ in 0..3 {
        let begin = on_cpu();
        let plan = scheduler::plan(&cluster);
        best = best.min(((on_cpu() - begin), plan.starts.len()));
    }
    best
}
