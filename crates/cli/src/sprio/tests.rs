use std::sync::Arc;

use model::config::Config;
use model::priority::{PriorityConfig, PriorityKind};
use model::request::JobsPage;
use model::time::Span;
use model::{Job, JobId, JobSpec, Partition, Timestamp};

use super::*;
use crate::viewer::Asked;

fn config() -> Config {
    let mut config = Config { cluster_name: "c".into(), ..Default::default() };
    let partition =
        |name: &str, priority_job_factor| Partition { name: name.into(), priority_job_factor, ..Default::default() };
    config.partitions = vec![partition("slow", 1), partition("fast", 2)];
    config.scheduler.priority = PriorityConfig {
        kind: PriorityKind::Multifactor,
        weight_age: 1000,
        weight_partition: 500,
        max_age: Span::from_secs(1000),
        ..Default::default()
    };
    config
}

fn sprio(arguments: &[&str]) -> String {
    sprio_with(&config(), arguments)
}

fn sprio_with(config: &Config, arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|word| word.to_string()).collect();
    let Ok(Asked::Show(options)) = parse(&arguments, &|_| None) else { panic!("{arguments:?}") };
    let job = |id, nice, partitions: &[&str]| {
        let partitions = partitions.iter().map(|name| name.to_string()).collect();
        let spec = JobSpec { nice, partitions, ..Default::default() };
        let eligible = Some(Timestamp::from_secs(100));
        Job { id: JobId(id), spec: Arc::new(spec), eligible, priority_grows: true, ..Default::default() }
    };
    let page = JobsPage {
        jobs: vec![job(1, 0, &["slow"]), job(2, 50, &["slow", "fast"])],
        now: Timestamp::from_secs(600),
        ..Default::default()
    };
    render(&options, &page, config).text
}

#[test]
fn every_factor_that_counts_has_a_column_and_every_partition_a_row() {
    let expected = "          JOBID PARTITION   PRIORITY       SITE        AGE  PARTITION
              1 slow             750          0        500        250
              2 slow             700          0        500        250
              2 fast             950          0        500        500
";
    assert_eq!(sprio(&[]), expected);
    assert_eq!(sprio(&["-h", "-p", "fast"]), format!("{}\n", expected.lines().last().unwrap()));
}

#[test]
fn weights_and_plain_factors_are_shown_on_demand() {
    assert_eq!(
        sprio(&["-w"]).lines().last(),
        Some("        Weights                               1       1000        500")
    );
    assert_eq!(sprio(&["-h", "-o", "%i %a %p %N", "-S", "-N"]).lines().next(), Some("2 0.5000000 0.5000000 50"));
}

#[test]
fn resources_have_a_column_where_they_have_weights() {
    let mut config = config();
    let node = |name: &str| model::config::NamedNode {
        name: name.into(),
        config: model::node::NodeConfig { cpus: 4, memory_mb: 1000, ..Default::default() },
    };
    config.nodes = vec![node("a"), node("b")];
    config.partitions[0].nodes = vec!["a".into(), "b".into()];
    config.partitions[1].nodes = vec!["a".into()];
    config.scheduler.priority.weight_tres = "node=100,CPU=800".into();
    let lines = |arguments: &[&str]| -> Vec<String> {
        sprio_with(&config, arguments).lines().map(|line| line.trim_end().to_string()).collect()
    };
    let expected = [
        "          JOBID PARTITION   PRIORITY       SITE        AGE  PARTITION                 TRES",
        "              1 slow             900          0        500        250      cpu=100,node=50",
        "              2 slow             850          0        500        250      cpu=100,node=50",
        "              2 fast            1250          0        500        500     cpu=200,node=100",
    ];
    assert_eq!(lines(&[]), expected);
    let expected = "        Weights                               1       1000        500     node=100,CPU=800";
    assert_eq!(lines(&["-w"])[1], expected);
    assert_eq!(
        lines(&["-n", "-h"])[2],
        "              2 fast      0.00000029 0.5000000  1.0000000  cpu=0.25,node=1.00"
    );
    // By what they add, the least first.
    assert_eq!(lines(&["-h", "-o", "%i %r %T", "-S", "T"])[2], "2 fast cpu=200,node=100");
    assert_eq!(lines(&["-l", "-h"])[2].split_whitespace().last(), Some("cpu=200,node=100"));
}
