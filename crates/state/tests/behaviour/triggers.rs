//! Triggers: what they wait for, when they are due, and what becomes of them.
use model::spec::TimeLimit;
use model::trigger::{Trigger, TriggerFilter, TriggerKind};
use model::update::NodeChange;
use model::{Command, ExitStatus, JobId, Reject};

use crate::lab::{ALICE, BOB, Lab, ROOT, batch};

fn trigger(kind: TriggerKind) -> Trigger {
    Trigger { uid: 1000, kinds: vec![kind], program: "/bin/true".into(), ..Default::default() }
}

fn set(lab: &mut Lab, trigger: Trigger) -> Result<(), Reject> {
    lab.apply(ALICE, Command::SetTrigger { trigger: Box::new(trigger) }).map(drop)
}

fn due(lab: &Lab) -> Vec<String> {
    lab.cluster.due_triggers().map(|trigger| format!("{} {}", trigger.id, trigger.argument())).collect()
}

fn down(lab: &mut Lab, node: &str) {
    let change = NodeChange::Down { reason: "broken".into() };
    lab.ok(ROOT, Command::UpdateNodes { nodes: vec![node.into()], change });
}

#[test]
fn nodes_that_go_down_together_are_told_at_once_and_only_once() {
    let mut lab = Lab::new();
    set(&mut lab, trigger(TriggerKind::Down)).unwrap();
    set(&mut lab, Trigger { nodes: vec!["n3".into()], ..trigger(TriggerKind::Down) }).unwrap();
    set(&mut lab, trigger(TriggerKind::Up)).unwrap();
    down(&mut lab, "n1");
    down(&mut lab, "n2");
    assert!(due(&lab).is_empty(), "others may follow");
    assert_eq!(lab.cluster.next_deadline().map(|at| at.secs()), Some(1001));
    lab.at(1001);
    assert_eq!(due(&lab), ["1 n[1-2]"]);
    lab.ok(ROOT, Command::TriggerRan { id: 1, n_fired: 0 });
    assert_eq!(lab.apply(ROOT, Command::TriggerRan { id: 1, n_fired: 0 }), Err(Reject::Stale));
    lab.ok(ROOT, Command::UpdateNodes { nodes: vec!["n1".into()], change: NodeChange::Resume });
    lab.at(1003);
    assert_eq!(due(&lab), ["3 n1"]);
}

#[test]
fn a_permanent_one_waits_anew() {
    let mut lab = Lab::new();
    set(&mut lab, Trigger { is_permanent: true, ..trigger(TriggerKind::Drained) }).unwrap();
    let drain = |lab: &mut Lab, node: &str| {
        let change = NodeChange::Drain { reason: "x".into() };
        lab.ok(ROOT, Command::UpdateNodes { nodes: vec![node.into()], change });
    };
    let job = lab.running(batch(), "n1");
    drain(&mut lab, "n1");
    lab.at(1010);
    assert!(due(&lab).is_empty(), "a job is still there");
    lab.exit(job, ExitStatus::SUCCESS).unwrap();
    lab.at(1011);
    assert_eq!(due(&lab), ["1 n1"]);
    lab.ok(ROOT, Command::TriggerRan { id: 1, n_fired: 0 });
    drain(&mut lab, "n2");
    lab.at(1020);
    assert_eq!(due(&lab), ["1 n2"]);
}

#[test]
fn jobs_are_told_of_before_their_limit_and_when_they_end() {
    let mut lab = Lab::new();
    let mut spec = batch();
    spec.time_limit = Some(TimeLimit::Secs(100));
    let job = lab.submit(spec);
    let of_job = |kind, offset_secs| Trigger { job: Some(job), offset_secs, ..trigger(kind) };
    set(&mut lab, of_job(TriggerKind::Time, -30)).unwrap();
    set(&mut lab, of_job(TriggerKind::Fini, 5)).unwrap();
    assert_eq!(set(&mut lab, of_job(TriggerKind::Fini, 5)), Err(Reject::DuplicateTrigger));
    assert!(lab.place(job, None, "n1"));
    lab.done(job, model::Task::Launch);
    lab.at(1069);
    assert!(due(&lab).is_empty());
    lab.at(1070);
    assert_eq!(due(&lab), [format!("1 {job}")]);
    lab.ok(ROOT, Command::TriggerRan { id: 1, n_fired: 0 });
    lab.exit(job, ExitStatus::SUCCESS).unwrap();
    lab.at(1074);
    assert!(due(&lab).is_empty());
    lab.at(1075);
    assert_eq!(due(&lab), [format!("2 {job}")]);
    assert_eq!(set(&mut lab, of_job(TriggerKind::Fini, 0)), Err(Reject::AlreadyOver));
    assert_eq!(set(&mut lab, Trigger { job: Some(JobId(99)), ..trigger(TriggerKind::Fini) }), Err(Reject::NoSuchJob));
}

#[test]
fn a_node_that_stays_idle_is_told_of_when_it_has_been_so_long_enough() {
    let mut lab = Lab::new();
    let jobs = ["n1", "n2", "n3"].map(|node| lab.running(batch(), node));
    set(&mut lab, Trigger { offset_secs: 60, ..trigger(TriggerKind::Idle) }).unwrap();
    lab.at(1010);
    lab.exit(jobs[1], ExitStatus::SUCCESS).unwrap();
    lab.at(1069);
    assert!(due(&lab).is_empty());
    assert_eq!(lab.cluster.next_deadline().map(|at| at.secs()), Some(1070));
    lab.at(1070);
    lab.at(1071);
    assert_eq!(due(&lab), ["1 n2"]);
}

#[test]
fn only_those_who_may_clear_them_and_wrong_ones_are_refused() {
    let mut lab = Lab::new();
    set(&mut lab, trigger(TriggerKind::Reconfig)).unwrap();
    set(&mut lab, trigger(TriggerKind::PrimaryResumedControl)).unwrap();
    let all_of = |uid| Command::ClearTriggers { filter: TriggerFilter { uid: Some(uid), ..Default::default() } };
    assert_eq!(lab.apply(BOB, all_of(1000)), Err(Reject::NotPermitted));
    assert_eq!(lab.apply(BOB, all_of(1001)), Err(Reject::NoSuchTrigger));
    lab.ok(ROOT, Command::Happened { kinds: vec![TriggerKind::PrimaryResumedControl] });
    assert_eq!(due(&lab), ["2 *"]);
    lab.ok(ALICE, all_of(1000));
    assert_eq!(lab.cluster.triggers().count(), 0);
    for wrong in [
        Trigger { program: "true".into(), ..trigger(TriggerKind::Down) },
        Trigger { offset_secs: 40_000, ..trigger(TriggerKind::Down) },
        Trigger { nodes: vec!["n9".into()], ..trigger(TriggerKind::Down) },
        Trigger { kinds: Vec::new(), ..trigger(TriggerKind::Down) },
        Trigger { uid: 1001, ..trigger(TriggerKind::Down) },
    ] {
        assert!(set(&mut lab, wrong).is_err());
    }
}

#[test]
fn one_user_leaves_triggers_to_others() {
    let mut lab = Lab::new();
    let numbered =
        |uid: u32, number: u32| Trigger { uid, program: format!("/bin/true {number}"), ..trigger(TriggerKind::Down) };
    for number in 0..500 {
        set(&mut lab, numbered(1000, number)).unwrap();
    }
    assert_eq!(set(&mut lab, numbered(1000, 500)), Err(Reject::TooManyTriggers));
    for by in [BOB, ROOT] {
        let of_another = Command::SetTrigger { trigger: Box::new(numbered(by.uid, 500)) };
        lab.ok(by, of_another);
    }
    // One gone makes room.
    lab.ok(ALICE, Command::ClearTriggers { filter: TriggerFilter { id: Some(1), ..Default::default() } });
    set(&mut lab, numbered(1000, 500)).unwrap();
}
