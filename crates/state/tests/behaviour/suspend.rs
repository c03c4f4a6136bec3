//! Suspension: the clock of a job stands still, and what users see follows from it.
use model::command::DutyResult;
use model::config::SuspendCpus;
use model::job_state::JobState;
use model::spec::{JobSpec, TimeLimit};
use model::{Command, JobId, Owner, Phase, Reject, Task};

use crate::lab::{ALICE, Lab, ROOT, batch, cancel, requeue};

fn suspend(job: JobId) -> Command {
    Command::Suspend { jobs: vec![job.into()] }
}

fn resume(job: JobId) -> Command {
    Command::Resume { jobs: vec![job.into()] }
}

/// State, run time, run time before the suspension, moment of the last change, expected or real end; in seconds from the start.
fn row(lab: &Lab, job: JobId) -> (JobState, u64, u64, Option<u64>, Option<u64>) {
    let job = lab.job(job);
    let since_start = |at: model::Timestamp| at.secs() - 1000;
    (
        job.state(),
        job.run_time(model::Timestamp::from_secs(lab.secs)).secs(),
        job.run_before_suspend.secs(),
        job.suspend_changed.map(since_start),
        job.end_time().map(since_start),
    )
}

#[test]
fn the_worked_timeline_of_the_specification() {
    let mut lab = Lab::new();
    let job = lab.running(JobSpec { time_limit: Some(TimeLimit::Secs(600)), ..batch() }, "n1");
    lab.at(1002);
    assert_eq!(row(&lab, job), (JobState::Running, 2, 0, None, Some(600)));
    lab.at(1003);
    lab.each(ROOT, suspend(job)).unwrap();
    lab.done(job, Task::Stop);
    lab.at(1008);
    assert_eq!(row(&lab, job), (JobState::Suspended, 3, 3, Some(3), Some(600)));
    lab.at(1012);
    lab.each(ROOT, resume(job)).unwrap();
    lab.done(job, Task::Continue);
    lab.at(1015);
    assert_eq!(row(&lab, job), (JobState::Running, 6, 3, Some(12), Some(609)));
    lab.at(1020);
    lab.each(ROOT, suspend(job)).unwrap();
    lab.done(job, Task::Stop);
    lab.at(1050);
    assert_eq!(row(&lab, job), (JobState::Suspended, 11, 11, Some(20), Some(609)));
    lab.at(1060);
    lab.each(ALICE, cancel(job)).unwrap();
    lab.done(job, Task::Kill);
    assert_eq!(row(&lab, job), (JobState::Cancelled, 11, 11, Some(20), Some(20)));
}

#[test]
fn a_suspended_job_does_not_time_out_and_gets_the_rest_afterwards() {
    let mut lab = Lab::new();
    let job = lab.running(JobSpec { time_limit: Some(TimeLimit::Secs(60)), ..batch() }, "n1");
    lab.at(1050);
    lab.each(ROOT, suspend(job)).unwrap();
    lab.done(job, Task::Stop);
    lab.at(9000);
    assert_eq!(lab.job(job).phase, Phase::Suspended);
    lab.each(ROOT, resume(job)).unwrap();
    lab.done(job, Task::Continue);
    lab.at(9009);
    assert_eq!(lab.job(job).phase, Phase::Running);
    lab.at(9010);
    assert_eq!(lab.job(job).phase, Phase::Ending);
}

#[test]
fn suspending_and_resuming_are_refused_where_they_make_no_sense() {
    let mut lab = Lab::new();
    let pending = lab.submit(batch());
    assert_eq!(lab.each(ROOT, suspend(pending)), Err(Reject::JobPending));
    assert_eq!(lab.each(ROOT, resume(pending)), Err(Reject::JobPending));
    let running = lab.running(batch(), "n1");
    assert_eq!(lab.each(ROOT, resume(running)), Err(Reject::NotSuspended));
    lab.each(ROOT, suspend(running)).unwrap();
    assert_eq!(lab.each(ROOT, suspend(running)), Err(Reject::AlreadySuspended));
    lab.each(ALICE, cancel(running)).unwrap();
    assert_eq!(lab.each(ROOT, suspend(running)), Err(Reject::AlreadyOver));
    assert_eq!(lab.each(ROOT, resume(running)), Err(Reject::AlreadyOver));
}

#[test]
fn a_job_suspended_before_its_launch_is_launched_and_then_frozen() {
    let mut lab = Lab::new();
    let job = lab.submit(batch());
    assert!(lab.place(job, None, "n1"));
    lab.each(ROOT, suspend(job)).unwrap();
    lab.done(job, Task::Launch);
    lab.done(job, Task::Stop);
    assert_eq!(lab.job(job).phase, Phase::Suspended);
}

#[test]
fn a_freeze_of_an_earlier_suspension_is_none_for_a_later_one() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.each(ROOT, suspend(job)).unwrap();
    let first = lab.cluster.duty(&Owner::Job(job)).unwrap().clone();
    lab.each(ROOT, resume(job)).unwrap();
    lab.each(ROOT, suspend(job)).unwrap();
    let late = Command::DutyDone { duty: first, result: DutyResult::Done };
    assert_eq!(lab.apply(ROOT, late), Err(Reject::Stale));
    lab.done(job, Task::Stop);
}

#[test]
fn a_freeze_that_failed_is_tried_again() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.each(ROOT, suspend(job)).unwrap();
    lab.fail(job, Task::Stop);
    lab.done(job, Task::Stop);
    lab.each(ROOT, resume(job)).unwrap();
    lab.fail(job, Task::Continue);
    lab.done(job, Task::Continue);
    assert!(!lab.job(job).is_frozen);
}

fn with_all_cpus() -> JobSpec {
    let mut spec = batch();
    spec.size.n_tasks = Some(4);
    spec.size.memory = model::spec::Memory::PerNodeMb(400);
    spec
}

#[test]
fn cpus_are_kept_unless_they_are_to_be_lent() {
    let mut lab = Lab::new();
    let kept = lab.running(with_all_cpus(), "n1");
    lab.each(ROOT, suspend(kept)).unwrap();
    let other = lab.submit(with_all_cpus());
    assert!(!lab.place(other, None, "n1"));

    let mut config = crate::lab::config();
    config.scheduler.suspend_cpus = SuspendCpus::Release;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    let lender = lab.running(with_all_cpus(), "n2");
    lab.each(ROOT, suspend(lender)).unwrap();
    assert_eq!((lab.node("n2").free_cpus(), lab.node("n2").free_memory_mb()), (4, 600));
    assert!(lab.place(other, None, "n2"));
    lab.done(other, Task::Launch);
    // Two jobs run on the same CPUs until one ends.
    lab.each(ROOT, resume(lender)).unwrap();
    assert_eq!(lab.node("n2").free_cpus(), 0);
    lab.exit(other, model::ExitStatus::SUCCESS).unwrap();
    assert_eq!(lab.node("n2").free_cpus(), 0);
    lab.each(ROOT, cancel(lender)).unwrap();
    lab.done(lender, Task::Kill);
    assert_eq!((lab.node("n2").free_cpus(), lab.node("n2").shares_cpus), (4, false));
}

#[test]
fn a_job_that_was_stopped_by_a_signal_is_shown_so_while_it_runs() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.ok(ROOT, Command::NoteStopped { jobs: vec![job], is_stopped: true });
    assert_eq!(lab.job(job).state(), JobState::Stopped);
    lab.at(1005);
    assert_eq!(lab.job(job).run_time(lab.cluster.now()).secs(), 5);
    lab.ok(ROOT, Command::NoteStopped { jobs: vec![job], is_stopped: false });
    assert_eq!(lab.job(job).state(), JobState::Running);
}

#[test]
fn a_suspended_job_that_is_requeued_waits_held() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.at(1005);
    lab.each(ROOT, suspend(job)).unwrap();
    lab.each(ROOT, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    let record = lab.job(job);
    assert_eq!((record.phase, record.reason), (Phase::Pending, Some(model::Reason::JobHeldAdmin)));
    assert_eq!((record.suspended_at, record.suspend_changed, record.restarts), (None, None, 1));
}
