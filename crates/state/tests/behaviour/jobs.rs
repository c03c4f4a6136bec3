//! Cancelling, requeueing, holding, limits: what happens to a job in each phase.
use model::job_state::JobState;
use model::spec::{JobSpec, TimeLimit};
use model::time::Span;
use model::update::JobChanges;
use model::{Command, ExitStatus, HeldBy, JobId, Outcome, Phase, Reason, Reject, Task};

use crate::lab::{ALICE, BOB, Lab, ROOT, batch, cancel, config, requeue};

/// A job in each phase it can be found in.
fn in_phase(lab: &mut Lab, phase: Phase) -> JobId {
    let job = lab.submit(batch());
    if phase == Phase::Pending {
        return job;
    }
    assert!(lab.place(job, None, "n1"));
    if phase == Phase::Starting {
        return job;
    }
    lab.done(job, Task::Launch);
    match phase {
        Phase::Running => (),
        Phase::Suspended => assert_eq!(lab.each(ROOT, Command::Suspend { jobs: vec![job.into()] }), Ok(())),
        Phase::Ending => assert_eq!(lab.each(ALICE, cancel(job)), Ok(())),
        Phase::Done => {
            lab.exit(job, ExitStatus::SUCCESS).unwrap();
        }
        Phase::Pending | Phase::Starting | Phase::Finishing => unreachable!("no test asks for it"),
    }
    assert_eq!(lab.job(job).phase, phase);
    job
}

#[test]
fn a_cancelled_job_ends_from_every_phase_and_leaves_nothing_running() {
    for (phase, answer, after, duty) in [
        (Phase::Pending, Ok(()), Phase::Done, None),
        (Phase::Starting, Ok(()), Phase::Ending, Some(Task::Kill)),
        (Phase::Running, Ok(()), Phase::Ending, Some(Task::Kill)),
        (Phase::Suspended, Ok(()), Phase::Ending, Some(Task::Kill)),
        (Phase::Ending, Err(Reject::AlreadyOver), Phase::Ending, Some(Task::Kill)),
        (Phase::Done, Err(Reject::AlreadyOver), Phase::Done, None),
    ] {
        let mut lab = Lab::new();
        let job = in_phase(&mut lab, phase);
        assert_eq!(lab.each(ALICE, cancel(job)), answer, "{phase:?}");
        assert_eq!((lab.job(job).phase, lab.duty(job)), (after, duty), "{phase:?}");
        if duty.is_some() {
            lab.done(job, Task::Kill);
            assert_eq!(lab.job(job).outcome, Some(Outcome::Cancelled));
            assert!(lab.node("n1").jobs.is_empty());
        }
    }
}

#[test]
fn a_requeued_job_waits_again_as_another_run() {
    for (phase, answer, held) in [
        (Phase::Pending, Err(Reject::JobPending), None),
        (Phase::Starting, Ok(()), None),
        (Phase::Running, Ok(()), None),
        (Phase::Suspended, Ok(()), Some(HeldBy::Admin)),
        (Phase::Done, Ok(()), None),
    ] {
        let mut lab = Lab::new();
        let job = in_phase(&mut lab, phase);
        assert_eq!(lab.each(ALICE, requeue(job)), answer, "{phase:?}");
        if lab.duty(job) == Some(Task::Kill) {
            lab.done(job, Task::Kill);
        }
        let record = lab.job(job);
        assert_eq!((record.phase, record.held), (Phase::Pending, held), "{phase:?}");
        let n_restarts = u32::from(answer.is_ok());
        assert_eq!((record.attempt, record.restarts), (1 + n_restarts, n_restarts), "{phase:?}");
    }
}

#[test]
fn a_requeued_job_waits_as_long_as_the_site_has_it_wait() {
    for (phase, begins) in [(Phase::Running, 1121), (Phase::Done, 1121)] {
        let mut lab = Lab::new();
        let mut rules = (**lab.cluster.config()).clone();
        rules.jobs.requeue_delay_secs = 121;
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules) });
        lab.at(1000);
        let job = in_phase(&mut lab, phase);
        lab.each(ALICE, requeue(job)).unwrap();
        if lab.duty(job) == Some(Task::Kill) {
            lab.done(job, Task::Kill);
        }
        lab.at(begins - 1);
        assert_eq!((lab.job(job).phase, lab.job(job).reason), (Phase::Pending, Some(Reason::BeginTime)), "{phase:?}");
        lab.at(begins);
        assert_ne!(lab.job(job).reason, Some(Reason::BeginTime), "{phase:?}");
        assert!(lab.place(job, None, "n1"), "{phase:?}");
    }
}

#[test]
fn a_cancel_while_a_job_ends_to_be_requeued_ends_it_for_good() {
    let mut lab = Lab::new();
    let job = in_phase(&mut lab, Phase::Running);
    assert_eq!(lab.each(ALICE, requeue(job)), Ok(()));
    assert_eq!(lab.each(ALICE, cancel(job)), Ok(()));
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).phase, lab.job(job).outcome), (Phase::Done, Some(Outcome::Cancelled)));
}

#[test]
fn reports_about_an_earlier_run_are_stale() {
    let mut lab = Lab::new();
    let job = in_phase(&mut lab, Phase::Running);
    let late = model::command::Exited { job, attempt: 1, node: "n1".into(), ..Default::default() };
    lab.each(ALICE, requeue(job)).unwrap();
    lab.done(job, Task::Kill);
    assert!(lab.place(job, None, "n2"));
    assert_eq!(lab.apply(ROOT, Command::Exited(late)), Err(Reject::Stale));
    assert_eq!(lab.job(job).phase, Phase::Starting);
}

#[test]
fn an_exit_proves_the_launch_whose_own_report_comes_second() {
    let mut lab = Lab::new();
    let job = in_phase(&mut lab, Phase::Starting);
    let duty = lab.cluster.duties().next().unwrap().clone();
    lab.exit(job, ExitStatus::exited(2)).unwrap();
    assert_eq!((lab.job(job).phase, lab.job(job).outcome), (Phase::Done, Some(Outcome::Failed)));
    let done = Command::DutyDone { duty, result: model::command::DutyResult::Done };
    assert_eq!(lab.apply(ROOT, done), Err(Reject::Stale));
}

#[test]
fn outcomes_come_from_the_exit_status() {
    for (exit, outcome, reason) in [
        (ExitStatus::SUCCESS, Outcome::Completed, None),
        (ExitStatus::exited(1), Outcome::Failed, Some(Reason::NonZeroExitCode)),
        (ExitStatus::signaled(11), Outcome::Failed, Some(Reason::RaisedSignal)),
    ] {
        let mut lab = Lab::new();
        let job = in_phase(&mut lab, Phase::Running);
        lab.exit(job, exit).unwrap();
        let record = lab.job(job);
        assert_eq!((record.outcome, record.reason, record.exit), (Some(outcome), reason, exit));
    }
}

#[test]
fn a_job_that_cannot_be_launched_waits_held() {
    let mut lab = Lab::new();
    let job = in_phase(&mut lab, Phase::Starting);
    lab.fail(job, Task::Launch);
    lab.done(job, Task::Kill);
    let record = lab.job(job);
    assert_eq!((record.phase, record.held), (Phase::Pending, Some(HeldBy::Admin)));
}

#[test]
fn a_hold_is_lifted_by_those_who_may() {
    let hold = |job: JobId, by_user| Command::Hold { jobs: vec![job.into()], by_user };
    let release = |job: JobId| Command::Release { jobs: vec![job.into()] };
    // (holder, as a user's hold, releaser, may release)
    for (holder, by_user, releaser, allowed) in [
        (ALICE, false, ALICE, Ok(())),
        (ALICE, false, BOB, Err(Reject::NotPermitted)),
        (ALICE, false, ROOT, Ok(())),
        (ROOT, false, ALICE, Err(Reject::NotPermitted)),
        (ROOT, true, ALICE, Ok(())),
        (ROOT, false, ROOT, Ok(())),
    ] {
        let mut lab = Lab::new();
        let job = in_phase(&mut lab, Phase::Pending);
        assert_eq!(lab.each(holder, hold(job, by_user)), Ok(()));
        assert!(!lab.place(job, None, "n1"), "held jobs do not start");
        assert_eq!(lab.each(releaser, release(job)), allowed);
        assert_eq!(lab.place(job, None, "n1"), allowed.is_ok());
    }
}

#[test]
fn a_job_is_ended_at_its_limit_and_forgotten_some_time_later() {
    let mut lab = Lab::new();
    let mut spec = batch();
    spec.time_limit = Some(TimeLimit::Secs(60));
    let job = lab.running(spec, "n1");
    assert_eq!(lab.cluster.next_deadline().map(|at| at.secs()), Some(1060));
    lab.at(1060);
    assert_eq!((lab.job(job).phase, lab.job(job).outcome), (Phase::Ending, Some(Outcome::Timeout)));
    lab.at(1090).done(job, Task::Kill);
    assert_eq!(lab.job(job).run_time(lab.cluster.now()), Span::from_secs(60));
    lab.at(1389);
    assert!(lab.cluster.job(job).is_some(), "MinJobAge counts from the moment when nothing was left to do");
    lab.at(1390);
    assert!(lab.cluster.job(job).is_none());
}

#[test]
fn the_warning_comes_before_the_limit_once() {
    let mut lab = Lab::new();
    let mut spec = batch();
    spec.time_limit = Some(TimeLimit::Secs(60));
    spec.warning =
        Some(model::spec::Warning { signal: 10, before: Span::from_secs(20), batch_only: true, ..Default::default() });
    let job = lab.running(spec, "n1");
    lab.at(1039);
    assert_eq!(lab.duty(job), None);
    lab.at(1040).done(job, Task::Warn);
    lab.at(1059);
    assert_eq!((lab.job(job).phase, lab.duty(job)), (Phase::Running, None));
}

#[test]
fn warning_waits_until_a_program_can_listen() {
    for (limit, before, at) in [(120, 120, 1030), (120, 500, 1030), (600, 599, 1030), (60, 60, 1015), (60, 20, 1040)] {
        let mut lab = Lab::new();
        let (signal, before) = (10, Span::from_secs(before));
        let warning = model::spec::Warning { signal, before, ..Default::default() };
        let time_limit = Some(TimeLimit::Secs(limit));
        let job = lab.running(JobSpec { time_limit, warning: Some(warning), ..batch() }, "n1");
        lab.at(at - 1);
        assert_eq!(lab.duty(job), None, "{limit} {before:?}");
        lab.at(at);
        assert_eq!(lab.duty(job), Some(Task::Warn), "{limit} {before:?}");
    }
}

#[test]
fn a_job_requeued_to_be_held_says_so_until_it_is_released() {
    let mut lab = Lab::new();
    let job = in_phase(&mut lab, Phase::Done);
    assert_eq!(lab.each(ALICE, Command::Requeue { jobs: vec![job.into()], hold: true }), Ok(()));
    let shown = |lab: &Lab| (lab.job(job).reason, lab.job(job).reason_text.clone());
    assert_eq!(shown(&lab), (Some(Reason::JobHeldUser), "job requeued in held state".to_string()));
    assert_eq!(lab.each(ALICE, Command::Release { jobs: vec![job.into()] }), Ok(()));
    assert_eq!(shown(&lab), (Some(Reason::Priority), String::new()));
}

#[test]
fn the_top_job_comes_before_the_others_of_its_user() {
    let mut lab = Lab::new();
    let [first, second] = [(); 2].map(|()| lab.submit(batch()));
    let top = || {
        let changes = model::update::JobChanges { comes_first: Some(true), ..Default::default() };
        Command::UpdateJob { job: second.into(), changes: Box::new(changes) }
    };
    assert_eq!(lab.each(ALICE, top()), Err(Reject::NotPermitted));
    assert_eq!(lab.each(ROOT, top()), Ok(()));
    assert!(lab.job(second).priority > lab.job(first).priority);
    assert_eq!(lab.cluster.queue().next().unwrap().id, second);
}

#[test]
fn a_site_may_have_jobs_run_again_by_how_they_ended() {
    let mut lab = Lab::new();
    let mut rules = config();
    rules.jobs.requeue_exit = model::ranges::parse_array("3-4").unwrap().0;
    rules.jobs.requeue_exit_hold = model::ranges::parse_array("5").unwrap().0;
    rules.jobs.appends_output = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules) });
    let ended = |lab: &mut Lab, spec: model::JobSpec, code| {
        let job = lab.running(spec, "n1");
        lab.exit(job, ExitStatus::exited(code)).unwrap();
        (lab.job(job).state(), lab.job(job).restarts, job)
    };
    let (state, restarts, again) = ended(&mut lab, batch(), 4);
    assert_eq!((state, restarts), (JobState::Pending, 1));
    assert_eq!(lab.job(again).spec.open_mode, model::spec::OpenMode::Append);
    assert_eq!(ended(&mut lab, batch(), 5).0, JobState::SpecialExit);
    assert_eq!(ended(&mut lab, batch(), 6).0, JobState::Failed);
    let only_once = model::JobSpec { requeue: Some(false), ..batch() };
    assert_eq!(ended(&mut lab, only_once, 3).0, JobState::Failed);
}

#[test]
fn usage_cannot_be_looked_at_less_often_than_the_site_needs() {
    let mut lab = Lab::new();
    let mut rules = config();
    rules.jobs.accounting_secs = 30;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules) });
    let asked = |lab: &mut Lab, secs| {
        let spec = model::JobSpec { accounting_secs: Some(secs), ..batch() };
        lab.apply(ALICE, Command::Submit { spec: Box::new(spec), blobs: Vec::new() }).err()
    };
    assert_eq!(asked(&mut lab, 29), None);
    assert_eq!(asked(&mut lab, 31), Some(Reject::BadAccountingFrequency));
    assert_eq!(asked(&mut lab, 0), Some(Reject::BadAccountingFrequency));
}

/// A priority of one's own would lift an administrator's hold.
#[test]
fn an_owner_does_not_put_a_job_before_others() {
    let mut lab = Lab::new();
    let job = lab.submit(JobSpec { uid: ALICE.uid, ..batch() });
    let change = |changes: JobChanges| Command::UpdateJob { job: job.into(), changes: Box::new(changes) };
    let weighed = || change(JobChanges { priority: Some(1), ..Default::default() });
    for by in [ROOT, ALICE] {
        lab.ok(by, Command::Hold { jobs: vec![job.into()], by_user: false });
        assert_eq!(lab.each(ALICE, weighed()), Err(Reject::JobHeld));
        assert!(lab.job(job).held.is_some());
        lab.ok(ROOT, Command::Release { jobs: vec![job.into()] });
    }
    let denied = [
        JobChanges { nice: Some(-1), ..Default::default() },
        JobChanges { priority: Some(u32::MAX - 2), ..Default::default() },
        JobChanges { site_factor: Some(1), ..Default::default() },
        JobChanges { admin_comment: Some("mine".into()), ..Default::default() },
    ];
    for changes in denied {
        assert_eq!(lab.each(ALICE, change(changes.clone())), Err(Reject::BeyondOwner), "{changes:?}");
        assert_eq!(lab.each(ROOT, change(changes)), Ok(()));
    }
    assert_eq!(lab.each(ALICE, change(JobChanges { nice: Some(5), ..Default::default() })), Ok(()));
    let spec = JobSpec { uid: ALICE.uid, nice: -1, ..batch() };
    let submit = || Command::Submit { spec: Box::new(spec.clone()), blobs: Vec::new() };
    assert_eq!(lab.apply(ALICE, submit()), Err(Reject::BadNice));
    assert!(lab.apply(ROOT, submit()) != Err(Reject::BadNice));
}

/// As a 22.05 takes them off the list; with EnforcePartLimits=ALL it refuses the job.
#[test]
fn partitions_that_are_not_for_the_account_are_left_out() {
    use model::config::PartitionLimits;
    let mut lab = Lab::new();
    let mut config = crate::lab::config();
    let closed = model::Partition {
        name: "closed".into(),
        allow_accounts: vec!["staff".into()],
        ..config.partitions[0].clone()
    };
    config.partitions.push(closed);
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config.clone()) });
    let open = config.partitions[0].name.clone();
    let both = JobSpec { partitions: vec!["closed".into(), open.clone()], ..batch() };
    let job = lab.submit(both.clone());
    assert_eq!((&lab.job(job).spec.partitions, &lab.job(job).partition), (&vec![open.clone()], &open));
    let only = JobSpec { partitions: vec!["closed".into()], ..batch() };
    let submit = |spec: &JobSpec| Command::Submit { spec: Box::new(spec.clone()), blobs: Vec::new() };
    assert_eq!(lab.apply(ALICE, submit(&only)), Err(Reject::InvalidAccount));
    config.scheduler.partition_limits = PartitionLimits::All;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    assert_eq!(lab.apply(ALICE, submit(&both)), Err(Reject::InvalidAccount));
}

/// As a 22.05 with CR_CPU: memory is not handed out, and no node has more than it has.
#[test]
fn no_job_gets_a_node_with_less_memory_than_it_asks_for() {
    use model::spec::{Memory, Size};
    let mut lab = Lab::new();
    let mut config = config();
    config.scheduler.tracks_memory = false;
    let most = config.nodes.iter().map(|node| node.config.memory_mb).max().expect("there are nodes");
    config.nodes[0].config.memory_mb = most * 2;
    let roomy = config.nodes[0].name.to_string();
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config.clone()) });
    let asks = |memory| JobSpec { size: Size { memory, ..Size::default() }, ..batch() };
    let submit = |spec: JobSpec| Command::Submit { spec: Box::new(spec), blobs: Vec::new() };
    for memory in [Memory::PerNodeMb(most * 2 + 1), Memory::PerCpuMb(most * 2 + 1)] {
        let refused = lab.apply(ALICE, submit(asks(memory)));
        assert!(matches!(refused, Err(Reject::NoNodeHas(model::reject::Lack::Memory))), "{refused:?}");
    }
    let job = lab.submit(asks(Memory::PerNodeMb(most * 2)));
    let small = config.nodes[1].name.to_string();
    assert!(!lab.place(job, None, &small) && lab.place(job, None, &roomy));
}

#[test]
fn sockets_and_cores_of_a_waiting_job_may_be_changed() {
    let mut lab = Lab::new();
    let job = lab.submit(JobSpec { uid: ALICE.uid, held: true, ..batch() });
    let change = |changes: JobChanges| Command::UpdateJob { job: job.into(), changes: Box::new(changes) };
    let one = JobChanges { sockets_per_node: Some(1), delay_boot_secs: Some(60), ..Default::default() };
    assert_eq!(lab.each(ALICE, change(one)), Ok(()));
    let spec = &lab.job(job).spec;
    assert_eq!((spec.size.sockets_per_node, spec.delay_boot.secs()), (Some(1), 60));
    let many = JobChanges { sockets_per_node: Some(999), ..Default::default() };
    let refused = lab.each(ALICE, change(many));
    assert!(matches!(refused, Err(Reject::NoNodeHas(model::reject::Lack::Sockets))), "{refused:?}");
}
