//! Tasks leave their array's record when they start, or when they are treated apart.
use model::command::JobResult;
use model::spec::{ArraySpec, JobSpec};
use model::{Command, ExitStatus, JobId, Phase, Reason, Reject, Reply, Task};

use crate::lab::{ALICE, Lab, batch, named};

fn array(tasks: &str) -> JobSpec {
    let (tasks, limit) = model::ranges::parse_array(tasks).unwrap();
    JobSpec { array: Some(ArraySpec { tasks, limit }), ..batch() }
}

fn results(lab: &mut Lab, command: Command) -> Vec<(String, Result<(), Reject>)> {
    match lab.ok(ALICE, command) {
        Reply::Each(results) => {
            results.into_iter().map(|JobResult { job, result }| (job.to_string(), result)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn waiting(lab: &Lab, job: JobId) -> String {
    lab.job(job).waiting_tasks.as_ref().map_or(String::new(), |tasks| tasks.to_string())
}

#[test]
fn a_million_tasks_are_one_record_until_they_start() {
    let mut lab = Lab::new();
    let id = lab.submit(array("0-999999"));
    assert_eq!(lab.cluster.n_jobs(), 1);
    assert!(lab.place(id, Some(5), "n1"));
    assert_eq!(lab.cluster.n_jobs(), 2);
    assert_eq!(waiting(&lab, id), "0-4,6-999999");
    let task = lab.cluster.array(id).unwrap().tasks[&5];
    assert_eq!((lab.job(task).array_task(), lab.job(task).phase), (Some(5), Phase::Starting));
}

#[test]
fn the_last_task_keeps_the_arrays_own_number() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-2"));
    assert!(lab.place(id, Some(1), "n1"));
    assert!(lab.place(id, Some(2), "n1"));
    assert_eq!(lab.cluster.array(id).unwrap().tasks[&2], id);
}

#[test]
fn the_task_with_the_arrays_own_number_is_kept_as_long_as_any_other() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-2"));
    assert!(lab.place(id, Some(1), "n1") && lab.place(id, Some(2), "n1"));
    let other = lab.cluster.array(id).unwrap().tasks[&1];
    [id, other].into_iter().for_each(|task| lab.done(task, Task::Launch));
    lab.exit(id, ExitStatus::SUCCESS).unwrap();
    lab.at(5000);
    assert_eq!(lab.job(id).phase, Phase::Done, "long over, and still there");
    lab.exit(other, ExitStatus::SUCCESS).unwrap();
    lab.at(5290);
    assert!(lab.cluster.job(id).is_some() && lab.cluster.job(other).is_some());
    lab.at(5310);
    assert!(lab.cluster.job(id).is_none() && lab.cluster.job(other).is_none(), "they go together");
    assert!(lab.cluster.array(id).is_none());
}

#[test]
fn no_more_tasks_start_than_the_limit_allows() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-4%2"));
    assert!(lab.place(id, Some(1), "n1"));
    assert!(lab.place(id, Some(2), "n1"));
    assert_eq!(lab.job(id).reason, Some(Reason::JobArrayTaskLimit));
    assert!(!lab.place(id, Some(3), "n1"));
    let first = lab.cluster.array(id).unwrap().tasks[&1];
    lab.done(first, Task::Launch);
    lab.exit(first, ExitStatus::SUCCESS).unwrap();
    assert!(lab.place(id, Some(3), "n1"));
}

#[test]
fn a_new_limit_counts_at_once_and_is_shown() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-4%1"));
    assert!(lab.place(id, Some(1), "n1"));
    assert!(!lab.place(id, Some(2), "n1"));
    let changes = model::update::JobChanges { array_limit: Some(2), ..Default::default() };
    results(&mut lab, Command::UpdateJob { job: id.into(), changes: Box::new(changes) });
    assert!(lab.place(id, Some(2), "n1"));
    let task = lab.cluster.array(id).unwrap().tasks[&2];
    for record in [id, task] {
        assert_eq!(lab.job(record).spec.array.as_ref().unwrap().limit, Some(2));
    }
}

#[test]
fn tasks_are_cancelled_apart_from_the_rest() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-6"));
    assert!(lab.place(id, Some(1), "n1"));
    let answers = results(&mut lab, Command::Cancel { jobs: vec![named("1_1-3")], hurry: false });
    assert_eq!(answers, [("1_2-3".to_string(), Ok(())), ("1_1".to_string(), Ok(()))]);
    assert_eq!(waiting(&lab, id), "4-6");
    let answers = results(&mut lab, Command::Cancel { jobs: vec![named("1_2")], hurry: false });
    assert_eq!(answers[0].1, Err(Reject::AlreadyOver));
    assert_eq!(
        results(&mut lab, Command::Cancel { jobs: vec![named("1_9")], hurry: false })[0].1,
        Err(Reject::NoSuchJob)
    );
}

#[test]
fn a_refused_command_does_not_split_the_array() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-6"));
    let answers = results(&mut lab, Command::Suspend { jobs: vec![named("1_2")] });
    assert_eq!(answers, [("1_2".to_string(), Err(Reject::JobPending))]);
    assert_eq!(waiting(&lab, id), "1-6");
}

#[test]
fn held_tasks_wait_while_the_others_start() {
    let mut lab = Lab::new();
    let id = lab.submit(array("1-3"));
    assert_eq!(lab.each(ALICE, Command::Hold { jobs: vec![named("1_2")], by_user: true }), Ok(()));
    assert_eq!(waiting(&lab, id), "1,3");
    assert!(!lab.place(id, Some(2), "n1"));
    let held = lab.cluster.array(id).unwrap().tasks[&2];
    assert_eq!(lab.job(held).reason, Some(Reason::JobHeldUser));
    assert_eq!(lab.each(ALICE, Command::Release { jobs: vec![named("1_2")] }), Ok(()));
    assert!(lab.place(held, None, "n1"));
}
