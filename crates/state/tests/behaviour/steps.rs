//! How steps end.
use model::command::{DutyResult, Exited};
use model::{Command, ExitStatus, Owner, Reply, StepId, StepPhase, StepSpec, Task};

use crate::lab::*;

const STEP: StepId = StepId::Number(0);

#[test]
fn a_cancelled_step_ended_as_its_tasks_did_whichever_report_comes_first() {
    let killed = ExitStatus { code: 0, signal: 9 };
    for is_heard_first in [true, false] {
        let mut lab = Lab::new();
        let job = lab.running(batch(), "n1");
        let spec = StepSpec { n_tasks: Some(1), overlaps: true, ..Default::default() };
        let create = Command::CreateStep { job, spec: Box::new(spec), blobs: Vec::new() };
        assert_eq!(lab.ok(ALICE, create), Reply::StepCreated(STEP));
        let done = |lab: &mut Lab, task| {
            let duty = lab.cluster.duty(&Owner::Step(job, STEP)).expect("there is something to do").clone();
            assert_eq!(duty.task, task);
            lab.ok(ROOT, Command::DutyDone { duty, result: DutyResult::Done });
        };
        done(&mut lab, Task::Launch);
        lab.ok(ALICE, Command::CancelStep { job, step: STEP });
        let attempt = lab.job(job).attempt;
        let exited = Exited {
            job,
            attempt,
            step: STEP,
            node: "n1".into(),
            exit: killed,
            usage: Some(Default::default()),
            ..Default::default()
        };
        if is_heard_first {
            lab.ok(ROOT, Command::Exited(exited));
        } else {
            done(&mut lab, Task::Kill);
            lab.ok(ROOT, Command::Exited(exited));
        }
        let step = lab.cluster.step(job, STEP).expect("it is remembered");
        assert_eq!((step.phase, step.exit, step.was_cancelled), (StepPhase::Done, killed, true));
        assert_eq!(lab.job(job).derived_exit, killed);
    }
}
