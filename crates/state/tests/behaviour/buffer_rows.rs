//! Rows of the tables of what becomes of buffers that no path walks over: the ends of runs, persistent work that is called off,
//! suspension, preemption, and what is told of failures.
use model::buffer::PersistentPhase;
use model::command::Exited;
use model::job_state::JobState;
use model::partition::PreemptMode;
use model::plan::Preemption;
use model::preemption::PreemptKind;
use model::spec::TimeLimit;
use model::staging::{Moved, StageFailure, StageResult};
use model::time::Span;
use model::trigger::{Trigger, TriggerKind};
use model::{Command, ExitStatus, HeldBy, JobId, JobSpec, Outcome, Owner, Partition, Plan, Reason, StepId, Task};

use super::buffers::{Burst, FULL, file, lab, lab_with, persistent_answer, with_bb};
use super::lab::*;

type End = fn(&mut Lab, JobId);

/// What a run of this job comes to by itself, by its time limit, by its memory, or by a signal: its data is brought back.
#[test]
fn every_end_of_a_run_stages_out() {
    let ends: [(End, JobState); 4] = [
        (|lab, job| drop(lab.exit(job, ExitStatus::exited(3)).unwrap()), JobState::Failed),
        (|lab, job| drop(lab.exit(job, ExitStatus::signaled(9)).unwrap()), JobState::Failed),
        (
            |lab, job| {
                let attempt = lab.job(job).attempt;
                let exited = Exited { job, attempt, step: StepId::Batch, node: "n1".into(), ..Default::default() };
                let exited = Exited { exit: ExitStatus::signaled(9), out_of_memory: true, ..exited };
                lab.ok(ROOT, Command::Exited(exited));
            },
            JobState::OutOfMemory,
        ),
        (
            |lab, job| {
                let late = lab.secs + 200;
                lab.at(late);
                lab.done(job, Task::Kill);
            },
            JobState::Timeout,
        ),
    ];
    for (end, state) in ends {
        let mut lab = lab();
        let job = lab.submit(JobSpec { time_limit: Some(TimeLimit::Secs(100)), ..with_bb(FULL) });
        assert!(lab.stage(job));
        lab.done_all(job, Task::StageIn);
        assert!(lab.place(job, None, "n1"));
        lab.done(job, Task::Launch);
        end(&mut lab, job);
        assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::StageOut, "staging-out"), "{state:?}");
        lab.done_all(job, Task::StageOut);
        assert!(!lab.cluster.buffer(job).unwrap().hurry);
        lab.done_all(job, Task::TearDown);
        assert_eq!((lab.job(job).state(), lab.used("flash")), (state, 0));
    }
}

/// Whoever is in a hurry is so about one run.
#[test]
fn a_hurry_is_forgotten_when_the_job_runs_again() {
    let mut lab = lab();
    let job = lab.running_with(FULL);
    lab.cancel(job, true).unwrap();
    lab.each(ALICE, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Pending, "teardown"));
    lab.done_all(job, Task::TearDown);
    assert!(lab.stage(job));
    lab.done_all(job, Task::StageIn);
    assert!(lab.place(job, None, "n1"));
    lab.done(job, Task::Launch);
    lab.exit(job, ExitStatus::default()).unwrap();
    assert_eq!(lab.word(job), "staging-out");
}

#[test]
fn cancelled_creations_are_not_made_and_made_ones_stay() {
    for hurry in [false, true] {
        let mut lab = lab();
        let two = "#BB create_persistent name=one capacity=1\n#BB create_persistent name=two capacity=1";
        let maker = lab.submit(file(two));
        let user = lab.submit(file("#DW persistentdw name=two"));
        assert!(lab.stage(maker) && lab.stage(user));
        persistent_answer(&mut lab, "one", StageResult::Done(Moved::default()));
        assert_eq!((lab.word(maker), lab.used("flash")), ("allocating", 2));
        lab.cancel(maker, hurry).unwrap();
        assert_eq!((lab.job(maker).state(), lab.word(maker)), (JobState::Cancelled, "complete"));
        assert_eq!(lab.cluster.persistent("one").unwrap().phase, PersistentPhase::Ready);
        let task = lab.cluster.duty(&Owner::Persistent("two".into())).map(|duty| duty.task);
        assert_eq!(task, Some(Task::Destroy), "nobody knows how far it came");
        persistent_answer(&mut lab, "two", StageResult::Done(Moved::default()));
        assert_eq!((lab.used("flash"), lab.word(user)), (1, "allocating"), "and who waits for it goes on waiting");
        let again = lab.submit(file(two));
        assert!(lab.stage(again));
        persistent_answer(&mut lab, "two", StageResult::Done(Moved::default()));
        assert_ne!(lab.word(again), "allocating", "what is its owner's already counts as made");
        assert_ne!(lab.word(user), "allocating");
    }
}

#[test]
fn a_cancelled_destruction_is_carried_out() {
    let mut lab = lab();
    let maker = lab.submit(file("#BB create_persistent name=library capacity=1"));
    lab.stage(maker);
    persistent_answer(&mut lab, "library", StageResult::Done(Moved::default()));
    let mut spec = file("#BB destroy_persistent name=library\n#BB destroy_persistent name=nosuch");
    spec.size.max_nodes = Some(0);
    let job = lab.submit(spec);
    assert!(lab.stage(job));
    assert_eq!(lab.word(job), "deleting");
    lab.cancel(job, false).unwrap();
    assert_eq!(lab.job(job).state(), JobState::Cancelled);
    persistent_answer(&mut lab, "library", StageResult::Done(Moved::default()));
    assert_eq!(lab.cluster.persistent_buffers().count(), 0);
}

#[test]
fn a_suspended_job_keeps_its_buffer_as_it_is() {
    let mut lab = lab();
    let job = lab.running_with(FULL);
    lab.each(ROOT, Command::Suspend { jobs: vec![job.into()] }).unwrap();
    lab.done(job, Task::Stop);
    assert_eq!((lab.word(job), lab.buffer_duty(job), lab.used("flash")), ("running", None, 4));
    lab.each(ROOT, Command::Resume { jobs: vec![job.into()] }).unwrap();
    lab.done(job, Task::Continue);
    assert_eq!((lab.word(job), lab.used("flash")), ("running", 4));
    lab.each(ROOT, Command::Suspend { jobs: vec![job.into()] }).unwrap();
    lab.done(job, Task::Stop);
    lab.cancel(job, false).unwrap();
    lab.done(job, Task::Kill);
    assert_eq!(lab.word(job), "staging-out");
}

#[test]
fn who_is_preempted_stages_out_and_one_that_runs_again_stages_in() {
    for mode in [PreemptMode::Cancel, PreemptMode::Requeue] {
        let mut lab = lab();
        let mut config = (**lab.cluster.config()).clone();
        config.scheduler.preemption.kind = PreemptKind::PartitionTier;
        config.scheduler.preemption.mode = mode;
        config.scheduler.requeues = true;
        let nodes = config.partitions[0].nodes.clone();
        config.partitions.push(Partition { name: "first".into(), nodes, priority_tier: 9, ..Default::default() });
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
        let job = lab.running_with(FULL);
        let by = lab.submit(JobSpec { partitions: vec!["first".into()], ..batch() });
        let preemptions = vec![Preemption { job, attempt: lab.job(job).attempt, by }];
        lab.ok(ROOT, Command::AdoptPlan(Plan { preemptions, ..Default::default() }));
        lab.done(job, Task::Kill);
        assert_eq!(lab.word(job), "staging-out", "{mode:?}");
        lab.done_all(job, Task::StageOut);
        lab.done_all(job, Task::TearDown);
        match mode {
            PreemptMode::Cancel => assert_eq!(lab.job(job).outcome, Some(Outcome::Preempted)),
            _ => assert_eq!((lab.job(job).state(), lab.word(job)), (JobState::Pending, "pending")),
        }
    }
}

#[test]
fn what_takes_too_long_has_failed() {
    let mut lab = lab_with(|burst| burst.stage_in_timeout = Span::from_secs(100));
    let job = lab.submit(with_bb(FULL));
    assert!(lab.stage(job));
    let late = lab.secs + 200;
    lab.at(late);
    let seen = lab.job(job);
    assert_eq!((seen.held, seen.reason), (Some(HeldBy::BurstBuffer), Some(Reason::BurstBufferOperation)));
    assert!(seen.reason_text.contains("stage_in failed: timed out waiting for n"), "{}", seen.reason_text);
    assert_eq!((lab.word(job), lab.used("flash")), ("staging-in", 4), "kept until somebody has looked");
    let private = lab.submit(with_bb("capacity=1 pool=nvme"));
    assert!(lab.place(private, None, "n2"));
    let later = lab.secs + 200;
    lab.at(later);
    lab.done(private, Task::Kill);
    assert_eq!((lab.job(private).state(), lab.word(private)), (JobState::Pending, "teardown"));
    assert_eq!(lab.job(private).held, Some(HeldBy::BurstBuffer));
}

#[test]
fn failures_fire_triggers_and_fill_the_comment_only_so_far() {
    let mut lab = lab();
    let kinds = vec![TriggerKind::BurstBuffer];
    let trigger = Trigger { uid: 0, kinds, program: "/bin/true".into(), ..Default::default() };
    lab.ok(ROOT, Command::SetTrigger { trigger: Box::new(trigger) });
    let job = lab.submit(with_bb(FULL));
    assert!(lab.stage(job));
    for round in 0..40 {
        let failure = StageFailure { why: format!("{round} {}", "x".repeat(200)), ..Default::default() };
        lab.answer(job, Task::StageIn, |_| StageResult::Failed(failure.clone()));
        lab.each(ALICE, Command::Release { jobs: vec![job.into()] }).unwrap();
    }
    let later = lab.secs + 2;
    lab.at(later);
    assert_eq!(lab.cluster.due_triggers().count(), 1);
    let length: usize = lab.job(job).remarks.iter().map(|remark| remark.text.len()).sum();
    assert!((700..1400).contains(&length), "{length}");
}

#[test]
fn only_the_task_that_is_requeued_stages_again() {
    let mut lab = lab();
    let mut spec = with_bb(FULL);
    spec.array = Some(model::spec::ArraySpec { tasks: (0..2).collect(), limit: None });
    let array = lab.submit(spec);
    assert!(lab.stage(array) && lab.stage(array));
    let jobs: Vec<JobId> = lab.cluster.buffers().map(|buffer| buffer.job).collect();
    for job in &jobs {
        lab.done_all(*job, Task::StageIn);
        assert!(lab.place(*job, None, "n1"));
        lab.done(*job, Task::Launch);
    }
    lab.each(ALICE, Command::Requeue { jobs: vec![named(&format!("{array}_0"))], hold: false }).unwrap();
    let (mut requeued, mut others) = (Vec::new(), Vec::new());
    for job in &jobs {
        let list = if lab.job(*job).array_task() == Some(0) { &mut requeued } else { &mut others };
        list.push(*job);
    }
    lab.done(requeued[0], Task::Kill);
    assert_eq!((lab.word(requeued[0]), lab.word(others[0])), ("staging-out", "running"));
}
