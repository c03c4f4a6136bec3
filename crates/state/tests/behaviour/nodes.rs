//! Nodes come, go silent, come back, are drained, taken down, resumed, and leave the configuration.
use model::node::{NodePhase, NodeStart, Run};
use model::spec::JobSpec;
use model::update::NodeChange;
use model::{Command, HeldBy, JobId, NodeName, Outcome, Owner, Phase, Reject, Task};

use crate::lab::{ALICE, Lab, ROOT, batch, config};

fn lost(node: &str) -> Command {
    Command::NodeLost { node: node.into() }
}

fn change(node: &str, change: NodeChange) -> Command {
    Command::UpdateNodes { nodes: vec![node.into()], change }
}

fn drain() -> NodeChange {
    NodeChange::Drain { reason: "fan".into() }
}

fn run(job: JobId, attempt: u32) -> Run {
    Run { job, attempt }
}

#[test]
fn the_jobs_of_a_lost_node_run_again_if_they_may() {
    for (requeue, phase, outcome) in [(None, Phase::Pending, None), (Some(false), Phase::Done, Some(Outcome::NodeFail))]
    {
        let mut lab = Lab::new();
        let job = lab.running(JobSpec { requeue, ..batch() }, "n1");
        lab.ok(ROOT, lost("n1"));
        assert_eq!(lab.node("n1").phase, NodePhase::Lost);
        lab.done(job, Task::Kill);
        assert_eq!((lab.job(job).phase, lab.job(job).outcome), (phase, outcome));
        assert_eq!(lab.apply(ROOT, lost("n1")), Err(Reject::Stale), "it is lost only once");
    }
}

#[test]
fn a_node_that_comes_back_ends_its_old_runs_before_it_is_used() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.ok(ROOT, lost("n1"));
    lab.done(job, Task::Kill);
    lab.register("n1", &[run(job, 1)]);
    assert_eq!(lab.node("n1").phase, NodePhase::Clearing);
    assert!(!lab.place(job, None, "n1"));
    let duty = lab.cluster.duty(&Owner::Node("n1".into())).expect("a duty to clear").clone();
    assert_eq!(duty.task, Task::Clear);
    lab.ok(ROOT, Command::DutyDone { duty, result: model::command::DutyResult::Done });
    assert_eq!(lab.node("n1").phase, NodePhase::Up);
    assert!(lab.place(job, None, "n1"));
}

#[test]
fn an_agent_that_registers_again_keeps_its_jobs() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.register("n1", &[run(job, 1)]);
    assert_eq!((lab.job(job).phase, lab.duty(job)), (Phase::Running, None));
    assert_eq!(lab.node("n1").used.cpus.len(), 1);
}

#[test]
fn a_machine_that_has_lost_a_jobs_processes_fails_the_job() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.register("n1", &[]);
    assert_eq!((lab.job(job).phase, lab.job(job).outcome), (Phase::Ending, Some(Outcome::NodeFail)));
}

#[test]
fn a_drained_node_finishes_its_jobs_and_takes_no_more() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.ok(ROOT, change("n1", drain()));
    assert_eq!(lab.job(job).phase, Phase::Running);
    let second = lab.submit(batch());
    assert!(!lab.place(second, None, "n1"));
    lab.ok(ROOT, change("n1", NodeChange::Resume));
    assert!(lab.place(second, None, "n1"));
}

#[test]
fn only_administrators_change_nodes_and_they_say_why() {
    let mut lab = Lab::new();
    let silent = NodeChange::Drain { reason: String::new() };
    assert_eq!(lab.apply(ALICE, change("n1", drain())), Err(Reject::NotPermitted));
    assert_eq!(lab.apply(ROOT, change("n1", silent)), Err(Reject::ReasonRequired));
    assert_eq!(lab.apply(ROOT, change("n9", drain())), Err(Reject::NoSuchNode("n9".into())));
    assert_eq!(lab.apply(ROOT, change("n1", NodeChange::Resume)), Err(Reject::InvalidNodeState));
}

#[test]
fn a_node_taken_down_ends_its_jobs_and_stays_down_until_it_is_resumed() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.ok(ROOT, change("n1", NodeChange::Down { reason: "broken".into() }));
    assert_eq!(lab.job(job).outcome, Some(Outcome::NodeFail));
    lab.done(job, Task::Kill);
    lab.register("n1", &[]);
    assert_eq!(lab.node("n1").phase, NodePhase::Down);
    lab.ok(ROOT, change("n1", NodeChange::Resume));
    assert_eq!(lab.node("n1").phase, NodePhase::Up);
}

#[test]
fn a_suspended_job_of_a_lost_node_comes_back_held() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n1");
    lab.each(ROOT, Command::Suspend { jobs: vec![job.into()] }).unwrap();
    lab.ok(ROOT, lost("n1"));
    lab.done(job, Task::Kill);
    assert_eq!((lab.job(job).phase, lab.job(job).held), (Phase::Pending, Some(HeldBy::Admin)));
}

#[test]
fn a_node_that_leaves_the_configuration_goes_with_its_last_job() {
    let mut lab = Lab::new();
    let job = lab.running(batch(), "n3");
    let mut smaller = config();
    smaller.nodes.pop();
    smaller.partitions[0].nodes.pop();
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(smaller) });
    assert!(lab.node("n3").is_removed);
    assert_eq!(lab.job(job).phase, Phase::Running);
    lab.exit(job, model::ExitStatus::SUCCESS).unwrap();
    assert!(lab.cluster.node("n3").is_none());
    let named =
        JobSpec { size: model::spec::Size { nodes: vec![NodeName::from("n3")], ..Default::default() }, ..batch() };
    let submit = Command::Submit { spec: Box::new(named), blobs: Vec::new() };
    assert_eq!(lab.apply(ALICE, submit), Err(Reject::NoSuchNode("n3".into())));
}

#[test]
fn a_new_node_begins_as_its_configuration_says_and_is_then_the_administrators() {
    let mut lab = Lab::new();
    let mut larger = config();
    for (name, starts_as) in [("n4", NodeStart::Drained), ("n5", NodeStart::Down)] {
        let mut node = larger.nodes[0].clone();
        node.name = name.into();
        node.config.starts_as = starts_as;
        node.config.start_reason = "to come".into();
        larger.nodes.push(node);
    }
    // A node that is known keeps what it is.
    larger.nodes[0].config.starts_as = NodeStart::Down;
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(larger.clone()) });
    lab.register("n4", &[]);
    lab.register("n5", &[]);
    assert!(lab.node("n1").is_usable() && !lab.node("n4").is_usable() && !lab.node("n5").is_usable());
    assert_eq!((lab.node("n4").phase, lab.node("n4").drain), (NodePhase::Up, true));
    assert_eq!(lab.node("n5").reason.as_ref().unwrap().text, "to come");
    lab.ok(ROOT, change("n4", NodeChange::Resume));
    lab.ok(ROOT, change("n5", NodeChange::Resume));
    larger.cluster_name = "other".into();
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(larger) });
    assert!(lab.node("n4").is_usable() && lab.node("n5").is_usable());
}

/// `slurmctld -c` forgets the jobs; agents may still have something of them to tell.
#[test]
fn ids_that_a_node_has_something_of_are_not_given_again() {
    let mut lab = Lab::new();
    let first = lab.submit(batch());
    lab.register("n1", &[Run { job: JobId(first.0 + 7), attempt: 0 }]);
    // What nobody can have given counts for nothing.
    lab.register("n2", &[Run { job: JobId(u32::MAX), attempt: 0 }]);
    assert_eq!(lab.submit(batch()), JobId(first.0 + 8));
}

#[test]
fn devices_with_files_stay_as_many_as_their_files_or_are_none() {
    let gpus = |kind: &str, count: u32, files: &[&str]| model::gres::Gres {
        name: "gpu".into(),
        kind: kind.into(),
        count,
        files: files.iter().map(|file| file.to_string()).collect(),
        ..Default::default()
    };
    let mut rules = config();
    rules.nodes[0].config.gres = vec![gpus("tesla", 2, &["/dev/a", "/dev/b"])];
    for (wanted, answer) in [
        (gpus("", 1, &[]), Err(Reject::StepGres)),
        (gpus("tesla", 1, &[]), Err(Reject::StepGres)),
        (gpus("volta", 2, &[]), Err(Reject::StepGres)),
        (gpus("tesla", 2, &[]), Ok(())),
        (gpus("", 0, &[]), Ok(())),
    ] {
        let mut lab = Lab::new();
        lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules.clone()) });
        let got = lab.apply(ROOT, change("n1", NodeChange::Gres(vec![wanted.clone()]))).map(|_| ());
        assert_eq!(got, answer, "{wanted:?}");
    }
}

#[test]
fn cpus_that_are_kept_for_the_system_are_given_to_no_job() {
    let mut lab = Lab::new();
    let mut rules = config();
    assert!(rules.nodes[0].config.keep_cpus("0,2".parse().unwrap()));
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules) });
    let size = model::spec::Size { n_tasks: Some(2), ..Default::default() };
    let job = lab.submit(JobSpec { size, ..batch() });
    assert!(lab.place(job, None, "n1"));
    assert_eq!(lab.job(job).allocation.nodes[0].cpus.to_string(), "1,3");
    let next = lab.submit(batch());
    assert!(!lab.place(next, None, "n1"), "there are no others");
}

#[test]
fn parts_of_gpus_are_not_asked_for_beside_whole_ones() {
    let unit = |name: &str| model::gres::GresRequest { name: name.into(), count: 1, ..Default::default() };
    let own = |name: &str, count| model::gres::Gres { name: name.into(), count, ..Default::default() };
    let mut rules = config();
    rules.nodes[0].config.gres = vec![own("gpu", 1), own("mps", 100)];
    let mut lab = Lab::new();
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(rules) });
    let mut submit = |names: &[&str], clock: &str| {
        let size = model::spec::Size { gres: names.iter().map(|name| unit(name)).collect(), ..Default::default() };
        let spec = JobSpec { size, gpu_freq_words: clock.into(), ..batch() };
        lab.apply(ALICE, Command::Submit { spec: Box::new(spec), blobs: Vec::new() }).map(drop)
    };
    assert_eq!(submit(&["mps"], ""), Ok(()));
    assert_eq!(submit(&["mps", "gpu"], ""), Err(Reject::StepGres));
    assert_eq!(submit(&["mps"], "high"), Err(Reject::StepGres));
    assert_eq!(submit(&["gpu"], "high"), Ok(()));
}

#[test]
fn what_the_cloud_calls_them_is_one_word_for_all_or_one_for_each() {
    let mut lab = Lab::new();
    let both = |change| Command::UpdateNodes { nodes: vec!["n1".into(), "n2".into()], change };
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let ids = |lab: &Lab| [lab.node("n1").instance_id.clone(), lab.node("n2").instance_id.clone()];
    lab.ok(ROOT, both(NodeChange::InstanceIds(words(&["i-1", "i-2"]))));
    lab.ok(ROOT, both(NodeChange::InstanceTypes(words(&["large"]))));
    assert_eq!(ids(&lab), ["i-1", "i-2"]);
    assert_eq!([&lab.node("n1").instance_type, &lab.node("n2").instance_type], ["large", "large"]);
    let refused = lab.apply(ROOT, both(NodeChange::InstanceIds(words(&["a", "b", "c"]))));
    assert!(matches!(refused, Err(Reject::InvalidValue(_))), "{refused:?}");
    assert_eq!(ids(&lab), ["i-1", "i-2"]);
    lab.ok(ROOT, both(NodeChange::InstanceIds(Vec::new())));
    assert_eq!(ids(&lab), ["", ""]);
    assert_eq!(lab.apply(ALICE, change("n1", NodeChange::InstanceIds(words(&["x"])))), Err(Reject::NotPermitted));
}
