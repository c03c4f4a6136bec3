//! What is let in can be placed: whatever submission admits to an empty cluster is started there at once, on every kind of network.
mod world;

use model::node::NodeConfig;
use model::spec::{JobSpec, Memory, NetworkWish, Sharing, Size};
use model::topology::{Block, Switch, Topology, TopologyKind};
use model::{Caller, Command, Entry, NodeName, Partition};
use proptest::prelude::*;
use world::{World, partition};

/// The nodes: CPUs and weight of each, and the unit it is in.
#[derive(Clone, Debug)]
struct Site {
    kind: TopologyKind,
    nodes: Vec<(u32, u32, usize)>,
    /// Units from here on have no common switch with others; their nodes are in no block.
    n_joined: usize,
    block_sizes: Vec<u32>,
    is_optional: bool,
    /// The fewest and the most nodes of a job in the partition.
    bounds: (u32, Option<u32>),
}

fn site() -> impl Strategy<Value = Site> {
    let kind = prop::sample::select(vec![TopologyKind::Flat, TopologyKind::Tree, TopologyKind::Block]);
    let nodes = prop::collection::vec((prop::sample::select(vec![1u32, 2, 4, 8]), 0..2u32, 0..5usize), 1..=10);
    let sizes = prop::sample::select(vec![vec![], vec![1], vec![2], vec![2, 4], vec![2, 8], vec![3, 6], vec![1, 2, 4]]);
    let bounds = prop::sample::select(vec![(1, None), (1, None), (1, Some(2)), (2, None), (2, Some(3))]);
    (kind, nodes, 0..=5usize, sizes, prop::bool::weighted(0.1), bounds).prop_map(
        |(kind, nodes, n_joined, block_sizes, is_optional, bounds)| Site {
            kind,
            nodes,
            n_joined,
            block_sizes,
            is_optional,
            bounds,
        },
    )
}

fn name(at: usize) -> NodeName {
    NodeName::from(format!("n{}", at + 1))
}

impl Site {
    fn members(&self, unit: usize) -> Vec<NodeName> {
        (0..self.nodes.len()).filter(|at| self.nodes[*at].2 == unit).map(name).collect()
    }

    fn topology(&self) -> Topology {
        let units = |range: std::ops::Range<usize>| range.filter(|unit| !self.members(*unit).is_empty());
        let leaf = |unit: usize| Switch { name: format!("s{unit}"), nodes: self.members(unit), ..Switch::default() };
        let block = |unit: usize| Block { name: format!("b{unit}"), nodes: self.members(unit) };
        let mut switches: Vec<Switch> = units(0..5).map(leaf).collect();
        let below: Vec<String> = units(0..self.n_joined).map(|unit| format!("s{unit}")).collect();
        if !below.is_empty() {
            switches.push(Switch { name: "root".into(), switches: below, ..Switch::default() });
        }
        Topology {
            name: "default".into(),
            is_default: true,
            kind: self.kind,
            switches: if self.kind == TopologyKind::Tree { switches } else { Vec::new() },
            blocks: if self.kind == TopologyKind::Block {
                units(0..self.n_joined.max(1)).map(block).collect()
            } else {
                Vec::new()
            },
            block_sizes: self.block_sizes.clone(),
            ..Topology::default()
        }
    }

    fn world(&self) -> World {
        let names: Vec<NodeName> = (0..self.nodes.len()).map(name).collect();
        let config = |(cpus, weight, _): &(u32, u32, usize)| NodeConfig {
            cpus: *cpus,
            memory_mb: u64::from(*cpus) * 1000,
            weight: *weight,
            ..NodeConfig::default()
        };
        let nodes = names.iter().map(NodeName::as_str).zip(self.nodes.iter().map(config)).collect();
        let mut world = World::new(nodes, Vec::new());
        let mut config = (**world.cluster.config()).clone();
        config.topologies = vec![self.topology()];
        config.topology.is_optional = self.is_optional;
        let all: Vec<&str> = names.iter().map(NodeName::as_str).collect();
        let (min_nodes, max_nodes) = self.bounds;
        config.partitions = vec![Partition { min_nodes, max_nodes, ..partition("debug", &all) }];
        world.apply(Command::Reconfigure { config: Box::new(config) });
        world
    }
}

fn size() -> impl Strategy<Value = Size> {
    let maybe = |most: u32| prop::option::weighted(0.5, 1..=most);
    let memory =
        prop::sample::select(vec![Memory::Default, Memory::PerNodeMb(3000), Memory::PerCpuMb(900), Memory::WholeNode]);
    let sharing = prop::sample::select(vec![Sharing::Default, Sharing::WholeNodes]);
    let counts = (1..=4u32, prop::option::of(0..=3u32), prop::option::weighted(0.7, 1..=12u32), maybe(3), maybe(3));
    let network = (0..=3u32, prop::bool::weighted(0.2), prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    let named = (prop::collection::vec(0..10usize, 0..=2), prop::collection::vec(0..10usize, 0..=1));
    (counts, memory, sharing, network, named, 0..12u32).prop_map(
        |(
            (min_nodes, more, n_tasks, tasks_per_node, cpus_per_task),
            memory,
            sharing,
            network,
            (named, excluded),
            rare,
        )| {
            let (segment, spreads_segments, consolidates_segments, is_segmented) = network;
            let wish = match is_segmented && segment > 0 {
                true => NetworkWish { segment, spreads_segments, consolidates_segments, ..NetworkWish::default() },
                false => NetworkWish::default(),
            };
            Size {
                min_nodes,
                max_nodes: more.map(|more| min_nodes + more),
                n_tasks,
                tasks_per_node: tasks_per_node.filter(|_| rare < 3),
                cpus_per_task,
                memory,
                sharing,
                nodes: if rare == 4 { named.into_iter().map(name).collect() } else { Vec::new() },
                excluded: if rare == 5 { excluded.into_iter().map(name).collect() } else { Vec::new() },
                contiguous: rare == 6,
                overcommit: rare == 7,
                spreads: rare == 8,
                prefers_few_nodes: rare == 9,
                network: wish,
                ..Size::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(many(200)))]
    #[test]
    fn what_is_admitted_to_an_empty_cluster_starts_there(site in site(), sizes in prop::collection::vec(size(), 8)) {
        let empty = site.world();
        for size in sizes {
            let mut world = World { cluster: empty.cluster.clone(), now: empty.now };
            let spec = Box::new(JobSpec { size: size.clone(), ..JobSpec::default() });
            let command = Command::Submit { spec, blobs: Vec::new() };
            let entry = Entry { at: world.now, by: Caller::SYSTEM, command };
            let Ok(model::Reply::Submitted(job)) = state::apply(&mut world.cluster, &entry).reply else { continue };
            // Whoever wants more nodes than there are waits for them, as in Slurm.
            if size.node_bounds().0 as usize > site.nodes.len() || !fits_the_partition(&site, &size) {
                continue;
            }
            world.schedule();
            prop_assert!(world.is_running(job), "{:?}: {size:?}", world.reason(job));
        }
    }
}

/// Otherwise it waits for the partition's limits to be others.
fn fits_the_partition(site: &Site, size: &Size) -> bool {
    let (min, max) = size.node_bounds();
    site.bounds.1.is_none_or(|most| min <= most) && site.bounds.0 <= max
}

/// More cases than the suite tries: `CASES=20000 cargo test -p scheduler --test admission`.
#[allow(clippy::disallowed_methods, reason = "tests may be told how long to try")]
fn many(usual: u32) -> u32 {
    std::env::var("CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
