//! What happens to suspended jobs: every event of the specification's table, and every finding of the first design's review.
use model::config::SuspendCpus;
use model::gres::{Gres, GresRequest};
use model::job_state::JobState;
use model::license::LicenseCount;
use model::node::NodePhase;
use model::partition::PartitionState;
use model::plan::{Grant, Start};
use model::spec::{JobSpec, TimeLimit};
use model::time::Span;
use model::update::{JobChanges, NodeChange, PartitionChanges, TimeLimitChange};
use model::{Command, ExitStatus, JobId, JobRef, NodeName, Phase, Plan, Reason, Reject, Reply, StepSpec, Task};

use crate::lab::*;

fn suspend(job: JobId) -> Command {
    Command::Suspend { jobs: vec![job.into()] }
}

fn resume(job: JobId) -> Command {
    Command::Resume { jobs: vec![job.into()] }
}

/// Runs since 1000 with a limit of ten minutes, suspended since 1010.
fn suspended(lab: &mut Lab, spec: JobSpec) -> JobId {
    let job = lab.running(JobSpec { time_limit: Some(TimeLimit::Secs(600)), ..spec }, "n1");
    lab.at(1010);
    lab.each(ROOT, suspend(job)).unwrap();
    lab.done(job, Task::Stop);
    job
}

fn no_requeue() -> JobSpec {
    JobSpec { requeue: Some(false), ..batch() }
}

/// On two nodes, the script on the first.
fn on_two_nodes(lab: &mut Lab, spec: JobSpec) -> JobId {
    let mut spec = spec;
    spec.size.min_nodes = 2;
    let job = lab.submit(spec);
    let grants = ["n1", "n2"].map(|node| {
        let part = lab.job(job).spec.size.part_of(&lab.node(node).config, 1);
        Grant { node: node.into(), n_cpus: part.n_cpus, memory_mb: part.memory_mb, n_tasks: 1, ..Default::default() }
    });
    let start = Start { job, partition: "debug".into(), nodes: grants.to_vec(), ..Default::default() };
    let plan = Plan { starts: vec![start], ..Default::default() };
    assert_eq!(lab.ok(ROOT, Command::AdoptPlan(plan)), Reply::Adopted { n_started: 1, n_stale: 0 });
    lab.done(job, Task::Launch);
    job
}

fn down(lab: &mut Lab, node: &str) {
    let change = NodeChange::Down { reason: "test".into() };
    lab.ok(ROOT, Command::UpdateNodes { nodes: vec![node.into()], change });
}

/// State, moment of its end, run time, suspended time; no window stays open, whatever ended it.
fn ended(lab: &Lab, job: JobId) -> (JobState, u64, u64, u64) {
    let job = lab.job(job);
    assert_eq!(job.suspended_at, None, "set exactly while suspended");
    let end = job.end_time().map_or(0, |at| at.secs());
    (job.state(), end, job.run_time(lab.cluster.now()).secs(), job.total_suspended.secs())
}

#[test]
fn whatever_ends_a_suspended_job_its_end_is_the_moment_of_suspension() {
    let mut lab = Lab::new();
    let job = suspended(&mut lab, batch());
    lab.at(1050);
    lab.each(ALICE, cancel(job)).unwrap();
    assert_eq!(lab.job(job).state(), JobState::Completing);
    lab.done(job, Task::Kill);
    assert_eq!(ended(&lab, job), (JobState::Cancelled, 1010, 10, 40));

    for (exit, state) in [(ExitStatus::SUCCESS, JobState::Completed), (ExitStatus::signaled(9), JobState::Failed)] {
        let mut lab = Lab::new();
        let job = suspended(&mut lab, batch());
        lab.at(1050);
        lab.exit(job, exit).unwrap();
        assert_eq!(ended(&lab, job), (state, 1010, 10, 40));
    }

    let mut lab = Lab::new();
    let job = suspended(&mut lab, no_requeue());
    lab.at(1050);
    lab.ok(ROOT, Command::NodeLost { node: "n1".into() });
    lab.done(job, Task::Kill);
    assert_eq!(ended(&lab, job), (JobState::NodeFail, 1010, 10, 40));
    assert_eq!(lab.job(job).reason, Some(Reason::NodeDown));
}

#[test]
fn a_failed_node_leaves_a_suspended_job_waiting_held_and_without_a_past() {
    let mut lab = Lab::new();
    let job = suspended(&mut lab, batch());
    lab.at(1050);
    down(&mut lab, "n1");
    lab.done(job, Task::Kill);
    let record = lab.job(job);
    assert_eq!((record.phase, record.reason, record.restarts), (Phase::Pending, Some(Reason::JobHeldAdmin), 1));
    assert_eq!((record.suspend_changed, record.total_suspended, record.run_before_suspend), (None, Span(0), Span(0)));
}

#[test]
fn a_job_that_may_lose_nodes_stays_suspended_on_the_rest() {
    let mut lab = Lab::new();
    let job = on_two_nodes(&mut lab, JobSpec { no_kill: true, ..batch() });
    lab.at(1010);
    lab.each(ROOT, suspend(job)).unwrap();
    lab.done(job, Task::Stop);
    lab.ok(ROOT, Command::NodeLost { node: "n2".into() });
    let names = |lab: &Lab| lab.job(job).allocation.names().map(NodeName::to_string).collect::<Vec<_>>();
    assert_eq!((lab.job(job).phase, names(&lab)), (Phase::Suspended, vec!["n1".to_string()]));
    assert!(lab.node("n2").jobs.is_empty());
    // What still runs there is ended when the node is back.
    let run = model::node::Run { job, attempt: lab.job(job).attempt };
    lab.register("n2", &[run]);
    assert_eq!(lab.node("n2").phase, NodePhase::Clearing);
    lab.each(ROOT, resume(job)).unwrap();
    lab.done(job, Task::Continue);
    lab.exit(job, ExitStatus::SUCCESS).unwrap();
    assert_eq!(lab.job(job).state(), JobState::Completed);

    // Without its script nothing goes on, and without the wish neither.
    for (no_kill, node) in [(true, "n1"), (false, "n2")] {
        let mut lab = Lab::new();
        let job = on_two_nodes(&mut lab, JobSpec { no_kill, ..no_requeue() });
        lab.ok(ROOT, Command::NodeLost { node: node.into() });
        assert_eq!(lab.job(job).phase, Phase::Ending, "{no_kill} {node}");
    }
}

#[test]
fn nothing_else_touches_a_suspended_job() {
    let mut lab = Lab::new();
    let job = suspended(&mut lab, batch());
    let before = lab.job(job).clone();
    lab.ok(
        ROOT,
        Command::UpdateNodes { nodes: vec!["n1".into()], change: NodeChange::Drain { reason: "test".into() } },
    );
    let state = Some(PartitionState::Down);
    lab.ok(
        ROOT,
        Command::UpdatePartition {
            name: "debug".into(),
            changes: Box::new(PartitionChanges { state, ..Default::default() }),
        },
    );
    lab.each(ROOT, Command::Hold { jobs: vec![job.into()], by_user: false }).unwrap();
    lab.each(ROOT, Command::Release { jobs: vec![job.into()] }).unwrap();
    lab.at(99_000);
    let after = lab.job(job);
    assert_eq!((after.phase, after.suspended_at, after.n_switches), (Phase::Suspended, before.suspended_at, 1));
    assert!(after.is_suspended_by_hand(), "whoever releases it does not resume it");
    assert_eq!(after.end_time(), before.end_time());
    let deleted = lab.apply(ROOT, Command::DeletePartition { name: "debug".into() });
    assert_eq!(deleted, Err(Reject::PartitionInUse));
    lab.each(ROOT, resume(job)).unwrap();
    assert_eq!(lab.job(job).end_time().map(|at| at.secs()), Some(99_000 + 590));
}

#[test]
fn a_refusal_changes_nothing_and_names_what_is_wrong_in_order() {
    let mut lab = Lab::new();
    let job = suspended(&mut lab, batch());
    let before = lab.job(job).clone();
    lab.at(1020);
    assert_eq!(lab.each(ROOT, suspend(job)), Err(Reject::AlreadySuspended));
    assert_eq!(lab.each(BOB, suspend(job)), Err(Reject::NotPermitted));
    assert_eq!(lab.each(BOB, resume(job)), Err(Reject::NotPermitted));
    assert_eq!(lab.each(ROOT, resume(JobId(999))), Err(Reject::NoSuchJob));
    assert_eq!(lab.job(job), &before);
    lab.each(ALICE, resume(job)).unwrap();
    lab.each(ALICE, suspend(job)).unwrap();
    let mut config = config();
    config.scheduler.allow_owner_suspend = false;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    assert_eq!(lab.each(ALICE, resume(job)), Err(Reject::NotPermitted));
    lab.each(ROOT, resume(job)).unwrap();
}

#[test]
fn a_heterogeneous_job_stands_still_as_a_whole() {
    let mut lab = Lab::new();
    let specs = vec![batch(), batch()];
    let Reply::Submitted(leader) = lab.ok(ALICE, Command::SubmitTogether { specs, blobs: Vec::new() }) else {
        panic!("it is taken")
    };
    let ids = lab.job(leader).het.as_ref().unwrap().ids.clone();
    assert_eq!(lab.each(ROOT, suspend(leader)), Err(Reject::JobPending));
    let start = |lab: &Lab, job: JobId, node: &str| {
        let part = lab.job(job).spec.size.part_of(&lab.node(node).config, 1);
        let grant = Grant {
            node: node.into(),
            n_cpus: part.n_cpus,
            memory_mb: part.memory_mb,
            n_tasks: 1,
            ..Default::default()
        };
        Start { job, partition: "debug".into(), nodes: vec![grant], ..Default::default() }
    };
    let starts = vec![start(&lab, ids[0], "n1"), start(&lab, ids[1], "n2")];
    lab.ok(ROOT, Command::AdoptPlan(Plan { starts, ..Default::default() }));
    lab.done(leader, Task::Launch);
    let component = JobRef { job: leader, component: Some(1), tasks: None };
    for named in [component, ids[1].into()] {
        let jobs = vec![named];
        assert_eq!(lab.each(ROOT, Command::Suspend { jobs: jobs.clone() }), Err(Reject::HetComponent));
        assert_eq!(lab.each(BOB, Command::Suspend { jobs }), Err(Reject::NotPermitted), "asked before all else");
    }
    lab.at(1010);
    lab.each(ROOT, suspend(leader)).unwrap();
    let phases = |lab: &Lab| ids.iter().map(|id| lab.job(*id).phase).collect::<Vec<_>>();
    assert_eq!(phases(&lab), [Phase::Suspended, Phase::Suspended]);
    lab.done(ids[0], Task::Stop);
    lab.done(ids[1], Task::Stop);
    lab.at(1030);
    lab.each(ROOT, resume(leader)).unwrap();
    lab.done(ids[0], Task::Continue);
    lab.done(ids[1], Task::Continue);
    assert_eq!(phases(&lab), [Phase::Running, Phase::Running]);
    assert!(ids.iter().all(|id| lab.job(*id).total_suspended.secs() == 20));
    // One that was ended alone does not keep the rest.
    lab.each(ALICE, cancel(ids[1])).unwrap();
    lab.each(ROOT, suspend(leader)).unwrap();
    assert_eq!(lab.job(leader).phase, Phase::Suspended);
    lab.each(ALICE, cancel(leader)).unwrap();
    assert_eq!(lab.each(ROOT, resume(leader)), Err(Reject::AlreadyOver));
}

#[test]
fn what_counts_for_a_suspended_job_goes_on_counting() {
    let mut lab = Lab::new();
    let mut config = config();
    config.licenses = vec![LicenseCount { name: "tool".into(), count: 1 }];
    let gpu = Gres { name: "gpu".into(), count: 1, ..Default::default() };
    config.nodes.iter_mut().for_each(|node| node.config.gres = vec![gpu.clone()]);
    config.scheduler.suspend_cpus = SuspendCpus::Release;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    let mut spec = batch();
    spec.licenses = model::license::LicenseRequest {
        list: vec![LicenseCount { name: "tool".into(), count: 1 }],
        ..Default::default()
    };
    spec.size.gres = vec![GresRequest { name: "gpu".into(), count: 1, ..Default::default() }];
    spec.size.memory = model::spec::Memory::PerNodeMb(700);
    spec.size.n_tasks = Some(4);
    let job = suspended(&mut lab, spec.clone());
    let node = lab.node("n1");
    assert_eq!((node.free_cpus(), node.free_memory_mb(), node.jobs.len()), (4, 300, 1), "only CPUs are lent");
    let same = lab.submit(spec);
    assert!(!lab.place(same, None, "n2"), "its licence is kept");
    let mut gpu = batch();
    gpu.size.gres = vec![GresRequest { name: "gpu".into(), count: 1, ..Default::default() }];
    let gpu = lab.submit(gpu);
    assert!(!lab.place(gpu, None, "n1"), "and so is its device");
    // Steps wait for the resume.
    let step = Command::CreateStep { job, spec: Box::new(StepSpec::default()), blobs: Vec::new() };
    assert_eq!(lab.apply(ALICE, step), Err(Reject::StepsDisabled));
}

#[test]
fn those_who_wait_for_a_suspended_job_wait_on() {
    let mut lab = Lab::new();
    let mut array = batch();
    let (tasks, limit) = model::ranges::parse_array("1-3%1").expect("an array");
    array.array = Some(model::spec::ArraySpec { tasks, limit });
    let array = lab.submit(array);
    assert!(lab.place(array, Some(1), "n1"));
    let first = lab.cluster.jobs().find(|job| job.array_task() == Some(1)).expect("it was split off").id;
    lab.done(first, Task::Launch);
    lab.each(ROOT, suspend(first)).unwrap();
    let rest = lab.cluster.jobs().find(|job| job.waiting_tasks.is_some()).expect("two wait").id;
    assert_eq!(lab.job(rest).reason, Some(Reason::JobArrayTaskLimit), "a suspended task counts as running");
    assert!(!lab.place(rest, Some(2), "n2"));

    let waits = |lab: &mut Lab, text: &str| {
        let dependency = model::dependency::parse(text).expect("a dependency");
        lab.submit(JobSpec { dependency, ..batch() })
    };
    let after_end = waits(&mut lab, &format!("afterany:{first}"));
    let after_begin = waits(&mut lab, &format!("after:{first}"));
    assert_eq!(lab.job(after_end).reason, Some(Reason::Dependency));
    assert_ne!(lab.job(after_begin).reason, Some(Reason::Dependency));
}

#[test]
fn more_time_moves_the_end_of_a_suspended_job() {
    let mut lab = Lab::new();
    let job = suspended(&mut lab, batch());
    lab.at(1100);
    let changes = JobChanges { time_limit: Some(TimeLimitChange::To(TimeLimit::Secs(900))), ..Default::default() };
    lab.each(ROOT, Command::UpdateJob { job: job.into(), changes: Box::new(changes) }).unwrap();
    assert_eq!(lab.job(job).end_time().map(|at| at.secs()), Some(1900));
    lab.at(1110);
    lab.each(ROOT, resume(job)).unwrap();
    assert_eq!(lab.job(job).end_time().map(|at| at.secs()), Some(1110 + 890));
}

#[test]
fn a_steps_clock_stands_still_with_its_jobs() {
    let mut lab = Lab::new();
    let job = suspended(&mut lab, batch());
    let at = model::Timestamp::from_secs;
    assert_eq!(lab.job(job).ran_between(at(1004), at(1500)).secs(), 6);
    lab.at(1050);
    lab.each(ROOT, resume(job)).unwrap();
    lab.done(job, Task::Continue);
    assert_eq!(lab.job(job).ran_between(at(1004), at(1060)).secs(), 16);
    assert_eq!(lab.job(job).ran_between(at(1020), at(1060)).secs(), 10, "begun while it stood still");
    assert_eq!(lab.job(job).ran_between(at(1055), at(1060)).secs(), 5);
}
