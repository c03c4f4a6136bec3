//! Space of burst buffers is held to limits as every other resource is: in each limit, at each level.
use model::Command;
use model::accounts::Field;
use model::command::{DutyResult, PlaceResult};
use model::pool::{BurstBufferConfig, Pool, PoolKind};
use model::spec::{JobKind, TimeLimit};
use model::staging::{Moved, StageResult};
use model::{JobId, Owner};

use crate::lab::{lab, set, spec, submit};
use crate::world::World;

fn with_pool() -> World {
    let mut world = lab();
    let mut config = (**world.cluster.config()).clone();
    let flash = Pool {
        name: "flash".into(),
        kind: PoolKind::Shared,
        root: "/flash".into(),
        granularity_bytes: 1 << 30,
        total_bytes: Some(100 << 30),
        ..Default::default()
    };
    config.burst_buffer = Some(BurstBufferConfig { pools: vec![flash], counts: true, ..Default::default() });
    world.apply(Command::Reconfigure { config: Box::new(config) });
    world
}

/// What becomes of a job with so many gibibytes, once its buffer is filled if it may be.
fn outcome(world: &mut World, level: &str, gib: u32, minutes: u64) -> String {
    let mut wanted = spec(if level == "pq" { "-pshort" } else { "" }, if level == "qos" { "q1" } else { "" });
    wanted.kind = JobKind::Allocation;
    wanted.burst_buffer = format!("capacity={gib}");
    wanted.time_limit = Some(TimeLimit::Secs(60 * minutes));
    let id = match submit(world, wanted) {
        Ok(id) => id,
        Err(reject) => return format!("!{reject}"),
    };
    for _ in 0..3 {
        world.schedule();
        answer(world, id);
    }
    state::check::check(&world.cluster).unwrap();
    let job = world.cluster.job(id).unwrap();
    if job.holds_nodes() { "R".into() } else { job.reason.unwrap().to_string() }
}

/// What is to be done for its buffer, if anything is, is done.
fn answer(world: &mut World, job: JobId) {
    let Some(duty) = world.cluster.duty(&Owner::Buffer(job)).cloned() else { return };
    let Some(buffer) = world.cluster.buffer(job) else { return };
    let open = buffer.places.iter().filter(|place| !place.is_done);
    let results = open.map(|it| PlaceResult {
        access: it.access,
        node: it.node.clone(),
        result: StageResult::Done(Moved::default()),
    });
    let results: Vec<PlaceResult> = results.collect();
    match results.is_empty() {
        true => world.apply(Command::DutyDone { duty, result: DutyResult::Done }),
        false => world.apply(Command::Staged { duty, results }),
    };
}

/// Each limit, whether it is on minutes, and its reasons at a QOS and at an association; empty: there is none.
#[rustfmt::skip]
const LIMITS: &[(Field, bool, &str, &str)] = &[
    (Field::GrpTres,               false, "QOSGrpBB",               "AssocGrpBB"),
    (Field::MaxTres,               false, "QOSMaxBBPerJob",         "AssocMaxBBPerJob"),
    (Field::MaxTresUser,           false, "QOSMaxBBPerUser",        ""),
    (Field::MaxTresAccount,        false, "MaxBBPerAccount",        ""),
    (Field::GrpTresMins,           true,  "QOSGrpBBMinutes",        "AssocGrpBBMinutes"),
    (Field::GrpTresRunMins,        true,  "QOSGrpBBRunMinutes",     "AssocGrpBBRunMinutes"),
    (Field::MaxTresMins,           true,  "QOSMaxBBMinutesPerJob",  "AssocMaxBBMinutesPerJob"),
    (Field::MaxTresRunMins,        true,  "",                       "AssocMaxBBRunMinutes"),
    (Field::MaxTresRunMinsUser,    true,  "MaxBBRunMinsPerUser",    ""),
    (Field::MaxTresRunMinsAccount, true,  "MaxBBRunMinsPerAccount", ""),
];

#[test]
fn space_of_burst_buffers_is_held_to_every_limit_at_every_level() {
    let mut wrong = Vec::new();
    for (field, is_time, of_qos, of_association) in LIMITS {
        for level in ["qos", "pq", "user", "a11", "a1", "root"] {
            let reason = if matches!(level, "qos" | "pq") { of_qos } else { of_association };
            if reason.is_empty() {
                continue;
            }
            let limit = format!("bb/native={}", if *is_time { 10 * 1024 } else { 3 * 1024 });
            let jobs = if *is_time { [(1, 9), (1, 10), (1, 11)] } else { [(2, 9), (3, 9), (4, 9)] };
            for (which, (gib, minutes)) in jobs.into_iter().enumerate() {
                let mut world = with_pool();
                set(&mut world, level, *field, &limit);
                let found = outcome(&mut world, level, gib, minutes);
                if found != if which == 2 { reason } else { "R" } {
                    wrong.push(format!("{level} {field:?} {limit}, {gib} GiB for {minutes} min: {found} ({reason})"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `-n2` under `MaxTRESPerJob=cpu=1`: no data is brought for a job that a limit keeps, and nobody waits for its space.
#[test]
fn a_job_that_a_limit_keeps_is_not_staged() {
    let mut world = with_pool();
    set(&mut world, "user", Field::MaxTres, "cpu=1");
    let with = |words: &str, gib: u32| {
        let kind = JobKind::Allocation;
        model::JobSpec { kind, burst_buffer: format!("capacity={gib}"), ..spec(words, "") }
    };
    let kept = submit(&mut world, with("-n2 -t10", 100)).unwrap();
    let other = submit(&mut world, with("-n1 -t10", 100)).unwrap();
    world.schedule();
    assert_eq!(world.cluster.buffer(kept).map(|buffer| buffer.phase), None);
    assert_eq!(world.reason(kept).0, Some(model::Reason::AssocMaxCpuPerJobLimit));
    assert!(world.cluster.buffer(other).is_some(), "{:?}", world.reason(other));
    set(&mut world, "user", Field::MaxTres, "cpu=2");
    world.schedule();
    assert_eq!(world.reason(kept).0, Some(model::Reason::BurstBufferResources));
}

/// No more are staged than may start: what the first will hold of the limit counts for the second.
#[test]
fn no_more_are_staged_than_limits_let_start() {
    for (field, limit) in [(Field::GrpTres, "bb/native=61440"), (Field::GrpJobs, "1")] {
        let mut world = with_pool();
        set(&mut world, "user", field, limit);
        let jobs: Vec<JobId> = (0..3)
            .map(|_| {
                let kind = JobKind::Allocation;
                let wanted = model::JobSpec { kind, burst_buffer: "capacity=40".into(), ..spec("-n1 -t10", "") };
                submit(&mut world, wanted).unwrap()
            })
            .collect();
        for _ in 0..3 {
            world.schedule();
        }
        let staged = |job: &&JobId| world.cluster.buffer(**job).is_some();
        assert_eq!(jobs.iter().filter(staged).collect::<Vec<_>>(), [&jobs[0]], "{field:?}");
        assert!(world.reason(jobs[1]).0.is_some_and(model::Reason::is_limit), "{field:?}");
    }
}
