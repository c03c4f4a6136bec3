//! Jobs that may run into a reservation (`--signal=R:`) and go when one of its own needs the place.
use model::command::DutyResult;
use model::partition_field::NodesChange;
use model::reservation::{Flag, Members};
use model::reservation_field::{Field, MembersChange};
use model::spec::{JobKind, JobSpec, Sharing, Size, TimeLimit, Warning};
use model::time::Span;
use model::{Command, JobId, Owner, Phase, Task};
use world::World;

mod world;

/// One node, reserved from 100 s on for an hour, for a job that may be kept waiting half a minute.
fn reserved() -> World {
    let mut world = World::alike(1, 4, 1000);
    let own = Members { names: vec!["0".into()], are_excluded: false };
    let start = world.now + Span::from_secs(100);
    let fields = vec![
        Field::Start(start),
        Field::Duration(Some(Span::from_secs(3600))),
        Field::Nodes(NodesChange::All),
        Field::Users(MembersChange::To(own)),
        Field::MaxStartDelay(Span::from_secs(30)),
    ];
    world.apply(Command::CreateReservation { name: "r".into(), fields, utc_offset_secs: 0 });
    world
}

fn spec() -> JobSpec {
    let size = Size { min_nodes: 1, sharing: Sharing::WholeNodes, ..Default::default() };
    let kind = JobKind::Batch { script: Default::default() };
    JobSpec { size, kind, time_limit: Some(TimeLimit::Secs(3000)), ..Default::default() }
}

fn warned(before: u64, overlaps_reservations: bool) -> JobSpec {
    let warning = Warning { signal: 10, before: Span::from_secs(before), overlaps_reservations, ..Default::default() };
    JobSpec { warning: Some(warning), ..spec() }
}

fn go(world: &mut World) {
    for _ in 0..3 {
        world.schedule();
        let duties: Vec<model::Duty> = world.cluster.duties().cloned().collect();
        for duty in duties {
            world.apply(Command::DutyDone { duty, result: DutyResult::Done });
        }
    }
}

fn phase(world: &World, job: JobId) -> Phase {
    world.cluster.job(job).unwrap().phase
}

#[test]
fn only_jobs_that_go_soon_enough_run_into_it() {
    for (spec, starts) in
        [(spec(), false), (warned(20, false), false), (warned(31, true), false), (warned(30, true), true)]
    {
        let mut world = reserved();
        let job = world.submit_spec(spec.clone());
        go(&mut world);
        assert_eq!(phase(&world, job) == Phase::Running, starts, "{:?}", spec.warning);
    }
}

#[test]
fn it_runs_on_until_a_job_of_the_reservation_needs_its_place() {
    let mut world = reserved();
    let guest = world.submit_spec(warned(20, true));
    go(&mut world);
    world.pass(200);
    go(&mut world);
    assert_eq!(phase(&world, guest), Phase::Running, "nobody else wants the place");
    let own = world.submit_spec(JobSpec { reservations: vec!["r".into()], ..spec() });
    world.schedule();
    let duty = world.cluster.duty(&Owner::Job(guest)).map(|duty| duty.task);
    assert_eq!(duty, Some(Task::Preempt), "it hears its signal");
    go(&mut world);
    assert!(world.cluster.job(guest).unwrap().warned, "it hears no second one");
    assert_eq!((phase(&world, guest), phase(&world, own)), (Phase::Running, Phase::Pending));
    world.pass(20);
    go(&mut world);
    assert_eq!((phase(&world, guest), phase(&world, own)), (Phase::Pending, Phase::Running));
    assert_eq!(world.cluster.job(guest).unwrap().restarts, 1);
}

/// Four nodes of four CPUs, and a reservation with these fields for an hour.
fn counted(start_secs: u64, more: Vec<Field>) -> World {
    let mut world = World::alike(4, 4, 1000);
    let own = Members { names: vec!["0".into()], are_excluded: false };
    let mut fields = vec![
        Field::Start(world.now + Span::from_secs(start_secs)),
        Field::Duration(Some(Span::from_secs(3600))),
        Field::Users(MembersChange::To(own)),
    ];
    fields.extend(more);
    world.apply(Command::CreateReservation { name: "r".into(), fields, utc_offset_secs: 0 });
    world
}

fn drain(world: &mut World, node: &str) {
    let change = model::update::NodeChange::Drain { reason: "broken".into() };
    world.apply(Command::UpdateNodes { nodes: vec![node.into()], change });
    world.pass(6);
}

fn reserved_nodes(world: &World) -> String {
    let reservation = world.cluster.reservation("r").unwrap();
    model::hostlist::compress(reservation.nodes.iter().map(|name| name.as_str()))
}

#[test]
fn nodes_that_were_counted_are_replaced_when_they_go_out_of_service() {
    for start in [0, 100] {
        let mut world = counted(start, vec![Field::NodeCount(2)]);
        assert_eq!(reserved_nodes(&world), "n[1-2]");
        drain(&mut world, "n1");
        assert_eq!(reserved_nodes(&world), "n[2-3]", "start in {start} s");
    }
    let named = NodesChange::To(vec!["n1".into(), "n2".into()]);
    for fields in [vec![Field::Nodes(named)], vec![Field::NodeCount(2), Field::Flags([Flag::StaticAlloc].into())]] {
        let mut world = counted(0, fields.clone());
        drain(&mut world, "n1");
        assert_eq!(reserved_nodes(&world), "n[1-2]", "{fields:?}");
    }
}

#[test]
fn a_reservation_that_lacks_a_node_takes_the_next_that_is_idle() {
    let mut world = counted(100, vec![Field::NodeCount(2)]);
    for node in ["n3", "n4", "n1"] {
        drain(&mut world, node);
    }
    assert_eq!(reserved_nodes(&world), "n[1-2]", "there is none to take");
    world.apply(Command::UpdateNodes { nodes: vec!["n4".into()], change: model::update::NodeChange::Undrain });
    world.pass(6);
    assert_eq!(reserved_nodes(&world), "n[2,4]");
    assert!(!world.cluster.reservation("r").unwrap().lacks_nodes);
}

#[test]
fn a_job_that_its_active_reservation_can_never_hold_is_known_at_once() {
    let wants = |n_nodes: u32, nodes: &[&str]| JobSpec {
        size: Size {
            min_nodes: n_nodes,
            nodes: nodes.iter().map(|name| (*name).into()).collect(),
            ..Default::default()
        },
        reservations: vec!["r".into()],
        ..spec()
    };
    let active = counted(0, vec![Field::NodeCount(1)]);
    let fits = |world: &World, spec: JobSpec| state::fits_its_reservations(&world.cluster, &spec);
    assert!(fits(&active, wants(1, &[])));
    assert!(!fits(&active, wants(2, &[])));
    assert!(!fits(&active, wants(1, &["n4"])));
    assert!(!fits(&active, JobSpec { size: Size { n_tasks: Some(9), ..Default::default() }, ..wants(1, &[]) }));
    assert!(fits(&active, JobSpec { held: true, ..wants(2, &[]) }), "it is not to start yet");
    assert!(
        fits(&active, JobSpec { reservations: vec!["nosuch".into()], ..wants(2, &[]) }),
        "others say what is wrong"
    );
    assert!(fits(&active, JobSpec { reservations: Vec::new(), ..wants(2, &[]) }));
    assert!(fits(&counted(100, vec![Field::NodeCount(1)]), wants(2, &[])), "there may be more when it begins");
    assert!(fits(&counted(0, vec![Field::NodeCount(1), Field::Flags([Flag::Flex].into())]), wants(2, &[])));
}
