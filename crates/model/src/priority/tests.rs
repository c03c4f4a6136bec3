use std::sync::Arc;

use super::*;
use crate::config::NamedNode;
use crate::gres::{Gres, GresRequest};
use crate::node::NodeConfig;

/// Four nodes of 8 CPUs, 8 GiB and 2 GPUs, two of them in `half`.
fn config(weight_tres: &str, flags: &[&str]) -> Config {
    let node = |number: usize| {
        let gres = vec![Gres { name: "gpu".into(), count: 2, ..Default::default() }];
        let config = NodeConfig { cpus: 8, memory_mb: 8192, gres, ..Default::default() };
        NamedNode { name: format!("n{number}").as_str().into(), config }
    };
    let mut config = Config { nodes: (0..4).map(node).collect(), ..Default::default() };
    let partition = |name: &str, n_nodes: usize, priority_job_factor| Partition {
        name: name.into(),
        nodes: config.nodes[..n_nodes].iter().map(|node| node.name.clone()).collect(),
        priority_job_factor,
        ..Default::default()
    };
    config.partitions = vec![partition("all", 4, 10), partition("half", 2, 40)];
    config.partitions[1].billing_weights = "cpu=2,gres/gpu=16".into();
    let weights = &mut config.scheduler.priority;
    *weights = PriorityConfig {
        kind: PriorityKind::Multifactor,
        weight_tres: weight_tres.into(),
        weight_partition: 100,
        ..Default::default()
    };
    assert!(flags.iter().all(|flag| weights.set_flag(flag)));
    config
}

/// Four CPUs, 4 GiB and a GPU on one node.
fn job() -> Job {
    let mut spec = JobSpec { partitions: vec!["all".into(), "half".into()], ..Default::default() };
    spec.size.cpus_per_task = Some(4);
    spec.size.memory = crate::spec::Memory::PerNodeMb(4096);
    spec.size.gres = vec![GresRequest { name: "gpu".into(), count: 1, ..Default::default() }];
    Job { spec: Arc::new(spec), ..Default::default() }
}

fn parts(config: &Config, partition: &str) -> Vec<(String, f64, f64)> {
    let parts = tres_parts(config, &Measures::of(config), &job(), partition);
    parts.into_iter().map(|part| (part.name.clone(), part.factor, part.weighed())).collect()
}

#[test]
fn resources_count_as_parts_of_what_the_partition_has() {
    let config = config("GRES/gpu=800,Mem=1000,CPU=3200,license/a=5", &[]);
    let named =
        |parts: [(&str, f64, f64); 3]| parts.map(|(name, factor, sum)| (name.to_string(), factor, sum)).to_vec();
    let expected = [("cpu", 0.125, 400.0), ("mem", 0.125, 125.0), ("gres/gpu", 0.125, 100.0)];
    assert_eq!(parts(&config, "all"), named(expected));
    let expected = [("cpu", 0.25, 800.0), ("mem", 0.25, 250.0), ("gres/gpu", 0.25, 200.0)];
    assert_eq!(parts(&config, "half"), named(expected));
    let measures = Measures::of(&config);
    // 1250 for resources and 100 for the partition.
    assert_eq!(without_age(&config, &measures, &job()), 1350);
}

#[test]
fn billing_is_the_partitions_own() {
    let config = config("billing=1000", &[]);
    assert_eq!(parts(&config, "all"), [("billing".to_string(), 0.125, 125.0)]);
    // 4 CPUs and a GPU are 24 of 96.
    assert_eq!(parts(&config, "half"), [("billing".to_string(), 0.25, 250.0)]);
}

#[test]
fn what_is_not_normalised_counts_as_it_is() {
    let config = config("cpu=3,mem=0.5G", &["NO_NORMAL_ALL"]);
    let expected = [("cpu".to_string(), 4.0, 12.0), ("mem".to_string(), 4096.0, 2.0)];
    assert_eq!(parts(&config, "all"), expected);
    let factors = Factors::of(&config, &Measures::of(&config), &job(), "half", Timestamp::default());
    assert_eq!((factors.partition, total(&config, &job(), &factors)), (40.0, 4014));
}

#[test]
fn a_short_job_is_larger_than_a_long_one_relative_to_time() {
    let mut config = config("", &["SMALL_RELATIVE_TO_TIME"]);
    config.scheduler.priority.weight_job_size = 1000;
    let measures = Measures::of(&config);
    let size = |config: &Config, limit: Option<TimeLimit>| {
        let mut job = job();
        Arc::make_mut(&mut job.spec).time_limit = limit;
        Factors::of(config, &measures, &job, "all", Timestamp::default()).job_size
    };
    // A node has 8 of 32 CPUs, and 4 are asked for.
    assert_eq!(size(&config, Some(TimeLimit::Secs(60))), 0.25);
    assert_eq!(size(&config, Some(TimeLimit::Secs(600))), 0.025);
    assert!(size(&config, None) < 1e-9);
    config.scheduler.priority.favors_small = true;
    assert_eq!(size(&config, Some(TimeLimit::Secs(60))), 0.75);
}
