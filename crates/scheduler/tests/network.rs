//! Jobs on a network: placed now and promised later by the same rules, all checked again when the plan is adopted.
mod world;

use model::node::NodeConfig;
use model::spec::{JobSpec, NetworkWish, Sharing, Size, TimeLimit};
use model::time::Span;
use model::topology::{Block, Switch, Topology, TopologyKind};
use model::{Caller, Command, Entry, JobId, NodeName, Reason, Reject};
use world::World;

fn names(list: &str) -> Vec<NodeName> {
    model::hostlist::expand(list).unwrap().into_iter().map(NodeName::from).collect()
}

/// Eight nodes of two CPUs on the network.
fn world(topology: Topology) -> World {
    let mut world = World::alike(8, 2, 1000);
    let mut config = (**world.cluster.config()).clone();
    config.topologies = vec![Topology { name: "default".into(), is_default: true, ..topology }];
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn tree() -> World {
    let leaf = |name: &str, nodes: &str| Switch { name: name.into(), nodes: names(nodes), ..Switch::default() };
    let root = Switch { name: "root".into(), switches: vec!["a".into(), "b".into()], ..Switch::default() };
    let switches = vec![leaf("a", "n[1-4]"), leaf("b", "n[5-8]"), root];
    world(Topology { kind: TopologyKind::Tree, switches, ..Topology::default() })
}

fn blocks() -> World {
    let block = |name: &str, nodes: &str| Block { name: name.into(), nodes: names(nodes) };
    let blocks = vec![block("b1", "n[1-4]"), block("b2", "n[5-8]")];
    world(Topology { kind: TopologyKind::Block, blocks, block_sizes: vec![4, 8], ..Topology::default() })
}

fn whole(n_nodes: u32) -> Size {
    Size { min_nodes: n_nodes, sharing: Sharing::WholeNodes, ..Size::default() }
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

#[test]
fn jobs_stay_on_one_switch_and_keep_the_other_whole() {
    let mut world = tree();
    let jobs: Vec<JobId> = [3, 1, 4].into_iter().map(|n| world.submit(whole(n))).collect();
    world.schedule();
    let places: Vec<String> = jobs.iter().map(|job| on(&world, *job)).collect();
    assert_eq!(places, ["n[1-3]", "n4", "n[5-8]"]);
}

#[test]
fn small_jobs_share_nodes_before_they_break_into_whole_ones() {
    let mut world = tree();
    let one = Size { min_nodes: 1, ..Size::default() };
    let jobs: Vec<JobId> = (0..5).map(|_| world.submit(one.clone())).collect();
    world.schedule();
    let places: Vec<String> = jobs.iter().map(|job| on(&world, *job)).collect();
    assert_eq!(places, ["n1", "n1", "n2", "n2", "n3"]);
    let wide = world.submit(Size { min_nodes: 2, ..Size::default() });
    world.schedule();
    assert_eq!(on(&world, wide), "n[3-4]");
}

#[test]
fn a_job_without_topology_fills_nodes_in_their_order() {
    let mut world = tree();
    let first = world.submit(whole(3));
    let wish = NetworkWish { topology: Some(TopologyKind::Flat), ..NetworkWish::default() };
    let second = world.submit(Size { network: wish, ..whole(2) });
    world.schedule();
    assert_eq!((on(&world, first), on(&world, second)), ("n[1-3]".into(), "n[4-5]".into()));
    let wish = NetworkWish { topology: Some(TopologyKind::Block), ..NetworkWish::default() };
    assert_eq!(refused(&mut world, Size { network: wish, ..whole(2) }), Reject::NoSuchTopology);
}

#[test]
fn nodes_of_a_list_need_no_common_switch() {
    let leaf = |name: &str, nodes: &str| Switch { name: name.into(), nodes: names(nodes), ..Switch::default() };
    let switches = vec![leaf("a", "n[1-4]"), leaf("b", "n[5-8]")];
    let mut world = world(Topology { kind: TopologyKind::Tree, switches, ..Topology::default() });
    let apart = Size { nodes: names("n[2,7]"), n_tasks: Some(3), ..Size::default() };
    assert_eq!(refused(&mut world, apart.clone()), Reject::NoSuchTopology);
    let wish = NetworkWish { topology: Some(TopologyKind::Flat), ..NetworkWish::default() };
    let listed = world.submit(Size { network: wish, ..apart });
    // More tasks than one of the two takes, both of them named.
    let near = world.submit(Size { nodes: names("n[1,3]"), n_tasks: Some(3), ..Size::default() });
    world.schedule();
    assert_eq!((world.placement(listed), world.placement(near)), ("n2:2x2 n7:1x1".into(), "n1:2x2 n3:1x1".into()));
}

#[test]
fn few_switches_are_waited_for_no_longer_than_asked() {
    let mut world = tree();
    let first = world.submit_spec(spec(whole(1), 4000));
    world.schedule();
    let elsewhere = world.submit_spec(spec(Size { nodes: names("n5"), ..whole(1) }, 4000));
    world.schedule();
    assert_eq!((on(&world, first), on(&world, elsewhere)), ("n1".into(), "n5".into()));
    let wish = NetworkWish { n_switches: 1, switch_wait: Some(Span::from_secs(15)), ..NetworkWish::default() };
    let picky = world.submit_spec(spec(Size { network: wish, ..whole(4) }, 600));
    world.schedule();
    assert!(!world.is_running(picky));
    assert_eq!(world.reason(picky).0, Some(Reason::Resources));
    assert_eq!(world.cluster.job(picky).unwrap().switch_wait_since, Some(world.now));
    let outlook = scheduler::look(&world.cluster);
    assert_eq!(outlook.look_again_at, Some(world.now + Span::from_secs(15)));
    world.pass(14);
    world.schedule();
    assert!(!world.is_running(picky));
    world.pass(1);
    world.schedule();
    assert_eq!(on(&world, picky), "n[2-4,6]");
}

#[test]
fn a_wait_for_switches_lets_others_pass_and_ends_early_when_there_is_room() {
    let mut world = tree();
    let near = world.submit_spec(spec(whole(1), 60));
    world.schedule();
    let far = world.submit_spec(spec(Size { nodes: names("n5"), ..whole(1) }, 4000));
    world.schedule();
    let wish = NetworkWish { n_switches: 1, ..NetworkWish::default() };
    let picky = world.submit_spec(spec(Size { network: wish, ..whole(4) }, 600));
    let short = world.submit_spec(spec(whole(3), 30));
    world.schedule();
    assert!(world.is_running(short) && !world.is_running(picky));
    assert_eq!(world.expected(picky).map(|(_, nodes)| nodes.to_string()), Some("n[1-4]".into()));
    world.finish(near);
    world.finish(short);
    world.schedule();
    assert_eq!(on(&world, picky), "n[1-4]");
    assert!(world.is_running(far));
}

#[test]
fn blocks_hold_jobs_together_and_the_future_obeys_them_too() {
    let mut world = blocks();
    let one = world.submit_spec(spec(whole(2), 1200));
    let two = world.submit_spec(spec(whole(3), 600));
    world.schedule();
    assert_eq!((on(&world, one), on(&world, two)), ("n[5-6]".into(), "n[1-3]".into()));
    let waits = world.submit_spec(spec(whole(3), 60));
    world.schedule();
    assert_eq!(world.reason(waits), (Some(Reason::Resources), "No suitable topology unit found"));
    let (at, nodes) = world.expected(waits).expect("it is promised a place");
    assert!((600..=660).contains(&at), "{at}");
    assert_eq!(nodes, "n[1-3]");
}

#[test]
fn segments_are_never_dropped() {
    let mut world = blocks();
    let wish = NetworkWish { segment: 3, ..NetworkWish::default() };
    let job = world.submit(Size { network: wish.clone(), ..whole(6) });
    world.schedule();
    assert_eq!(on(&world, job), "n[1-3,5-7]");
    assert_eq!(refused(&mut world, Size { network: wish.clone(), ..whole(5) }), Reject::TooManyNodes);
    // A plan that breaks the rule is not adopted.
    world.finish(job);
    let job = world.submit(Size { network: wish, ..whole(6) });
    let mut plan = scheduler::plan(&world.cluster);
    plan.starts[0].nodes[2].node = "n8".into();
    let reply = world.apply(Command::AdoptPlan(plan));
    assert_eq!(reply, model::Reply::Adopted { n_started: 0, n_stale: 1 });
    assert!(!world.is_running(job));
}

#[test]
fn a_block_may_be_owned() {
    let mut world = blocks();
    let wish = NetworkWish { owns_units: true, ..NetworkWish::default() };
    let owner = world.submit_spec(spec(Size { network: wish.clone(), ..whole(2) }, 600));
    let other = world.submit_spec(spec(whole(4), 600));
    let next = world.submit_spec(spec(whole(1), 60));
    let second = world.submit_spec(spec(Size { network: wish, ..whole(1) }, 600));
    world.schedule();
    assert_eq!((on(&world, owner), on(&world, other)), ("n[5-6]".into(), "n[1-4]".into()));
    assert!(!world.is_running(next) && !world.is_running(second), "the rest of the block is closed");
    assert_eq!(world.cluster.node("n8").unwrap().blocked_by, Some(owner));
    world.finish(owner);
    world.schedule();
    assert_eq!(on(&world, next), "n5");
    assert!(!world.is_running(second), "somebody else is in every block");
    assert_eq!(world.cluster.node("n8").unwrap().blocked_by, None);
}

#[test]
fn ranks_follow_the_network() {
    let block = |name: &str, nodes: &str| Block { name: name.into(), nodes: names(nodes) };
    let blocks = vec![block("b1", "n[1,3,5,7]"), block("b2", "n[2,4,6,8]")];
    let mut world =
        world(Topology { kind: TopologyKind::Block, blocks, block_sizes: vec![4, 8], ..Topology::default() });
    let job = world.submit(whole(8));
    world.schedule();
    assert_eq!(on(&world, job), "n[1,3,5,7,2,4,6,8]");
}

#[test]
fn units_are_named_in_lists_and_nodes_may_move() {
    let mut world = tree();
    let job = world.submit(Size { nodes: vec!["n1".into(), "switch{b}".into()], ..whole(5) });
    world.schedule();
    assert_eq!(on(&world, job), "n[1,5-8]");
    world.finish(job);
    let change = model::update::NodeChange::Topology(Some("default:root:a".into()));
    let nodes = names("n8");
    let entry = |change| Entry {
        at: world.now,
        by: Caller::SYSTEM,
        command: Command::UpdateNodes { nodes: nodes.clone(), change },
    };
    let wrong = entry(model::update::NodeChange::Topology(Some("default:zz".into())));
    assert_eq!(state::apply(&mut world.cluster.clone(), &wrong).reply, Err(Reject::NoSuchTopology));
    let entry = entry(change);
    state::apply(&mut world.cluster, &entry).reply.unwrap();
    let job = world.submit(whole(5));
    world.schedule();
    assert_eq!(on(&world, job), "n[1-4,8]");
}

#[test]
fn trees_without_a_common_switch_never_share_a_job() {
    let leaf = |name: &str, nodes: &str| Switch { name: name.into(), nodes: names(nodes), ..Switch::default() };
    let switches = vec![leaf("a", "n[1-4]"), leaf("b", "n[5-8]")];
    let mut world = world(Topology { kind: TopologyKind::Tree, switches, ..Topology::default() });
    assert_eq!(refused(&mut world, whole(5)), Reject::NeverFits);
    assert_eq!(refused(&mut world, Size { nodes: names("n[1,5]"), ..whole(2) }), Reject::NoSuchTopology);
    let mut config = (**world.cluster.config()).clone();
    config.topology.is_optional = true;
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let job = world.submit(whole(5));
    world.schedule();
    assert_eq!(on(&world, job), "n[1-5]");
}

#[test]
fn unequal_nodes_and_features_are_respected() {
    let node = |cpus, weight| NodeConfig { cpus, memory_mb: 1000, weight, ..NodeConfig::default() };
    let nodes = vec![("n1", node(2, 5)), ("n2", node(2, 1)), ("n3", node(2, 1)), ("n4", node(8, 1))];
    let mut world = World::new(nodes, Vec::new());
    let leaf = |name: &str, nodes: &str| Switch { name: name.into(), nodes: names(nodes), ..Switch::default() };
    let root = Switch { name: "root".into(), switches: vec!["a".into(), "b".into()], ..Switch::default() };
    let mut config = (**world.cluster.config()).clone();
    let switches = vec![leaf("a", "n[1-2]"), leaf("b", "n[3-4]"), root];
    config.topologies = vec![Topology { kind: TopologyKind::Tree, switches, ..Topology::default() }];
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let tasks = world.submit(Size { min_nodes: 1, n_tasks: Some(9), ..Size::default() });
    world.schedule();
    assert_eq!(on(&world, tasks), "n[3-4]");
    world.finish(tasks);
    let pair = world.submit(whole(2));
    world.schedule();
    assert_eq!(on(&world, pair), "n[3-4]");
}

#[test]
fn a_node_that_is_named_is_taken_though_another_is_in_use() {
    for mut world in [tree(), blocks()] {
        let first = world.submit(Size { n_tasks: Some(1), ..Size::default() });
        world.schedule();
        let named = world.submit(Size { nodes: names("n8"), ..Size::default() });
        world.schedule();
        assert_ne!(on(&world, first), "n8");
        assert_eq!(on(&world, named), "n8");
    }
}
