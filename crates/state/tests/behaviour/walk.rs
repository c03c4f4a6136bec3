//! Every state a job can be in, and every command that can meet it there: what comes of it, as one table.
use std::fmt::Write;

use model::node::Run;
use model::update::NodeChange;
use model::{Command, ExitStatus, HeldBy, JobId, Reject, Reply, Task};

use crate::lab::{ALICE, Lab, ROOT, batch, cancel, requeue};

const TABLE: &str = include_str!("walk.txt");

type Make = fn(&mut Lab) -> JobId;
type Act = fn(&mut Lab, JobId) -> Result<(), Reject>;

const STATES: &[(&str, Make)] = &[
    ("pending", |lab| lab.submit(batch())),
    ("held", |lab| {
        let job = lab.submit(batch());
        each(lab, Command::Hold { jobs: vec![job.into()], by_user: false }).expect("it can be held");
        job
    }),
    ("starting", |lab| {
        let job = lab.submit(batch());
        assert!(lab.place(job, None, "n1"));
        job
    }),
    ("running", |lab| lab.running(batch(), "n1")),
    ("stopped", |lab| {
        let job = lab.running(batch(), "n1");
        lab.ok(ROOT, Command::NoteStopped { jobs: vec![job], is_stopped: true });
        job
    }),
    ("suspended", suspended),
    ("resuming", |lab| {
        let job = suspended(lab);
        each(lab, Command::Resume { jobs: vec![job.into()] }).expect("it is suspended");
        job
    }),
    ("ending", |lab| {
        let job = lab.running(batch(), "n1");
        each(lab, cancel(job)).expect("it runs");
        job
    }),
    ("ending to run again", |lab| {
        let job = lab.running(batch(), "n1");
        each(lab, requeue(job)).expect("it runs");
        job
    }),
    ("completed", |lab| {
        let job = lab.running(batch(), "n1");
        lab.exit(job, ExitStatus::SUCCESS).expect("it runs");
        job
    }),
    ("failed", |lab| {
        let job = lab.running(batch(), "n1");
        lab.exit(job, ExitStatus::exited(2)).expect("it runs");
        job
    }),
];

const COMMANDS: &[(&str, Act)] = &[
    ("suspend", |lab, job| each(lab, Command::Suspend { jobs: vec![job.into()] })),
    ("resume", |lab, job| each(lab, Command::Resume { jobs: vec![job.into()] })),
    ("cancel", |lab, job| each(lab, cancel(job))),
    ("requeue", |lab, job| each(lab, requeue(job))),
    ("requeuehold", |lab, job| each(lab, Command::Requeue { jobs: vec![job.into()], hold: true })),
    ("hold", |lab, job| each(lab, Command::Hold { jobs: vec![job.into()], by_user: false })),
    ("release", |lab, job| each(lab, Command::Release { jobs: vec![job.into()] })),
    ("complete", |lab, job| taken(lab, Command::Complete { job, exit: ExitStatus::SUCCESS })),
    ("stopped by a signal", |lab, job| taken(lab, Command::NoteStopped { jobs: vec![job], is_stopped: true })),
    ("placed again", |lab, job| match lab.place(job, None, "n2") {
        true => Ok(()),
        false => Err(Reject::Stale),
    }),
    ("its script exits 0", |lab, job| {
        if lab.job(job).allocation.nodes.is_empty() {
            Err(Reject::Stale)
        } else {
            lab.exit(job, ExitStatus::SUCCESS).map(drop)
        }
    }),
    ("its script is killed", |lab, job| {
        if lab.job(job).allocation.nodes.is_empty() {
            Err(Reject::Stale)
        } else {
            lab.exit(job, ExitStatus::signaled(9)).map(drop)
        }
    }),
    ("time passes", |lab, _| {
        lab.at(1_000 + 100);
        Ok(())
    }),
    ("its node is lost", |lab, _| taken(lab, Command::NodeLost { node: "n1".into() })),
    ("its node is taken down", |lab, _| {
        let change = NodeChange::Down { reason: "smoke".into() };
        taken(lab, Command::UpdateNodes { nodes: vec!["n1".into()], change })
    }),
    ("its node is drained", |lab, _| {
        let change = NodeChange::Drain { reason: "smoke".into() };
        taken(lab, Command::UpdateNodes { nodes: vec!["n1".into()], change })
    }),
    ("its agent starts anew", |lab, job| {
        let attempt = lab.job(job).attempt;
        lab.register("n1", &[Run { job, attempt }]);
        Ok(())
    }),
    ("its machine starts anew", |lab, _| {
        lab.register("n1", &[]);
        Ok(())
    }),
];

fn suspended(lab: &mut Lab) -> JobId {
    let job = lab.running(batch(), "n1");
    each(lab, Command::Suspend { jobs: vec![job.into()] }).expect("it runs");
    lab.done(job, Task::Stop);
    job
}

fn each(lab: &mut Lab, command: Command) -> Result<(), Reject> {
    lab.each(ROOT, command)
}

fn taken(lab: &mut Lab, command: Command) -> Result<(), Reject> {
    lab.apply(ROOT, command).map(|_: Reply| ())
}

/// What users and the leader see: state, reason, hold, and what is to be done to the world.
fn seen(lab: &Lab, job: JobId) -> String {
    let Some(record) = lab.cluster.job(job) else { return "gone".into() };
    let mut text = record.state().name().to_string();
    if record.state() != record.base_state() {
        write!(text, " ({})", record.base_state().name()).expect("a string takes any text");
    }
    if let Some(reason) = record.reason {
        write!(text, " {reason}").expect("a string takes any text");
    }
    if let Some(HeldBy::Admin | HeldBy::User | HeldBy::Requeue) = record.held {
        text.push_str(" held");
    }
    if let Some(task) = lab.duty(job) {
        write!(text, " -> {task:?}").expect("a string takes any text");
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "blessing writes the table")]
fn every_command_meets_every_state() {
    let mut table = String::new();
    for (state, make) in STATES {
        let mut lab = Lab::new();
        let job = make(&mut lab);
        writeln!(table, "{state}: {}", seen(&lab, job)).expect("a string takes any text");
        for (command, act) in COMMANDS {
            let mut lab = Lab::new();
            let job = make(&mut lab);
            let before = seen(&lab, job);
            let result = act(&mut lab, job);
            let after = seen(&lab, job);
            let line = match result {
                // `place` tells by its answer only.
                Err(reject) => {
                    assert_eq!(before, after, "{state}, {command}: refused, yet changed");
                    format!("refused: {reject}")
                }
                Ok(()) if before == after => "nothing changes".into(),
                Ok(()) => after,
            };
            writeln!(table, "  {command:<24} {line}").expect("a string takes any text");
        }
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/behaviour/walk.txt"), &table)
            .expect("the table is ours");
        return;
    }
    assert_eq!(table, TABLE, "the table has changed; look at it, then BLESS=1");
}

#[test]
fn strangers_change_nothing_in_any_state() {
    let stranger = crate::lab::BOB;
    for (state, make) in STATES {
        let mut lab = Lab::new();
        let job = make(&mut lab);
        let before = seen(&lab, job);
        let jobs = || vec![job.into()];
        for command in [
            Command::Suspend { jobs: jobs() },
            Command::Resume { jobs: jobs() },
            Command::Cancel { jobs: jobs(), hurry: false },
            Command::Requeue { jobs: jobs(), hold: false },
            Command::Hold { jobs: jobs(), by_user: true },
            Command::Release { jobs: jobs() },
        ] {
            assert_eq!(lab.each(stranger, command), Err(Reject::NotPermitted), "{state}");
        }
        assert_eq!(seen(&lab, job), before);
        // The owner may, where the state allows it.
        assert_ne!(lab.each(ALICE, Command::Suspend { jobs: jobs() }), Err(Reject::NotPermitted));
    }
}
