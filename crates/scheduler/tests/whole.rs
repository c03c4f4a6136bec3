//! Heterogeneous jobs as wholes: promised room at one time, made room for, and made to go together.
use model::command::DutyResult;
use model::config::SuspendCpus;
use model::partition::{OverSubscribe, PreemptMode};
use model::preemption::PreemptKind;
use model::spec::{JobKind, JobSpec, Memory, Sharing, Size, TimeLimit};
use model::{Command, Config, JobId, Outcome, Phase, Reason, Reply};
use world::{World, partition};

mod world;

/// Four nodes of four CPUs, all in `debug` and in `high`, which comes first.
fn cluster(change: impl Fn(&mut Config)) -> World {
    let names = ["n1", "n2", "n3", "n4"];
    let node = model::node::NodeConfig { cpus: 4, memory_mb: 1000, ..Default::default() };
    let mut high = partition("high", &names);
    high.priority_tier = 10;
    let mut world = World::new(names.map(|name| (name, node.clone())).to_vec(), vec![high]);
    let mut config = (**world.cluster.config()).clone();
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn cancels(config: &mut Config) {
    let rules = &mut config.scheduler.preemption;
    (rules.kind, rules.mode) = (PreemptKind::PartitionTier, PreemptMode::Cancel);
}

fn spec(partition: &str, n_nodes: u32, minutes: u64) -> JobSpec {
    let size = Size { min_nodes: n_nodes, tasks_per_node: Some(4), ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    let time_limit = Some(TimeLimit::Secs(minutes * 60));
    JobSpec { partitions: vec![partition.into()], size, kind, time_limit, ..Default::default() }
}

fn together(world: &mut World, specs: Vec<JobSpec>) -> Vec<JobId> {
    let Reply::Submitted(id) = world.apply(Command::SubmitTogether { specs, blobs: Vec::new() }) else {
        panic!("it is taken")
    };
    world.cluster.job(id).unwrap().het.as_ref().unwrap().ids.clone()
}

fn go(world: &mut World) {
    for _ in 0..5 {
        world.schedule();
        let duties: Vec<model::Duty> = world.cluster.duties().cloned().collect();
        for duty in duties {
            world.apply(Command::DutyDone { duty, result: DutyResult::Done });
        }
    }
}

fn started(world: &mut World, spec: JobSpec) -> JobId {
    let job = world.submit_spec(spec);
    go(world);
    assert!(world.is_running(job));
    job
}

#[test]
fn all_components_are_promised_room_at_the_same_time_and_nobody_gets_in_between() {
    let mut world = cluster(|_| ());
    let short = started(&mut world, spec("debug", 1, 10));
    let long = started(&mut world, spec("debug", 1, 30));
    started(&mut world, spec("debug", 2, 60));
    // Each component alone could start after ten minutes; both together only after thirty.
    let whole = together(&mut world, vec![spec("debug", 1, 60), spec("debug", 1, 60)]);
    world.schedule();
    let expected: Vec<(u64, String)> =
        whole.iter().map(|id| world.expected(*id).map(|(at, nodes)| (at, nodes.to_string())).unwrap()).collect();
    assert_eq!(expected[0].0, expected[1].0);
    assert!((1740..=1860).contains(&expected[0].0), "{expected:?}");
    assert_ne!(expected[0].1, expected[1].1, "each has nodes of its own");
    // One that ends before may pass, one that does not may not.
    world.finish(short);
    let fits = world.submit_spec(spec("debug", 1, 20));
    let does_not = world.submit_spec(spec("debug", 1, 90));
    go(&mut world);
    assert!(world.is_running(fits) && !world.is_running(does_not));
    world.finish(long);
    world.finish(fits);
    go(&mut world);
    assert!(whole.iter().all(|id| world.is_running(*id)));
}

#[test]
fn room_is_made_for_all_components_or_for_none() {
    let mut world = cluster(cancels);
    let low: Vec<JobId> = (0..4).map(|_| started(&mut world, spec("debug", 1, 60))).collect();
    let whole = together(&mut world, vec![spec("high", 1, 10), spec("high", 1, 10)]);
    go(&mut world);
    assert!(whole.iter().all(|id| world.is_running(*id)));
    let gone = |world: &World| {
        low.iter().filter(|id| world.cluster.job(**id).unwrap().outcome == Some(Outcome::Preempted)).count()
    };
    assert_eq!(gone(&world), 2, "as few as will do");
    // Five nodes cannot be had, whoever goes: nobody does.
    let kept = started(&mut world, spec("high", 1, 60));
    let too_many = together(&mut world, vec![spec("high", 2, 10), spec("high", 2, 10)]);
    go(&mut world);
    assert!(!too_many.iter().any(|id| world.is_running(*id)));
    assert!(world.is_running(kept));
    assert_eq!(gone(&world), 3, "only for the one that could start");
}

#[test]
fn components_go_together_when_they_make_room() {
    let mut world = cluster(cancels);
    let whole = together(&mut world, vec![spec("debug", 2, 60), spec("debug", 2, 60)]);
    go(&mut world);
    let urgent = started(&mut world, spec("high", 1, 10));
    assert!(world.is_running(urgent));
    assert!(whole.iter().all(|id| world.cluster.job(*id).unwrap().outcome == Some(Outcome::Preempted)));
}

#[test]
fn wholes_take_no_turns_and_stand_still_for_nobody() {
    let mut world = cluster(|config| {
        let rules = &mut config.scheduler.preemption;
        (rules.kind, rules.mode, rules.is_gang) = (PreemptKind::PartitionTier, PreemptMode::Suspend, true);
        config.partitions.iter_mut().for_each(|one| one.oversubscribe = OverSubscribe::Force(2));
    });
    let whole = together(&mut world, vec![spec("debug", 2, 60), spec("debug", 2, 60)]);
    go(&mut world);
    let urgent = world.submit_spec(spec("high", 1, 10));
    go(&mut world);
    let phases: Vec<Phase> = whole.iter().map(|id| world.cluster.job(*id).unwrap().phase).collect();
    assert_eq!(phases, [Phase::Running, Phase::Running]);
    assert!(!world.is_running(urgent));
    assert_eq!(world.reason(urgent).0, Some(Reason::Resources));
}

#[test]
fn a_whole_node_that_is_lent_may_be_had_alone() {
    let mut world = cluster(|config| config.scheduler.suspend_cpus = SuspendCpus::Release);
    let alone = |minutes| {
        let mut spec = spec("debug", 4, minutes);
        (spec.size.sharing, spec.size.tasks_per_node) = (Sharing::WholeNodes, None);
        spec
    };
    let first = started(&mut world, alone(60));
    let second = world.submit_spec(alone(10));
    go(&mut world);
    assert!(!world.is_running(second));
    world.apply(Command::Suspend { jobs: vec![first.into()] });
    go(&mut world);
    assert!(world.is_running(second), "who is suspended is in nobody's way");
    world.apply(Command::Resume { jobs: vec![first.into()] });
    go(&mut world);
    world.finish(second);
    let third = world.submit_spec(spec("debug", 1, 10));
    go(&mut world);
    assert!(!world.is_running(third), "the first has its nodes alone again");
    world.finish(first);
    go(&mut world);
    assert!(world.is_running(third));
}

#[test]
fn memory_that_a_suspended_job_keeps_is_no_part_of_a_whole_node() {
    let mut world = cluster(|config| {
        config.scheduler.suspend_cpus = SuspendCpus::Release;
        config.scheduler.tracks_memory = true;
    });
    let mut keeps = spec("debug", 4, 60);
    keeps.size.memory = Memory::PerNodeMb(600);
    let first = started(&mut world, keeps);
    world.apply(Command::Suspend { jobs: vec![first.into()] });
    go(&mut world);
    let mut alone = spec("debug", 1, 10);
    (alone.size.sharing, alone.size.tasks_per_node) = (Sharing::WholeNodes, None);
    for (per_cpu_mb, fits) in [(150, false), (100, true)] {
        alone.size.memory = Memory::PerCpuMb(per_cpu_mb);
        let job = world.submit_spec(alone.clone());
        go(&mut world);
        assert_eq!(world.is_running(job), fits, "4 CPUs of {per_cpu_mb} MB beside 600 of 1000");
    }
}
