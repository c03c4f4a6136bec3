//! Running jobs that become smaller, limits of their steps, special exits, and how much of a time limit is used.
use model::command::{DutyResult, Exited};
use model::job_state::JobState;
use model::node::NodePhase;
use model::plan::{Grant, Start};
use model::spec::{JobSpec, Mail, MailKind, Size, TimeLimit};
use model::update::{JobChanges, StepLimit};
use model::{Command, JobId, Owner, Plan, Reject, StepId, StepSpec, Task};

use crate::lab::{ALICE, Lab, ROOT, batch};

fn update(job: JobId, changes: JobChanges) -> Command {
    Command::UpdateJob { job: job.into(), changes: Box::new(changes) }
}

fn nodes_wanted(count: u32) -> JobChanges {
    JobChanges { min_nodes: Some(count), max_nodes: Some(count), ..Default::default() }
}

fn done(lab: &mut Lab, owner: Owner, task: Task) {
    let duty = lab.cluster.duty(&owner).expect("there is something to do").clone();
    assert_eq!(duty.task, task);
    lab.ok(ROOT, Command::DutyDone { duty, result: DutyResult::Done });
}

/// A job that runs on all three nodes.
fn wide(lab: &mut Lab) -> JobId {
    let job = lab.submit(JobSpec { size: Size { min_nodes: 3, max_nodes: Some(3), ..Default::default() }, ..batch() });
    let grant = |name: &str| {
        let part = lab.job(job).spec.size.part_of(&lab.node(name).config, 1);
        Grant { node: name.into(), n_cpus: part.n_cpus, memory_mb: part.memory_mb, n_tasks: 1, ..Default::default() }
    };
    let nodes = ["n1", "n2", "n3"].map(grant).to_vec();
    let start = Start { job, partition: "debug".into(), nodes, ..Default::default() };
    lab.ok(ROOT, Command::AdoptPlan(Plan { starts: vec![start], ..Default::default() }));
    lab.done(job, Task::Launch);
    job
}

#[test]
fn a_running_job_gives_back_what_it_does_not_keep() {
    let mut lab = Lab::new();
    let job = wide(&mut lab);
    assert_eq!(lab.job(job).allocation.nodes.len(), 3);
    lab.each(ALICE, update(job, nodes_wanted(2))).unwrap();
    assert_eq!(lab.job(job).allocation.names().map(|name| name.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
    assert_eq!(lab.node("n3").used.cpus.len(), 0);
    let others = JobChanges { nodes: Some(vec!["n3".into()]), ..Default::default() };
    assert_eq!(lab.each(ALICE, update(job, nodes_wanted(3))), Err(Reject::NotSupported));
    assert_eq!(lab.each(ALICE, update(job, nodes_wanted(0))), Err(Reject::TooManyNodes));
    assert_eq!(lab.each(ALICE, update(job, others)), Err(Reject::NoSuchNode("n3".into())));
    let without_script = JobChanges { nodes: Some(vec!["n2".into()]), ..Default::default() };
    assert_eq!(lab.each(ALICE, update(job, without_script)), Err(Reject::NodesAreBusy));
    let step = StepSpec { arguments: vec!["sleep".into()], min_nodes: 2, ..Default::default() };
    lab.ok(ALICE, Command::CreateStep { job, spec: Box::new(step), blobs: Vec::new() });
    assert_eq!(lab.each(ALICE, update(job, nodes_wanted(1))), Err(Reject::NodesAreBusy));
    let longer = |minutes| JobChanges { step_limit: Some(StepLimit { step: None, minutes }), ..Default::default() };
    lab.each(ALICE, update(job, longer(5))).unwrap();
    assert_eq!(lab.each(ALICE, update(job, longer(6))), Err(Reject::NotPermitted));
    lab.each(ROOT, update(job, longer(6))).unwrap();
    let step = lab.cluster.steps_of(job).next().unwrap();
    assert_eq!(step.spec.time_limit, Some(TimeLimit::Secs(360)));
    lab.each(ROOT, update(job, longer(StepLimit::UNLIMITED))).unwrap();
    assert_eq!(lab.cluster.steps_of(job).next().unwrap().spec.time_limit, Some(TimeLimit::Unlimited));
}

#[test]
fn a_node_that_is_given_back_ends_the_tasks_there_before_others_have_it() {
    let mut lab = Lab::new();
    let job = wide(&mut lab);
    let step = StepSpec { arguments: vec!["sleep".into()], min_nodes: 3, ..Default::default() };
    lab.ok(ALICE, Command::CreateStep { job, spec: Box::new(step), blobs: Vec::new() });
    let id = StepId::Number(0);
    done(&mut lab, Owner::Step(job, id), Task::Launch);
    lab.each(ALICE, update(job, nodes_wanted(2))).unwrap();
    assert_eq!(lab.job(job).allocation.nodes.len(), 2);
    assert_eq!(lab.node("n3").phase, NodePhase::Clearing, "what runs there is not gone yet");
    let step = lab.cluster.step(job, id).unwrap();
    assert!(step.is_live() && step.shares.len() == 2 && step.shares.iter().all(|share| share.node.as_str() != "n3"));
    done(&mut lab, Owner::Node("n3".into()), Task::Clear);
    assert_eq!((lab.node("n3").phase, lab.node("n3").used.cpus.len()), (NodePhase::Up, 0));
    // With its last tasks gone the step is over; the job goes on.
    for node in ["n1", "n2"] {
        let attempt = lab.job(job).attempt;
        let exited = Exited { job, attempt, step: id, node: node.into(), ..Default::default() };
        lab.ok(ROOT, Command::Exited(exited));
    }
    assert!(!lab.cluster.step(job, id).unwrap().is_live());
    assert_eq!(lab.job(job).state(), JobState::Running);
}

#[test]
fn only_a_job_that_was_requeued_to_be_held_ended_specially() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    let special = JobChanges { special_exit: Some(true), ..Default::default() };
    assert_eq!(lab.each(ALICE, update(job, special.clone())), Err(Reject::JobRunning));
    lab.each(ALICE, Command::Requeue { jobs: vec![job.into()], hold: true }).unwrap();
    lab.each(ALICE, update(job, special)).unwrap();
    lab.done(job, Task::Kill);
    assert_eq!(lab.job(job).state(), JobState::SpecialExit);
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert_eq!(lab.job(job).state(), JobState::Pending);
}

#[test]
fn the_parts_of_a_time_limit_are_noted_when_somebody_wants_to_hear_of_them() {
    let mut lab = Lab::new();
    let kinds = vec![MailKind::TimeLimit50, MailKind::TimeLimit90];
    let mail = Some(Mail { kinds, ..Default::default() });
    let job = lab.running(JobSpec { time_limit: Some(TimeLimit::Secs(600)), mail, ..batch() }, "n1");
    for (secs, percent) in [(1299, 0), (1301, 50), (1481, 50), (1541, 90)] {
        lab.at(secs);
        assert_eq!(lab.job(job).time_used_percent, percent, "at {secs}");
    }
}
