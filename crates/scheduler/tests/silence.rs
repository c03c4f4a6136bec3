//! A cluster of which nobody hears anything: waits that only time ends do end, and otherwise nothing is planned or written.
use model::accounts::{Change, Edit, Field, Value, tres};
use model::config::Enforce;
use model::pool::{BurstBufferConfig, Pool, PoolKind};
use model::spec::{JobKind, JobSpec, NetworkWish, Sharing, Size, TimeLimit};
use model::time::Span;
use model::topology::{Switch, Topology, TopologyKind};
use model::{BufferPhase, Command, Config, JobId, NodeName, Plan, Reason, hostlist};
use world::World;

mod world;

/// What the leader wrote while nobody asked for anything.
#[derive(Debug, Default, PartialEq)]
struct Written {
    n_ticks: u32,
    n_plans: u32,
}

/// The ticker and the planner alone, for so long.
fn be_silent(world: &mut World, secs: u64) -> Written {
    let end = world.now + Span::from_secs(secs);
    let mut written = Written::default();
    loop {
        loop {
            let plan = scheduler::plan(&world.cluster);
            if plan == Plan::default() {
                break;
            }
            world.apply(Command::AdoptPlan(plan));
            written.n_plans += 1;
            assert!(written.n_plans < 1000, "plans follow each other");
        }
        let Some(due) = world.cluster.next_deadline().filter(|due| *due <= end) else { break };
        world.now = due.max(world.now);
        world.apply(Command::Tick);
        written.n_ticks += 1;
        assert!(written.n_ticks < 1000, "ticks follow each other");
    }
    world.now = end;
    written
}

fn names(list: &str) -> Vec<NodeName> {
    hostlist::expand(list).unwrap().into_iter().map(NodeName::from).collect()
}

/// Two racks of two nodes.
fn racks(change: impl Fn(&mut Config)) -> World {
    let mut world = World::alike(4, 2, 1000);
    let rack = |name: &str, nodes: &str| Switch { name: name.into(), nodes: names(nodes), ..Switch::default() };
    let top = Switch { name: "top".into(), switches: vec!["a".into(), "b".into()], ..Switch::default() };
    let switches = vec![rack("a", "n[1-2]"), rack("b", "n[3-4]"), top];
    let topology = Topology { kind: TopologyKind::Tree, switches, ..Topology::default() };
    configure(&mut world, |config| {
        config.topologies = vec![Topology { name: "default".into(), is_default: true, ..topology.clone() }];
        change(config);
    });
    world
}

fn configure(world: &mut World, change: impl Fn(&mut Config)) {
    let mut config = (**world.cluster.config()).clone();
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
}

fn whole(n_nodes: u32, network: NetworkWish) -> JobSpec {
    let size = Size { min_nodes: n_nodes, sharing: Sharing::WholeNodes, network, ..Size::default() };
    JobSpec { size, time_limit: Some(TimeLimit::Secs(36_000)), ..JobSpec::default() }
}

/// One node of each rack is busy for hours.
fn occupy(world: &mut World) {
    for node in names("n[1,3]") {
        let mut spec = whole(1, NetworkWish::default());
        spec.size.nodes = vec![node];
        world.submit_spec(spec);
    }
    world.schedule();
}

#[test]
fn waits_for_a_place_in_the_network_end_though_nobody_stirs() {
    let few = NetworkWish { n_switches: 1, switch_wait: Some(Span::from_secs(5)), ..NetworkWish::default() };
    let near = NetworkWish { most_level: Some(0), level_is_preferred: true, ..NetworkWish::default() };
    for (word, wish) in [("switches", few), ("level", near), ("topology_wait", NetworkWish::default())] {
        let mut world = racks(|config| {
            config.topology.max_switch_wait = Some(Span::from_secs(5));
            config.partitions[0].topology_wait = (word == "topology_wait").then_some(Span::from_secs(5));
        });
        occupy(&mut world);
        let job = world.submit_spec(whole(2, wish));
        be_silent(&mut world, 4);
        assert_eq!(world.reason(job).0, Some(Reason::Resources), "{word}");
        let written = be_silent(&mut world, 1);
        assert!(world.is_running(job), "{word}");
        assert_eq!(written.n_ticks, 1, "{word}");
    }
}

#[test]
fn whoever_has_no_place_in_time_gets_one_when_patience_ends() {
    let mut world = World::alike(2, 2, 1000);
    configure(&mut world, |config| config.scheduler.backfill.patience = Span::from_secs(300));
    let mut endless = whole(1, NetworkWish::default());
    endless.time_limit = Some(TimeLimit::Unlimited);
    world.submit_spec(endless);
    world.schedule();
    let both = world.submit_spec(whole(2, NetworkWish::default()));
    let written = be_silent(&mut world, 3600);
    assert!(written.n_ticks == 1 && written.n_plans <= 3, "{written:?}");
    // It keeps the node that is free: whoever comes later does not pass it.
    let late =
        world.submit_spec(JobSpec { time_limit: Some(TimeLimit::Unlimited), ..whole(1, NetworkWish::default()) });
    world.schedule();
    assert!(!world.is_running(late) && !world.is_running(both));
}

fn with_pools(world: &mut World) {
    let pool = |name: &str, kind| Pool {
        name: name.into(),
        kind,
        root: format!("/{name}"),
        granularity_bytes: 1 << 30,
        total_bytes: Some(10 << 30),
        ..Pool::default()
    };
    configure(world, |config| {
        config.burst_buffer = Some(BurstBufferConfig {
            pools: vec![pool("flash", PoolKind::Shared), pool("nvme", PoolKind::Node)],
            stage_ahead: Span::from_secs(600),
            ..Default::default()
        });
    });
}

#[test]
fn data_is_brought_ahead_though_nobody_stirs() {
    for text in ["capacity=1", "capacity=1 pool=nvme"] {
        let mut world = World::alike(2, 2, 1000);
        with_pools(&mut world);
        let mut busy = whole(2, NetworkWish::default());
        busy.time_limit = Some(TimeLimit::Secs(3600));
        world.submit_spec(busy);
        world.schedule();
        let job = world.submit_spec(JobSpec { burst_buffer: text.into(), ..whole(2, NetworkWish::default()) });
        be_silent(&mut world, 2900);
        assert_eq!(world.cluster.buffer(job).map(|buffer| buffer.phase), None, "{text}");
        let written = be_silent(&mut world, 180);
        assert_eq!(world.cluster.buffer(job).map(|buffer| buffer.phase), Some(BufferPhase::StagingIn), "{text}");
        assert!(written.n_ticks <= 2, "{text} {written:?}");
    }
}

/// One user, whose association may use so much.
fn limited(field: Field, limit: &str, change: impl Fn(&mut Config)) -> World {
    let mut world = World::alike(4, 2, 1000);
    configure(&mut world, |config| {
        config.accounting.enforce = Enforce::parse("associations,limits,safe").unwrap();
        change(config);
    });
    let ask = |change| Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() };
    let (clusters, names) = (Vec::new(), vec!["a".to_string()]);
    world.apply(ask(Change::AddAccounts {
        names,
        parent: "root".into(),
        edits: Vec::new(),
        clusters: clusters.clone(),
    }));
    let edits = vec![Edit { field, value: Value::Tres(tres::parse(limit).unwrap()) }];
    let (names, accounts) = (vec!["ann".into()], vec!["a".into()]);
    world.apply(ask(Change::AddUsers { names, accounts, partitions: Vec::new(), edits, clusters }));
    world
}

fn of_ann(n_tasks: u32, minutes: u64) -> JobSpec {
    let size = Size { min_nodes: 1, n_tasks: Some(n_tasks), ..Size::default() };
    let time_limit = Some(TimeLimit::Secs(60 * minutes));
    JobSpec { user: "ann".into(), size, time_limit, kind: JobKind::Allocation, ..JobSpec::default() }
}

#[test]
fn a_job_kept_by_a_limit_costs_an_idle_controller_nothing() {
    for (field, limit) in [(Field::MaxTres, "cpu=1"), (Field::GrpTres, "cpu=1"), (Field::MaxTresMins, "cpu=10")] {
        let mut world = limited(field, limit, |_| ());
        let job = world.submit_spec(of_ann(2, 10));
        be_silent(&mut world, 1);
        assert!(world.reason(job).0.is_some_and(Reason::is_limit), "{field:?}");
        assert_eq!(be_silent(&mut world, 3600), Written::default(), "{field:?}");
    }
    // Nothing is forgotten, and nobody runs: no use is looked at.
    let mut world = limited(Field::GrpTresMins, "cpu=10", |config| config.scheduler.priority.half_life = Span(0));
    world.submit_spec(of_ann(2, 10));
    be_silent(&mut world, 1);
    assert_eq!(be_silent(&mut world, 3600), Written::default());
}

#[test]
fn a_limit_that_time_lifts_is_looked_at_when_it_is_lifted() {
    let mut world = limited(Field::GrpTresRunMins, "cpu=100", |_| ());
    let first: JobId = world.submit_spec(of_ann(1, 60));
    world.schedule();
    assert!(world.is_running(first));
    // What the first may still use gets less: with 20 minutes gone there are 60 left for this one.
    let second = world.submit_spec(of_ann(1, 60));
    be_silent(&mut world, 19 * 60);
    assert_eq!(world.reason(second).0, Some(Reason::AssocGrpCPURunMinutesLimit));
    let written = be_silent(&mut world, 120);
    assert!(world.is_running(second), "{written:?}");
    assert!(written.n_ticks <= 2, "{written:?}");
}
