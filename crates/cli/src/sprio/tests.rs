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
    render(&options, &page, &config()).text
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
