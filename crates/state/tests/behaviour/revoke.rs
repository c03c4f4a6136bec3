//! Nodes that are taken back before anything ran: the data stays where it is, and serves the next start.
use model::command::{DutyResult, PlaceResult};
use model::job_state::JobState;
use model::node::Machine;
use model::plan::{Grant, StageStart, Start};
use model::staging::{Access, Moved, StageFailure, StageResult};
use model::{Command, HeldBy, JobId, JobSpec, Owner, Phase, Plan, Reason, Reply, Task};

use super::buffers::{Burst, FULL, lab, with_bb};
use super::lab::*;

const PRIVATE: &str = "#DW jobdw capacity=1GiB access_mode=private pool=nvme\n\
                       #DW stage_in type=directory source=/data destination=$DW_JOB_PRIVATE/in";

fn over(n_nodes: u32, text: &str) -> JobSpec {
    let mut spec = with_bb(text);
    (spec.size.min_nodes, spec.size.max_nodes) = (n_nodes, Some(n_nodes));
    spec
}

fn place_on(lab: &mut Lab, job: JobId, nodes: &[&str]) -> bool {
    let grant = |node: &&str| Grant { node: (*node).into(), n_cpus: 1, n_tasks: 1, ..Default::default() };
    let nodes = nodes.iter().map(grant).collect();
    let start = Start { job, partition: "debug".into(), nodes, ..Default::default() };
    let plan = Plan { starts: vec![start], ..Default::default() };
    lab.ok(ROOT, Command::AdoptPlan(plan)) == Reply::Adopted { n_started: 1, n_stale: 0 }
}

/// The directory on this node is filled, or removed, as the present duty wants.
fn answer_on(lab: &mut Lab, job: JobId, node: &str, task: Task) {
    let duty = lab.cluster.duty(&Owner::Buffer(job)).expect("a duty").clone();
    assert_eq!(duty.task, task);
    let result = StageResult::Done(Moved::default());
    lab.ok(
        ROOT,
        Command::Staged { duty, results: vec![PlaceResult { access: Access::Private, node: node.into(), result }] },
    );
}

fn places(lab: &Lab, job: JobId) -> Vec<(&str, bool, bool)> {
    let buffer = lab.cluster.buffer(job).expect("a buffer");
    buffer.places.iter().map(|place| (place.node.as_str(), place.is_staged, place.is_unwanted)).collect()
}

#[test]
fn a_node_lost_in_pre_run_costs_only_what_was_on_it() {
    let mut lab = lab();
    let job = lab.submit(over(3, PRIVATE));
    assert!(place_on(&mut lab, job, &["n1", "n2", "n3"]));
    answer_on(&mut lab, job, "n1", Task::PreRun);
    let epoch = lab.cluster.buffer(job).unwrap().epoch;
    lab.ok(ROOT, Command::NodeLost { node: "n3".into() });
    assert_eq!((lab.word(job), lab.job(job).phase), ("alloc-revoke", Phase::Ending));
    assert_eq!(places(&lab, job), [("n1", true, false), ("n2", false, false), ("n3", false, true)]);
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Pending, "alloc-revoke"));
    assert_eq!(lab.job(job).reason, Some(Reason::BurstBufferStageIn));
    assert!(!place_on(&mut lab, job, &["n1", "n2", "n3"]), "not before it is staged in");
    // The order of the first start stands, and its answer counts.
    answer_on(&mut lab, job, "n2", Task::PreRun);
    assert_eq!((lab.word(job), lab.job(job).reason), ("staged-in", Some(Reason::Priority)));
    assert_eq!((lab.used("nvme"), lab.buffer_duty(job)), (3, Some(Task::Trim)));
    // The lost node comes back: what it has is removed before anything new is brought.
    lab.register("n3", &[]);
    assert!(!place_on(&mut lab, job, &["n1", "n2", "n3"]), "it is being removed there");
    answer_on(&mut lab, job, "n3", Task::Trim);
    assert_eq!(lab.used("nvme"), 2);
    assert!(place_on(&mut lab, job, &["n1", "n2", "n3"]));
    assert_eq!(places(&lab, job), [("n1", true, false), ("n2", true, false), ("n3", false, false)]);
    assert_eq!(lab.word(job), "pre-run");
    answer_on(&mut lab, job, "n3", Task::PreRun);
    assert_eq!((lab.word(job), lab.duty(job)), ("running", Some(Task::Launch)));
    assert_eq!(lab.cluster.buffer(job).unwrap().epoch, epoch, "the same directories");
}

#[test]
fn what_the_next_start_does_not_use_is_freed() {
    let mut lab = lab();
    let job = lab.submit(over(2, PRIVATE));
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
    lab.done_all(job, Task::PreRun);
    let other = lab.submit(over(2, PRIVATE));
    assert!(place_on(&mut lab, other, &["n1", "n3"]));
    answer_on(&mut lab, other, "n1", Task::PreRun);
    lab.each(ALICE, requeue(other)).unwrap();
    lab.done(other, Task::Kill);
    assert_eq!(lab.word(other), "alloc-revoke");
    answer_on(&mut lab, other, "n3", Task::PreRun);
    assert_eq!((lab.word(other), lab.used("nvme")), ("staged-in", 4));
    assert!(place_on(&mut lab, other, &["n2", "n3"]));
    assert_eq!(places(&lab, other), [("n1", true, true), ("n3", true, false), ("n2", false, false)]);
    let ranks: Vec<u32> = lab.cluster.buffer(other).unwrap().places.iter().map(|place| place.rank).collect();
    assert_eq!(ranks[1..], [1, 0], "as in the new allocation");
    answer_on(&mut lab, other, "n1", Task::PreRun);
    assert_eq!(lab.used("nvme"), 4, "n1 is free again");
    answer_on(&mut lab, other, "n2", Task::PreRun);
    assert_eq!(lab.word(other), "running");
}

#[test]
fn what_is_revoked_and_then_cancelled_is_torn_down() {
    for hurry in [false, true] {
        let mut lab = lab();
        let job = lab.submit(over(2, PRIVATE));
        assert!(place_on(&mut lab, job, &["n1", "n2"]));
        lab.each(ALICE, requeue(job)).unwrap();
        assert_eq!(lab.word(job), "alloc-revoke");
        lab.cancel(job, hurry).unwrap();
        assert_eq!(lab.word(job), "teardown", "while its nodes are being cleared");
        lab.done(job, Task::Kill);
        assert_eq!(lab.job(job).state(), JobState::Cancelled);
        lab.done_all(job, Task::TearDown);
        assert_eq!((lab.word(job), lab.used("nvme")), ("complete", 0));

        let job = lab.submit(over(2, PRIVATE));
        assert!(place_on(&mut lab, job, &["n1", "n2"]));
        lab.each(ALICE, requeue(job)).unwrap();
        lab.done(job, Task::Kill);
        lab.cancel(job, hurry).unwrap();
        assert_eq!(lab.word(job), "teardown", "while it waits again");
        lab.done_all(job, Task::TearDown);
        assert_eq!((lab.word(job), lab.used("nvme")), ("complete", 0));
    }
}

#[test]
fn what_fails_after_it_was_revoked_holds_the_job_and_goes() {
    let mut lab = lab();
    let job = lab.submit(over(2, PRIVATE));
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
    lab.each(ALICE, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    Burst::fails(&mut lab, job, Task::PreRun);
    assert_eq!((lab.job(job).held, lab.word(job)), (Some(HeldBy::BurstBuffer), "teardown"));
    let text = &lab.job(job).reason_text;
    assert!(text.starts_with("burst_buffer/native: pre_run failed: n1: no such file"), "{text}");
    lab.done_all(job, Task::TearDown);
    assert_eq!((lab.word(job), lab.used("nvme")), ("pending", 0));
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
}

/// What a lost node would have said is not waited for: the others have said enough.
#[test]
fn what_has_failed_on_one_node_is_told_when_the_other_is_lost() {
    for is_ahead in [false, true] {
        let mut lab = lab();
        let job = lab.submit(over(2, PRIVATE));
        let task = if is_ahead { Task::StageIn } else { Task::PreRun };
        if is_ahead {
            let nodes = vec!["n1".into(), "n2".into()];
            let stage_ins = vec![StageStart { job, nodes, ..Default::default() }];
            lab.ok(ROOT, Command::AdoptPlan(Plan { stage_ins, ..Default::default() }));
        } else {
            assert!(place_on(&mut lab, job, &["n1", "n2"]));
        }
        let duty = lab.cluster.duty(&Owner::Buffer(job)).expect("a duty").clone();
        assert_eq!(duty.task, task);
        let result = StageResult::Failed(StageFailure { why: "no such file".into(), ..Default::default() });
        let results = vec![PlaceResult { access: Access::Private, node: "n2".into(), result }];
        lab.ok(ROOT, Command::Staged { duty, results });
        assert_eq!(lab.job(job).held, None, "the report is to be complete");
        lab.ok(ROOT, Command::NodeLost { node: "n1".into() });
        if !is_ahead {
            lab.done(job, Task::Kill);
        }
        assert_eq!((lab.job(job).held, lab.job(job).phase), (Some(HeldBy::BurstBuffer), Phase::Pending));
        let text = &lab.job(job).reason_text;
        assert!(text.ends_with("failed: n2: no such file"), "{text}");
    }
}

#[test]
fn a_silent_agent_is_not_waited_for_after_a_revocation() {
    let mut lab = super::buffers::lab_with(|burst| burst.stage_in_timeout = model::time::Span::from_secs(100));
    let job = lab.submit(over(2, PRIVATE));
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
    lab.each(ALICE, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    let late = lab.secs + 200;
    lab.at(late);
    assert_eq!((lab.job(job).held, lab.word(job)), (Some(HeldBy::BurstBuffer), "teardown"));
}

#[test]
fn a_launch_that_fails_leaves_the_data_staged_in() {
    let mut lab = lab();
    let job = lab.staged(FULL);
    assert!(lab.place(job, None, "n1"));
    assert_eq!(lab.word(job), "running");
    lab.fail(job, Task::Launch);
    assert_eq!(lab.word(job), "staged-in");
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).state(), lab.job(job).held), (JobState::Pending, Some(HeldBy::Admin)));
    assert_eq!((lab.word(job), lab.used("flash")), ("staged-in", 4));
    lab.each(ROOT, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert!(lab.place(job, None, "n2"));
    assert_eq!(lab.word(job), "running");
    // One that is not to run again has no use for it.
    let job = lab.submit(JobSpec { requeue: Some(false), ..with_bb(FULL) });
    assert!(Burst::stage(&mut lab, job));
    lab.done_all(job, Task::StageIn);
    assert!(lab.place(job, None, "n1"));
    lab.fail(job, Task::Launch);
    assert_eq!(lab.word(job), "teardown");
    lab.done(job, Task::Kill);
    lab.done_all(job, Task::TearDown);
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Failed, "complete"));
}

#[test]
fn what_depends_on_the_number_of_a_node_is_brought_anew() {
    let mut lab = lab();
    let job = lab.submit(over(2, &PRIVATE.replace("source=/data", "source=/data/%t")));
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
    answer_on(&mut lab, job, "n1", Task::PreRun);
    lab.each(ALICE, requeue(job)).unwrap();
    assert_eq!(lab.word(job), "teardown", "the next start may number its nodes otherwise");
}

#[test]
fn a_machine_that_has_started_anew_is_looked_at_again() {
    let mut lab = lab();
    let machine = |boot: &str| Box::new(Machine { boot_id: boot.into(), ..Default::default() });
    let boots = |lab: &mut Lab, boot| {
        lab.ok(ROOT, Command::RegisterNode { node: "n2".into(), machine: machine(boot), runs: Vec::new() });
    };
    boots(&mut lab, "first");
    let job = lab.submit(over(2, PRIVATE));
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
    answer_on(&mut lab, job, "n2", Task::PreRun);
    lab.each(ALICE, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    answer_on(&mut lab, job, "n1", Task::PreRun);
    assert_eq!(lab.word(job), "staged-in");
    boots(&mut lab, "first");
    assert_eq!(places(&lab, job)[1], ("n2", true, false), "a new agent of the same machine changes nothing");
    boots(&mut lab, "second");
    assert_eq!(places(&lab, job)[1], ("n2", false, false));
    let up = model::update::NodeChange::Resume;
    lab.ok(ROOT, Command::UpdateNodes { nodes: vec!["n2".into()], change: up });
    assert!(place_on(&mut lab, job, &["n1", "n2"]));
    assert_eq!(lab.word(job), "pre-run");
    answer_on(&mut lab, job, "n2", Task::PreRun);
    assert_eq!(lab.word(job), "running");
}

#[test]
fn a_prolog_that_fails_on_the_controller_leaves_the_data_staged_in() {
    let mut lab = lab();
    let mut config = (**lab.cluster.config()).clone();
    config.hooks.controller_prolog = vec!["/bin/false".into()];
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    let job = lab.staged(FULL);
    assert!(lab.place(job, None, "n1"));
    let duty = lab.cluster.duty(&Owner::Job(job)).unwrap().clone();
    assert_eq!(duty.task, Task::ControllerProlog);
    let result = DutyResult::HookFailed { nodes: Vec::new(), why: "1".into(), drained_for: String::new() };
    lab.ok(ROOT, Command::DutyDone { duty, result });
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Pending, "staged-in"));
    assert_eq!(lab.job(job).reason, Some(Reason::BeginTime));
}
