//! The cluster the story plays in, and what its users ask for.
use model::command::Blob;
use model::config::{NamedNode, SuspendCpus};
use model::dependency::{Dependency, Kind, Term};
use model::gres::{Gres, GresRequest};
use model::hand_out::HandOut;
use model::license;
use model::node::NodeConfig;
use model::partition::{OverSubscribe, PreemptMode};
use model::pool::{BurstBufferConfig, Pool, PoolKind};
use model::preemption::PreemptKind;
use model::spec::{ArraySpec, Memory, NetworkWish, Sharing, Size, TimeLimit, Warning};
use model::time::{Span, Timestamp};
use model::topology::{Block, Switch, Topology, TopologyKind};
use model::{BlobId, Config, JobId, JobKind, JobSpec, NodeName, Partition, StepSpec};

use crate::dice::Dice;

pub const N_NODES: u32 = 6;
pub const UIDS: [u32; 3] = [1000, 1001, 1002];

/// Names that administrators give to reservations.
pub const RESERVATIONS: [&str; 3] = ["r1", "r2", "r3"];

pub fn node_name(number: u32) -> NodeName {
    format!("n{number}").as_str().into()
}

/// Six nodes, two of them with devices, in two partitions.
/// What becomes of jobs that give way differs from seed to seed.
pub fn config(seed: u64) -> Config {
    let node = |number: u32| {
        let gres = Gres { name: "gpu".into(), count: 2, ..Default::default() };
        let config = NodeConfig {
            cpus: 4 + 4 * (number % 2),
            memory_mb: 4000,
            gres: if number > 4 { vec![gres] } else { Vec::new() },
            features: if number < 3 { vec!["fast".into()] } else { Vec::new() },
            weight: number % 3,
            ..Default::default()
        };
        NamedNode { name: node_name(number), config }
    };
    let partition = |name: &str, nodes: std::ops::RangeInclusive<u32>| Partition {
        name: name.into(),
        nodes: nodes.map(node_name).collect(),
        is_default: name == "debug",
        ..Default::default()
    };
    let mut short = partition("short", 1..=3);
    short.max_time = Some(TimeLimit::Secs(120));
    short.priority_tier = 2;
    short.preempt_mode = Some(PreemptMode::Off);
    short.qos = "part".into();
    let partitions = vec![partition("debug", 1..=N_NODES), short];
    let mut config = Config { nodes: (1..=N_NODES).map(node).collect(), partitions, ..Default::default() };
    config.controller.min_job_age = Span::from_secs(60);
    config.accounting.records = true;
    config.burst_buffer = Some(burst_buffer(seed));
    config.licenses = license::parse_list("a:3,b:1").expect("two licences");
    config.scheduler.preemption.kind = PreemptKind::PartitionTier;
    config.scheduler.preemption.mode = PreemptMode::Requeue;
    config.partitions[0].grace_time = Span::from_secs(10);
    match seed % 4 {
        0 => suspends(&mut config, false),
        1 => suspends(&mut config, true),
        _ => (),
    }
    // Every third cluster weighs jobs by what their users have used.
    if seed.is_multiple_of(3) {
        let priority = &mut config.scheduler.priority;
        priority.kind = model::priority::PriorityKind::Multifactor;
        (priority.weight_fair_share, priority.weight_qos, priority.weight_association) = (1000, 100, 10);
        (priority.half_life, priority.calc_period) = (Span::from_secs(90), Span::from_secs(20));
        (priority.weight_age, priority.max_age) = (50, Span::from_secs(300));
    }
    if seed >= MIXED {
        mix(&mut config, seed);
    }
    wait_by_the_clock(&mut config, seed);
    if seed % 7 == 5 {
        hand_out_whole(&mut config, if seed & 8 == 0 { HandOut::Cores } else { HandOut::Sockets });
    }
    if seed % 4 == 2 || (seed >= MIXED && seed & 4 != 0) || seed >= HOOKED {
        let one = |name: &str| vec![name.to_string()];
        config.hooks.prolog = one("prolog");
        config.hooks.epilog = one("epilog");
        config.hooks.controller_prolog = one("controller prolog");
        config.hooks.controller_epilog = one("controller epilog");
        config.hooks.flags.alloc = true;
    }
    config
}

/// Nodes of two sockets, whose cores have two threads and go whole.
fn hand_out_whole(config: &mut Config, what: HandOut) {
    config.scheduler.hand_out = what;
    for node in &mut config.nodes {
        let node = &mut node.config;
        (node.sockets, node.cores_per_socket, node.threads_per_core) = (2, node.cpus / 4, 2);
    }
}

/// From this seed on, what may be on or off is so in all mixtures; before it, each feature has seeds of its own.
const MIXED: u64 = 1000;

/// From this seed on, mixtures with the site's programs before and after every job.
const HOOKED: u64 = 10_000;

/// Bits of the seed that are not about suspension and hooks: CPUs that are lent, who goes before whom, the network.
fn mix(config: &mut Config, seed: u64) {
    if seed & 8 != 0 {
        config.scheduler.suspend_cpus = SuspendCpus::Release;
    }
    if seed & 16 != 0 {
        config.scheduler.preemption.kind = PreemptKind::Qos;
    }
    match (seed / 32) % 3 {
        1 => config.topologies = vec![tree()],
        2 => config.topologies = vec![blocks()],
        _ => (),
    }
}

/// Waits that time alone ends.
fn wait_by_the_clock(config: &mut Config, seed: u64) {
    let secs = Span::from_secs;
    config.scheduler.backfill.patience = secs([30, 90, 600][(seed % 11 % 3) as usize]);
    if seed % 4 == 1 {
        config.topologies = vec![tree()];
    }
    config.topology.max_switch_wait = Some(secs(60));
    config.partitions[0].topology_wait = (seed % 5 == 2).then_some(secs(40));
    if let Some(buffers) = &mut config.burst_buffer {
        buffers.stage_ahead = secs([36_000, 20, 0][(seed % 13 % 3) as usize]);
    }
}

/// Two racks of three.
fn tree() -> Topology {
    let rack = |name: &str, nodes: std::ops::RangeInclusive<u32>| Switch {
        name: name.into(),
        nodes: nodes.map(node_name).collect(),
        ..Default::default()
    };
    let root = Switch { name: "top".into(), switches: vec!["r1".into(), "r2".into()], ..Default::default() };
    let switches = vec![rack("r1", 1..=3), rack("r2", 4..=N_NODES), root];
    Topology { name: "default".into(), is_default: true, kind: TopologyKind::Tree, switches, ..Default::default() }
}

/// Three blocks of two.
fn blocks() -> Topology {
    let block = |number: u32| Block {
        name: format!("b{number}"),
        nodes: vec![node_name(2 * number - 1), node_name(2 * number)],
    };
    let blocks = (1..=N_NODES / 2).map(block).collect();
    let block_sizes = vec![2, 4];
    let kind = TopologyKind::Block;
    Topology { name: "default".into(), is_default: true, kind, blocks, block_sizes, ..Default::default() }
}

/// Whether others than buffers fill the pools, and empty them again.
pub fn has_foreign_files(seed: u64) -> bool {
    matches!(seed % 5, 1 | 3)
}

/// One pool for all, one on each node.
fn burst_buffer(seed: u64) -> BurstBufferConfig {
    let pool = |name: &str, kind, gib: u64| Pool {
        name: name.into(),
        kind,
        root: format!("/{name}"),
        granularity_bytes: 1 << 30,
        total_bytes: Some(gib << 30),
        ..Default::default()
    };
    BurstBufferConfig {
        pools: vec![pool("flash", PoolKind::Shared, 6), pool("nvme", PoolKind::Node, 2)],
        enables_persistent: true,
        preempts: matches!(seed % 5, 2 | 3),
        stage_in_timeout: Span::from_secs(120),
        stage_out_timeout: Span::from_secs(120),
        ..Default::default()
    }
}

/// What a job may ask for: as `--bb`, and as `--bbf`.
const BUFFERS: [(&str, &str); 7] = [
    ("capacity=2", ""),
    ("capacity=3;stage_in=file:/a:a;stage_out=file:b:/b", ""),
    ("capacity=6", ""),
    ("capacity=1 pool=nvme", ""),
    ("", "#BB create_persistent name=p capacity=1"),
    ("", "#BB destroy_persistent name=p"),
    ("", "#DW persistentdw name=p"),
];

/// As somebody might edit the file: fewer or smaller nodes, other rules.
pub fn edited_config(seed: u64, dice: &mut Dice) -> Config {
    let mut config = config(seed);
    if seed % 7 == 4 {
        hand_out_whole(&mut config, HandOut::Cores);
    }
    match dice.below(16) {
        12 => suspends(&mut config, false),
        13 | 14 => suspends(&mut config, true),
        15 => config.partitions[1].oversubscribe = OverSubscribe::Yes(2),
        7 => config.scheduler.preemption.mode = PreemptMode::Cancel,
        8 => config.partitions[0].grace_time = Span(0),
        9 => config.scheduler.preemption.exempt_time = Span::from_secs(5),
        10 => config.accounting.enforce = model::config::Enforce::NOTHING,
        11 => config.accounting.enforce.safe = true,
        0 => {
            let gone = config.nodes.remove(dice.below(u64::from(N_NODES)) as usize).name;
            config.partitions.iter_mut().for_each(|partition| partition.nodes.retain(|name| *name != gone));
        }
        1 => config.nodes[0].config.cpus = 2,
        2 => config.scheduler.requeues = false,
        3 => config.controller.return_to_service = false,
        4 => config.scheduler.kill_on_invalid_dependency = true,
        5 => config.licenses[0].count = 2,
        _ => (),
    }
    if config.hooks.on_nodes() {
        match dice.below(4) {
            0 => {
                config.hooks.epilog.clear();
                config.hooks.controller_prolog.clear();
                config.hooks.controller_epilog.clear();
            }
            1 => config.hooks.flags.no_hold_on_failure = true,
            _ => (),
        }
    }
    config
}

/// Jobs of `debug` stand still for those of `short`, or all take turns.
fn suspends(config: &mut Config, takes_turns: bool) {
    let rules = &mut config.scheduler.preemption;
    (rules.mode, rules.is_gang, rules.time_slice) = (PreemptMode::Suspend, true, Span::from_secs(5));
    if takes_turns {
        config.partitions[0].oversubscribe = OverSubscribe::Force(3);
    }
}

pub fn spec(dice: &mut Dice, now: Timestamp, other: JobId) -> (JobSpec, Vec<Blob>) {
    let (script, script_blob) = blob(1 + dice.below(3));
    let (environment, environment_blob) = blob(4 + dice.below(3));
    let (step, step_blob) = step(dice);
    let kind = match dice.below(6) {
        0 => JobKind::Allocation,
        1 => JobKind::Run(Box::new(step)),
        _ => JobKind::Batch { script },
    };
    let later = |dice: &mut Dice| now + Span::from_secs(dice.below(60));
    let is_batch = matches!(kind, JobKind::Batch { .. });
    let (bb, bbf) = if dice.one_in(4) { dice.pick(&BUFFERS) } else { ("", "") };
    let uid = dice.pick(&UIDS);
    let spec = JobSpec {
        name: dice.pick(&["a", "b", "c"]).into(),
        uid,
        user: crate::accounts::user(uid),
        account: dice.pick(&["", "", "", "a", "b"]).into(),
        qos: dice.pick(&["", "", "", "fast", "slow"]).into(),
        partitions: dice.pick(&[vec![], vec!["short".into()], vec!["short".into(), "debug".into()]]),
        kind,
        environment,
        size: size(dice),
        time_limit: dice.pick(&[None, Some(TimeLimit::Secs(30)), Some(TimeLimit::Secs(90))]),
        begin: dice.one_in(6).then(|| later(dice)),
        deadline: dice.one_in(12).then(|| later(dice)),
        dependency: if dice.one_in(4) { dependency(dice, other) } else { Dependency::default() },
        kill_on_invalid_dependency: dice.pick(&[None, None, Some(true), Some(false)]),
        held: dice.one_in(10),
        nice: dice.below(5) as i32 - 2,
        requeue: dice.pick(&[None, Some(true), Some(false)]),
        no_kill: dice.one_in(6),
        array: (is_batch && dice.one_in(5)).then(|| array(dice)),
        licenses: license::parse(dice.pick(&["", "", "", "", "a", "a:2,b", "a:3|b", "c@s", "c@s:2|b"]))
            .expect("licences"),
        reservations: if dice.one_in(8) { vec![dice.pick(&RESERVATIONS).into()] } else { Vec::new() },
        warning: dice.one_in(6).then(|| Warning {
            signal: 10,
            before: Span::from_secs(10),
            batch_only: true,
            overlaps_reservations: dice.one_in(2),
        }),
        burst_buffer: bb.into(),
        burst_buffer_file: bbf.into(),
        ..Default::default()
    };
    (spec, vec![script_blob, environment_blob, step_blob])
}

fn blob(number: u64) -> (BlobId, Blob) {
    let id = BlobId([number, 0, 0, 1]);
    (id, Blob { id, content: vec![number as u8; 3] })
}

fn size(dice: &mut Dice) -> Size {
    let min_nodes = 1 + dice.below(3) as u32 * dice.below(2) as u32;
    let mut size = Size {
        min_nodes,
        max_nodes: dice.pick(&[None, Some(min_nodes), Some(min_nodes + 1)]),
        n_tasks: dice.maybe(2, 6),
        tasks_per_node: dice.maybe(6, 3),
        cpus_per_task: dice.maybe(4, 3),
        memory: dice.pick(&[Memory::Default, Memory::PerNodeMb(1000), Memory::PerCpuMb(300), Memory::WholeNode]),
        sharing: dice.pick(&[Sharing::Default, Sharing::Default, Sharing::Oversubscribe, Sharing::WholeNodes]),
        ..Default::default()
    };
    match dice.below(12) {
        0 => size.nodes = vec![node_name(1 + dice.below(u64::from(N_NODES)) as u32)],
        1 => size.excluded = vec![node_name(1 + dice.below(u64::from(N_NODES)) as u32)],
        2 => size.gres = vec![GresRequest { name: "gpu".into(), count: 1, ..Default::default() }],
        3 => size.constraint = model::features::parse("fast").ok(),
        4 => size.contiguous = true,
        5 => size.overcommit = true,
        6 => size.feature_sets = kinds("fast*1"),
        7 => size.feature_sets = kinds("[fast|!fast]"),
        8 => size.network = NetworkWish { n_switches: 1, switch_wait: Some(Span::from_secs(20)), ..Default::default() },
        9 => size.network = NetworkWish { most_level: Some(0), level_is_preferred: true, ..Default::default() },
        _ => (),
    }
    size
}

/// What is asked of the features of all nodes together.
fn kinds(text: &str) -> model::feature_sets::FeatureSets {
    model::feature_sets::parse(text).map(|wish| wish.sets).unwrap_or_default()
}

pub fn step(dice: &mut Dice) -> (StepSpec, Blob) {
    let (environment, blob) = blob(4 + dice.below(6));
    let step = StepSpec {
        environment,
        n_tasks: dice.maybe(2, 4),
        min_nodes: dice.below(3) as u32,
        cpus_per_task: dice.maybe(4, 2),
        overlaps: dice.one_in(4),
        ..Default::default()
    };
    (step, blob)
}

fn array(dice: &mut Dice) -> ArraySpec {
    let mut tasks = model::TaskSet::new();
    let first = dice.below(3) as u32;
    tasks.insert_range(first, first + 1 + dice.below(9) as u32, 1 + dice.below(2) as u32);
    ArraySpec { tasks, limit: dice.maybe(2, 3) }
}

pub fn dependency(dice: &mut Dice, other: JobId) -> Dependency {
    let kinds = [Kind::After, Kind::AfterAny, Kind::AfterOk, Kind::AfterNotOk, Kind::AfterCorr, Kind::Singleton];
    let mut term = || {
        let kind = dice.pick(&kinds);
        let task = dice.one_in(6).then(|| dice.below(4) as u32);
        let delay_minutes = if kind == Kind::After && dice.one_in(3) { 1 } else { 0 };
        match kind {
            Kind::Singleton => Term { kind, job: None, task: None, delay_minutes: 0 },
            _ => Term { kind, job: Some(other), task, delay_minutes },
        }
    };
    let terms = vec![term(), term()];
    let n_terms = 1 + dice.below(2) as usize;
    Dependency { terms: terms.into_iter().take(n_terms).collect(), any_is_enough: dice.one_in(2) }
}
