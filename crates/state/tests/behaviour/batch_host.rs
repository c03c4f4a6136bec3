//! `--batch`: the node that runs the script.
use model::plan::{Grant, Start};
use model::{Command, ExitStatus, JobSpec, Plan, Reject, Reply, features};

use crate::lab::*;

fn lab() -> Lab {
    let mut lab = Lab::new();
    let mut config = config();
    config.nodes[1].config.features = vec!["blue".into()];
    config.nodes[2].config.features = vec!["blue".into(), "red".into()];
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    lab
}

fn wanting(batch_features: &str) -> JobSpec {
    let mut spec = JobSpec { batch_features: batch_features.into(), ..batch() };
    spec.size.min_nodes = 2;
    spec.size.constraint = features::parse("blue|red").ok();
    spec
}

#[test]
fn the_script_runs_on_the_first_node_with_the_features() {
    for (wish, host) in [("", "n2"), ("red", "n3"), ("red|blue", "n2"), ("blue&red", "n3")] {
        let mut lab = lab();
        let job = lab.submit(wanting(wish));
        let grant = |name: &str| Grant { node: name.into(), n_cpus: 1, n_tasks: 1, ..Default::default() };
        let nodes = vec![grant("n2"), grant("n3")];
        let start = Start { job, partition: "debug".into(), nodes, ..Default::default() };
        let plan = Plan { starts: vec![start], ..Default::default() };
        assert_eq!(lab.ok(ROOT, Command::AdoptPlan(plan)), Reply::Adopted { n_started: 1, n_stale: 0 });
        assert_eq!(lab.job(job).script_node().map(|node| node.as_str()), Some(host), "{wish}");
        lab.done(job, model::Task::Launch);
        // Only what its own node says of the script counts.
        if host == "n3" {
            assert_eq!(lab.exit(job, ExitStatus::SUCCESS), Err(Reject::Stale));
        }
    }
}

#[test]
fn what_the_constraint_does_not_name_is_refused() {
    let mut lab = lab();
    let mut submit =
        |wish: &str| lab.apply(ALICE, Command::Submit { spec: Box::new(wanting(wish)), blobs: Vec::new() });
    for wrong in ["green", "red*1", "[red|blue]", "blue,red", "red&green"] {
        assert_eq!(submit(wrong), Err(Reject::BadBatchFeatures), "{wrong}");
    }
    assert!(submit("red|green").is_ok());
}
