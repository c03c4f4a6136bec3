//! `spur why`: every kind of waiting has an answer with numbers and names.
use model::config::Config;
use model::dependency::{Dependency, Kind, Term};
use model::license;
use model::pool::{BurstBufferConfig, Pool, PoolKind};
use model::reservation::Members;
use model::reservation_field::{Field, MembersChange};
use model::spec::{JobKind, JobSpec, Size, TimeLimit};
use model::time::Span;
use model::topology::{Switch, Topology, TopologyKind};
use model::update::NodeChange;
use model::why::Why;
use model::{Command, JobId, Reason};
use world::World;

mod world;

/// Four nodes of four CPUs in two racks, three licences, a pool of 4 GiB, and a partition for short jobs on one node.
fn cluster() -> World {
    let mut world = World::alike(4, 4, 1000);
    let mut config: Config = (**world.cluster.config()).clone();
    config.licenses = license::parse_list("lic:3").expect("a licence");
    let mut small = world::partition("small", &["n1"]);
    (small.max_time, small.max_nodes) = (Some(TimeLimit::Secs(600)), Some(1));
    config.partitions.push(small);
    let pool = Pool {
        name: "flash".into(),
        kind: PoolKind::Shared,
        root: "/flash".into(),
        granularity_bytes: 1 << 30,
        total_bytes: Some(4 << 30),
        ..Default::default()
    };
    config.burst_buffer = Some(BurstBufferConfig { pools: vec![pool], ..Default::default() });
    let rack = |name: &str, nodes: [&str; 2]| Switch {
        name: name.into(),
        nodes: nodes.map(Into::into).to_vec(),
        ..Default::default()
    };
    let root = Switch { name: "top".into(), switches: vec!["r1".into(), "r2".into()], ..Default::default() };
    let switches = vec![rack("r1", ["n1", "n2"]), rack("r2", ["n3", "n4"]), root];
    let kind = TopologyKind::Tree;
    config.topologies =
        vec![Topology { name: "default".into(), is_default: true, kind, switches, ..Default::default() }];
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn batch(n_nodes: u32) -> JobSpec {
    let size = Size { min_nodes: n_nodes, max_nodes: Some(n_nodes), ..Default::default() };
    let (kind, time_limit) = (JobKind::Batch { script: Default::default() }, Some(TimeLimit::Secs(600)));
    JobSpec { size, kind, time_limit, ..Default::default() }
}

fn ask(world: &mut World, spec: JobSpec) -> Why {
    let job = world.submit_spec(spec);
    world.schedule();
    why(world, job)
}

fn why(world: &World, job: JobId) -> Why {
    scheduler::why(&world.cluster, job).expect("the job is known")
}

fn said(why: &Why) -> (Option<Reason>, &str) {
    (why.gate, why.detail.as_str())
}

#[test]
fn whatever_shuts_the_gate_is_named() {
    let mut world = cluster();
    let running = world.submit_spec(batch(1));
    world.schedule();
    let begin = Some(world.now + Span::from_secs(3600));
    let late = ask(&mut world, JobSpec { begin, ..batch(1) });
    assert_eq!((late.gate, late.expected_start), (Some(Reason::BeginTime), begin));
    let held = ask(&mut world, JobSpec { held: true, ..batch(1) });
    assert_eq!(said(&held), (Some(Reason::JobHeldUser), format!("held; scontrol release {}", held.job).as_str()));
    let term = Term { kind: Kind::AfterOk, job: Some(running), task: None, delay_minutes: 0 };
    let dependency = Dependency { terms: vec![term], any_is_enough: false };
    let after = ask(&mut world, JobSpec { dependency, ..batch(1) });
    assert_eq!(said(&after), (Some(Reason::Dependency), format!("waits for job {running}").as_str()));
    let small = || JobSpec { partitions: vec!["small".into()], ..batch(1) };
    let long = ask(&mut world, JobSpec { time_limit: Some(TimeLimit::Secs(1800)), ..small() });
    let text = "asks for 00:30:00, partition small allows 00:10:00";
    assert_eq!(said(&long), (Some(Reason::PartitionTimeLimit), text));
    let wide = ask(&mut world, JobSpec { size: batch(2).size, ..small() });
    assert_eq!(said(&wide), (Some(Reason::PartitionNodeLimit), "asks for 2 nodes, partition small allows 1"));
}

#[test]
fn a_reservation_that_is_to_come_tells_when() {
    let mut world = cluster();
    let start = world.now + Span::from_secs(3600);
    let users = Members { names: vec!["root".into()], ..Default::default() };
    let fields = vec![
        Field::Start(start),
        Field::Duration(Some(Span::from_secs(3600))),
        Field::Users(MembersChange::To(users)),
        Field::Nodes(model::partition_field::NodesChange::To(vec!["n4".into()])),
    ];
    world.apply(Command::CreateReservation { name: "ours".into(), fields, utc_offset_secs: 0 });
    let spec = JobSpec { reservations: vec!["ours".into()], user: "root".into(), ..batch(1) };
    let inside = ask(&mut world, spec);
    assert_eq!(said(&inside), (Some(Reason::Reservation), "waits for reservation ours"));
    assert_eq!(inside.expected_start, Some(start));
}

#[test]
fn what_is_scarce_is_counted_and_its_holders_are_named() {
    let mut world = cluster();
    let licensed = |text: &str| JobSpec { licenses: license::parse(text).expect("licences"), ..batch(1) };
    let holder = world.submit_spec(licensed("lic:2"));
    world.schedule();
    let waits = ask(&mut world, licensed("lic:2"));
    let text = format!("wants lic:2: 1 of 3 free, held: 2 by job {holder}");
    assert_eq!(said(&waits), (Some(Reason::Licenses), text.as_str()));
    let with_space = |text: &str| JobSpec { burst_buffer: text.into(), ..batch(1) };
    world.submit_spec(with_space("capacity=3GiB"));
    world.schedule();
    let second = ask(&mut world, with_space("capacity=2GiB"));
    let text = "wants 2GiB of pool flash: 1GiB of 4GiB free";
    assert_eq!(said(&second), (Some(Reason::BurstBufferResources), text));
}

#[test]
fn nodes_that_are_away_taken_or_apart_are_told() {
    let mut world = cluster();
    let drain = NodeChange::Drain { reason: "bad fan".into() };
    world.apply(Command::UpdateNodes { nodes: vec!["n4".into()], change: drain });
    let all = ask(&mut world, batch(4));
    assert_eq!(all.gate, Some(Reason::Resources));
    assert!(all.detail.ends_with("; n4 is drained: bad fan"), "{}", all.detail);
    assert_eq!((all.n_nodes_free, all.n_nodes_fitting), (3, 3));
    assert_eq!(all.hints[0].change, "NumNodes=3", "with fewer nodes it would start");
    world.finish(all.job);
    world.apply(Command::UpdateNodes { nodes: vec!["n4".into()], change: NodeChange::Resume });
    let mut few_switches = batch(3);
    few_switches.size.network.n_switches = 1;
    let apart = ask(&mut world, few_switches);
    assert_eq!(said(&apart), (Some(Reason::Resources), "No suitable topology unit found"));
    world.finish(apart.job);
    let alone = |n_nodes| {
        let size = Size { sharing: model::spec::Sharing::WholeNodes, ..batch(n_nodes).size };
        JobSpec { size, time_limit: Some(TimeLimit::Secs(3600)), ..batch(n_nodes) }
    };
    let filler = world.submit_spec(alone(3));
    world.schedule();
    let first = ask(&mut world, alone(4));
    assert_eq!((first.gate, first.n_ahead, first.held.len()), (Some(Reason::Resources), 0, 3));
    assert!(first.held.iter().all(|held| held.by == filler && held.until.is_some()));
    let behind = ask(&mut world, alone(2));
    assert_eq!((behind.gate, behind.n_ahead, &behind.ahead[..]), (Some(Reason::Priority), 1, &[first.job][..]));
    assert!(behind.expected_start > first.expected_start, "it would delay the one before it");
}
