//! Nodes that start anew, because somebody asked for it or all by themselves; and which of those that come back are used again.
use model::command::DutyResult;
use model::node::{Machine, NextState, NodePhase};
use model::update::NodeChange;
use model::{Command, ExitStatus, Owner, Reject, Task, Timestamp};

use crate::lab::{ALICE, Lab, ROOT, batch, config};

fn change(change: NodeChange) -> Command {
    Command::UpdateNodes { nodes: vec!["n1".into()], change }
}

fn reboot(is_asap: bool, next: Option<NextState>, reason: &str) -> Command {
    change(NodeChange::Reboot { is_asap, next, reason: reason.into() })
}

/// An agent of a machine that was started for the so-manieth time.
fn register(lab: &mut Lab, boot: u32, agent: u64) {
    let machine =
        Machine { boot_id: boot.to_string(), agent_started: Some(Timestamp::from_secs(agent)), ..Machine::default() };
    lab.ok(ROOT, Command::RegisterNode { node: "n1".into(), machine: Box::new(machine), runs: Vec::new() });
}

fn told(lab: &mut Lab, result: DutyResult) {
    let duty = lab.cluster.duty(&Owner::Node("n1".into())).expect("the node has something to do").clone();
    assert_eq!(duty.task, Task::Reboot);
    lab.ok(ROOT, Command::DutyDone { duty, result });
}

fn shown(lab: &Lab) -> (String, String, String) {
    let node = lab.node("n1");
    let state = lab.cluster.node_view(node).state();
    (state.long(), state.compact(), node.reason.as_ref().map_or(String::new(), |reason| reason.text.clone()))
}

fn is(lab: &Lab, long: &str, compact: &str, reason: &str) {
    assert_eq!(shown(lab), (long.into(), compact.into(), reason.into()));
}

#[test]
fn a_node_starts_anew_when_its_last_job_has_left() {
    let mut lab = Lab::new();
    register(&mut lab, 1, 1);
    let job = lab.running(batch(), "n1");
    assert_eq!(lab.apply(ALICE, reboot(false, None, "")), Err(Reject::NotPermitted));
    lab.ok(ROOT, reboot(false, None, ""));
    is(&lab, "MIXED+REBOOT_REQUESTED", "mix@", "reboot requested");
    // Others may still come before.
    let other = lab.running(batch(), "n1");
    lab.exit(job, ExitStatus::exited(0)).unwrap();
    is(&lab, "MIXED+REBOOT_REQUESTED", "mix@", "reboot requested");
    lab.exit(other, ExitStatus::exited(0)).unwrap();
    is(&lab, "DOWN+REBOOT_ISSUED", "boot^", "reboot requested : reboot issued");
    assert_eq!(lab.apply(ROOT, change(NodeChange::CancelReboot)), Err(Reject::InvalidNodeState));
    told(&mut lab, DutyResult::Done);
    // Its agent restarts before the machine does: that is not it.
    register(&mut lab, 1, 2);
    is(&lab, "DOWN+REBOOT_ISSUED", "boot^", "reboot requested : reboot issued");
    assert!(lab.cluster.duty(&Owner::Node("n1".into())).is_none(), "it is told once");
    lab.ok(ROOT, Command::NodeLost { node: "n1".into() });
    register(&mut lab, 2, 3);
    is(&lab, "IDLE", "idle", "");
    assert!(lab.node("n1").reboot.is_none());
}

#[test]
fn asap_keeps_new_jobs_away_and_the_wish_decides_what_comes_after() {
    for (next, reason, after) in [
        (None, "", ("IDLE", "idle", "")),
        (Some(NextState::Resume), "bios", ("IDLE", "idle", "")),
        (Some(NextState::Down), "kernel upgrade", ("DOWN", "down", "kernel upgrade : reboot issued : reboot complete")),
    ] {
        let mut lab = Lab::new();
        register(&mut lab, 1, 1);
        let job = lab.running(batch(), "n1");
        lab.ok(ROOT, reboot(true, next, reason));
        let said = if reason.is_empty() { "Reboot ASAP" } else { reason };
        is(&lab, "MIXED+DRAIN+REBOOT_REQUESTED", "drng@", said);
        let waiting = lab.submit(batch());
        assert!(!lab.place(waiting, None, "n1"));
        lab.exit(job, ExitStatus::exited(0)).unwrap();
        is(&lab, "DOWN+DRAIN+REBOOT_ISSUED", "boot^", &format!("{said} : reboot issued"));
        told(&mut lab, DutyResult::Done);
        register(&mut lab, 2, 2);
        is(&lab, after.0, after.1, after.2);
    }
}

#[test]
fn a_wish_is_taken_back_before_it_is_granted() {
    let mut lab = Lab::new();
    register(&mut lab, 1, 1);
    assert_eq!(lab.apply(ROOT, change(NodeChange::CancelReboot)), Err(Reject::InvalidNodeState), "there is none");
    let job = lab.running(batch(), "n1");
    lab.ok(ROOT, reboot(true, None, ""));
    lab.ok(ROOT, change(NodeChange::CancelReboot));
    is(&lab, "MIXED", "mix", "");
    lab.exit(job, ExitStatus::exited(0)).unwrap();
    is(&lab, "IDLE", "idle", "");
}

#[test]
fn a_node_that_does_not_come_back_in_time_is_down() {
    let mut lab = Lab::new();
    register(&mut lab, 1, 1);
    lab.ok(ROOT, reboot(false, None, ""));
    is(&lab, "DOWN+REBOOT_ISSUED", "boot^", "reboot requested : reboot issued");
    let deadline = lab.cluster.next_deadline().expect("it is awaited");
    assert_eq!(deadline, Timestamp::from_secs(1060));
    lab.at(1060);
    is(&lab, "DOWN", "down", "reboot requested : reboot issued : reboot timed out");
    assert!(lab.cluster.duty(&Owner::Node("n1".into())).is_none());

    let mut lab = Lab::new();
    register(&mut lab, 1, 1);
    lab.ok(ROOT, reboot(false, None, ""));
    told(&mut lab, DutyResult::Failed { node: "n1".into(), why: "no program".into() });
    is(&lab, "DOWN", "down", "reboot requested : reboot issued : reboot failed: no program");
    lab.ok(ROOT, change(NodeChange::Resume));
    is(&lab, "IDLE", "idle", "");
}

#[test]
fn return_to_service_says_which_nodes_that_come_back_are_used() {
    // How it was away: silent, started anew, set down by somebody; and what becomes of it under 0, 1 and 2.
    let lost = Command::NodeLost { node: "n1".into() };
    let set_down = change(NodeChange::Down { reason: "why".into() });
    for (value, was_lost, was_restarted, was_set_down) in [
        (0, NodePhase::Down, NodePhase::Down, NodePhase::Down),
        (1, NodePhase::Up, NodePhase::Down, NodePhase::Down),
        (2, NodePhase::Up, NodePhase::Up, NodePhase::Up),
    ] {
        for (away, boot, expected) in [
            (vec![lost.clone()], 1, was_lost),
            (vec![], 2, was_restarted),
            (vec![lost.clone()], 2, was_restarted),
            (vec![set_down.clone()], 1, was_set_down),
            (vec![set_down.clone(), lost.clone()], 2, was_set_down),
        ] {
            let mut lab = Lab::new();
            let mut config = config();
            config.controller.return_to_service = value > 0;
            config.controller.returns_from_down = value == 2;
            lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
            register(&mut lab, 1, 1);
            for command in away.clone() {
                lab.ok(ROOT, command);
            }
            register(&mut lab, boot, 2);
            assert_eq!(lab.node("n1").phase, expected, "ReturnToService={value} after {away:?} and boot {boot}");
            if boot == 2 && value < 2 && !away.contains(&set_down) {
                assert_eq!(shown(&lab).2, "Node unexpectedly rebooted");
            }
        }
    }
    // Another leader hears the same agent again: that alone brings nobody back.
    let mut lab = Lab::new();
    let mut config = config();
    config.controller.returns_from_down = true;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    register(&mut lab, 1, 1);
    lab.ok(ROOT, set_down);
    register(&mut lab, 1, 1);
    assert_eq!(lab.node("n1").phase, NodePhase::Down);
}
