//! Clocks jump: of the leader, or from one leader to the next. The state's own time never goes back, and nothing happens twice.
use model::spec::{JobSpec, TimeLimit};
use model::{ExitStatus, Outcome, Phase, Task};

use crate::lab::{Lab, batch};

#[test]
fn a_clock_that_is_set_back_makes_nothing_younger() {
    let mut lab = Lab::new();
    let first = lab.running(batch(), "n1");
    let (now, started) = (lab.cluster.now(), lab.job(first).started);
    // Another leader, an hour behind.
    lab.secs -= 900;
    let second = lab.running(batch(), "n2");
    assert_eq!(lab.cluster.now(), now, "the state's time stands still until the clock has caught up");
    assert!(lab.job(second).submitted >= lab.job(first).submitted);
    assert_eq!(lab.job(second).started, started);
    lab.exit(second, ExitStatus::exited(0)).unwrap();
    assert!(lab.job(second).ended >= lab.job(second).started, "no job ends before it has begun");
    // And forward again, past where it was.
    lab.secs += 1000;
    lab.exit(first, ExitStatus::exited(0)).unwrap();
    assert!(lab.job(first).ended > lab.job(first).started);
}

#[test]
fn a_clock_that_leaps_ahead_ends_what_is_due_once_and_stays_there() {
    let mut lab = Lab::new();
    let limited = JobSpec { time_limit: Some(TimeLimit::Secs(600)), ..batch() };
    let (job, open) = (lab.running(limited, "n1"), lab.running(batch(), "n2"));
    lab.at(lab.secs + 24 * 3600);
    assert_eq!(lab.duty(job), Some(Task::Kill));
    let leapt = lab.cluster.now();
    // The leader who had leapt is gone; the next one has the right time, and ticks as it finds due.
    lab.secs -= 24 * 3600;
    for _ in 0..3 {
        lab.at(lab.secs + 1);
    }
    assert_eq!(lab.cluster.now(), leapt);
    lab.done(job, Task::Kill);
    assert_eq!(lab.job(job).outcome, Some(Outcome::Timeout));
    assert_eq!(lab.job(open).phase, Phase::Running);
    assert!(lab.cluster.next_deadline().is_none_or(|deadline| deadline > leapt), "no tick that would never end");
}
