//! What jobs ask of the features of their nodes together: one kind for all, or so many of each. The cases are those of Slurm's manual.
use model::node::NodeConfig;
use model::spec::{Sharing, Size};
use model::topology::{Block, Switch, Topology, TopologyKind};
use model::update::NodeChange;
use model::{Caller, Command, Entry, Reason, Reject};
use world::World;

mod world;

fn asks(text: &str, n_nodes: u32) -> Size {
    let wish = model::feature_sets::parse(text).unwrap();
    Size {
        min_nodes: n_nodes,
        max_nodes: Some(n_nodes),
        constraint: wish.constraint,
        feature_sets: wish.sets,
        features: text.into(),
        ..Default::default()
    }
}

fn node(features: &str) -> NodeConfig {
    let features = features.split(',').map(str::to_string).collect();
    NodeConfig { cpus: 4, memory_mb: 1000, features, ..Default::default() }
}

/// Nodes as in Slurm's own test of constraints.
fn lab() -> World {
    World::new(vec![("n1", node("a")), ("n2", node("b")), ("n3", node("a,c,e")), ("n4", node("a,c,d,e"))], Vec::new())
}

fn nodes_of(world: &World, job: model::JobId) -> String {
    let nodes = &world.cluster.job(job).unwrap().allocation.nodes;
    nodes.iter().map(|share| share.node.as_str()).collect::<Vec<_>>().join(" ")
}

fn placed(text: &str, n_nodes: u32) -> String {
    let mut world = lab();
    let spec = model::JobSpec { size: asks(text, n_nodes), ..Default::default() };
    let command = Command::Submit { spec: Box::new(spec), blobs: Vec::new() };
    let entry = Entry { at: world.now, by: Caller::SYSTEM, command };
    match state::apply(&mut world.cluster, &entry).reply {
        Ok(model::Reply::Submitted(job)) => {
            world.schedule();
            state::check::check(&world.cluster).unwrap();
            nodes_of(&world, job)
        }
        Err(Reject::NeverFits | Reject::NoNodeHas(_)) => "never".into(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn so_many_nodes_have_what_is_counted() {
    assert_eq!(placed("c*2", 2), "n3 n4");
    assert_eq!(placed("c*2", 3), "n1 n3 n4");
    assert_eq!(placed("c*3", 3), "never");
    assert_eq!(placed("[(a&c)*2&b*1]", 3), "n2 n3 n4");
    assert_eq!(placed("[(a&d)*2&b*2]", 4), "never");
    assert_eq!(placed("e&c*1", 2), "n3 n4");
}

/// Nodes of two racks, `f` at the end of each, and `g` only in the second.
fn racks(kind: TopologyKind) -> World {
    let features = ["x", "f", "x", "x", "x", "g", "f", "f"];
    let names: Vec<String> = (1..=8).map(|n| format!("n{n}")).collect();
    let nodes = names.iter().zip(features).map(|(name, features)| (name.as_str(), node(features)));
    let mut world = World::new(nodes.collect(), Vec::new());
    let part = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect::<Vec<model::NodeName>>();
    let leaf = |name: &str, nodes: &[String]| Switch { name: name.into(), nodes: part(nodes), ..Switch::default() };
    let root = Switch { name: "root".into(), switches: vec!["a".into(), "b".into()], ..Switch::default() };
    let block = |name: &str, nodes: &[String]| Block { name: name.into(), nodes: part(nodes) };
    let mut config = (**world.cluster.config()).clone();
    config.topologies = vec![Topology {
        name: "default".into(),
        is_default: true,
        kind,
        switches: vec![leaf("a", &names[..4]), leaf("b", &names[4..]), root],
        blocks: vec![block("b1", &names[..4]), block("b2", &names[4..])],
        block_sizes: vec![4],
        ..Topology::default()
    }];
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

#[test]
fn on_a_network_what_is_counted_is_found_near_each_other() {
    for kind in [TopologyKind::Tree, TopologyKind::Block] {
        for (text, n_nodes, expected) in
            [("f*2", 2, "n7 n8"), ("[f*1&g*1]", 2, "n6 n7"), ("f*1", 4, "n1 n2 n3 n4"), ("f*2", 4, "n5 n6 n7 n8")]
        {
            let mut world = racks(kind);
            let job = world.submit(asks(text, n_nodes));
            world.schedule();
            assert_eq!(nodes_of(&world, job), expected, "{kind:?} {text}");
            state::check::check(&world.cluster).unwrap();
        }
    }
    // No block has three of them.
    let mut world = racks(TopologyKind::Block);
    let spec = model::JobSpec { size: asks("f*3", 3), ..Default::default() };
    let command = Command::Submit { spec: Box::new(spec), blobs: Vec::new() };
    let entry = Entry { at: world.now, by: Caller::SYSTEM, command };
    assert!(state::apply(&mut world.cluster, &entry).reply.is_err());
}

#[test]
fn all_nodes_are_of_one_kind() {
    assert_eq!(placed("[a|b]", 3), "n1 n3 n4");
    assert_eq!(placed("[b|a]", 1), "n2");
    assert_eq!(placed("[a|b]", 4), "never");
    assert_eq!(placed("a|b", 4), "n1 n2 n3 n4");
    assert_eq!(placed("e&[b|a]", 2), "n3 n4");
    assert_eq!(placed("e&[b|a]", 3), "never");
}

#[test]
fn the_second_kind_is_taken_while_the_first_is_busy_and_who_finds_neither_has_a_place_in_the_future() {
    let mut world =
        World::new(vec![("n1", node("a")), ("n2", node("a")), ("n3", node("b")), ("n4", node("b"))], Vec::new());
    let alone = |text: &str, n_nodes| Size { sharing: Sharing::WholeNodes, ..asks(text, n_nodes) };
    let timed = |world: &mut World, size| {
        let time_limit = Some(model::spec::TimeLimit::Secs(600));
        world.submit_spec(model::JobSpec { size, time_limit, ..Default::default() })
    };
    let one = timed(&mut world, alone("a", 1));
    let two = timed(&mut world, alone("[a|b]", 2));
    world.schedule();
    assert_eq!((nodes_of(&world, one).as_str(), nodes_of(&world, two).as_str()), ("n1", "n3 n4"));
    let waits = timed(&mut world, alone("[b|a]", 2));
    let counts = timed(&mut world, alone("[a*1&b*1]", 2));
    world.schedule();
    assert_eq!(world.reason(waits).0, Some(Reason::Resources));
    assert!(
        world.expected(waits).is_some_and(|(_, nodes)| nodes == "n[3-4]" || nodes == "n[1-2]"),
        "{:?}",
        world.expected(waits)
    );
    assert!(world.expected(counts).is_some(), "{:?}", world.expected(counts));
    world.finish(two);
    world.schedule();
    assert_eq!(nodes_of(&world, waits), "n3 n4");
}

#[test]
fn a_plan_that_is_no_longer_right_is_not_carried_out() {
    let mut world = lab();
    let job = world.submit(asks("[a|b]", 2));
    let plan = scheduler::plan(&world.cluster);
    assert_eq!(plan.starts.len(), 1);
    let second = plan.starts[0].nodes[1].node.clone();
    let change = NodeChange::Features(vec!["b".into()]);
    world.apply(Command::UpdateNodes { nodes: vec![second], change });
    world.apply(Command::AdoptPlan(plan));
    assert!(!world.is_running(job));
}
