//! Who makes room for whom.
use model::command::DutyResult;
use model::partition::PreemptMode;
use model::preemption::PreemptKind;
use model::spec::{JobKind, JobSpec, Size, TimeLimit};
use model::time::Span;
use model::{Command, Config, JobId, Outcome, Owner, Phase, Task};
use world::{World, partition};

mod world;

/// Three nodes of four CPUs, all of them in `debug`, and in `high`, which comes first.
fn cluster(change: impl Fn(&mut Config)) -> World {
    let node = model::node::NodeConfig { cpus: 4, memory_mb: 1000, ..Default::default() };
    let nodes = ["n1", "n2", "n3"].map(|name| (name, node.clone())).to_vec();
    let mut high = partition("high", &["n1", "n2", "n3"]);
    high.priority_tier = 10;
    let mut world = World::new(nodes, vec![high]);
    let mut config = (**world.cluster.config()).clone();
    config.scheduler.preemption.kind = PreemptKind::PartitionTier;
    config.scheduler.preemption.mode = PreemptMode::Cancel;
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn spec(partition: &str, n_nodes: u32, n_cpus: u32) -> JobSpec {
    let size = Size { min_nodes: n_nodes, tasks_per_node: Some(n_cpus), ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    JobSpec { partitions: vec![partition.into()], size, kind, ..Default::default() }
}

fn submit(world: &mut World, partition: &str, n_nodes: u32, n_cpus: u32) -> JobId {
    let job = world.submit_spec(spec(partition, n_nodes, n_cpus));
    go(world);
    job
}

/// Plans, and does what the leader has to do, until nothing is left to do.
fn go(world: &mut World) {
    for _ in 0..5 {
        world.schedule();
        let duties: Vec<model::Duty> = world.cluster.duties().cloned().collect();
        for duty in duties {
            world.apply(Command::DutyDone { duty, result: DutyResult::Done });
        }
    }
}

fn outcome(world: &World, job: JobId) -> Option<Outcome> {
    world.cluster.job(job).unwrap().outcome
}

fn runs(world: &World, job: JobId) -> bool {
    world.cluster.job(job).unwrap().phase == Phase::Running
}

#[test]
fn as_few_as_possible_go_and_the_youngest_of_them() {
    let mut world = cluster(|_| ());
    let small: Vec<JobId> = (0..4).map(|_| submit(&mut world, "debug", 1, 1)).collect();
    world.pass(10);
    let old = submit(&mut world, "debug", 1, 4);
    world.pass(10);
    let young = submit(&mut world, "debug", 1, 4);
    let urgent = submit(&mut world, "high", 1, 4);
    assert!(runs(&world, urgent) && runs(&world, old));
    assert!(small.iter().all(|job| runs(&world, *job)));
    assert_eq!(outcome(&world, young), Some(Outcome::Preempted));
    let gone = world.cluster.job(young).unwrap();
    assert_eq!(gone.preempted_by, Some(urgent));
    assert_eq!(gone.preempted_at, Some(world.now));
    assert!(gone.remarks[0].text.contains(&format!("preempted by job {urgent}")));
}

#[test]
fn in_strict_order_only_the_lowest_go_though_they_are_more() {
    let mut world = cluster(|config| config.scheduler.preemption.strict_order = true);
    let old = submit(&mut world, "debug", 2, 4);
    world.pass(10);
    let small: Vec<JobId> = (0..4).map(|_| submit(&mut world, "debug", 1, 1)).collect();
    let urgent = submit(&mut world, "high", 1, 4);
    assert!(runs(&world, urgent) && runs(&world, old));
    assert!(small.iter().all(|job| outcome(&world, *job) == Some(Outcome::Preempted)));
}

#[test]
fn nobody_goes_in_vain() {
    let mut world = cluster(|_| ());
    let low = submit(&mut world, "debug", 1, 4);
    let first = submit(&mut world, "high", 2, 4);
    // Two of the nodes cannot be had, so the third stays where it is.
    let wide = submit(&mut world, "high", 3, 4);
    assert!(runs(&world, low) && runs(&world, first) && !runs(&world, wide));
}

#[test]
fn a_job_has_its_grace_and_runs_again_where_its_partition_says_so() {
    let mut world = cluster(|config| {
        let debug = config.partitions.iter_mut().find(|one| one.name == "debug").unwrap();
        debug.grace_time = Span::from_secs(30);
        debug.preempt_mode = Some(PreemptMode::Requeue);
    });
    let low = submit(&mut world, "debug", 3, 4);
    let urgent = world.submit_spec(spec("high", 1, 1));
    world.schedule();
    let duty = world.cluster.duty(&Owner::Job(low)).map(|duty| duty.task);
    assert_eq!(duty, Some(Task::Preempt));
    go(&mut world);
    assert!(runs(&world, low) && !runs(&world, urgent));
    assert!(world.expected(urgent).is_some_and(|(secs, _)| secs <= 60), "its place is promised to it");
    // What comes later, however short, does not get the place.
    let short = JobSpec { time_limit: Some(TimeLimit::Secs(60)), ..spec("debug", 1, 1) };
    let short = world.submit_spec(short);
    world.pass(30);
    go(&mut world);
    assert!(runs(&world, urgent) && runs(&world, short));
    let low = world.cluster.job(low).unwrap();
    assert_eq!((low.phase, low.restarts, low.preempt_ends), (Phase::Pending, 1, None));
    assert!(low.preempted_at.is_some());
}

#[test]
fn young_jobs_important_jobs_and_equals_are_left_alone() {
    let mut world = cluster(|config| config.scheduler.preemption.exempt_time = Span::from_secs(60));
    let low = submit(&mut world, "debug", 3, 4);
    let urgent = submit(&mut world, "high", 1, 1);
    assert!(runs(&world, low) && !runs(&world, urgent));
    let again = scheduler::look(&world.cluster).look_again_at;
    assert!(again.is_some_and(|at| at <= world.now + Span::from_secs(60)), "it looks again when the time is over");
    world.pass(60);
    go(&mut world);
    assert!(runs(&world, urgent));
    let equal = submit(&mut world, "high", 3, 4);
    assert!(runs(&world, urgent) && !runs(&world, equal));

    let mut world = cluster(|config| config.scheduler.preemption.min_exempt_priority = Some(1));
    let low = submit(&mut world, "debug", 3, 4);
    let urgent = submit(&mut world, "high", 1, 1);
    assert!(runs(&world, low) && !runs(&world, urgent));
}

#[test]
fn where_it_is_off_nobody_goes() {
    let off = |config: &mut Config| {
        let debug = config.partitions.iter_mut().find(|one| one.name == "debug").unwrap();
        debug.preempt_mode = Some(PreemptMode::Off);
    };
    for change in [off as fn(&mut Config), |config| config.scheduler.preemption.kind = PreemptKind::Nothing] {
        let mut world = cluster(change);
        let low = submit(&mut world, "debug", 3, 4);
        let urgent = submit(&mut world, "high", 1, 1);
        assert!(runs(&world, low) && !runs(&world, urgent));
    }
}

#[test]
fn licences_are_made_free_too() {
    let mut world = cluster(|config| config.licenses = model::license::parse_list("a:1").unwrap());
    let licensed = |partition| JobSpec { licenses: model::license::parse("a").unwrap(), ..spec(partition, 1, 1) };
    let low = world.submit_spec(licensed("debug"));
    go(&mut world);
    let other = submit(&mut world, "debug", 1, 1);
    let urgent = world.submit_spec(licensed("high"));
    go(&mut world);
    assert!(runs(&world, urgent) && runs(&world, other));
    assert_eq!(outcome(&world, low), Some(Outcome::Preempted));
}

#[test]
fn whoever_ends_well_while_it_makes_room_has_completed() {
    let grace = |config: &mut Config| config.partitions.iter_mut().for_each(|one| one.grace_time = Span::from_secs(30));
    let end = |exit: model::ExitStatus| {
        let mut world = cluster(grace);
        let low = submit(&mut world, "debug", 3, 4);
        submit(&mut world, "high", 1, 1);
        let exited = model::command::Exited {
            job: low,
            attempt: world.cluster.job(low).unwrap().attempt,
            step: model::StepId::Batch,
            node: "n1".into(),
            exit,
            ..Default::default()
        };
        world.apply(Command::Exited(exited));
        outcome(&world, low)
    };
    assert_eq!(end(model::ExitStatus::SUCCESS), Some(Outcome::Completed));
    assert_eq!(end(model::ExitStatus::signaled(15)), Some(Outcome::Preempted));
}
