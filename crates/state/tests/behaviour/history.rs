//! What history has still to record.
use model::history::Subject;
use model::{Command, ExitStatus, JobId, Phase, Task};

use crate::lab::*;

fn recording() -> Lab {
    let mut lab = Lab::new();
    let mut config = config();
    config.accounting.records = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    lab
}

fn unrecorded(lab: &Lab) -> Vec<Subject> {
    lab.cluster.history().unrecorded().collect()
}

fn record_all(lab: &mut Lab) {
    let up_to = lab.cluster.history().last();
    lab.ok(ROOT, Command::Recorded { up_to });
}

#[test]
fn a_change_after_the_look_stays_unrecorded() {
    let mut lab = recording();
    let job = lab.submit(batch());
    let seen = lab.cluster.history().last();
    assert!(lab.place(job, None, "n1"));
    lab.ok(ROOT, Command::Recorded { up_to: seen });
    assert_eq!(unrecorded(&lab), [Subject::Job(job)]);
    record_all(&mut lab);
    assert_eq!(unrecorded(&lab), []);
}

#[test]
fn an_ended_job_stays_until_history_has_it() {
    let mut lab = recording();
    let job = lab.running(batch(), "n1");
    lab.exit(job, ExitStatus::SUCCESS).unwrap();
    lab.at(100_000);
    assert_eq!(lab.job(job).phase, Phase::Done);
    record_all(&mut lab);
    assert!(lab.cluster.job(job).is_none(), "recorded and older than MinJobAge");
}

#[test]
fn each_run_of_a_requeued_job_is_kept() {
    let mut lab = recording();
    let job = lab.running(batch(), "n1");
    record_all(&mut lab);
    lab.each(ROOT, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    let past = lab.cluster.history().past_run(job, 1).expect("the first run waits to be recorded").clone();
    assert_eq!(past.job.allocation.nodes.len(), 1);
    assert_eq!(unrecorded(&lab), [Subject::Past(job, 1), Subject::Job(job)]);
    record_all(&mut lab);
    assert!(lab.cluster.history().past_run(job, 1).is_none());
}

#[test]
fn history_begins_with_what_is_there() {
    let mut lab = Lab::new();
    let job = lab.submit(batch());
    assert_eq!(unrecorded(&lab), []);
    let mut with = config();
    with.accounting.records = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(with) });
    assert_eq!(unrecorded(&lab), [Subject::Job(job)]);
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config()) });
    assert_eq!(unrecorded(&lab), []);
}

#[test]
fn ids_that_history_knows_are_not_given_again() {
    let mut lab = recording();
    lab.ok(ROOT, Command::ContinueIds { after: JobId(500) });
    assert_eq!(lab.submit(batch()), JobId(501));
    lab.ok(ROOT, Command::ContinueIds { after: JobId(7) });
    assert_eq!(lab.submit(batch()), JobId(502));
}
