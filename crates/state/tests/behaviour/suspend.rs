//! Suspension: the clock of a job stands still, and what users see follows from it.
use model::job_state::JobState;
use model::spec::{JobSpec, TimeLimit};
use model::{Command, JobId, Phase, Reject, Task};

use crate::lab::{ALICE, Lab, ROOT, batch, cancel};

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
