//! The end of trouble: everything is repaired, and then every job must come to its end and leave nothing behind.
use model::partition::PartitionState;
use model::time::Span;
use model::update::{NodeChange, PartitionChanges};
use model::{Caller, Command, ExitStatus, Job, JobKind, JobSpec, NodeName, Phase, Reason};

use crate::World;
use crate::{agents, faults, leader, setting, stages};

const N_ROUNDS: u32 = 3_000;

pub fn heal(world: &mut World) {
    world.is_healing = true;
    let mut config = Box::new(setting::config(world.seed));
    // What limits keep would wait for ever.
    config.accounting.enforce = model::config::Enforce::NOTHING;
    let _ = world.propose(Caller::SYSTEM, Command::Reconfigure { config });
    for name in ["debug", "short"] {
        let changes = Box::new(PartitionChanges { state: Some(PartitionState::Up), ..Default::default() });
        let _ = world.propose(Caller::SYSTEM, Command::UpdatePartition { name: name.into(), changes });
    }
    if setting::has_foreign_files(world.seed) {
        stages::clear_foreign_files(world);
    }
    let names: Vec<NodeName> = world.agents.keys().cloned().collect();
    // Some jobs were let in when more nodes had the feature.
    let change = NodeChange::Features(vec!["fast".into()]);
    let _ = world.propose(Caller::SYSTEM, Command::UpdateNodes { nodes: names.clone(), change });
    for round in 0.. {
        for name in &names {
            if world.agent(name).connection.is_none() {
                faults::connect(world, name);
            }
            let change = NodeChange::Resume;
            let _ = world.propose(Caller::SYSTEM, Command::UpdateNodes { nodes: vec![name.clone()], change });
        }
        let reservations: Vec<String> = world.cluster.reservations().map(|one| one.name.clone()).collect();
        for name in reservations {
            let _ = world.propose(Caller::SYSTEM, Command::DeleteReservation { name });
        }
        help_jobs(world);
        stages::help(world);
        world.at = world.at + Span::from_secs(5);
        leader::act(world);
        agents::act(world);
        // A machine that was told to start anew is waited for, until it is given up; then it is brought back like any other.
        let is_over = world.cluster.n_jobs() == 0 && world.cluster.next_deadline().is_none();
        if is_over && (world.cluster.nodes().all(|node| node.is_usable()) || round >= N_ROUNDS) {
            break;
        }
        if round == N_ROUNDS / 4 {
            give_up_wholes(world);
        }
        if round >= N_ROUNDS {
            world.ensure(Err(format!("never ends: {}", unfinished(world))));
        }
    }
    check_nothing_is_left(world);
}

/// Components may each fit and never all together; their users give up in the end.
fn give_up_wholes(world: &mut World) {
    let cluster = world.cluster.clone();
    let waits =
        |job: &&std::sync::Arc<Job>| job.phase == Phase::Pending && job.het.as_ref().is_some_and(|het| het.is_leader());
    for job in cluster.jobs().filter(waits) {
        let _ = world.propose(Caller::SYSTEM, Command::Cancel { jobs: vec![job.id.into()], hurry: false });
    }
}

fn unfinished(world: &World) -> String {
    let all = || world.cluster.jobs().map(|job| &**job);
    let Some(job) = all().find(|job| job.phase != Phase::Done).or(all().next()) else {
        let nodes: Vec<_> = world.cluster.nodes().filter(|node| !node.is_usable()).collect();
        return format!("{:?} {nodes:?}", world.cluster.next_deadline());
    };
    let duty = world.cluster.duty(&model::Owner::Job(job.id));
    let Job { id, phase, reason, wakes, .. } = job;
    let nodes: Vec<_> = job.allocation.names().collect();
    let (size, dependency) = (&job.spec.size, &job.dependency);
    format!("job {id} {phase:?} {reason:?} waits for {wakes:?}, {duty:?}, {nodes:?}, {size:?}, {dependency:?}")
}

/// Somebody looks after every job that waits for somebody.
fn help_jobs(world: &mut World) {
    let cluster = world.cluster.clone();
    for job in cluster.jobs() {
        let jobs = vec![job.id.into()];
        // Let in when the cluster was another.
        let spec = JobSpec { dependency: Default::default(), ..(*job.spec).clone() };
        if job.phase == Phase::Pending && state::admissible(&cluster, Caller::SYSTEM, &spec).is_err() {
            let _ = world.propose(Caller::SYSTEM, Command::Cancel { jobs, hurry: false });
            continue;
        }
        let command = match job.phase {
            Phase::Suspended => Command::Resume { jobs },
            Phase::Pending if job.reason == Some(Reason::DependencyNeverSatisfied) => {
                Command::Cancel { jobs, hurry: false }
            }
            Phase::Pending if job.reason == Some(Reason::ReservationDeleted) && job.held.is_none() => {
                Command::Cancel { jobs, hurry: false }
            }
            // Reservations go, but not while somebody waits for them.
            Phase::Pending if !job.spec.reservations.is_empty() => Command::Cancel { jobs, hurry: false },
            Phase::Pending if matches!(job.reason, Some(Reason::PartitionTimeLimit | Reason::PartitionNodeLimit)) => {
                Command::Cancel { jobs, hurry: false }
            }
            // Let in when its partition had fewer nodes than it asks for; now it has them, and still cannot serve it.
            Phase::Pending if state::admissible(&cluster, Caller::SYSTEM, &job.spec).is_err() => {
                Command::Cancel { jobs, hurry: false }
            }
            Phase::Pending if job.held.is_some() => Command::Release { jobs },
            Phase::Running if matches!(job.spec.kind, JobKind::Allocation) => {
                Command::Complete { job: job.id, exit: ExitStatus::SUCCESS }
            }
            Phase::Pending | Phase::Running => continue,
            Phase::Starting | Phase::Ending | Phase::Finishing | Phase::Done => continue,
        };
        let _ = world.propose(Caller::SYSTEM, command);
    }
}

fn check_nothing_is_left(world: &World) {
    let cluster = &world.cluster;
    let seed = world.seed;
    assert_eq!(world.promises.n_open(), 0, "seed {seed}: jobs were never seen to end");
    assert_eq!(cluster.duties().count(), 0, "seed {seed}: duties are left");
    assert_eq!(cluster.next_deadline(), None, "seed {seed}: deadlines are left");
    for node in cluster.nodes() {
        assert!(node.jobs.is_empty() && node.used == Default::default(), "seed {seed}: {node:?} is still used");
        assert!(node.is_usable(), "seed {seed}: {} is not in service: {node:?}", node.name);
    }
    for (name, agent) in &world.agents {
        assert!(agent.processes.is_empty(), "seed {seed}: processes are left on {name}: {:?}", agent.processes);
    }
    assert!(world.disks.is_empty(), "seed {seed}: directories are left");
    assert!(state::check::is_empty(cluster), "seed {seed}: traces of jobs are left");
}
