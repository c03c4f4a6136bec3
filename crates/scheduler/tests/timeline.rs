//! What is promised in the future, and who may start before.
use model::config::BackfillConfig;
use model::spec::{JobSpec, Size, TimeLimit};
use model::{Command, JobId, Reason};
use world::World;

mod world;

fn job(world: &mut World, n_nodes: u32, minutes: u64) -> JobId {
    world.submit_spec(spec(n_nodes, minutes))
}

/// All CPUs of so many four-CPU nodes.
fn spec(n_nodes: u32, minutes: u64) -> JobSpec {
    let size = Size { min_nodes: n_nodes, tasks_per_node: Some(4), ..Default::default() };
    JobSpec { size, time_limit: Some(TimeLimit::Secs(minutes * 60)), ..Default::default() }
}

fn with_backfill(world: &mut World, change: impl Fn(&mut BackfillConfig)) {
    let mut config = (**world.cluster.config()).clone();
    change(&mut config.scheduler.backfill);
    world.apply(Command::Reconfigure { config: Box::new(config) });
}

#[test]
fn a_short_job_starts_in_the_gap_before_a_wide_one_and_a_long_one_does_not() {
    let mut world = World::alike(3, 4, 1000);
    let running = job(&mut world, 2, 60);
    world.schedule();
    let wide = job(&mut world, 3, 60);
    let long = job(&mut world, 1, 61);
    let short = job(&mut world, 1, 60);
    world.schedule();
    assert!(world.is_running(short) && !world.is_running(long) && !world.is_running(wide));
    assert_eq!(world.expected(wide), Some((3600, "n[1-3]")));
    assert_eq!(world.expected(long).map(|(secs, _)| secs >= 7200), Some(true));
    assert_eq!(world.reason(wide).0, Some(Reason::Resources));
    assert_eq!(world.reason(long).0, Some(Reason::Priority));
    world.finish(running);
    world.schedule();
    assert!(!world.is_running(wide) && !world.is_running(long), "the place of the wide one is kept");
    world.finish(short);
    world.schedule();
    assert!(world.is_running(wide));
}

#[test]
fn only_so_many_jobs_have_a_place_that_others_respect() {
    let place = |n_reservations| {
        let mut world = World::alike(4, 4, 1000);
        with_backfill(&mut world, |backfill| backfill.n_reservations = n_reservations);
        job(&mut world, 3, 60);
        world.schedule();
        let first = job(&mut world, 4, 60);
        let second = job(&mut world, 4, 60);
        // Would end before the first, and after neither.
        let passes = job(&mut world, 1, 60);
        world.schedule();
        let has_place = |job| world.expected(job).is_some();
        (has_place(first), has_place(second), world.is_running(passes))
    };
    assert_eq!(place(0), (false, false, true));
    assert_eq!(place(1), (true, false, true));
    assert_eq!(place(2), (true, true, true));
}

#[test]
fn without_backfill_a_partition_starts_its_jobs_in_order() {
    let mut world = World::alike(2, 4, 1000);
    with_backfill(&mut world, |backfill| backfill.is_on = false);
    job(&mut world, 1, 60);
    let wide = job(&mut world, 2, 1);
    let small = job(&mut world, 1, 1);
    world.schedule();
    assert!(!world.is_running(wide) && !world.is_running(small));
}

#[test]
fn a_job_that_may_be_shorter_is_cut_to_the_gap() {
    let mut world = World::alike(2, 4, 1000);
    job(&mut world, 1, 60);
    world.schedule();
    job(&mut world, 2, 60);
    let mut flexible = spec(1, 600);
    flexible.time_min = Some(TimeLimit::Secs(600));
    let flexible = world.submit_spec(flexible);
    world.schedule();
    assert!(world.is_running(flexible));
    let limit = world.cluster.job(flexible).unwrap().spec.time_limit;
    assert!(matches!(limit, Some(TimeLimit::Secs(3540..=3600))), "{limit:?}");
}

#[test]
fn running_jobs_without_a_limit_do_not_let_later_ones_starve_a_wide_one() {
    let mut world = World::alike(2, 4, 1000);
    let size = || Size { tasks_per_node: Some(4), ..Default::default() };
    world.submit(size());
    world.schedule();
    let wide = job(&mut world, 2, 10);
    let first = world.submit(size());
    world.schedule();
    assert!(world.is_running(first), "at first others may pass");
    world.finish(first);
    world.pass(600);
    let endless = world.submit(size());
    let short = job(&mut world, 1, 10);
    world.schedule();
    assert!(world.is_running(short) && !world.is_running(endless) && !world.is_running(wide));
    assert_eq!(world.expected(wide), None, "nobody knows when");
}

#[test]
fn users_and_partitions_have_only_so_many_jobs_tried_behind_others() {
    let mut world = World::alike(3, 4, 1000);
    with_backfill(&mut world, |backfill| backfill.max_jobs_per_user = Some(1));
    job(&mut world, 1, 60);
    world.schedule();
    job(&mut world, 3, 60);
    let mut of = |uid| world.submit_spec(JobSpec { uid, ..spec(1, 10) });
    let jobs = [of(1), of(1), of(2)];
    world.schedule();
    assert_eq!(jobs.map(|job| world.is_running(job)), [true, false, true]);
}

#[test]
fn a_pass_goes_on_where_another_stopped_and_breaks_no_promise() {
    let mut world = World::alike(2, 4, 1000);
    let mut config = (**world.cluster.config()).clone();
    config.scheduler.depth = 2;
    world.apply(model::Command::Reconfigure { config: Box::new(config) });
    let spec = |n_nodes: u32, n_cpus: u32, minutes: u64| {
        let size = Size { min_nodes: n_nodes, tasks_per_node: Some(n_cpus), ..Default::default() };
        JobSpec { size, time_limit: Some(TimeLimit::Secs(minutes * 60)), ..Default::default() }
    };
    let holder = world.submit_spec(spec(1, 4, 60));
    world.schedule();
    let wide: Vec<JobId> = (0..2).map(|_| world.submit_spec(spec(2, 4, 30))).collect();
    let long = world.submit_spec(spec(1, 4, 90));
    let short = world.submit_spec(spec(1, 4, 30));
    let outlook = scheduler::look(&world.cluster);
    assert!(outlook.plan.starts.is_empty(), "it looks at two");
    assert_eq!(outlook.stopped_at, Some(wide[1]));
    world.apply(model::Command::AdoptPlan(outlook.plan));
    let next = scheduler::look_behind(&world.cluster, wide[1]);
    let started: Vec<JobId> = next.plan.starts.iter().map(|start| start.job).collect();
    assert_eq!(started, [short], "the long one would delay those before it");
    assert_eq!(next.stopped_at, None, "that was the end of the queue");
    world.apply(model::Command::AdoptPlan(next.plan));
    assert!(world.is_running(short) && world.is_running(holder) && !world.is_running(long));
    assert_eq!(world.reason(long).0, Some(model::Reason::Priority));
}
