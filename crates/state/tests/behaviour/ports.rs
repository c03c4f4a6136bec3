//! Ports of the site's range: no two steps on one node share one.
use std::collections::BTreeSet;

use model::ports::PortRange;
use model::step::Mpi;
use model::{Caller, Command, JobId, JobKind, JobSpec, Reject, Reply, StepId, StepSpec};

use crate::lab::*;

fn lab() -> Lab {
    let mut lab = Lab::new();
    let ports = Some(PortRange { first: 12000, last: 12004 });
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(model::Config { mpi_ports: ports, ..config() }) });
    lab
}

fn create(lab: &mut Lab, job: JobId, n_ports: Option<u32>, mpi: Mpi) -> Result<StepId, Reject> {
    let spec = StepSpec { n_tasks: Some(1), overlaps: true, n_ports, mpi, ..Default::default() };
    match lab.apply(ALICE, Command::CreateStep { job, spec: Box::new(spec), blobs: Vec::new() })? {
        Reply::StepCreated(step) => Ok(step),
        other => panic!("{other:?}"),
    }
}

fn ports(lab: &Lab, job: JobId, step: StepId) -> Vec<u16> {
    lab.cluster.step(job, step).expect("it is there").ports.clone()
}

#[test]
fn steps_on_one_node_have_ports_of_their_own() {
    let mut lab = lab();
    let (job, other) = (lab.running(batch(), "n1"), lab.running(batch(), "n1"));
    let first = create(&mut lab, job, Some(2), Mpi::None).unwrap();
    let second = create(&mut lab, other, Some(2), Mpi::None).unwrap();
    let all: BTreeSet<u16> = ports(&lab, job, first).into_iter().chain(ports(&lab, other, second)).collect();
    assert_eq!(all.len(), 4);
    assert_eq!(create(&mut lab, job, Some(2), Mpi::None), Err(Reject::PortsInUse));
    assert_eq!(create(&mut lab, job, Some(6), Mpi::None), Err(Reject::TooManyPorts));
    // Another node has ports of its own.
    let away = lab.running(batch(), "n2");
    create(&mut lab, away, Some(5), Mpi::None).unwrap();
    assert_eq!(create(&mut lab, job, Some(0), Mpi::None).map(|step| ports(&lab, job, step)), Ok(vec![]));
    // MPI takes one for each task of a node and one more.
    lab.ok(ALICE, Command::CancelStep { job, step: first });
    let duty = lab.cluster.duty(&model::Owner::Step(job, first)).expect("it is to be ended").clone();
    lab.ok(ROOT, Command::DutyDone { duty, result: model::command::DutyResult::Done });
    let third = create(&mut lab, job, None, Mpi::Pmi2).unwrap();
    assert_eq!(ports(&lab, job, third).len(), 2);
    assert!(ports(&lab, job, third).iter().all(|port| !ports(&lab, other, second).contains(port)));
}

#[test]
fn an_srun_of_its_own_waits_for_ports() {
    let mut lab = lab();
    let run = |n_ports| {
        let step = StepSpec { n_tasks: Some(1), n_ports: Some(n_ports), ..Default::default() };
        JobSpec { kind: JobKind::Run(Box::new(step)), ..batch() }
    };
    let submit = |lab: &mut Lab, spec: JobSpec| {
        let by = Caller { uid: spec.uid, gid: spec.gid, is_admin: false };
        lab.apply(by, Command::Submit { spec: Box::new(spec), blobs: Vec::new() })
    };
    assert_eq!(submit(&mut lab, run(6)), Err(Reject::TooManyPorts));
    let (first, second) = (lab.submit(run(4)), lab.submit(run(2)));
    assert!(lab.place(first, None, "n1"));
    assert_eq!(ports(&lab, first, StepId::Number(0)), [12000, 12001, 12002, 12003]);
    assert!(!lab.place(second, None, "n2"), "too few are left");
    lab.ok(ALICE, Command::CancelStep { job: first, step: StepId::Number(0) });
    let duty = lab.cluster.duty(&model::Owner::Step(first, StepId::Number(0))).expect("it is to be ended").clone();
    lab.ok(ROOT, Command::DutyDone { duty, result: model::command::DutyResult::Done });
    assert!(lab.place(second, None, "n2"));
    // They go round.
    assert_eq!(ports(&lab, second, StepId::Number(0)), [12004, 12000]);
}

/// In a large cluster many steps have the same ports, each on its own nodes.
#[test]
fn mpi_that_does_not_ask_waits_for_no_other_node() {
    let mut lab = lab();
    let holder = lab.running(batch(), "n1");
    create(&mut lab, holder, Some(5), Mpi::None).unwrap();
    let run = || {
        let step = StepSpec { n_tasks: Some(1), mpi: Mpi::Pmi2, ..Default::default() };
        JobSpec { kind: JobKind::Run(Box::new(step)), ..batch() }
    };
    for (node, n_ports) in [("n2", 2), ("n1", 0)] {
        let job = lab.submit(run());
        assert!(lab.place(job, None, node));
        assert_eq!(ports(&lab, job, StepId::Number(0)).len(), n_ports);
    }
}
