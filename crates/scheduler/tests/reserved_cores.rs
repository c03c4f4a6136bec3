//! Reservations of some cores of a node, and of nodes that are exchanged for others.
use model::partition_field::NodesChange;
use model::reservation::{Flag, Members};
use model::reservation_field::{Field, MembersChange};
use model::spec::{JobSpec, Size, TimeLimit};
use model::time::Span;
use model::update::NodeChange;
use model::{Command, JobId, Reject};
use world::World;

mod world;

fn fields(world: &World, from_secs: u64, more: Vec<Field>) -> Vec<Field> {
    let own = Members { names: vec!["0".into()], are_excluded: false };
    let mut fields = vec![
        Field::Start(world.now + Span::from_secs(from_secs)),
        Field::Duration(Some(Span::from_secs(3600))),
        Field::Users(MembersChange::To(own)),
    ];
    fields.extend(more);
    fields
}

fn reserve(world: &mut World, name: &str, from_secs: u64, more: Vec<Field>) {
    let fields = fields(world, from_secs, more);
    world.apply(Command::CreateReservation { name: name.into(), fields, utc_offset_secs: 0 });
}

fn job(world: &mut World, n_cpus: u32, reservation: &str, secs: u64) -> JobId {
    let size = Size { min_nodes: 1, tasks_per_node: Some(n_cpus), ..Default::default() };
    let reservations = if reservation.is_empty() { Vec::new() } else { vec![reservation.to_string()] };
    let time_limit = Some(TimeLimit::Secs(secs));
    let job = world.submit_spec(JobSpec { size, reservations, time_limit, ..Default::default() });
    world.schedule();
    job
}

#[test]
fn others_have_what_it_leaves_and_its_own_jobs_have_what_it_keeps() {
    let mut world = World::alike(1, 8, 1000);
    reserve(&mut world, "r", 0, vec![Field::CoreCounts(vec![3])]);
    let cpus = |world: &World| world.cluster.reservation("r").unwrap().cpus.clone();
    assert_eq!(cpus(&world).into_iter().collect::<Vec<_>>(), [("n1".into(), 3)]);
    let wide = job(&mut world, 6, "", 600);
    assert!(!world.is_running(wide), "five are left");
    let fitting = job(&mut world, 5, "", 600);
    assert!(world.is_running(fitting));
    let inside = job(&mut world, 2, "r", 600);
    assert!(world.is_running(inside));
    let too_much = job(&mut world, 2, "r", 600);
    assert!(!world.is_running(too_much), "one is left");
    let last = job(&mut world, 1, "r", 600);
    assert!(world.is_running(last));
    world.finish(inside);
    world.schedule();
    assert!(world.is_running(too_much));
    // A second one gets only what is there then.
    let more = fields(&world, 0, vec![Field::CoreCounts(vec![6])]);
    let command = Command::CreateReservation { name: "s".into(), fields: more, utc_offset_secs: 0 };
    let entry = model::Entry { at: world.now, by: model::Caller::SYSTEM, command };
    assert_eq!(state::apply(&mut world.cluster, &entry).reply, Err(Reject::NodesUnavailable));
}

#[test]
fn what_another_keeps_is_not_taken_from_what_its_own_jobs_have() {
    let mut world = World::alike(1, 8, 1000);
    reserve(&mut world, "r", 0, vec![Field::CoreCounts(vec![4])]);
    reserve(&mut world, "s", 0, vec![Field::CoreCounts(vec![1])]);
    let inside = job(&mut world, 4, "r", 600);
    assert!(world.is_running(inside));
    let outside = job(&mut world, 4, "", 600);
    assert!(!world.is_running(outside), "three are left");
}

#[test]
fn short_jobs_run_before_it_begins() {
    let mut world = World::alike(1, 4, 1000);
    reserve(&mut world, "r", 1000, vec![Field::Nodes(NodesChange::All), Field::CoreCounts(vec![2])]);
    let long = job(&mut world, 4, "", 2000);
    let short = job(&mut world, 4, "", 500);
    assert!(!world.is_running(long) && world.is_running(short));
    world.finish(short);
    let narrow = job(&mut world, 2, "", 2000);
    assert!(world.is_running(narrow));
}

#[test]
fn cores_are_shared_out_over_nodes_that_are_counted() {
    let mut world = World::alike(3, 4, 1000);
    reserve(&mut world, "r", 0, vec![Field::NodeCount(2), Field::CoreCounts(vec![4])]);
    let shown = |world: &World, name: &str| -> Vec<String> {
        let reservation = world.cluster.reservation(name).unwrap();
        reservation.cpus.iter().map(|(node, cpus)| format!("{node}:{cpus}")).collect()
    };
    assert_eq!(shown(&world, "r"), ["n1:2", "n2:2"]);
    // Cores of the same node may be kept by two.
    reserve(&mut world, "s", 0, vec![Field::CoreCounts(vec![6])]);
    assert_eq!(shown(&world, "s"), ["n1:2", "n3:4"]);
}

#[test]
fn nodes_that_are_down_or_used_are_exchanged() {
    let mut world = World::alike(4, 4, 1000);
    reserve(&mut world, "r", 0, vec![Field::NodeCount(2), Field::Flags(vec![Flag::Replace])]);
    let nodes = |world: &World| -> Vec<String> {
        world.cluster.reservation("r").unwrap().nodes.iter().map(|node| node.to_string()).collect()
    };
    assert_eq!(nodes(&world), ["n1", "n2"]);
    let change = NodeChange::Down { reason: "broken".into() };
    world.apply(Command::UpdateNodes { nodes: vec!["n1".into()], change });
    world.pass(6);
    assert_eq!(nodes(&world), ["n2", "n3"]);
    let inside = job(&mut world, 1, "r", 600);
    assert!(world.is_running(inside));
    // At once: the node is no longer kept, the job is still inside.
    assert_eq!(nodes(&world), ["n3", "n4"]);
}
