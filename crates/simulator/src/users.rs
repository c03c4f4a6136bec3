//! Users and administrators, doing everything at any time.
use model::node::NextState;
use model::partition_field::NodesChange;
use model::reservation::{Flag, Members};
use model::reservation_field::{Field, MembersChange};
use model::spec::{Memory, TimeLimit};
use model::time::Span;
use model::update::{JobChanges, NodeChange, PartitionChanges, TimeLimitChange};
use model::{Caller, Command, ExitStatus, Job, JobId, JobRef, JobSpec, NodeName, StepId, TaskSet};

use crate::World;
use crate::setting::{self, UIDS};

pub fn act(world: &mut World) {
    let n_commands = 1 + world.dice.below(2);
    for _ in 0..n_commands {
        let (by, command) = command(world);
        let _ = world.propose(by, command);
    }
}

fn command(world: &mut World) -> (Caller, Command) {
    let id = some_job(world);
    let owner = world.cluster.job(id).map_or(1000, |job| job.spec.uid);
    let uid = if world.dice.one_in(12) { world.dice.pick(&UIDS) } else { owner };
    let user = Caller { uid, gid: uid, is_admin: false };
    let admin = Caller { uid: 0, gid: 0, is_admin: true };
    let by = if world.dice.one_in(4) { admin } else { user };
    let jobs = vec![some_ref(world, id)];
    let command = match world.dice.below(40) {
        0..3 => Command::Cancel { jobs, hurry: world.dice.one_in(3) },
        3 => Command::Hold { jobs, by_user: world.dice.one_in(2) },
        4 => Command::Release { jobs },
        5 | 6 => Command::Requeue { jobs, hold: world.dice.one_in(4) },
        7..9 => Command::Suspend { jobs },
        9..11 => Command::Resume { jobs },
        11..13 => Command::Complete { job: id, exit: ExitStatus::exited(world.dice.below(2) as u8) },
        13..17 => create_step(world, id),
        17 => Command::CancelStep { job: id, step: StepId::Number(world.dice.below(3) as u32) },
        18 | 19 => Command::UpdateJob { job: some_ref(world, id), changes: Box::new(changes(world)) },
        20 | 21 => return (admin, change_node(world)),
        22 => return (admin, change_partition(world)),
        26 | 27 => return (admin, change_reservation(world)),
        28 | 29 => return (admin, crate::accounts::change(&mut world.dice)),
        23 => {
            let config = setting::edited_config(world.seed, &mut world.dice);
            return (Caller::SYSTEM, Command::Reconfigure { config: Box::new(config) });
        }
        24 => return submit_together(world, id),
        25 => create_step_together(world, id),
        _ => {
            let (spec, mut blobs) = setting::spec(&mut world.dice, world.at, id);
            if world.dice.one_in(10) {
                blobs.pop();
            }
            let by = Caller { uid: spec.uid, gid: spec.uid, is_admin: false };
            return (by, Command::Submit { spec: Box::new(spec), blobs });
        }
    };
    (by, command)
}

/// Components of one owner; some can never start together.
fn submit_together(world: &mut World, other: JobId) -> (Caller, Command) {
    let (first, mut blobs) = setting::spec(&mut world.dice, world.at, other);
    let by = Caller { uid: first.uid, gid: first.uid, is_admin: false };
    let mut specs = vec![first.clone()];
    for _ in 0..1 + world.dice.below(2) {
        let (spec, more) = setting::spec(&mut world.dice, world.at, other);
        let array = if world.dice.one_in(10) { spec.array } else { None };
        specs.push(JobSpec { uid: first.uid, kind: first.kind.clone(), array, ..spec });
        blobs.extend(more);
    }
    if !world.dice.one_in(10) {
        specs[0].array = None;
    }
    (by, Command::SubmitTogether { specs, blobs })
}

/// In the components of one job, or in parts of the same.
fn create_step_together(world: &mut World, id: JobId) -> Command {
    let jobs = match world.cluster.job(id).and_then(|job| job.het.clone()) {
        Some(het) => het.ids,
        None => vec![id; 2],
    };
    let (mut parts, mut blobs) = (Vec::new(), Vec::new());
    for job in jobs {
        let (spec, blob) = setting::step(&mut world.dice);
        parts.push((job, spec));
        blobs.push(blob);
    }
    Command::CreateStepTogether { parts, blobs }
}

fn some_job(world: &mut World) -> JobId {
    let known: Vec<JobId> = world.cluster.jobs().map(|job| job.id).collect();
    if known.is_empty() || world.dice.one_in(20) {
        return JobId(1 + world.dice.below(60) as u32);
    }
    world.dice.pick(&known)
}

/// The job, its whole array, or some tasks of it.
fn some_ref(world: &mut World, id: JobId) -> JobRef {
    if let Some(het) = world.cluster.job(id).and_then(|job| job.het.clone())
        && world.dice.one_in(3)
    {
        return JobRef { job: het.leader, component: Some(het.offset), tasks: None };
    }
    let Some(array) = world.cluster.job(id).and_then(|job| job.array_id()) else { return id.into() };
    let mut tasks = TaskSet::new();
    for _ in 0..1 + world.dice.below(3) {
        tasks.insert(world.dice.below(10) as u32);
    }
    match world.dice.below(3) {
        0 => id.into(),
        1 => array.into(),
        _ => JobRef::tasks(array, tasks),
    }
}

fn create_step(world: &mut World, id: JobId) -> Command {
    let running: Vec<JobId> =
        world.cluster.jobs().filter(|job: &&std::sync::Arc<Job>| job.holds_nodes()).map(|job| job.id).collect();
    let job = if running.is_empty() || world.dice.one_in(5) { id } else { world.dice.pick(&running) };
    let (spec, blob) = setting::step(&mut world.dice);
    Command::CreateStep { job, spec: Box::new(spec), blobs: vec![blob] }
}

fn changes(world: &mut World) -> JobChanges {
    let soon = world.at + Span::from_secs(world.dice.below(40));
    let other = some_job(world);
    let dice = &mut world.dice;
    let mut changes = JobChanges::default();
    match dice.below(12) {
        10 => changes.account = Some(dice.pick(&crate::accounts::ACCOUNTS).into()),
        11 => changes.qos = Some(dice.pick(&crate::accounts::QOS).into()),
        0 => changes.name = Some(dice.pick(&["a", "b"]).into()),
        1 => changes.time_limit = Some(TimeLimitChange::To(TimeLimit::Secs(20 + dice.below(60)))),
        2 => changes.begin = Some(soon),
        3 => changes.priority = Some(dice.below(3) as u32 * 1000),
        4 => changes.partitions = Some(vec![dice.pick(&["debug", "short"]).into()]),
        5 => changes.n_tasks = Some(1 + dice.below(6) as u32),
        6 => changes.array_limit = Some(dice.below(3) as u32),
        7 => changes.dependency = Some(setting::dependency(dice, other)),
        8 => changes.memory = Some(Memory::PerNodeMb(500)),
        _ => changes.deadline = Some(soon),
    }
    changes
}

fn change_node(world: &mut World) -> Command {
    let nodes: Vec<NodeName> = vec![setting::node_name(1 + world.dice.below(u64::from(setting::N_NODES)) as u32)];
    let reason = || "fan".to_string();
    let change = match world.dice.below(11) {
        0 | 1 => NodeChange::Drain { reason: reason() },
        2 => NodeChange::Undrain,
        3 => NodeChange::Down { reason: reason() },
        4 => NodeChange::Features(vec!["fast".into()]),
        5 => NodeChange::Weight(world.dice.below(3) as u32),
        6 | 7 => {
            let next = world.dice.pick(&[None, Some(NextState::Resume), Some(NextState::Down)]);
            NodeChange::Reboot { is_asap: world.dice.one_in(2), next, reason: String::new() }
        }
        8 => NodeChange::CancelReboot,
        _ => NodeChange::Resume,
    };
    Command::UpdateNodes { nodes, change }
}

fn change_reservation(world: &mut World) -> Command {
    let name = world.dice.pick(&setting::RESERVATIONS).to_string();
    let now = world.at;
    let dice = &mut world.dice;
    let node = setting::node_name(1 + dice.below(u64::from(setting::N_NODES)) as u32);
    let flag = dice.pick(&[
        Flag::IgnoreJobs,
        Flag::Maint,
        Flag::Flex,
        Flag::Hourly,
        Flag::Magnetic,
        Flag::AnyNodes,
        Flag::NoHoldJobsAfterEnd,
        Flag::PurgeComp,
        Flag::Replace,
        Flag::ReplaceDown,
    ]);
    let user = dice.pick(&UIDS).to_string();
    let members = Members { names: vec![user], are_excluded: dice.one_in(4) };
    let start = Field::Start(now + Span::from_secs(dice.below(60)));
    let duration = Field::Duration(Some(Span::from_secs(10 + dice.below(90))));
    match dice.below(6) {
        0 => Command::DeleteReservation { name },
        1 => Command::UpdateReservation { name, fields: vec![duration] },
        2 => Command::UpdateReservation { name, fields: vec![Field::Nodes(NodesChange::With(vec![node]))] },
        _ => {
            let mut fields = vec![start, duration, Field::Users(MembersChange::To(members)), Field::Flags(vec![flag])];
            match dice.below(3) {
                0 => fields.push(Field::Nodes(NodesChange::To(vec![node]))),
                1 if dice.one_in(2) => fields.push(Field::CoreCounts(vec![1 + dice.below(6) as u32])),
                1 => fields.push(Field::NodeCount(1 + dice.below(3) as u32)),
                _ => fields.push(Field::Licenses(model::license::parse_list("a:2").expect("a licence"))),
            }
            Command::CreateReservation { name, fields, utc_offset_secs: 0 }
        }
    }
}

fn change_partition(world: &mut World) -> Command {
    use model::partition::PartitionState::*;
    let state = Some(world.dice.pick(&[Up, Up, Down, Drain, Inactive]));
    let name = world.dice.pick(&["debug", "short"]).to_string();
    Command::UpdatePartition { name, changes: Box::new(PartitionChanges { state, ..Default::default() }) }
}
