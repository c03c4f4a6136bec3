//! The site's programs around jobs: what waits for them, and what follows when they fail.
use model::command::{DutyResult, Exited};
use model::job_state::JobState;
use model::node::Run;
use model::{Command, ExitStatus, HeldBy, JobId, Outcome, Owner, Phase, Reason, Reply, StepId, Task};

use crate::lab::{ALICE, Lab, ROOT, batch, cancel, config};

fn lab_with_hooks() -> Lab {
    let mut lab = Lab::new();
    let mut config = config();
    let one = |name: &str| vec![name.to_string()];
    config.hooks.controller_prolog = one("/cp");
    config.hooks.prolog = one("/p");
    config.hooks.epilog = one("/e");
    config.hooks.controller_epilog = one("/ce");
    config.hooks.flags.alloc = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    lab
}

fn hook_fails(lab: &mut Lab, job: JobId, task: Task, node: &str) {
    let duty = lab.cluster.duty(&Owner::Job(job)).expect("it has one").clone();
    assert_eq!(duty.task, task);
    let (nodes, why, drained_for) = (vec![node.into()], "exit status 1".into(), String::new());
    let result = DutyResult::HookFailed { nodes, why, drained_for };
    assert_eq!(lab.ok(ROOT, Command::DutyDone { duty, result }), Reply::Ok);
}

#[test]
fn a_job_starts_and_ends_between_its_programs() {
    let mut lab = lab_with_hooks();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n1"));
    assert_eq!((lab.duty(job), lab.job(job).state()), (Some(Task::ControllerProlog), JobState::Configuring));
    assert_eq!(lab.job(job).reason, Some(Reason::Prolog));
    lab.at(1010);
    lab.done(job, Task::ControllerProlog);
    assert_eq!(lab.job(job).started.map(|at| at.0), Some(1_010_000_000));
    assert_eq!((lab.duty(job), lab.job(job).state()), (Some(Task::Prolog), JobState::Running));
    assert_eq!(lab.job(job).reason, Some(Reason::Prolog));
    lab.done(job, Task::Prolog);
    lab.done(job, Task::Launch);
    assert_eq!((lab.job(job).phase, lab.job(job).reason), (Phase::Running, None));
    lab.exit(job, ExitStatus::SUCCESS).unwrap();
    assert_eq!((lab.duty(job), lab.node("n1").jobs.len()), (Some(Task::Epilog), 1));
    lab.done(job, Task::Epilog);
    assert_eq!((lab.duty(job), lab.node("n1").jobs.len()), (Some(Task::ControllerEpilog), 0));
    assert_eq!(lab.job(job).state(), JobState::Completing);
    lab.done(job, Task::ControllerEpilog);
    assert_eq!(lab.job(job).state(), JobState::Completed);
}

#[test]
fn a_failed_prolog_drains_the_node_and_holds_the_job() {
    let mut lab = lab_with_hooks();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n2"));
    lab.done(job, Task::ControllerProlog);
    hook_fails(&mut lab, job, Task::Prolog, "n2");
    assert!(lab.node("n2").drain);
    assert_eq!(lab.node("n2").reason.as_ref().map(|reason| reason.text.as_str()), Some("Prolog error"));
    lab.done(job, Task::Kill);
    lab.done(job, Task::Epilog);
    lab.done(job, Task::ControllerEpilog);
    let record = lab.job(job);
    assert_eq!((record.phase, record.held, record.restarts), (Phase::Pending, Some(HeldBy::LaunchFailed), 1));
    assert_eq!(record.reason_text, "launch failed requeued held");
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert_eq!(lab.job(job).held, None);
}

#[test]
fn a_node_that_cannot_run_a_script_is_drained_and_the_job_is_kept() {
    let mut lab = Lab::new();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n2"));
    lab.done(job, Task::Launch);
    let exited = Exited {
        job,
        attempt: lab.job(job).attempt,
        step: StepId::Batch,
        node: "n2".into(),
        exit: ExitStatus::signaled(53),
        launch_error: Some("cannot write the script".into()),
        drained_for: "batch job complete failure".into(),
        ..Exited::default()
    };
    lab.ok(ROOT, Command::Exited(exited));
    let node = lab.node("n2");
    assert_eq!(node.reason.as_ref().map(|reason| reason.text.as_str()), Some("batch job complete failure"));
    let record = lab.job(job);
    assert_eq!((record.phase, record.held, node.drain), (Phase::Pending, Some(HeldBy::LaunchFailed), true));
}

#[test]
fn a_failed_controller_prolog_is_tried_again_later_and_a_failed_epilog_only_drains() {
    let mut lab = lab_with_hooks();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n1"));
    hook_fails(&mut lab, job, Task::ControllerProlog, "none");
    lab.done(job, Task::Kill);
    hook_fails(&mut lab, job, Task::Epilog, "n1");
    assert_eq!(lab.node("n1").reason.as_ref().map(|reason| reason.text.as_str()), Some("Epilog error"));
    lab.done(job, Task::ControllerEpilog);
    assert_eq!((lab.job(job).phase, lab.job(job).reason), (Phase::Pending, Some(Reason::BeginTime)));
    lab.at(1200);
    assert!(lab.place(job, None, "n2"));
}

#[test]
fn a_job_suspended_while_its_nodes_are_prepared_starts_suspended() {
    let mut lab = lab_with_hooks();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n1"));
    lab.each(ALICE, Command::Suspend { jobs: vec![job.into()] }).unwrap();
    lab.done(job, Task::ControllerProlog);
    lab.done(job, Task::Prolog);
    lab.done(job, Task::Launch);
    assert_eq!((lab.job(job).phase, lab.duty(job)), (Phase::Suspended, Some(Task::Stop)));
}

#[test]
fn one_cancelled_while_its_nodes_are_prepared_still_has_its_epilogs() {
    let mut lab = lab_with_hooks();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n1"));
    lab.done(job, Task::ControllerProlog);
    lab.each(ALICE, cancel(job)).unwrap();
    lab.done(job, Task::Kill);
    lab.done(job, Task::Epilog);
    lab.done(job, Task::ControllerEpilog);
    assert_eq!((lab.job(job).phase, lab.job(job).outcome), (Phase::Done, Some(Outcome::Cancelled)));
    let waiting = lab.submit(batch());
    lab.each(ALICE, cancel(waiting)).unwrap();
    assert_eq!(lab.job(waiting).phase, Phase::Done);
    // A node that comes back with what it has left of a run is cleared before it is used.
    lab.register("n1", &[Run { job, attempt: 0 }]);
    assert!(lab.cluster.duty(&Owner::Node("n1".into())).is_some());
}

#[test]
fn over_time_limit_lets_a_job_run_on() {
    let mut lab = Lab::new();
    let mut config = config();
    config.scheduler.over_time_limit = Some(model::spec::TimeLimit::Secs(120));
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    let limit = Some(model::spec::TimeLimit::Secs(60));
    let job = lab.running(model::JobSpec { time_limit: limit, ..batch() }, "n1");
    lab.at(1100);
    assert_eq!(lab.job(job).phase, Phase::Running);
    lab.at(1181);
    assert_eq!(lab.job(job).outcome, Some(Outcome::Timeout));
}

#[test]
fn who_is_requeued_too_often_of_its_own_accord_is_held() {
    let mut lab = lab_with_hooks();
    let mut rules = (**lab.cluster.config()).clone();
    rules.hooks.flags.no_hold_on_failure = true;
    rules.jobs.max_requeues = 2;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules) });
    let job = lab.submit(batch());
    for (node, held) in [("n1", None), ("n2", Some(HeldBy::MaxRequeue))] {
        assert!(lab.place(job, None, node));
        lab.done(job, Task::ControllerProlog);
        hook_fails(&mut lab, job, Task::Prolog, node);
        lab.done(job, Task::Kill);
        lab.done(job, Task::Epilog);
        lab.done(job, Task::ControllerEpilog);
        assert_eq!((lab.job(job).phase, lab.job(job).held), (Phase::Pending, held));
    }
    assert_eq!(lab.job(job).reason, Some(Reason::JobHoldMaxRequeue));
    lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    assert_eq!((lab.job(job).held, lab.job(job).auto_requeues), (None, 0));
}

#[test]
fn node_with_unkillable_processes_is_drained_and_the_job_ends() {
    let mut lab = Lab::new();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n2"));
    lab.done(job, Task::Launch);
    let exited = Exited {
        job,
        attempt: lab.job(job).attempt,
        step: StepId::Batch,
        node: "n2".into(),
        drained_for: "Kill task failed (processes 7)".into(),
        ..Exited::default()
    };
    lab.ok(ROOT, Command::Exited(exited));
    let node = lab.node("n2");
    assert_eq!(node.reason.as_ref().map(|reason| reason.text.as_str()), Some("Kill task failed (processes 7)"));
    assert!(node.drain);
    assert_eq!((lab.job(job).held, lab.job(job).exit), (None, ExitStatus::SUCCESS));
    assert_ne!(lab.job(job).phase, Phase::Pending);
}
