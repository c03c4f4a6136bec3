use model::priority::{PriorityKind, shown};
use model::spec::JobSpec;
use model::time::Span;
use model::update::JobChanges;
use model::{Command, JobId};

use crate::lab::{ALICE, Lab, ROOT, batch};

fn weighed() -> Lab {
    let mut lab = Lab::new();
    let mut config = (**lab.cluster.config()).clone();
    let priority = &mut config.scheduler.priority;
    priority.kind = PriorityKind::Multifactor;
    priority.weight_age = 1000;
    priority.max_age = Span::from_secs(100);
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    lab
}

fn order(lab: &Lab) -> Vec<JobId> {
    lab.cluster.queue().map(|job| job.id).collect()
}

fn priority(lab: &Lab, job: JobId) -> u32 {
    shown(lab.cluster.config(), lab.job(job), lab.cluster.now())
}

#[test]
fn older_jobs_come_first_until_their_age_is_full() {
    let mut lab = weighed();
    let nice = |nice| JobSpec { nice, ..Default::default() };
    lab.at(1000);
    let old = lab.submit(nice(400));
    lab.at(1050);
    let young = lab.submit(nice(0));
    assert_eq!((priority(&lab, old), priority(&lab, young)), (100, 1));
    assert_eq!(order(&lab), [old, young]);
    // The old one has its whole age; the young one goes on.
    lab.at(1149);
    assert_eq!((priority(&lab, old), priority(&lab, young)), (600, 990));
    assert_eq!(order(&lab), [young, old]);
}

#[test]
fn what_an_administrator_says_stands_until_the_job_is_released() {
    let mut lab = weighed();
    lab.at(1000);
    let first = lab.submit(JobSpec::default());
    let second = lab.submit(JobSpec::default());
    let changes = Box::new(JobChanges { priority: Some(5000), ..Default::default() });
    lab.each(ROOT, Command::UpdateJob { job: second.into(), changes }).unwrap();
    assert_eq!((order(&lab), priority(&lab, second)), (vec![second, first], 5000));
    lab.each(ROOT, Command::Hold { jobs: vec![second.into()], by_user: false }).unwrap();
    lab.at(1010);
    lab.each(ROOT, Command::Release { jobs: vec![second.into()] }).unwrap();
    // Its age counts from then on.
    assert_eq!((order(&lab), priority(&lab, second)), (vec![first, second], 1));
    lab.at(1020);
    assert_eq!((priority(&lab, first), priority(&lab, second)), (200, 100));
}

/// A new priority is no way around whoever holds the job.
#[test]
fn a_held_job_is_not_released_by_a_priority() {
    let mut lab = Lab::new();
    let job = lab.submit(batch());
    lab.each(ROOT, Command::Hold { jobs: vec![job.into()], by_user: false }).unwrap();
    for (by, priority) in [(ALICE, 1), (ROOT, 5000)] {
        let changes = Box::new(JobChanges { priority: Some(priority), ..Default::default() });
        assert_eq!(lab.each(by, Command::UpdateJob { job: job.into(), changes }), Err(model::Reject::JobHeld));
    }
    assert!(lab.job(job).held.is_some());
}

/// What was used, or a weight, may make a job less important; with INCR_ONLY only its owner or an operator does.
#[test]
fn a_priority_that_only_rises_falls_for_nobody_but_who_changes_the_job() {
    let mut lab = Lab::new();
    let reconfigured = |lab: &mut Lab, weight_partition| {
        let mut config = (**lab.cluster.config()).clone();
        let priority = &mut config.scheduler.priority;
        (priority.kind, priority.only_rises, priority.weight_partition) =
            (PriorityKind::Multifactor, true, weight_partition);
        config.partitions.iter_mut().for_each(|partition| partition.priority_job_factor = 1);
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    };
    reconfigured(&mut lab, 1000);
    let job = lab.submit(batch());
    assert_eq!(priority(&lab, job), 1000);
    reconfigured(&mut lab, 600);
    assert_eq!(priority(&lab, job), 1000);
    assert_eq!(lab.submit(batch()).0, job.0 + 1);
    assert_eq!(priority(&lab, JobId(job.0 + 1)), 600);
    reconfigured(&mut lab, 1500);
    assert_eq!(priority(&lab, job), 1500);
    let changes = Box::new(JobChanges { nice: Some(100), ..Default::default() });
    lab.each(ROOT, Command::UpdateJob { job: job.into(), changes }).unwrap();
    assert_eq!(priority(&lab, job), 1400);
}

#[test]
fn nice_of_a_throttled_array_takes_only_what_it_says() {
    let mut lab = weighed();
    lab.at(1000);
    let (tasks, limit) = model::ranges::parse_array("0-3%1").unwrap();
    let array = lab.submit(JobSpec { array: Some(model::spec::ArraySpec { tasks, limit }), ..batch() });
    assert!(lab.place(array, Some(0), "n1"));
    lab.at(1060);
    let before = priority(&lab, array);
    let changes = Box::new(JobChanges { nice: Some(50), ..Default::default() });
    lab.ok(ROOT, Command::UpdateJob { job: array.into(), changes });
    assert_eq!((before, priority(&lab, array)), (600, 550));
}
