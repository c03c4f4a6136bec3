//! Whose burst buffers are filled, and when: in order, within the pools, early enough, and only for those who may start.
use model::buffer::BufferPhase;
use model::command::{DutyResult, PlaceResult};
use model::pool::{BurstBufferConfig, Pool, PoolKind, PoolReport};
use model::spec::{JobKind, JobSpec, Size, TimeLimit};
use model::staging::{Access, Moved, StageResult};
use model::time::Span;
use model::{Command, Config, JobId, Owner, Plan, Reason, Task};
use world::World;

mod world;

/// Two nodes of two CPUs; 10 GiB for all, 2 GiB on each node.
fn cluster(change: impl Fn(&mut Config)) -> World {
    let mut world = World::alike(2, 2, 1000);
    let pool = |name: &str, kind, gib: u64| Pool {
        name: name.into(),
        kind,
        root: format!("/{name}"),
        granularity_bytes: 1 << 30,
        total_bytes: Some(gib << 30),
        ..Default::default()
    };
    let mut config = (**world.cluster.config()).clone();
    config.burst_buffer = Some(BurstBufferConfig {
        pools: vec![pool("flash", PoolKind::Shared, 10), pool("nvme", PoolKind::Node, 2)],
        stage_ahead: Span::from_secs(3600),
        ..Default::default()
    });
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

fn spec(buffer: &str, minutes: u64) -> JobSpec {
    let size = Size { min_nodes: 1, n_tasks: Some(2), ..Default::default() };
    let kind = JobKind::Allocation;
    let time_limit = Some(TimeLimit::Secs(60 * minutes));
    JobSpec { size, kind, time_limit, burst_buffer: buffer.into(), ..Default::default() }
}

/// Fills both nodes for so long.
fn occupy(world: &mut World, minutes: u64) -> [JobId; 2] {
    let jobs = [(); 2].map(|()| world.submit_spec(spec("", minutes)));
    world.schedule();
    jobs
}

fn staged_by(plan: &Plan) -> Vec<JobId> {
    plan.stage_ins.iter().map(|one| one.job).collect()
}

fn phase(world: &World, job: JobId) -> Option<BufferPhase> {
    world.cluster.buffer(job).map(|buffer| buffer.phase)
}

/// What agents are to do for the job's buffer is done.
fn answer(world: &mut World, job: JobId) {
    let duty = world.cluster.duty(&Owner::Buffer(job)).expect("its buffer has a duty").clone();
    let buffer = world.cluster.buffer(job).expect("just seen");
    let open = buffer.places.iter().filter(|place| !place.is_done);
    let result = StageResult::Done(Moved::default());
    let results =
        open.map(|it| PlaceResult { access: it.access, node: it.node.clone(), result: result.clone() }).collect();
    world.apply(Command::Staged { duty, results });
}

#[test]
fn the_important_are_served_first_and_nobody_overtakes_in_the_same_pool() {
    let mut world = cluster(|_| ());
    let [large, too_large, second, small] =
        ["capacity=8", "capacity=11", "capacity=4", "capacity=1"].map(|text| world.submit_spec(spec(text, 10)));
    let plan = world.schedule();
    // What can never fit blocks nobody; what waits for room lets nobody by.
    assert_eq!(staged_by(&plan), [large]);
    assert_eq!(phase(&world, large), Some(BufferPhase::StagingIn));
    for job in [too_large, second, small] {
        assert_eq!(world.reason(job).0, Some(Reason::BurstBufferResources), "{job}");
    }
    world.apply(Command::Cancel { jobs: vec![large.into()], hurry: false });
    assert_eq!(staged_by(&world.schedule()), [], "the space is not free before it is torn down");
    answer(&mut world, large);
    assert_eq!(staged_by(&world.schedule()), [second, small]);
}

/// What others have reserved is no room that anybody could give back: whoever waits for it is in nobody's way.
#[test]
fn who_waits_for_reserved_space_holds_up_nobody() {
    use model::reservation::{Flag, Members};
    use model::reservation_field::{Field, MembersChange};
    let mut world = cluster(|_| ());
    let own = Members { names: vec!["0".into()], are_excluded: false };
    let fields = vec![
        Field::Start(world.now),
        Field::Duration(Some(Span::from_secs(3600))),
        Field::Users(MembersChange::To(own)),
        Field::Flags(vec![Flag::AnyNodes]),
        Field::BurstBuffer("flash:8G".into()),
    ];
    world.apply(Command::CreateReservation { name: "r".into(), fields, utc_offset_secs: 0 });
    let waits = world.submit_spec(spec("capacity=3", 10));
    let small = world.submit_spec(spec("capacity=2", 10));
    let inside = JobSpec { reservations: vec!["r".into()], ..spec("capacity=7", 10) };
    let inside = world.submit_spec(inside);
    assert_eq!(staged_by(&world.schedule()), [small, inside]);
    assert_eq!((phase(&world, waits), world.reason(waits).0), (None, Some(Reason::BurstBufferResources)));
    // Of what is not reserved nobody gets any out of turn.
    let [first, second] = ["capacity=2", "capacity=1"].map(|text| world.submit_spec(spec(text, 10)));
    assert_eq!(staged_by(&world.schedule()), []);
    world.apply(Command::Cancel { jobs: vec![small.into()], hurry: false });
    answer(&mut world, small);
    assert_eq!(staged_by(&world.schedule()), [first]);
    assert_eq!(phase(&world, second), None);
}

/// Outsiders who queue for the rest of a pool keep nobody from what is reserved for him.
#[test]
fn reserved_space_is_given_whoever_waits_for_the_rest() {
    use model::reservation::{Flag, Members};
    use model::reservation_field::{Field, MembersChange};
    let mut world = cluster(|_| ());
    let own = Members { names: vec!["0".into()], are_excluded: false };
    let fields = vec![
        Field::Start(world.now),
        Field::Duration(Some(Span::from_secs(3600))),
        Field::Users(MembersChange::To(own)),
        Field::Flags(vec![Flag::AnyNodes]),
        Field::BurstBuffer("flash:4G".into()),
    ];
    world.apply(Command::CreateReservation { name: "r".into(), fields, utc_offset_secs: 0 });
    let [has, waits] = ["capacity=6", "capacity=6"].map(|text| world.submit_spec(spec(text, 10)));
    assert_eq!(staged_by(&world.schedule()), [has]);
    let inside = |text: &str| JobSpec { reservations: vec!["r".into()], ..spec(text, 10) };
    let [first, second] = ["capacity=3", "capacity=2"].map(|text| world.submit_spec(inside(text)));
    assert_eq!(staged_by(&world.schedule()), [first], "{waits} waits for what is not reserved");
    assert_eq!(phase(&world, second), None, "of the reservation one gibibyte is left");
}

#[test]
fn those_who_wait_for_one_pool_do_not_hold_up_another() {
    let mut world = cluster(|config| {
        let buffers = config.burst_buffer.as_mut().expect("configured");
        let other = Pool { name: "disk".into(), root: "/disk".into(), ..buffers.pools[0].clone() };
        buffers.pools.push(other);
    });
    let [first, waits, elsewhere] =
        ["capacity=10", "capacity=1", "capacity=1 pool=disk"].map(|text| world.submit_spec(spec(text, 10)));
    assert_eq!(staged_by(&world.schedule()), [first, elsewhere]);
    assert_eq!(phase(&world, waits), None);
}

#[test]
fn exactly_what_there_is_can_be_had() {
    let mut world = cluster(|_| ());
    let whole = world.submit_spec(spec("capacity=10", 10));
    assert_eq!(staged_by(&world.schedule()), [whole]);
}

#[test]
fn nobody_is_staged_who_may_not_start() {
    let mut world = cluster(|_| ());
    let held = world.submit_spec(JobSpec { held: true, ..spec("capacity=1", 10) });
    let begin = Some(world.now + Span::from_secs(600));
    let later = world.submit_spec(JobSpec { begin, ..spec("capacity=1", 10) });
    let first = world.submit_spec(spec("", 10));
    let dependency = model::dependency::parse(&format!("afterok:{first}")).unwrap();
    let dependent = world.submit_spec(JobSpec { dependency, ..spec("capacity=1", 10) });
    assert_eq!(staged_by(&world.schedule()), []);
    world.apply(Command::Release { jobs: vec![held.into()] });
    assert_eq!(staged_by(&world.schedule()), [held]);
    world.pass(600);
    assert!(staged_by(&world.schedule()).contains(&later));
    assert_eq!(phase(&world, dependent), None);
}

#[test]
fn data_is_brought_when_the_start_is_near_not_long_before() {
    for (minutes, is_near) in [(30, true), (300, false)] {
        let mut world = cluster(|_| ());
        occupy(&mut world, minutes);
        let job = world.submit_spec(spec("capacity=1", 10));
        let plan = world.schedule();
        assert_eq!(staged_by(&plan), if is_near { vec![job] } else { vec![] }, "in {minutes} minutes");
        if !is_near {
            world.pass(60 * 241);
            assert_eq!(staged_by(&world.schedule()), [job], "an hour before");
        }
    }
}

#[test]
fn a_job_whose_data_is_on_its_way_keeps_its_place() {
    let mut world = cluster(|_| ());
    let job = world.submit_spec(JobSpec { size: Size { min_nodes: 2, ..spec("", 1).size }, ..spec("capacity=1", 60) });
    world.schedule();
    assert_eq!(phase(&world, job), Some(BufferPhase::StagingIn));
    // Nothing else may be put in its way but what is over before.
    let long = world.submit_spec(spec("", 600));
    world.schedule();
    answer(&mut world, job);
    world.schedule();
    assert!(world.is_running(job), "{:?} {:?}", world.reason(job), world.is_running(long));
}

#[test]
fn private_space_is_made_where_the_job_will_run_and_counted_on_each_node() {
    let mut world = cluster(|_| ());
    let busy = occupy(&mut world, 30);
    let job = world.submit_spec(spec("capacity=2 pool=nvme", 10));
    let plan = world.schedule();
    assert_eq!(staged_by(&plan), [job]);
    let nodes = plan.stage_ins[0].nodes.clone();
    assert_eq!(nodes.len(), 1);
    // The same disk is promised to nobody else.
    let other = world.submit_spec(spec("capacity=1 pool=nvme", 10));
    let plan = world.schedule();
    assert!(plan.stage_ins.iter().all(|one| one.job != other || one.nodes != nodes), "{:?}", plan.stage_ins);
    answer(&mut world, job);
    busy.iter().for_each(|job| world.finish(*job));
    world.schedule();
    assert!(world.is_running(job));
    assert_eq!(world.cluster.job(job).unwrap().allocation.names().cloned().collect::<Vec<_>>(), nodes);
}

#[test]
fn one_plan_does_not_give_a_disk_twice() {
    let mut world = cluster(|_| ());
    let small = |buffer: &str| JobSpec {
        size: Size { min_nodes: 1, max_nodes: Some(1), n_tasks: Some(1), ..Default::default() },
        ..spec(buffer, 10)
    };
    let jobs: Vec<JobId> = (0..4).map(|_| world.submit_spec(small("capacity=2 pool=nvme"))).collect();
    let plan = world.schedule();
    assert_eq!(plan.starts.len(), 2, "a disk a node: {:?}", plan.starts);
    let ended = plan.starts[0].job;
    let duty = world.cluster.duty(&Owner::Buffer(ended)).expect("its data is brought").clone();
    assert_eq!(duty.task, Task::PreRun);
    answer(&mut world, ended);
    world.finish(ended);
    if let Some(duty) = world.cluster.duty(&Owner::Job(ended)).cloned() {
        world.apply(Command::DutyDone { duty, result: DutyResult::Done });
    }
    while world.cluster.duty(&Owner::Buffer(ended)).is_some() {
        answer(&mut world, ended);
    }
    assert_eq!(world.schedule().starts.len(), 1);
    assert_eq!(jobs.iter().filter(|job| world.is_running(**job)).count(), 2);
}

#[test]
fn a_job_whose_deadline_has_passed_is_not_staged() {
    let mut world = cluster(|_| ());
    let whole = world.submit_spec(spec("capacity=10", 10));
    world.schedule();
    let deadline = Some(world.now + Span::from_secs(1200));
    let late = world.submit_spec(JobSpec { deadline, ..spec("capacity=1", 10) });
    assert_eq!(staged_by(&world.schedule()), []);
    world.pass(1300);
    world.apply(Command::Cancel { jobs: vec![whole.into()], hurry: false });
    answer(&mut world, whole);
    assert_eq!(staged_by(&world.schedule()), []);
    assert_eq!(phase(&world, late), None);
    assert!(world.cluster.job(late).unwrap().is_over(), "it cannot end in time any more");
}

#[test]
fn what_was_filled_ahead_makes_room_for_the_more_important_who_start_sooner() {
    for (preempts, priority, makes_room) in [(true, 1_000_000, true), (false, 1_000_000, false), (true, 1, false)] {
        let mut world = cluster(|config| config.burst_buffer.as_mut().expect("configured").preempts = preempts);
        // One node is busy: who wants both is staged ahead, and starts in half an hour.
        world.submit_spec(spec("", 30));
        let size = Size { min_nodes: 2, n_tasks: Some(4), ..Default::default() };
        let ahead = world.submit_spec(JobSpec { size, priority: Some(1000), ..spec("capacity=8", 60) });
        world.schedule();
        answer(&mut world, ahead);
        world.schedule();
        assert_eq!(phase(&world, ahead), Some(BufferPhase::StagedIn));
        let sooner = world.submit_spec(JobSpec { priority: Some(priority), ..spec("capacity=8", 10) });
        let plan = world.schedule();
        assert_eq!(plan.stage_preemptions.len(), usize::from(makes_room), "{preempts} {priority}");
        if !makes_room {
            assert_eq!(phase(&world, ahead), Some(BufferPhase::StagedIn));
            continue;
        }
        assert_eq!(phase(&world, ahead), Some(BufferPhase::TearingDown));
        assert_eq!(world.schedule().stage_preemptions, [], "it is on its way");
        answer(&mut world, ahead);
        assert_eq!(staged_by(&world.schedule()), [sooner]);
        assert_eq!(world.reason(ahead).0, Some(Reason::BurstBufferResources));
    }
}

#[test]
fn foreign_files_leave_less_to_give() {
    let mut world = cluster(|_| ());
    let report = |pool: &str, total: u64, foreign: u64| PoolReport {
        pool: pool.into(),
        total_bytes: total << 30,
        foreign_bytes: foreign << 30,
        ..Default::default()
    };
    let node = world.cluster.nodes().next().expect("a node").name.clone();
    let seen = |flash, nvme| {
        let pools = vec![report("flash", 12, flash), report("nvme", 4, nvme)];
        Command::PoolsSeen { node: node.clone(), pools }
    };
    world.apply(seen(6, 3));
    let [shared, private] = ["capacity=8", "capacity=2 pool=nvme"].map(|text| world.submit_spec(spec(text, 10)));
    let plan = world.schedule();
    assert_eq!(staged_by(&plan), []);
    assert_eq!(world.reason(shared).0, Some(Reason::BurstBufferResources));
    let place = &plan.starts[0];
    assert!(place.job == private && place.nodes[0].node != node, "{place:?}");
    world.apply(seen(2, 0));
    assert_eq!(staged_by(&world.schedule()), [shared]);
}

/// Jobs whose age counts stand in a row of their own.
#[test]
fn whoever_grows_older_is_served_before_a_lesser_one_that_does_not() {
    let mut world = cluster(|config| {
        config.scheduler.priority.kind = model::priority::PriorityKind::Multifactor;
        config.scheduler.priority.weight_age = 1000;
    });
    let given = world.submit_spec(JobSpec { priority: Some(2), ..spec("capacity=10", 10) });
    let growing = world.submit_spec(spec("capacity=10", 10));
    world.pass(24 * 3600);
    assert_eq!(staged_by(&world.schedule()), [growing], "not {given}");
}

#[test]
fn whoever_asks_nothing_of_a_full_pool_is_not_kept_by_it() {
    let mut world = cluster(|config| config.burst_buffer.as_mut().expect("configured").enables_persistent = true);
    let file = |text: &str| JobSpec { burst_buffer_file: text.into(), ..spec("", 10) };
    let maker = world.submit_spec(file("#BB create_persistent name=library capacity=1"));
    assert_eq!(staged_by(&world.schedule()), [maker]);
    let duty = world.cluster.duty(&Owner::Persistent("library".into())).expect("it is being made").clone();
    let node = world.cluster.persistent("library").expect("begun").node.clone();
    let result = StageResult::Done(Moved::default());
    world.apply(Command::Staged { duty, results: vec![PlaceResult { access: Access::Shared, node, result }] });
    let [first, waits] = ["capacity=9", "capacity=1"].map(|text| world.submit_spec(spec(text, 10)));
    let user = world.submit_spec(file("#DW persistentdw name=library"));
    let plan = world.schedule();
    assert!(staged_by(&plan).contains(&first) && !staged_by(&plan).contains(&waits), "{:?}", staged_by(&plan));
    assert!(staged_by(&plan).contains(&user) || world.cluster.is_eligible(world.cluster.job(user).expect("there")));
}

#[test]
fn who_waits_for_room_on_disks_is_told_so_and_keeps_nobody_waiting() {
    let mut world = cluster(|_| ());
    let never = world.submit_spec(spec("capacity=3 pool=nvme", 10));
    let plain = world.submit_spec(spec("", 10));
    world.schedule();
    assert_eq!(world.reason(never).0, Some(Reason::BurstBufferResources), "a node has 2 GiB");
    assert!(world.is_running(plain));
    // It is not for the disks where there are too few nodes.
    let mut world = cluster(|_| ());
    let change = model::update::NodeChange::Drain { reason: "x".into() };
    world.apply(Command::UpdateNodes { nodes: vec!["n2".into()], change });
    let mut wide = spec("capacity=1 pool=nvme", 10);
    (wide.size.min_nodes, wide.size.max_nodes) = (2, Some(2));
    let wide = world.submit_spec(wide);
    world.schedule();
    assert_eq!(world.reason(wide).0, Some(Reason::Resources));
}

#[test]
fn what_depends_on_the_number_of_a_node_is_not_brought_ahead() {
    for (source, is_ahead) in [("/data/all", true), ("/data/%n", true), ("/data/part.%t", false)] {
        let mut world = cluster(|_| ());
        occupy(&mut world, 10);
        let text = format!(
            "#DW jobdw capacity=1GiB access_mode=private pool=nvme\n\
             #DW stage_in type=file source={source} destination=$DW_JOB_PRIVATE/in"
        );
        let job = world.submit_spec(spec(&text, 10));
        let plan = world.schedule();
        assert_eq!(staged_by(&plan).contains(&job), is_ahead, "{source}");
    }
}
