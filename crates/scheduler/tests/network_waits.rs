//! What jobs on a network wait for: a low switch, nodes they name, a unit of their own; and whom they take the place of.
mod world;

use model::command::DutyResult;
use model::config::SuspendCpus;
use model::partition::PreemptMode;
use model::preemption::PreemptKind;
use model::spec::{JobKind, JobSpec, NetworkWish, Sharing, Size, TimeLimit};
use model::time::Span;
use model::topology::{Block, Switch, Topology, TopologyKind};
use model::{Caller, Command, Config, Entry, JobId, NodeName, Outcome, Reject, StepId, StepSpec};
use world::World;

fn names(list: &str) -> Vec<NodeName> {
    model::hostlist::expand(list).unwrap().into_iter().map(NodeName::from).collect()
}

/// Eight nodes of two CPUs on the network.
fn world(topology: Topology, change: impl Fn(&mut Config)) -> World {
    let mut world = World::alike(8, 2, 1000);
    let mut config = (**world.cluster.config()).clone();
    config.topologies = vec![Topology { name: "default".into(), is_default: true, ..topology }];
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

/// Four leaves of two nodes in two pods.
fn tree(change: impl Fn(&mut Config)) -> World {
    let leaf = |name: &str, nodes: &str| Switch { name: name.into(), nodes: names(nodes), ..Switch::default() };
    let above = |name: &str, below: &[&str]| {
        let switches = below.iter().map(|name| name.to_string()).collect();
        Switch { name: name.into(), switches, ..Switch::default() }
    };
    let mut switches = vec![leaf("a", "n[1-2]"), leaf("b", "n[3-4]"), leaf("c", "n[5-6]"), leaf("d", "n[7-8]")];
    switches.extend([above("p", &["a", "b"]), above("q", &["c", "d"]), above("root", &["p", "q"])]);
    world(Topology { kind: TopologyKind::Tree, switches, ..Topology::default() }, change)
}

fn blocks(change: impl Fn(&mut Config)) -> World {
    let block = |name: &str, nodes: &str| Block { name: name.into(), nodes: names(nodes) };
    let blocks = vec![block("b1", "n[1-4]"), block("b2", "n[5-8]")];
    world(Topology { kind: TopologyKind::Block, blocks, block_sizes: vec![4, 8], ..Topology::default() }, change)
}

fn whole(n_nodes: u32) -> Size {
    Size { min_nodes: n_nodes, sharing: Sharing::WholeNodes, ..Size::default() }
}

fn wishing(n_nodes: u32, network: NetworkWish) -> Size {
    Size { network, ..whole(n_nodes) }
}

fn spec(size: Size, secs: u64) -> JobSpec {
    JobSpec { size, time_limit: Some(TimeLimit::Secs(secs)), ..JobSpec::default() }
}

fn on(world: &World, job: JobId) -> String {
    let allocation = &world.cluster.job(job).unwrap().allocation;
    model::hostlist::compress_in_order(allocation.names().map(|name| name.as_str()))
}

fn refused(world: &mut World, size: Size) -> Reject {
    let spec = Box::new(JobSpec { size, ..JobSpec::default() });
    let entry = Entry { at: world.now, by: Caller::SYSTEM, command: Command::Submit { spec, blobs: Vec::new() } };
    state::apply(&mut world.cluster, &entry).reply.unwrap_err()
}

/// Somebody is on these nodes for as long as anybody looks.
fn occupy(world: &mut World, list: &str) {
    for node in names(list) {
        world.submit_spec(spec(Size { nodes: vec![node], ..whole(1) }, 9000));
    }
    world.schedule();
}

#[test]
fn a_level_may_be_required() {
    let mut world = tree(|_| ());
    let level = |level: u32| NetworkWish {
        topology: Some(TopologyKind::Tree),
        most_level: Some(level),
        ..NetworkWish::default()
    };
    assert_eq!(refused(&mut world, wishing(3, level(0))), Reject::NeverFits, "no leaf has three");
    occupy(&mut world, "n[1,3,5]");
    let pair = world.submit_spec(spec(wishing(3, level(1)), 60));
    world.schedule();
    assert_eq!(on(&world, pair), "n[6-8]");
    let other = world.submit_spec(spec(wishing(3, level(1)), 60));
    let free = world.submit_spec(spec(whole(2), 60));
    world.schedule();
    assert!(!world.is_running(other), "two nodes of another pod are no help");
    assert_eq!(on(&world, free), "n[2,4]");
    assert_eq!(world.expected(other).map(|(_, nodes)| nodes.to_string()), Some("n[6-8]".into()));
    world.pass(400);
    world.schedule();
    assert_eq!(on(&world, other), "n[6-8]");
}

#[test]
fn a_level_may_be_preferred_for_a_while() {
    let mut world = tree(|config| config.topology.max_switch_wait = Some(Span::from_secs(100)));
    occupy(&mut world, "n[1,3,5,7]");
    let wish = NetworkWish {
        topology: Some(TopologyKind::Tree),
        most_level: Some(0),
        level_is_preferred: true,
        ..NetworkWish::default()
    };
    let job = world.submit_spec(spec(wishing(2, wish), 60));
    world.schedule();
    assert!(!world.is_running(job));
    assert_eq!(scheduler::look(&world.cluster).look_again_at, Some(world.now + Span::from_secs(100)));
    world.pass(99);
    world.schedule();
    assert!(!world.is_running(job));
    world.pass(1);
    world.schedule();
    assert_eq!(on(&world, job), "n[2,4]");
}

#[test]
fn a_partition_may_have_its_jobs_wait_for_the_lowest_level() {
    let mut world = tree(|config| config.partitions[0].topology_wait = Some(Span::from_secs(50)));
    let short = world.submit_spec(spec(Size { nodes: names("n[1-3,5,7]"), ..whole(5) }, 30));
    world.schedule();
    let pair = world.submit_spec(spec(whole(2), 60));
    let large = world.submit_spec(spec(whole(3), 60));
    let one = world.submit_spec(spec(whole(1), 10));
    world.schedule();
    assert!(!world.is_running(pair), "one leaf could hold it");
    assert!(!world.is_running(large), "one pod could hold it");
    assert_eq!(on(&world, one), "n4");
    world.finish(short);
    world.schedule();
    assert_eq!((on(&world, pair), on(&world, large)), ("n[1-2]".into(), "n[5-7]".into()));
    // After that time it takes what there is.
    let far = world.submit_spec(spec(whole(2), 60));
    world.schedule();
    assert!(!world.is_running(far));
    world.pass(50);
    world.schedule();
    assert!(world.is_running(far));
}

#[test]
fn segments_choose_among_the_nodes_that_are_named() {
    let mut world = blocks(|_| ());
    let wish = NetworkWish { segment: 2, ..NetworkWish::default() };
    let named = |n: u32, list: &str| Size { nodes: names(list), ..wishing(n, wish.clone()) };
    assert_eq!(refused(&mut world, named(4, "n[1-3]")), Reject::NoSuchTopology, "too few are named");
    let single = NetworkWish { segment: 4, ..NetworkWish::default() };
    assert_eq!(refused(&mut world, Size { nodes: names("n[1-3,5-7]"), ..wishing(8, single) }), Reject::NoSuchTopology);
    assert_eq!(refused(&mut world, named(6, "n[1,3-5,7,99]")), Reject::NoSuchNode("n99".into()));
    occupy(&mut world, "n2");
    let job = world.submit_spec(spec(named(4, "n[1-3,5-7]"), 60));
    world.schedule();
    let place = on(&world, job);
    assert!(["n[1,3,5-6]", "n[1,3,6-7]", "n[1,3,5,7]"].contains(&place.as_str()), "{place}");
    assert_eq!(world.cluster.job(job).unwrap().spec.size.listed_nodes(), names("n[1-3,5-7]"));
    // With one segment they are all needed, and in no one block.
    assert_eq!(refused(&mut world, Size { nodes: names("n[4,8]"), ..wishing(2, wish) }), Reject::NoSuchTopology);
}

#[test]
fn an_owner_of_a_block_keeps_it_while_it_is_suspended() {
    let mut world = blocks(|config| config.scheduler.suspend_cpus = SuspendCpus::Release);
    let wish = NetworkWish { owns_units: true, ..NetworkWish::default() };
    let owner = world.submit_spec(spec(wishing(2, wish), 9000));
    world.schedule();
    do_duties(&mut world);
    world.apply(Command::Suspend { jobs: vec![owner.into()] });
    do_duties(&mut world);
    let others: Vec<JobId> = (0..2).map(|_| world.submit_spec(spec(whole(4), 60))).collect();
    let small = world.submit_spec(spec(Size { min_nodes: 1, ..Size::default() }, 60));
    world.schedule();
    assert_eq!(on(&world, others[0]), "n[1-4]");
    assert!(!world.is_running(others[1]) && !world.is_running(small));
    assert_eq!(world.cluster.node("n8").unwrap().blocked_by, Some(owner));
}

fn do_duties(world: &mut World) {
    let duties: Vec<model::Duty> = world.cluster.duties().cloned().collect();
    for duty in duties {
        world.apply(Command::DutyDone { duty, result: DutyResult::Done });
    }
}

#[test]
fn those_who_give_way_are_where_the_other_can_be() {
    let mut world = blocks(|config| {
        let mut high = config.partitions[0].clone();
        (high.name, high.is_default, high.priority_tier) = ("high".into(), false, 10);
        config.partitions.push(high);
        config.scheduler.preemption.kind = PreemptKind::PartitionTier;
        config.scheduler.preemption.mode = PreemptMode::Cancel;
    });
    let batch = |size: Size| JobSpec { kind: JobKind::Batch { script: Default::default() }, ..spec(size, 9000) };
    let low: Vec<JobId> = (0..8).map(|_| world.submit_spec(batch(whole(1)))).collect();
    world.schedule();
    do_duties(&mut world);
    let urgent = world.submit_spec(JobSpec { partitions: vec!["high".into()], ..batch(whole(4)) });
    for _ in 0..4 {
        world.schedule();
        do_duties(&mut world);
    }
    let place = on(&world, urgent);
    assert!(["n[1-4]", "n[5-8]"].contains(&place.as_str()), "{place}");
    let gone = |job: &&JobId| world.cluster.job(**job).unwrap().outcome == Some(Outcome::Preempted);
    assert_eq!(low.iter().filter(gone).count(), 4, "nobody goes in vain");
}

#[test]
fn the_next_step_starts_in_the_next_unit() {
    let mut world = blocks(|_| ());
    let job = world.submit_spec(JobSpec { kind: JobKind::Allocation, ..spec(whole(8), 9000) });
    world.schedule();
    do_duties(&mut world);
    let mut step = |n_nodes: u32| {
        let spec = StepSpec { min_nodes: n_nodes, max_nodes: Some(n_nodes), ..StepSpec::default() };
        let create = Command::CreateStep { job, spec: Box::new(spec), blobs: Vec::new() };
        let model::Reply::StepCreated(id) = world.apply(create) else { panic!("a step") };
        let StepId::Number(_) = id else { panic!("a number") };
        let shares = &world.cluster.step(job, id).unwrap().shares;
        model::hostlist::compress(shares.iter().map(|share| share.node.as_str()))
    };
    assert_eq!((step(3), step(3), step(1)), ("n[1-3]".into(), "n[5-7]".into(), "n4".into()));
    assert_eq!(step(1), "n8");
}

#[test]
fn nodes_may_be_ranked_by_their_switches() {
    let mut world = tree(|config| {
        config.topology.ranks_by_unit = true;
        config.nodes.sort_by_key(|node| (node.name.as_str() < "n5", node.name.to_string()));
    });
    let job = world.submit(Size { contiguous: true, nodes: names("n1"), ..whole(2) });
    world.schedule();
    assert_eq!(on(&world, job), "n[8,1]", "n8 stands before n1");
    assert_eq!(world.cluster.node("n5").unwrap().rank, 0);
}

#[test]
fn wide_ranges_of_sizes_are_refused_where_sizes_are_tried_one_by_one() {
    let mut world = blocks(|config| config.topology.max_size_unroll = 3);
    let range = |max: u32| Size { max_nodes: Some(max), ..whole(2) };
    assert_eq!(refused(&mut world, range(4)), Reject::TooManyNodes);
    let job = world.submit(range(3));
    world.schedule();
    assert_eq!(on(&world, job), "n[5-7]");
}
