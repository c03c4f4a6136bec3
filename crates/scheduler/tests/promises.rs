//! What has been promised is kept: a place in the future only ever moves nearer.
use std::collections::BTreeMap;

use model::gres::{Gres, GresRequest};
use model::node::NodeConfig;
use model::spec::{JobSpec, Memory, Sharing, Size, TimeLimit};
use model::time::Span;
use model::{JobId, Timestamp};
use proptest::prelude::*;
use world::World;

mod world;

fn spec() -> impl Strategy<Value = JobSpec> {
    let size = (1..4u32, proptest::option::of(1..5u32), 0..600u64, 0..2u32, proptest::bool::weighted(0.2));
    (size, 1..40u64).prop_map(|((min_nodes, tasks_per_node, memory_mb, gpus, whole), minutes)| {
        let gpu = GresRequest { name: "gpu".into(), count: gpus, ..Default::default() };
        let size = Size {
            min_nodes,
            max_nodes: Some(min_nodes),
            tasks_per_node,
            memory: Memory::PerNodeMb(memory_mb),
            gres: if gpus > 0 { vec![gpu] } else { Vec::new() },
            sharing: if whole { Sharing::WholeNodes } else { Sharing::Default },
            ..Default::default()
        };
        JobSpec { size, time_limit: Some(TimeLimit::Secs(minutes * 60)), ..Default::default() }
    })
}

fn cluster() -> World {
    let gres = vec![Gres { name: "gpu".into(), count: 2, ..Default::default() }];
    let config = NodeConfig { cpus: 4, memory_mb: 1000, gres, ..Default::default() };
    World::new(["n1", "n2", "n3"].map(|name| (name, config.clone())).to_vec(), Vec::new())
}

fn has_started(world: &World, id: JobId) -> bool {
    world.cluster.job(id).is_none_or(|job| job.started.is_some() || job.outcome.is_some())
}

/// Every job runs as long as it may, and nobody comes in between.
fn keeps_its_promises(specs: Vec<JobSpec>) -> Result<(), TestCaseError> {
    let mut world = cluster();
    let jobs: Vec<JobId> = specs.into_iter().map(|spec| world.submit_spec(spec)).collect();
    let mut promised: BTreeMap<JobId, Timestamp> = BTreeMap::new();
    let slack = Span::from_secs(60);
    for _ in 0..4000 {
        let plan = scheduler::plan(&world.cluster);
        prop_assert_eq!(&plan, &scheduler::plan(&world.cluster), "a plan is always the same");
        world.schedule();
        let mut is_over = true;
        for id in &jobs {
            let Some(job) = world.cluster.job(*id) else { continue };
            is_over &= job.outcome.is_some();
            let starts = job.started.or(job.expected_start);
            if let (Some(before), Some(starts)) = (promised.get(id), starts) {
                prop_assert!(starts <= *before + slack, "job {id} was promised {before:?}, now {starts:?}");
            }
            if let Some(before) = promised.get(id).filter(|_| job.started.is_none()) {
                prop_assert!(world.now <= *before + slack, "job {id} was promised {before:?}, it is {:?}", world.now);
            }
            // Only the first in the queue is sure of its place: those behind it move when it takes other nodes than foreseen.
            let is_first = jobs.iter().take_while(|before| *before != id).all(|before| has_started(&world, *before));
            promised.extend(job.expected_start.filter(|_| is_first).map(|at| (*id, at)));
        }
        if is_over {
            return Ok(());
        }
        world.pass(30);
    }
    prop_assert!(false, "some job never starts");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_backfilled_job_delays_a_promised_one(specs in proptest::collection::vec(spec(), 1..14)) {
        keeps_its_promises(specs)?;
    }
}

#[test]
fn a_wide_job_is_not_starved_by_a_stream_of_small_ones() {
    let mut world = cluster();
    let job = |n_nodes, minutes: u64| {
        let size = Size { min_nodes: n_nodes, tasks_per_node: Some(4), ..Default::default() };
        JobSpec { size, time_limit: Some(TimeLimit::Secs(minutes * 60)), ..Default::default() }
    };
    for _ in 0..6 {
        world.submit_spec(job(1, 20));
    }
    world.schedule();
    let wide = world.submit_spec(job(3, 5));
    for round in 0..200 {
        world.submit_spec(job(1, 5 + round % 17));
        world.pass(60);
        world.schedule();
        if world.is_running(wide) {
            assert!(round <= 41, "it waited {round} minutes");
            return;
        }
    }
    panic!("the wide job never starts");
}
