//! What each kind of dependency makes of each end.
use model::dependency::parse;
use model::spec::JobSpec;
use model::update::JobChanges;
use model::{Command, ExitStatus, JobId, Outcome, Phase, Reason, Reject, Task};

use crate::lab::{ALICE, Lab, batch, cancel};

fn after(text: &str) -> JobSpec {
    JobSpec { dependency: parse(text).unwrap(), ..batch() }
}

#[derive(Clone, Copy, Debug)]
enum End {
    Well,
    Badly,
    Cancelled,
}

fn end(lab: &mut Lab, job: JobId, end: End) {
    match end {
        End::Well => drop(lab.exit(job, ExitStatus::SUCCESS).unwrap()),
        End::Badly => drop(lab.exit(job, ExitStatus::exited(1)).unwrap()),
        End::Cancelled => {
            lab.each(ALICE, cancel(job)).unwrap();
            lab.done(job, Task::Kill);
        }
    }
}

#[test]
fn each_kind_is_met_by_its_own_ends() {
    use End::*;
    let free = Some(Reason::Priority);
    let never = Some(Reason::DependencyNeverSatisfied);
    for (kind, how, expected) in [
        ("afterok", Well, free),
        ("afterok", Badly, never),
        ("afterok", Cancelled, never),
        ("afternotok", Well, never),
        ("afternotok", Badly, free),
        ("afternotok", Cancelled, free),
        ("afterany", Well, free),
        ("afterany", Badly, free),
        ("afterany", Cancelled, free),
    ] {
        let mut lab = Lab::new();
        let first = lab.running(batch(), "n1");
        let second = lab.submit(after(&format!("{kind}:{first}")));
        assert_eq!(lab.job(second).reason, Some(Reason::Dependency));
        end(&mut lab, first, how);
        assert_eq!(lab.job(second).reason, expected, "{kind} {how:?}");
    }
}

#[test]
fn after_counts_from_the_start() {
    let mut lab = Lab::new();
    let first = lab.submit(batch());
    let soon = lab.submit(after(&format!("after:{first}")));
    let later = lab.submit(after(&format!("after:{first}+2")));
    assert!(lab.place(first, None, "n1"));
    assert_eq!(lab.job(soon).reason, Some(Reason::Priority));
    assert_eq!(lab.job(later).reason, Some(Reason::Dependency));
    // Its end changes nothing; of one that never began it is the end that counts.
    lab.done(first, Task::Launch);
    end(&mut lab, first, End::Well);
    let gone = lab.submit(batch());
    let after_gone = lab.submit(after(&format!("after:{gone}+1")));
    lab.at(1030).each(ALICE, cancel(gone)).unwrap();
    lab.at(1089);
    assert_eq!(lab.job(after_gone).reason, Some(Reason::Dependency));
    lab.at(1090);
    assert_eq!(lab.job(after_gone).reason, Some(Reason::Priority));
    lab.at(1119);
    assert_eq!(lab.job(later).reason, Some(Reason::Dependency));
    lab.at(1120);
    assert_eq!(lab.job(later).reason, Some(Reason::Priority));
}

#[test]
fn all_terms_must_be_met_or_any() {
    let mut lab = Lab::new();
    let (one, two) = (lab.running(batch(), "n1"), lab.running(batch(), "n1"));
    let all = lab.submit(after(&format!("afterok:{one},afterok:{two}")));
    let any = lab.submit(after(&format!("afterok:{one}?afterok:{two}")));
    end(&mut lab, one, End::Well);
    assert_eq!([all, any].map(|job| lab.job(job).reason), [Some(Reason::Dependency), Some(Reason::Priority)]);
    end(&mut lab, two, End::Well);
    assert_eq!(lab.job(all).reason, Some(Reason::Priority));
}

#[test]
fn a_hopeless_job_is_cancelled_where_that_is_wished() {
    let mut lab = Lab::new();
    let first = lab.running(batch(), "n1");
    let second =
        lab.submit(JobSpec { kill_on_invalid_dependency: Some(true), ..after(&format!("afternotok:{first}")) });
    end(&mut lab, first, End::Well);
    assert_eq!((lab.job(second).phase, lab.job(second).outcome), (Phase::Done, Some(Outcome::Cancelled)));
}

#[test]
fn a_held_job_remembers_that_what_it_waited_for_ended_well() {
    let mut lab = Lab::new();
    let first = lab.running(batch(), "n1");
    let second = lab.submit(JobSpec { held: true, ..after(&format!("afterok:{first}")) });
    end(&mut lab, first, End::Well);
    lab.at(5000);
    assert!(lab.cluster.job(first).is_none(), "long forgotten");
    assert_eq!(lab.each(ALICE, Command::Release { jobs: vec![second.into()] }), Ok(()));
    assert_eq!(lab.job(second).reason, Some(Reason::Priority));
}

#[test]
fn one_of_a_name_at_a_time() {
    let mut lab = Lab::new();
    let first = lab.submit(after("singleton"));
    let second = lab.submit(after("singleton"));
    let other = lab.submit(JobSpec { name: "other".into(), ..after("singleton") });
    assert_eq!(
        [first, second, other].map(|job| lab.job(job).reason),
        [Some(Reason::Priority), Some(Reason::Dependency), Some(Reason::Priority)]
    );
    lab.each(ALICE, cancel(first)).unwrap();
    assert_eq!(lab.job(second).reason, Some(Reason::Priority));
}

#[test]
fn nobody_waits_for_himself() {
    let mut lab = Lab::new();
    let first = lab.submit(batch());
    let second = lab.submit(after(&format!("afterok:{first}")));
    let third = lab.submit(after(&format!("afterok:{second}")));
    let wait = |job: JobId, on: JobId| {
        let changes = JobChanges { dependency: parse(&format!("afterok:{on}")).ok(), ..Default::default() };
        Command::UpdateJob { job: job.into(), changes: Box::new(changes) }
    };
    assert_eq!(lab.each(ALICE, wait(first, first)), Err(Reject::BadDependency));
    assert_eq!(lab.each(ALICE, wait(first, third)), Err(Reject::BadDependency));
    assert_eq!(lab.each(ALICE, wait(third, first)), Ok(()));
}

#[test]
fn a_name_that_is_waited_for_makes_no_ring() {
    let mut lab = Lab::new();
    let named = |name: &str, spec: JobSpec| JobSpec { name: name.into(), ..spec };
    let first = lab.submit(named("one", batch()));
    let second = lab.submit(named("two", batch()));
    let third = lab.submit(named("one", after("singleton")));
    let change = |job: JobId, changes: JobChanges| Command::UpdateJob { job: job.into(), changes: Box::new(changes) };
    let waits = |on: JobId| JobChanges { dependency: parse(&format!("afterok:{on}")).ok(), ..Default::default() };
    // The third waits for the first, which has its name.
    assert_eq!(lab.each(ALICE, change(first, waits(third))), Err(Reject::BadDependency));
    // The second may wait for it, but then it may not take the name.
    assert_eq!(lab.each(ALICE, change(second, waits(third))), Ok(()));
    let renamed = JobChanges { name: Some("one".into()), ..Default::default() };
    assert_eq!(lab.each(ALICE, change(second, renamed)), Err(Reject::BadDependency));
    // Nor may the first wait for one that waits for the third.
    assert_eq!(lab.each(ALICE, change(first, waits(second))), Err(Reject::BadDependency));
}

#[test]
fn a_chain_of_a_hundred_thousand_does_not_nest() {
    let mut lab = Lab { cluster: Default::default(), secs: 1000 };
    let config = crate::lab::config();
    let run = |lab: &mut Lab, command| {
        let entry = model::Entry { at: model::Timestamp::from_secs(lab.secs), by: model::Caller::SYSTEM, command };
        state::apply(&mut lab.cluster, &entry).reply.unwrap()
    };
    run(&mut lab, Command::Reconfigure { config: Box::new(config) });
    for number in 0..100_000 {
        let spec = if number == 0 { JobSpec { held: true, ..batch() } } else { after(&format!("afterany:{number}")) };
        run(
            &mut lab,
            Command::Submit {
                spec: Box::new(JobSpec { kill_on_invalid_dependency: Some(true), ..spec }),
                blobs: Vec::new(),
            },
        );
    }
    let all = (1..=100_000).map(|id| JobId(id).into()).collect();
    run(&mut lab, Command::Cancel { jobs: all, hurry: false });
    assert!(lab.cluster.jobs().all(|job| job.phase == Phase::Done));
}

/// Reasons of an array's records, by the tasks that they stand for.
fn reasons(lab: &Lab, array: JobId) -> Vec<(String, Option<Reason>)> {
    let records = lab.cluster.named(&array.into()).unwrap();
    let mut found: Vec<_> = records
        .iter()
        .map(|id| lab.job(*id))
        .filter(|job| job.phase == Phase::Pending)
        .map(|job| {
            let single = job.array_task().map(|task| task.to_string());
            (single.unwrap_or_else(|| job.waiting_tasks.as_ref().unwrap().to_string()), job.reason)
        })
        .collect();
    found.sort();
    found
}

fn array(tasks: &str, dependency: &str) -> JobSpec {
    let (tasks, limit) = model::ranges::parse_array(tasks).unwrap();
    let spec = if dependency.is_empty() { batch() } else { after(dependency) };
    JobSpec { array: Some(model::spec::ArraySpec { tasks, limit }), ..spec }
}

fn run_task(lab: &mut Lab, array: JobId, task: u32) -> JobId {
    assert!(lab.place(array, Some(task), "n1"));
    let job = lab.cluster.array(array).unwrap().tasks[&task];
    lab.done(job, Task::Launch);
    job
}

#[test]
fn each_task_waits_for_its_own_counterpart() {
    let (waits, never, free) =
        (Some(Reason::Dependency), Some(Reason::DependencyNeverSatisfied), Some(Reason::Priority));
    let mut lab = Lab::new();
    let first = lab.submit(array("1-5", ""));
    let second = lab.submit(array("1-6", &format!("aftercorr:{first}")));
    let whole = lab.submit(after(&format!("aftercorr:{first}")));
    assert_eq!(reasons(&lab, second), [("1-6".into(), waits)]);
    let runs = run_task(&mut lab, first, 2);
    assert_eq!(reasons(&lab, second), [("1-6".into(), waits)]);
    end(&mut lab, runs, End::Well);
    assert_eq!(reasons(&lab, second), [("1,3-6".into(), waits), ("2".into(), free)]);
    let runs = run_task(&mut lab, first, 3);
    end(&mut lab, runs, End::Badly);
    assert_eq!(reasons(&lab, second), [("1,4-6".into(), waits), ("2".into(), free), ("3".into(), never)]);
    // Two that never began.
    lab.each(ALICE, Command::Cancel { jobs: vec![crate::lab::named("1_[4-5]")], hurry: false }).unwrap();
    let expected = [("1,6".into(), waits), ("2".into(), free), ("3".into(), never), ("4-5".into(), never)];
    assert_eq!(reasons(&lab, second), expected);
    // One without a counterpart waits for all.
    let runs = run_task(&mut lab, first, 1);
    end(&mut lab, runs, End::Well);
    let expected =
        [("1".into(), free), ("2".into(), free), ("3".into(), never), ("4-5".into(), never), ("6".into(), never)];
    assert_eq!(reasons(&lab, second), expected);
    assert_eq!(lab.job(whole).reason, never);
}

#[test]
fn tasks_without_a_counterpart_wait_for_the_whole() {
    let mut lab = Lab::new();
    let plain = lab.running(batch(), "n1");
    let of_plain = lab.submit(array("1-3", &format!("aftercorr:{plain}")));
    assert_eq!(reasons(&lab, of_plain), [("1-3".into(), Some(Reason::Dependency))]);
    end(&mut lab, plain, End::Well);
    assert_eq!(reasons(&lab, of_plain), [("1-3".into(), Some(Reason::Priority))]);
    let small = lab.submit(array("1-2", ""));
    let large = lab.submit(array("1-4", &format!("aftercorr:{small}")));
    for task in [1, 2] {
        let runs = run_task(&mut lab, small, task);
        end(&mut lab, runs, End::Well);
    }
    assert!(
        reasons(&lab, large).iter().all(|(_, reason)| *reason == Some(Reason::Priority)),
        "{:?}",
        reasons(&lab, large)
    );
}
