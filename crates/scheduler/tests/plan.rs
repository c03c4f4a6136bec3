//! The scheduler through its front door: a cluster built by commands, and the plan made for it.
use model::node::NodeConfig;
use model::spec::{ArraySpec, JobSpec, Memory, Sharing, Size};
use model::update::NodeChange;
use model::{Caller, Command, Entry, JobId, JobRef, Plan, Reason, Timestamp};
use proptest::prelude::*;
use state::apply;
use world::{World, partition};

mod world;

fn tasks(n_tasks: u32) -> Size {
    Size { n_tasks: Some(n_tasks), ..Default::default() }
}

#[test]
fn tasks_are_spread_as_asked() {
    use model::spec::Distribution;
    let exact = |n_nodes| Size { min_nodes: n_nodes, max_nodes: Some(n_nodes), ..Default::default() };
    let cases: Vec<(Size, &str)> = vec![
        (Size { n_tasks: Some(5), distribution: Distribution::Cyclic, ..exact(2) }, "n1:3x3 n2:2x2"),
        (Size { n_tasks: Some(5), distribution: Distribution::Plane(4), ..exact(2) }, "n1:4x4 n2:1x1"),
        (Size { n_tasks: Some(6), spreads: true, ..Default::default() }, "n1:2x2 n2:2x2 n3:1x1 n4:1x1"),
        (Size { min_nodes: 2, max_nodes: Some(4), prefers_few_nodes: true, ..Default::default() }, "n1:1x1 n2:1x1"),
        (Size { n_tasks: Some(4), tasks_per_socket: Some(1), ..Default::default() }, "n1:2x2 n2:2x2"),
        (Size { n_tasks: Some(3), threads_per_core: Some(1), ..Default::default() }, "n1:6x3"),
        (Size { n_tasks: Some(6), threads_per_core: Some(1), ..Default::default() }, "n1:8x4 n2:4x2"),
    ];
    for (size, expected) in cases {
        let config = NodeConfig {
            cpus: 8,
            memory_mb: 1000,
            sockets: 2,
            cores_per_socket: 2,
            threads_per_core: 2,
            ..Default::default()
        };
        let names = ["n1", "n2", "n3", "n4"];
        let mut world = World::new(names.map(|name| (name, config.clone())).to_vec(), Vec::new());
        let job = world.submit(size.clone());
        world.schedule();
        assert_eq!(world.placement(job), expected, "{size:?}");
    }
}

#[test]
fn gpus_for_each_task_may_differ_by_node() {
    use model::gres::{Gres, GresRequest};
    let with_gpus = |count| NodeConfig {
        cpus: 8,
        memory_mb: 1000,
        gres: vec![Gres { name: "gpu".into(), count, ..Default::default() }],
        ..Default::default()
    };
    let mut world = World::new(vec![("n1", with_gpus(3)), ("n2", with_gpus(1)), ("n3", with_gpus(0))], Vec::new());
    let gpu = GresRequest { name: "gpu".into(), count: 1, ..Default::default() };
    let size = Size { n_tasks: Some(4), gres_per_task: vec![gpu], cpus_per_gpu: Some(2), ..Default::default() };
    let job = world.submit(size.clone());
    world.schedule();
    assert_eq!(world.placement(job), "n1:6x3 n2:2x1");
    let units = |at: usize| world.cluster.job(job).unwrap().allocation.nodes[at].gres[0].units.to_string();
    assert_eq!((units(0).as_str(), units(1).as_str()), ("0-2", "0"));
    let waits = world.submit(Size { n_tasks: Some(1), ..size });
    assert!(world.schedule().starts.is_empty());
    assert_eq!(world.reason(waits).0, Some(Reason::Resources));
}

/// As a 22.05 with DefCpuPerGPU=2 DefMemPerGPU=100 in the partition and DefMemPerCPU=7 gave them.
#[test]
fn gpus_bring_cpus_and_memory_along_for_who_asks_for_none() {
    use model::gres::{self, Gres};
    let node = NodeConfig {
        cpus: 8,
        memory_mb: 64_000,
        gres: vec![Gres { name: "gpu".into(), count: 4, ..Default::default() }],
        ..Default::default()
    };
    let mut world = World::new(vec![("n1", node.clone()), ("n2", node)], Vec::new());
    let mut config = (**world.cluster.config()).clone();
    config.scheduler.default_memory_per_cpu_mb = Some(7);
    config.scheduler.default_memory_per_gpu_mb = Some(9);
    config.scheduler.default_cpus_per_gpu = Some(2);
    config.partitions[0].default_memory_per_gpu_mb = Some(100);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let gpus = |words| Size { gres: gres::parse_list(words).unwrap(), ..Default::default() };
    let per_task = Size { gres_per_task: gpus("gpu:1").gres, n_tasks: Some(3), ..Default::default() };
    let cases = [
        (gpus("gpu:1"), (2, 100)),
        (gpus("gpu:2"), (4, 200)),
        (per_task, (6, 300)),
        (Size { gres: Vec::new(), gres_total: gpus("gpu:3").gres, ..Default::default() }, (6, 300)),
        (Size { cpus_per_task: Some(1), ..gpus("gpu:2") }, (1, 200)),
        (Size { cpus_per_gpu: Some(1), ..gpus("gpu:2") }, (2, 200)),
        (Size { memory: Memory::PerNodeMb(500), ..gpus("gpu:2") }, (4, 500)),
        (Size { memory: Memory::PerGpuMb(50), ..gpus("gpu:2") }, (4, 100)),
        (Size { sharing: Sharing::WholeNodes, ..gpus("gpu:4") }, (8, 400)),
        (Size::default(), (1, 7)),
        (Size { n_tasks: Some(6), ..gpus("gpu:1") }, (6, 100)),
    ];
    for (size, expected) in cases {
        let job = world.submit(size.clone());
        world.schedule();
        let held = world.cluster.job(job).unwrap().allocation.nodes[0].clone();
        assert_eq!((held.cpus.len(), held.memory_mb), expected, "{size:?}");
        world.finish(job);
    }
}

#[test]
fn a_user_who_wants_to_be_alone_is_alone() {
    let mut world = World::alike(2, 4, 1000);
    let submit = |world: &mut World, uid, sharing| {
        let size = Size { sharing, ..Default::default() };
        let job = world.submit_spec(JobSpec { uid, size, ..Default::default() });
        world.schedule();
        world.placement(job)
    };
    assert_eq!(submit(&mut world, 1, Sharing::Default), "n1:1x1");
    assert_eq!(submit(&mut world, 2, Sharing::OneUser), "n2:1x1");
    assert_eq!(submit(&mut world, 2, Sharing::Default), "n1:1x1");
    assert_eq!(submit(&mut world, 2, Sharing::OneUser), "n2:1x1");
    assert_eq!(submit(&mut world, 1, Sharing::OneUser), "");
    assert_eq!(submit(&mut world, 3, Sharing::Default), "n1:1x1");
    assert_eq!(submit(&mut world, 3, Sharing::Default), "n1:1x1");
    assert_eq!(submit(&mut world, 3, Sharing::Default), "");
    assert_eq!(submit(&mut world, 2, Sharing::Default), "n2:1x1");
}

#[test]
fn preferred_nodes_are_taken_while_there_are_any() {
    let node = |features: &[&str]| NodeConfig {
        cpus: 1,
        memory_mb: 1000,
        features: features.iter().map(|name| name.to_string()).collect(),
        ..Default::default()
    };
    let mut world = World::new(vec![("n1", node(&[])), ("n2", node(&["fast"])), ("n3", node(&[]))], Vec::new());
    let preference = Some(model::features::parse("fast").unwrap());
    let jobs = [0, 1].map(|_| world.submit(Size { preference: preference.clone(), ..Default::default() }));
    world.schedule();
    assert_eq!(jobs.map(|job| world.placement(job)), ["n2:1x1", "n1:1x1"]);
}

#[test]
fn requests_are_placed_as_slurm_places_them_on_idle_nodes() {
    let exact = |n_nodes| Size { min_nodes: n_nodes, max_nodes: Some(n_nodes), ..Default::default() };
    let cases: Vec<(Size, &str)> = vec![
        (Size::default(), "n1:1x1"),
        (Size { n_tasks: Some(4), ..exact(2) }, "n1:3x3 n2:1x1"),
        (tasks(4), "n1:4x4"),
        (tasks(12), "n1:8x8 n2:4x4"),
        (Size { tasks_per_node: Some(2), ..exact(2) }, "n1:2x2 n2:2x2"),
        (Size { n_tasks: Some(6), ..exact(3) }, "n1:4x4 n2:1x1 n3:1x1"),
        (Size { min_nodes: 2, max_nodes: Some(4), ..Default::default() }, "n1:1x1 n2:1x1 n3:1x1 n4:1x1"),
        (Size { n_tasks: Some(3), cpus_per_task: Some(2), ..Default::default() }, "n1:6x3"),
        (Size { sharing: Sharing::WholeNodes, ..Default::default() }, "n1:8x8"),
        (Size { sharing: Sharing::WholeNodes, n_tasks: Some(4), ..Default::default() }, "n1:8x4"),
        (Size { overcommit: true, n_tasks: Some(3), ..Default::default() }, "n1:1x3"),
        (Size { n_tasks: Some(2), ..exact(2) }, "n1:1x1 n2:1x1"),
        (Size { nodes: vec!["n2".into(), "n3".into()], ..exact(3) }, "n1:1x1 n2:1x1 n3:1x1"),
        (Size { excluded: vec!["n1".into()], ..Default::default() }, "n2:1x1"),
        (Size { contiguous: true, nodes: vec!["n3".into()], ..exact(2) }, "n2:1x1 n3:1x1"),
        (Size { min_cpus_per_node: Some(4), ..Default::default() }, "n1:4x1"),
        (Size { n_tasks: Some(4), tasks_per_node: Some(1), ..Default::default() }, "n1:1x1 n2:1x1 n3:1x1 n4:1x1"),
    ];
    for (size, expected) in cases {
        let mut world = World::alike(4, 8, 4000);
        let job = world.submit(size.clone());
        world.schedule();
        assert_eq!(world.placement(job), expected, "{size:?}");
    }
}

#[test]
fn small_jobs_fill_the_fullest_node_that_fits() {
    let mut world = World::alike(3, 8, 4000);
    let wide = world.submit(Size { n_tasks: Some(6), nodes: vec!["n2".into()], ..Default::default() });
    let two = world.submit(tasks(2));
    let three = world.submit(tasks(3));
    world.schedule();
    assert_eq!([wide, two, three].map(|job| world.placement(job)), ["n2:6x6", "n2:2x2", "n1:3x3"]);
}

#[test]
fn lighter_nodes_go_first_among_equals_and_n10_comes_after_n9() {
    let node = |weight| NodeConfig { cpus: 1, weight, ..Default::default() };
    let mut world = World::new(vec![("n10", node(1)), ("n9", node(1)), ("n1", node(5))], Vec::new());
    let jobs: Vec<JobId> = (0..3).map(|_| world.submit(Size::default())).collect();
    world.schedule();
    let placed: Vec<String> = jobs.into_iter().map(|job| world.placement(job)).collect();
    assert_eq!(placed, ["n9:1x1", "n10:1x1", "n1:1x1"]);
}

#[test]
fn memory_is_shared_out_like_cpus() {
    let mut world = World::alike(1, 8, 1000);
    let size = Size { memory: Memory::PerNodeMb(600), ..Default::default() };
    let (first, second) = (world.submit(size.clone()), world.submit(size));
    let small = world.submit(Size { memory: Memory::PerCpuMb(100), n_tasks: Some(4), ..Default::default() });
    world.schedule();
    assert_eq!([first, second, small].map(|job| world.placement(job)), ["n1:1x1", "", "n1:4x4"]);
}

#[test]
fn devices_are_given_out_once() {
    let gres = model::gres::Gres { name: "gpu".into(), count: 2, ..Default::default() };
    let with = NodeConfig { cpus: 8, gres: vec![gres], ..Default::default() };
    let mut world = World::new(vec![("n1", NodeConfig { cpus: 8, ..Default::default() }), ("n2", with)], Vec::new());
    let size = Size { gres: model::gres::parse_list("gpu:1").unwrap(), ..Default::default() };
    let jobs = [0; 3].map(|_| world.submit(size.clone()));
    world.schedule();
    assert_eq!(jobs.map(|job| world.placement(job)), ["n2:1x1", "n2:1x1", ""]);
}

#[test]
fn the_first_that_finds_no_room_waits_for_resources_and_the_rest_for_their_turn() {
    let mut world = World::alike(2, 4, 1000);
    let wide = world.submit(tasks(8));
    let second = world.submit(tasks(8));
    let third = world.submit(tasks(8));
    world.schedule();
    assert_eq!(world.placement(wide), "n1:4x4 n2:4x4");
    assert_eq!(world.reason(second), (Some(Reason::Resources), ""));
    assert_eq!(world.reason(third), (Some(Reason::Priority), ""));
    world.schedule();
    assert_eq!(world.schedule(), Plan::default(), "a plan tells only news");
}

#[test]
fn jobs_that_need_nodes_which_are_down_say_so() {
    let mut world = World::alike(2, 4, 1000);
    let drain = NodeChange::Drain { reason: "disk".into() };
    world.apply(Command::UpdateNodes { nodes: vec!["n1".into()], change: drain });
    let named = world.submit(Size { nodes: vec!["n1".into()], ..Default::default() });
    let both = world.submit(tasks(8));
    let small = world.submit(tasks(1));
    world.schedule();
    assert_eq!(world.reason(named), (Some(Reason::ReqNodeNotAvail), "ReqNodeNotAvail, UnavailableNodes:n1"));
    let text = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
    assert_eq!(world.reason(both), (Some(Reason::Resources), text));
    assert_eq!(world.placement(small), "n2:1x1");
}

#[test]
fn jobs_that_need_what_only_absent_or_reserved_nodes_have_say_so() {
    let node = |feature: &str| NodeConfig { cpus: 4, features: vec![feature.into()], ..Default::default() };
    let nodes = vec![("n1", node("fast")), ("n2", node("big")), ("n3", node("big")), ("n4", node("fast"))];
    let mut world = World::new(nodes, Vec::new());
    let drain = NodeChange::Drain { reason: "disk".into() };
    world.apply(Command::UpdateNodes { nodes: vec!["n2".into()], change: drain });
    let constraint = model::features::parse("big").ok();
    let choosy = world.submit(Size { min_nodes: 2, constraint, ..Default::default() });
    world.schedule();
    assert_eq!(world.reason(choosy), (Some(Reason::ReqNodeNotAvail), "ReqNodeNotAvail, UnavailableNodes:n2"));
    world.apply(Command::UpdateNodes { nodes: vec!["n2".into()], change: NodeChange::Resume });
    world.finish(choosy);
    use model::reservation_field::{Field, MembersChange};
    let users = model::reservation::Members { names: vec!["somebody".into()], ..Default::default() };
    let fields = vec![
        Field::Start(world.now),
        Field::Duration(Some(model::time::Span::from_secs(3600))),
        Field::Users(MembersChange::To(users)),
        Field::Nodes(model::partition_field::NodesChange::To(vec!["n4".into()])),
    ];
    world.apply(Command::CreateReservation { name: "theirs".into(), fields, utc_offset_secs: 0 });
    let all = world.submit(Size { min_nodes: 4, ..Default::default() });
    world.schedule();
    assert_eq!(world.reason(all), (Some(Reason::ReqNodeNotAvail), "ReqNodeNotAvail, May be reserved for other job"));
}

#[test]
fn a_job_uses_the_first_of_its_partitions_that_has_room() {
    let node = NodeConfig { cpus: 2, ..Default::default() };
    let nodes = vec![("n1", node.clone()), ("n2", node)];
    let mut world = World::new(nodes, vec![partition("a", &["n1"]), partition("b", &["n2"])]);
    let jobs = [0; 2].map(|_| {
        let partitions = vec!["a".into(), "b".into()];
        world.submit_spec(JobSpec { size: tasks(2), partitions, ..Default::default() })
    });
    world.schedule();
    assert_eq!(jobs.map(|job| world.placement(job)), ["n1:2x2", "n2:2x2"]);
    assert_eq!(world.cluster.job(jobs[1]).unwrap().partition, "b");
}

#[test]
fn the_first_of_a_partition_hears_that_others_wait_for_all_its_nodes() {
    // Recorded on Slurm 22.05: `-p debug,short` behind a job that waits in debug, which has the nodes of short.
    let node = NodeConfig { cpus: 2, ..Default::default() };
    let nodes = vec![("n1", node.clone()), ("n2", node)];
    let mut world = World::new(nodes, vec![partition("short", &["n1"])]);
    world.submit(Size { min_nodes: 2, ..tasks(4) });
    world.schedule();
    let job = |world: &mut World, partitions: &[&str], n_tasks| {
        let partitions = partitions.iter().map(|name| name.to_string()).collect();
        world.submit_spec(JobSpec { size: tasks(n_tasks), partitions, ..Default::default() })
    };
    let first = job(&mut world, &["debug"], 2);
    let both = job(&mut world, &["debug", "short"], 1);
    let last = job(&mut world, &["short"], 1);
    world.schedule();
    let told = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
    assert_eq!(world.reason(first), (Some(Reason::Resources), ""));
    assert_eq!(world.reason(both), (Some(Reason::Resources), told));
    assert_eq!(world.reason(last), (Some(Reason::Priority), ""));
}

#[test]
fn an_array_starts_as_many_tasks_as_fit_and_its_limit_allows() {
    let array = |limit| {
        let (tasks, _) = model::ranges::parse_array("0-999999").unwrap();
        JobSpec { array: Some(ArraySpec { tasks, limit }), ..Default::default() }
    };
    let mut world = World::alike(2, 4, 1000);
    let limited = world.submit_spec(array(Some(3)));
    let free = world.submit_spec(array(None));
    let plan = world.schedule();
    assert_eq!(plan.starts.len(), 8);
    assert_eq!(world.cluster.array(limited).unwrap().n_live, 3);
    assert_eq!(world.cluster.array(free).unwrap().n_live, 5);
    assert_eq!(world.reason(limited).0, Some(Reason::JobArrayTaskLimit));
    assert_eq!(world.reason(free).0, Some(Reason::Resources));
    let first = world.cluster.array(limited).unwrap().tasks[&0];
    world.apply(Command::Cancel { jobs: vec![JobRef::from(first)], hurry: false });
    let duty = world.cluster.duties().find(|duty| duty.owner == model::Owner::Job(first)).unwrap().clone();
    world.apply(Command::DutyDone { duty, result: model::command::DutyResult::Done });
    assert_eq!(world.schedule().starts[0].task, Some(3));
}

fn node() -> impl Strategy<Value = NodeConfig> {
    (1..9u32, 1..5u64, 0..3u32, any::<bool>()).prop_map(|(cpus, memory, gpus, fast)| NodeConfig {
        cpus,
        memory_mb: memory * 500,
        gres: vec![model::gres::Gres { name: "gpu".into(), count: gpus, ..Default::default() }],
        features: if fast { vec!["fast".into()] } else { Vec::new() },
        ..Default::default()
    })
}

fn maybe(values: std::ops::Range<u32>) -> impl Strategy<Value = Option<u32>> {
    proptest::option::of(values)
}

fn size() -> impl Strategy<Value = Size> {
    let counts = (1..4u32, maybe(0..4), maybe(1..20), maybe(1..5), maybe(1..4), maybe(1..6));
    let memory = prop_oneof![
        Just(Memory::Default),
        Just(Memory::WholeNode),
        (1..2000u64).prop_map(Memory::PerNodeMb),
        (1..500u64).prop_map(Memory::PerCpuMb),
    ];
    let flags = (any::<bool>(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.2), any::<bool>());
    let lists = (proptest::collection::btree_set(1..5u32, 0..3), proptest::option::weighted(0.2, 1..5u32), 0..2u32);
    (counts, memory, flags, lists).prop_map(|(counts, memory, flags, lists)| {
        let (min_nodes, extra, n_tasks, tasks_per_node, cpus_per_task, min_cpus_per_node) = counts;
        let (whole, overcommit, contiguous, fast) = flags;
        let name = |number: u32| format!("n{number}").as_str().into();
        Size {
            min_nodes,
            max_nodes: extra.map(|extra| min_nodes + extra),
            n_tasks,
            tasks_per_node,
            cpus_per_task,
            min_cpus_per_node,
            memory,
            sharing: if whole { Sharing::WholeNodes } else { Sharing::Default },
            overcommit,
            contiguous,
            gres: vec![model::gres::GresRequest { name: "gpu".into(), count: lists.2, ..Default::default() }],
            constraint: fast.then(|| model::features::parse("fast").unwrap()),
            nodes: lists.0.into_iter().map(name).collect(),
            excluded: lists.1.map(name).into_iter().collect(),
            ..Default::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    /// What submission lets in can start on an empty cluster, and adoption takes what the scheduler gives.
    #[test]
    fn an_admissible_job_starts_on_an_empty_cluster(nodes in proptest::collection::vec(node(), 4), size in size()) {
        let names = ["n1", "n2", "n3", "n4"];
        let mut world = World::new(names.into_iter().zip(nodes).collect(), Vec::new());
        let spec = JobSpec { size, ..Default::default() };
        let entry = Entry {
            at: Timestamp::from_secs(1),
            by: Caller::SYSTEM,
            command: Command::Submit { spec: Box::new(spec), blobs: Vec::new() },
        };
        if apply(&mut world.cluster, &entry).reply.is_ok() {
            prop_assert_eq!(world.schedule().starts.len(), 1);
        }
    }

    /// However full the cluster is, every planned start is adopted.
    #[test]
    fn whatever_is_planned_is_adopted(
        nodes in proptest::collection::vec(node(), 4),
        sizes in proptest::collection::vec(size(), 1..12),
    ) {
        let names = ["n1", "n2", "n3", "n4"];
        let mut world = World::new(names.into_iter().zip(nodes).collect(), Vec::new());
        for size in sizes {
            let spec = Box::new(JobSpec { size, ..Default::default() });
            let command = Command::Submit { spec, blobs: Vec::new() };
            let _ = apply(&mut world.cluster, &Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command });
        }
        world.schedule();
        let again = scheduler::plan(&world.cluster);
        prop_assert!(again.starts.is_empty(), "what fits starts in the first pass: {:?}", again.starts);
    }
}

#[test]
fn a_total_of_gpus_is_shared_out_over_nodes_that_have_some() {
    use model::gres::{Gres, parse_list};
    let node = |gpus: u32| NodeConfig {
        cpus: 8,
        memory_mb: 1000,
        gres: vec![Gres { name: "gpu".into(), count: gpus, ..Default::default() }],
        ..Default::default()
    };
    let mut world = World::new(vec![("n1", node(2)), ("n2", node(2)), ("n3", node(4))], Vec::new());
    let size = |total: &str, min_nodes, max_nodes| Size {
        min_nodes,
        max_nodes,
        gres_total: parse_list(total).unwrap(),
        ..Default::default()
    };
    let held = |world: &World, job: JobId| -> Vec<String> {
        let allocation = &world.cluster.job(job).unwrap().allocation;
        let units = |share: &model::resources::NodeShare| share.gres.iter().map(|held| held.units.len()).sum::<u32>();
        allocation.nodes.iter().map(|share| format!("{}:{}", share.node, units(share))).collect()
    };
    let wide = world.submit(size("gpu:3", 2, Some(2)));
    world.schedule();
    assert_eq!(held(&world, wide), ["n1:2", "n3:1"]);
    // What is left of them, on as few nodes as will do, with CPUs for each.
    let rest = world.submit(Size { cpus_per_gpu: Some(2), ..size("gpu:5", 1, None) });
    world.schedule();
    assert_eq!(held(&world, rest), ["n2:2", "n3:3"]);
    assert_eq!(world.placement(rest), "n2:4x1 n3:6x1");
    let waits = world.submit(size("gpu:1", 1, Some(1)));
    world.schedule();
    assert!(!world.is_running(waits));
    world.finish(wide);
    world.schedule();
    assert!(world.is_running(waits));
    let never = Command::Submit {
        spec: Box::new(JobSpec { size: size("gpu:9", 1, None), ..Default::default() }),
        blobs: Vec::new(),
    };
    let entry = model::Entry { at: world.now, by: model::Caller::SYSTEM, command: never };
    assert!(state::apply(&mut world.cluster, &entry).reply.is_err(), "there are only eight");
}
