//! CPUs that several jobs hold: shared, used in turns, and left to more important jobs for a while.
use model::command::DutyResult;
use model::partition::{OverSubscribe, PreemptMode};
use model::preemption::PreemptKind;
use model::spec::{JobKind, JobSpec, Memory, Sharing, Size};
use model::time::Span;
use model::{Command, Config, JobId, Owner, Phase, Task};
use world::{World, partition};

mod world;

/// Two nodes of two CPUs and 1000 MB, all in `debug` and in `high`, which comes first.
fn cluster(change: impl Fn(&mut Config)) -> World {
    let gpu = model::gres::Gres { name: "gpu".into(), count: 1, ..Default::default() };
    let node = model::node::NodeConfig { cpus: 2, memory_mb: 1000, gres: vec![gpu], ..Default::default() };
    let nodes = ["n1", "n2"].map(|name| (name, node.clone())).to_vec();
    let mut high = partition("high", &["n1", "n2"]);
    high.priority_tier = 10;
    let mut world = World::new(nodes, vec![high]);
    let mut config = (**world.cluster.config()).clone();
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn shares(sharing: OverSubscribe) -> impl Fn(&mut Config) {
    move |config| config.partitions.iter_mut().for_each(|one| one.oversubscribe = sharing)
}

fn takes_turns(config: &mut Config) {
    shares(OverSubscribe::Force(4))(config);
    let rules = &mut config.scheduler.preemption;
    (rules.is_gang, rules.time_slice) = (true, Span::from_secs(10));
}

fn suspends(config: &mut Config) {
    let rules = &mut config.scheduler.preemption;
    (rules.kind, rules.mode, rules.is_gang) = (PreemptKind::PartitionTier, PreemptMode::Suspend, true);
}

fn spec(partition: &str, n_nodes: u32, n_cpus: u32) -> JobSpec {
    let size = Size { min_nodes: n_nodes, tasks_per_node: Some(n_cpus), ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    JobSpec { partitions: vec![partition.into()], size, kind, ..Default::default() }
}

fn with(mut spec: JobSpec, change: impl FnOnce(&mut Size)) -> JobSpec {
    change(&mut spec.size);
    spec
}

fn submit(world: &mut World, spec: JobSpec) -> JobId {
    let job = world.submit_spec(spec);
    go(world);
    job
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

/// `R` runs, `S` stands still, `P` waits.
fn states(world: &World, jobs: &[JobId]) -> String {
    let state = |job: &JobId| match world.cluster.job(*job).unwrap().phase {
        Phase::Pending => 'P',
        Phase::Starting | Phase::Running => 'R',
        Phase::Suspended => 'S',
        Phase::Ending | Phase::Finishing | Phase::Done => 'D',
    };
    jobs.iter().map(state).collect()
}

fn cancel(world: &mut World, job: JobId) {
    world.apply(Command::Cancel { jobs: vec![job.into()], hurry: false });
    go(world);
}

#[test]
fn idle_cpus_are_used_before_cpus_are_shared_and_then_the_least_shared() {
    let mut world = cluster(shares(OverSubscribe::Force(3)));
    let jobs: Vec<JobId> = (0..7).map(|_| submit(&mut world, spec("debug", 1, 2))).collect();
    assert_eq!(states(&world, &jobs), "RRRRRRP");
    let places: Vec<String> = jobs[..6].iter().map(|job| world.placement(*job)).collect();
    assert_eq!(places, ["n1:2x2", "n2:2x2", "n1:2x2", "n2:2x2", "n1:2x2", "n2:2x2"]);
    cancel(&mut world, jobs[3]);
    assert_eq!(states(&world, &jobs), "RRRDRRR");
    let node = world.cluster.node("n1").unwrap();
    assert_eq!((node.free_cpus(), node.shares_cpus), (0, true));
    jobs.iter().for_each(|job| world.finish(*job));
    assert!(!world.cluster.node("n1").unwrap().shares_cpus);
}

#[test]
fn where_sharing_is_for_those_who_ask_both_must_have_asked() {
    let mut world = cluster(shares(OverSubscribe::Yes(4)));
    let asks = |spec| with(spec, |size| size.sharing = Sharing::Oversubscribe);
    let first = submit(&mut world, spec("debug", 1, 2));
    let second = submit(&mut world, asks(spec("debug", 1, 2)));
    let plain = submit(&mut world, spec("debug", 1, 1));
    assert_eq!(states(&world, &[first, second, plain]), "RRP");
    let third = submit(&mut world, asks(spec("debug", 1, 2)));
    assert_eq!(world.placement(third), "n2:2x2", "only the node of one who shares");
}

#[test]
fn memory_devices_other_partitions_and_whole_nodes_are_not_shared() {
    let mut world = cluster(shares(OverSubscribe::Force(4)));
    let big = |spec| with(spec, |size| size.memory = Memory::PerNodeMb(600));
    let jobs: Vec<JobId> = (0..3).map(|_| submit(&mut world, big(spec("debug", 1, 2)))).collect();
    assert_eq!(states(&world, &jobs), "RRP");
    let other = submit(&mut world, spec("high", 1, 1));
    let whole = submit(&mut world, with(spec("debug", 1, 1), |size| size.sharing = Sharing::WholeNodes));
    assert_eq!(states(&world, &[other, whole]), "PP");
    let gpu = model::gres::GresRequest { name: "gpu".into(), count: 1, ..Default::default() };
    let gpus: Vec<JobId> =
        (0..3).map(|_| submit(&mut world, with(spec("debug", 1, 1), |size| size.gres = vec![gpu.clone()]))).collect();
    assert_eq!(states(&world, &gpus), "RRP");
}

#[test]
fn jobs_take_turns_and_nobody_starves() {
    let mut world = cluster(takes_turns);
    let jobs: Vec<JobId> = (0..3).map(|_| submit(&mut world, spec("debug", 2, 2))).collect();
    assert_eq!(states(&world, &jobs), "RSS");
    let young = world.cluster.job(jobs[1]).unwrap();
    assert_eq!((young.run_time(world.now), young.is_parked), (Span(0), true));
    let mut seen = Vec::new();
    for _ in 0..4 {
        world.pass(10);
        go(&mut world);
        seen.push(states(&world, &jobs));
    }
    assert_eq!(seen, ["SRS", "SSR", "RSS", "SRS"]);
    // The end of one is the turn of the next, at once.
    cancel(&mut world, jobs[1]);
    assert_eq!(states(&world, &jobs), "SDR");
    let ran = |job: JobId| world.cluster.job(job).unwrap().run_time(world.now).secs();
    assert_eq!((ran(jobs[0]), ran(jobs[1]), ran(jobs[2])), (20, 10, 10));
    cancel(&mut world, jobs[2]);
    assert_eq!(states(&world, &jobs), "RDD");
    assert_eq!(
        world.cluster.next_deadline().map(|at| at > world.now + Span::from_secs(10)),
        Some(true),
        "no turns are left"
    );
}

#[test]
fn only_those_on_the_same_cpus_alternate() {
    let mut world = cluster(takes_turns);
    let wide = submit(&mut world, spec("debug", 1, 2));
    let small: Vec<JobId> = (0..4).map(|_| submit(&mut world, spec("debug", 1, 1))).collect();
    // n1 wide, n2 the first two; the others share with somebody.
    assert_eq!(states(&world, &[wide, small[0], small[1]]), "RRR");
    assert_eq!(states(&world, &small[2..]), "SS");
    for _ in 0..3 {
        world.pass(10);
        go(&mut world);
        let running = [&[wide], &small[..]].concat();
        let n_running = states(&world, &running).matches('R').count();
        assert!(n_running >= 3, "no CPU is idle: {}", states(&world, &running));
    }
}

#[test]
fn a_job_stands_still_for_a_more_important_one_and_goes_on_after_it() {
    let mut world = cluster(suspends);
    let low = submit(&mut world, spec("debug", 1, 2));
    let other = submit(&mut world, spec("debug", 1, 2));
    world.pass(10);
    let high = submit(&mut world, spec("high", 1, 1));
    assert_eq!(states(&world, &[low, other, high]), "RSR", "one, and the youngest");
    world.pass(20);
    go(&mut world);
    let still = world.cluster.job(other).unwrap();
    assert_eq!(still.run_time(world.now).secs(), 10);
    assert!(still.priority > 0 && !still.is_suspended_by_hand());
    cancel(&mut world, high);
    assert_eq!(states(&world, &[low, other]), "RR");
    assert_eq!(world.cluster.job(other).unwrap().total_suspended.secs(), 20);
}

#[test]
fn nobody_stands_still_for_nothing() {
    let mut world = cluster(suspends);
    let big = |spec| with(spec, |size| size.memory = Memory::PerNodeMb(600));
    let low: Vec<JobId> = (0..2).map(|_| submit(&mut world, big(spec("debug", 1, 2)))).collect();
    let high = submit(&mut world, big(spec("high", 1, 1)));
    assert_eq!(states(&world, &[low[0], low[1], high]), "RRP", "memory is not freed by it");
    let gpu = model::gres::GresRequest { name: "gpu".into(), count: 1, ..Default::default() };
    let mut world = cluster(suspends);
    let low: Vec<JobId> =
        (0..2).map(|_| submit(&mut world, with(spec("debug", 1, 2), |size| size.gres = vec![gpu.clone()]))).collect();
    let high = submit(&mut world, with(spec("high", 1, 1), |size| size.gres = vec![gpu.clone()]));
    assert_eq!(states(&world, &[low[0], low[1], high]), "RRP", "neither are devices");
}

#[test]
fn whole_nodes_are_left_and_taken_back() {
    let mut world = cluster(suspends);
    let whole = |spec| with(spec, |size| size.sharing = Sharing::WholeNodes);
    let low = submit(&mut world, whole(spec("debug", 2, 1)));
    let high = submit(&mut world, whole(spec("high", 1, 1)));
    assert_eq!(states(&world, &[low, high]), "SR");
    let more = submit(&mut world, spec("debug", 1, 1));
    assert_eq!(states(&world, &[more]), "P", "what stands still keeps the rest of its nodes");
    cancel(&mut world, high);
    assert_eq!(states(&world, &[low, more]), "RP");
    assert_eq!(world.cluster.node("n1").unwrap().exclusive_job, Some(low));
    cancel(&mut world, low);
    assert_eq!(states(&world, &[more]), "R");
}

#[test]
fn what_somebody_suspends_only_they_resume() {
    let mut world = cluster(suspends);
    let low = submit(&mut world, spec("debug", 2, 2));
    let high = submit(&mut world, spec("high", 1, 1));
    assert_eq!(states(&world, &[low, high]), "SR");
    world.apply(Command::Resume { jobs: vec![low.into()] });
    assert_eq!(states(&world, &[low, high]), "SR", "its CPUs are still needed");
    world.apply(Command::Suspend { jobs: vec![low.into()] });
    cancel(&mut world, high);
    assert_eq!(states(&world, &[low]), "S");
    world.apply(Command::Resume { jobs: vec![low.into()] });
    go(&mut world);
    assert_eq!(states(&world, &[low]), "R");
}

#[test]
fn whoever_is_suspended_by_hand_is_in_nobodys_way() {
    let mut world = cluster(suspends);
    let low = submit(&mut world, spec("debug", 2, 2));
    let high = submit(&mut world, spec("high", 1, 1));
    world.apply(Command::Suspend { jobs: vec![high.into()] });
    go(&mut world);
    assert_eq!(states(&world, &[low, high]), "RS");
    let next = submit(&mut world, spec("debug", 1, 1));
    assert_eq!(states(&world, &[next]), "P", "its CPUs are not given to others");
    world.apply(Command::Resume { jobs: vec![high.into()] });
    go(&mut world);
    assert_eq!(states(&world, &[low, high]), "SR");
}

#[test]
fn what_has_not_been_launched_is_launched_and_then_frozen() {
    let mut world = cluster(takes_turns);
    let first = submit(&mut world, spec("debug", 2, 2));
    let second = world.submit_spec(spec("debug", 2, 2));
    world.schedule();
    assert_eq!(states(&world, &[first, second]), "RS");
    let task = |world: &World| world.cluster.duty(&Owner::Job(second)).map(|duty| duty.task);
    assert_eq!(task(&world), Some(Task::Launch));
    let duty = world.cluster.duty(&Owner::Job(second)).cloned().unwrap();
    world.apply(Command::DutyDone { duty, result: DutyResult::Done });
    assert_eq!(task(&world), Some(Task::Stop));
}
