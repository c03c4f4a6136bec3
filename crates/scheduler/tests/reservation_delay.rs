//! Jobs that may run into a reservation (`--signal=R:`) and go when one of its own needs the place.
use model::command::DutyResult;
use model::partition_field::NodesChange;
use model::reservation::Members;
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
