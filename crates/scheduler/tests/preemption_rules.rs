//! Whom preemption asks first, by quality of service and by the site's wishes.
use model::accounts::{Change, Edit, Field, NamedValue, Value};
use model::command::DutyResult;
use model::partition::PreemptMode;
use model::preemption::PreemptKind;
use model::spec::{JobKind, JobSpec, Size};
use model::{Command, Config, JobId, Outcome, Phase};
use world::World;

mod world;

fn cluster(change: impl Fn(&mut Config)) -> World {
    let mut world = World::alike(2, 4, 1000);
    let mut config = (**world.cluster.config()).clone();
    let rules = &mut config.scheduler.preemption;
    (rules.kind, rules.mode) = (PreemptKind::Qos, PreemptMode::Cancel);
    change(&mut config);
    world.apply(Command::Reconfigure { config: Box::new(config) });
    // urgent goes before normal and low; normal before low.
    for (name, preempts, edits) in [
        ("low", &[][..], Vec::new()),
        ("usual", &["low"], vec![Edit { field: Field::Priority, value: Value::Count(Some(10)) }]),
        ("urgent", &["low", "usual"], vec![Edit { field: Field::Priority, value: Value::Count(Some(20)) }]),
    ] {
        let list = Value::Names(NamedValue::Set(preempts.iter().map(|name| name.to_string()).collect()));
        let edits = edits.into_iter().chain([Edit { field: Field::Preempt, value: list }]).collect();
        tell(&mut world, Change::AddQos { names: vec![name.into()], edits });
    }
    world
}

fn tell(world: &mut World, change: Change) {
    world.apply(Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() });
}

fn edit_qos(world: &mut World, name: &str, field: Field, value: Value) {
    let filter = model::accounts::EntityFilter { names: [name.to_string()].into(), ..Default::default() };
    tell(world, Change::ModifyQos { filter, edits: vec![Edit { field, value }] });
}

fn submit(world: &mut World, qos: &str, n_cpus: u32) -> JobId {
    let size = Size { min_nodes: 1, tasks_per_node: Some(n_cpus), ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    let job = world.submit_spec(JobSpec { qos: qos.into(), size, kind, ..Default::default() });
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

fn outcome(world: &World, job: JobId) -> Option<Outcome> {
    world.cluster.job(job).unwrap().outcome
}

fn runs(world: &World, job: JobId) -> bool {
    world.cluster.job(job).unwrap().phase == Phase::Running
}

#[test]
fn a_qos_goes_before_those_it_names_and_the_lowest_goes_first() {
    let mut world = cluster(|_| ());
    let low = submit(&mut world, "low", 4);
    let usual = submit(&mut world, "usual", 4);
    let equal = submit(&mut world, "low", 4);
    assert!(runs(&world, low) && runs(&world, usual) && !runs(&world, equal), "no QOS goes before itself");
    world.finish(equal);
    let urgent = submit(&mut world, "urgent", 4);
    assert!(runs(&world, urgent) && runs(&world, usual));
    assert_eq!(outcome(&world, low), Some(Outcome::Preempted));
    let second = submit(&mut world, "urgent", 4);
    assert!(runs(&world, second));
    assert_eq!(outcome(&world, usual), Some(Outcome::Preempted));
    let third = submit(&mut world, "urgent", 4);
    assert!(!runs(&world, third));
}

#[test]
fn within_a_qos_the_more_important_go_first_if_it_says_so() {
    let mut world = cluster(|config| config.scheduler.preemption.is_within_qos = true);
    let jobs: Vec<JobId> = (0..2).map(|_| submit(&mut world, "low", 4)).collect();
    assert!(jobs.iter().all(|job| runs(&world, *job)));
    let size = Size { min_nodes: 1, tasks_per_node: Some(4), ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    let more = JobSpec { qos: "low".into(), size, kind, priority: Some(u32::MAX - 1), ..Default::default() };
    let more = world.submit_spec(more);
    go(&mut world);
    assert!(runs(&world, more));
    assert_eq!(jobs.iter().filter(|job| runs(&world, **job)).count(), 1);
}

#[test]
fn the_youngest_go_first_where_the_site_wants_it() {
    let by_priority = |youngest_first: bool| {
        let mut world = cluster(|config| config.scheduler.preemption.youngest_first = youngest_first);
        let spec = |priority| {
            let size = Size { min_nodes: 1, tasks_per_node: Some(4), ..Default::default() };
            let kind = JobKind::Batch { script: Default::default() };
            JobSpec { qos: "low".into(), size, kind, priority: Some(priority), ..Default::default() }
        };
        let old = world.submit_spec(spec(10));
        go(&mut world);
        world.pass(100);
        let young = world.submit_spec(spec(1000));
        go(&mut world);
        submit(&mut world, "urgent", 4);
        (outcome(&world, old), outcome(&world, young))
    };
    assert_eq!(by_priority(false), (Some(Outcome::Preempted), None), "the least important");
    assert_eq!(by_priority(true), (None, Some(Outcome::Preempted)));
}

#[test]
fn a_job_may_hear_its_own_signal_instead() {
    let grace = Field::GraceTime;
    for sends in [false, true] {
        let mut world = cluster(|config| config.scheduler.preemption.sends_user_signal = sends);
        edit_qos(&mut world, "low", grace, Value::Count(Some(30)));
        let size = Size { min_nodes: 2, tasks_per_node: Some(4), ..Default::default() };
        let kind = JobKind::Batch { script: Default::default() };
        let warning = Some(model::spec::Warning { signal: 10, ..Default::default() });
        let low = world.submit_spec(JobSpec { qos: "low".into(), size, kind, warning, ..Default::default() });
        go(&mut world);
        let urgent = submit(&mut world, "urgent", 1);
        let record = world.cluster.job(low).unwrap();
        assert!(record.preempt_ends.is_some() && !runs(&world, urgent));
        assert_eq!(record.warned, sends, "once warned so, it is not warned again before its time limit");
    }
}

#[test]
fn suspended_jobs_may_be_told_to_go_without_a_grace() {
    let mut world = cluster(|_| ());
    edit_qos(&mut world, "low", Field::GraceTime, Value::Count(Some(300)));
    let jobs: Vec<JobId> = (0..2).map(|_| submit(&mut world, "low", 4)).collect();
    for job in &jobs {
        world.apply(Command::Suspend { jobs: vec![(*job).into()] });
    }
    go(&mut world);
    let urgent = submit(&mut world, "urgent", 4);
    assert!(runs(&world, urgent), "frozen processes hear no warning");
    assert_eq!(jobs.iter().filter(|job| outcome(&world, **job) == Some(Outcome::Preempted)).count(), 1);
}

#[test]
fn a_qos_has_its_own_mode_grace_and_protection() {
    let mut world = cluster(|_| ());
    edit_qos(&mut world, "low", Field::PreemptMode, Value::Text("requeue".into()));
    edit_qos(&mut world, "usual", Field::PreemptExemptTime, Value::Count(Some(60)));
    let low = submit(&mut world, "low", 4);
    let usual = submit(&mut world, "usual", 4);
    let urgent = submit(&mut world, "urgent", 4);
    assert!(runs(&world, urgent));
    let gone = world.cluster.job(low).unwrap();
    assert_eq!((gone.phase, gone.restarts), (Phase::Pending, 1), "it waits again");
    world.finish(low);
    let second = submit(&mut world, "urgent", 4);
    assert!(runs(&world, usual) && !runs(&world, second), "young jobs are left alone");
    world.pass(60);
    go(&mut world);
    assert!(runs(&world, second));
    edit_qos(&mut world, "usual", Field::PreemptExemptTime, Value::Count(None));
    edit_qos(&mut world, "usual", Field::GraceTime, Value::Count(Some(30)));
    world.finish(urgent);
    let warned = submit(&mut world, "usual", 4);
    assert!(runs(&world, warned));
    let third = submit(&mut world, "urgent", 4);
    assert!(runs(&world, warned) && !runs(&world, third));
    world.pass(30);
    go(&mut world);
    assert!(runs(&world, third));
}

fn spec(qos: &str, priority: u32, limit_secs: u64) -> JobSpec {
    let size = Size { min_nodes: 1, tasks_per_node: Some(4), ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    let time_limit = Some(model::spec::TimeLimit::Secs(limit_secs));
    JobSpec { qos: qos.into(), size, kind, priority: Some(priority), time_limit, ..Default::default() }
}

#[test]
fn the_room_that_was_made_is_for_whom_it_was_made() {
    let mut world = cluster(|_| ());
    let victim = world.submit_spec(spec("low", 100, 36_000));
    let stays = world.submit_spec(spec("urgent", 100, 3_600));
    go(&mut world);
    assert!(runs(&world, victim) && runs(&world, stays));
    // It goes before nobody, and stands before the one that does.
    let before = world.submit_spec(spec("low", 1000, 36_000));
    go(&mut world);
    let urgent = world.submit_spec(spec("urgent", 10, 600));
    world.schedule();
    assert!(world.cluster.has_claim(urgent));
    assert_eq!(world.cluster.queue().next().map(|job| job.id), Some(urgent));
    go(&mut world);
    assert_eq!(outcome(&world, victim), Some(Outcome::Preempted));
    assert!(runs(&world, urgent) && !world.cluster.has_claim(urgent));
    let waits = world.cluster.job(before).unwrap();
    assert_eq!((waits.phase, waits.started), (Phase::Pending, None), "nor was it sent away after a start in vain");
}

#[test]
fn a_claim_is_given_up_where_there_is_no_room_after_all() {
    let mut world = cluster(|_| ());
    edit_qos(&mut world, "low", Field::GraceTime, Value::Count(Some(30)));
    let victim = world.submit_spec(spec("low", 100, 36_000));
    let stays = world.submit_spec(spec("urgent", 100, 3_600));
    go(&mut world);
    let urgent = world.submit_spec(spec("urgent", 10, 600));
    go(&mut world);
    assert!(world.cluster.has_claim(urgent) && runs(&world, victim) && runs(&world, stays));
    let node = world.cluster.job(victim).unwrap().allocation.first().expect("it runs").clone();
    let change = model::update::NodeChange::Drain { reason: "fan".into() };
    world.apply(Command::UpdateNodes { nodes: vec![node], change });
    world.pass(30);
    go(&mut world);
    assert_eq!(outcome(&world, victim), Some(Outcome::Preempted));
    assert!(!runs(&world, urgent) && !world.cluster.has_claim(urgent));
}
