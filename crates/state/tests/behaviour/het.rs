//! Heterogeneous jobs: together or not at all.
use model::command::{DutyResult, Exited};
use model::plan::{Grant, Start};
use model::{
    Command, ExitStatus, JobId, JobRef, JobSpec, Outcome, Owner, Phase, Plan, Reject, Reply, StepId, StepSpec, Task,
};

use crate::lab::*;

fn submit(lab: &mut Lab, specs: Vec<JobSpec>) -> Vec<JobId> {
    match lab.ok(ALICE, Command::SubmitTogether { specs, blobs: Vec::new() }) {
        Reply::Submitted(id) => lab.job(id).het.as_ref().expect("it is a component").ids.clone(),
        other => panic!("{other:?}"),
    }
}

fn start(lab: &Lab, job: JobId, node: &str) -> Start {
    let size = &lab.job(job).spec.size;
    let part = size.part_of(&lab.node(node).config, 1);
    let grant =
        Grant { node: node.into(), n_cpus: part.n_cpus, memory_mb: part.memory_mb, n_tasks: 1, ..Default::default() };
    Start { job, partition: "debug".into(), nodes: vec![grant], ..Default::default() }
}

fn adopt(lab: &mut Lab, starts: Vec<Start>) -> Reply {
    lab.ok(ROOT, Command::AdoptPlan(Plan { starts, ..Default::default() }))
}

fn running(lab: &mut Lab) -> Vec<JobId> {
    let ids = submit(lab, vec![batch(), batch()]);
    let starts = vec![start(lab, ids[0], "n1"), start(lab, ids[1], "n2")];
    assert_eq!(adopt(lab, starts), Reply::Adopted { n_started: 2, n_stale: 0 });
    lab.done(ids[0], Task::Launch);
    ids
}

fn phases(lab: &Lab, ids: &[JobId]) -> Vec<Phase> {
    ids.iter().map(|id| lab.job(*id).phase).collect()
}

#[test]
fn components_start_together_or_not_at_all() {
    let mut lab = Lab::new();
    let ids = submit(&mut lab, vec![batch(), batch()]);
    let (first, second) = (start(&lab, ids[0], "n1"), start(&lab, ids[1], "n2"));
    assert_eq!(adopt(&mut lab, vec![first.clone()]), Reply::Adopted { n_started: 0, n_stale: 1 });
    let same_node = start(&lab, ids[1], "n1");
    assert_eq!(adopt(&mut lab, vec![first.clone(), same_node]), Reply::Adopted { n_started: 0, n_stale: 2 });
    let refs = |component| vec![JobRef { job: ids[0], component: Some(component), tasks: None }];
    lab.each(ALICE, Command::Hold { jobs: refs(1), by_user: true }).unwrap();
    assert_eq!(adopt(&mut lab, vec![first.clone(), second.clone()]), Reply::Adopted { n_started: 0, n_stale: 2 });
    lab.each(ALICE, Command::Release { jobs: vec![ids[0].into()] }).unwrap();
    assert_eq!(adopt(&mut lab, vec![first, second]), Reply::Adopted { n_started: 2, n_stale: 0 });
}

#[test]
fn one_bad_component_refuses_the_whole() {
    let mut lab = Lab::new();
    let bad = JobSpec { partitions: vec!["nosuch".into()], ..batch() };
    let submitted = lab.apply(ALICE, Command::SubmitTogether { specs: vec![batch(), bad], blobs: Vec::new() });
    assert_eq!(submitted, Err(Reject::UnknownPartition("nosuch".into())));
}

#[test]
fn the_script_is_the_leaders_and_its_end_is_the_end_of_all() {
    let mut lab = Lab::new();
    let ids = running(&mut lab);
    assert_eq!(phases(&lab, &ids), [Phase::Running, Phase::Running]);
    lab.exit(ids[0], ExitStatus::exited(3)).unwrap();
    for id in &ids {
        let job = lab.job(*id);
        assert_eq!((job.outcome, job.exit), (Some(Outcome::Failed), ExitStatus::exited(3)), "{id}");
    }
}

#[test]
fn a_component_that_waits_cannot_be_cancelled_alone_but_one_that_runs_can() {
    let mut lab = Lab::new();
    let waiting = submit(&mut lab, vec![batch(), batch()]);
    let cancel = |job: JobRef| Command::Cancel { jobs: vec![job], hurry: false };
    assert_eq!(lab.each(ALICE, cancel(waiting[1].into())), Err(Reject::HetComponent));
    lab.each(ALICE, cancel(waiting[0].into())).unwrap();
    assert_eq!(phases(&lab, &waiting), [Phase::Done, Phase::Done]);
    let ids = running(&mut lab);
    lab.each(ALICE, cancel(ids[1].into())).unwrap();
    lab.done(ids[1], Task::Kill);
    assert_eq!(phases(&lab, &ids), [Phase::Running, Phase::Done]);
    let requeue = |job: JobId| Command::Requeue { jobs: vec![job.into()], hold: false };
    assert_eq!(lab.each(ALICE, requeue(ids[1])), Err(Reject::NotHetLeader));
    lab.each(ALICE, requeue(ids[0])).unwrap();
    lab.done(ids[0], Task::Kill);
    assert_eq!(phases(&lab, &ids), [Phase::Pending, Phase::Pending]);
}

#[test]
fn a_failed_node_requeues_the_whole() {
    let mut lab = Lab::new();
    let ids = running(&mut lab);
    lab.ok(ROOT, Command::NodeLost { node: "n2".into() });
    lab.done(ids[0], Task::Kill);
    if lab.job(ids[1]).phase == Phase::Ending {
        lab.done(ids[1], Task::Kill);
    }
    assert_eq!(phases(&lab, &ids), [Phase::Pending, Phase::Pending]);
    assert_eq!((lab.job(ids[0]).restarts, lab.job(ids[1]).restarts), (1, 1));
}

#[test]
fn parts_of_a_step_have_one_number_and_one_end() {
    let mut lab = Lab::new();
    let ids = running(&mut lab);
    let spec = StepSpec { n_tasks: Some(1), overlaps: true, ..Default::default() };
    let alone = Command::CreateStep { job: ids[1], spec: Box::new(spec.clone()), blobs: Vec::new() };
    assert_eq!(lab.ok(ALICE, alone), Reply::StepCreated(model::StepId::Number(0)));
    let parts: Vec<(JobId, StepSpec)> = ids.iter().map(|id| (*id, spec.clone())).collect();
    let Reply::StepsCreated(created) = lab.ok(ALICE, Command::CreateStepTogether { parts, blobs: Vec::new() }) else {
        panic!("steps are created")
    };
    assert!(created.iter().all(|part| part.step == model::StepId::Number(1)), "{created:?}");
    lab.ok(ALICE, Command::CancelStep { job: ids[0], step: model::StepId::Number(1) });
    let is_ending =
        |id: &JobId| lab.cluster.step(*id, model::StepId::Number(1)).unwrap().phase == model::StepPhase::Ending;
    assert!(ids.iter().all(is_ending));
}

/// `srun a : b`: both components run, each with its part of the one step.
fn running_step(lab: &mut Lab) -> Vec<JobId> {
    let time_limit = |secs| Some(model::spec::TimeLimit::Secs(secs));
    let run = |secs| JobSpec { kind: model::JobKind::Run(Box::default()), time_limit: time_limit(secs), ..batch() };
    let ids = submit(lab, vec![run(600), run(60)]);
    let starts = vec![start(lab, ids[0], "n1"), start(lab, ids[1], "n2")];
    assert_eq!(adopt(lab, starts), Reply::Adopted { n_started: 2, n_stale: 0 });
    for id in &ids {
        let duty = lab.cluster.duty(&Owner::Step(*id, STEP)).expect("its step is to be launched").clone();
        lab.ok(ROOT, Command::DutyDone { duty, result: DutyResult::Done });
    }
    assert_eq!(phases(lab, &ids), [Phase::Running, Phase::Running]);
    ids
}

const STEP: StepId = StepId::Number(0);

fn step_exits(lab: &mut Lab, job: JobId, node: &str) {
    let attempt = lab.job(job).attempt;
    let exited = Exited { job, attempt, step: STEP, node: node.into(), ..Default::default() };
    lab.ok(ROOT, Command::Exited(exited));
}

fn outcomes(lab: &Lab, ids: &[JobId]) -> Vec<Option<Outcome>> {
    ids.iter().map(|id| lab.job(*id).outcome).collect()
}

#[test]
fn a_component_whose_step_is_over_ends_when_the_other_is_ended() {
    // Whether it is heard how the other's step ended, or only that nothing is left of it.
    for is_heard in [true, false] {
        let mut lab = Lab::new();
        let ids = running_step(&mut lab);
        step_exits(&mut lab, ids[0], "n1");
        assert_eq!(phases(&lab, &ids), [Phase::Running, Phase::Running], "it waits for the other");
        lab.at(1000 + 61);
        assert_eq!(phases(&lab, &ids), [Phase::Running, Phase::Ending]);
        if is_heard {
            step_exits(&mut lab, ids[1], "n2");
        } else {
            lab.done(ids[1], Task::Kill);
        }
        assert_ne!(lab.job(ids[0]).phase, Phase::Running);
        assert_eq!(outcomes(&lab, &ids), [Some(Outcome::Completed), Some(Outcome::Timeout)]);
    }
}

#[test]
fn parts_of_one_srun_end_with_the_last_of_them() {
    let mut lab = Lab::new();
    let ids = running_step(&mut lab);
    step_exits(&mut lab, ids[1], "n2");
    assert_eq!(phases(&lab, &ids), [Phase::Running, Phase::Running]);
    step_exits(&mut lab, ids[0], "n1");
    assert_eq!(outcomes(&lab, &ids), [Some(Outcome::Completed), Some(Outcome::Completed)]);
}
