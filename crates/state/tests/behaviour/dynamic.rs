//! Nodes that no file names, and where nodes say that they are.
use model::node::{Machine, NodeConfig, NodePhase};
use model::topology::{Switch, Topology, TopologyKind};
use model::update::NodeChange;
use model::{Command, NodeName, Reject, Timestamp};
use state::JobHome;

use crate::lab::{ALICE, Lab, ROOT, batch, config};

fn lab() -> Lab {
    let leaf = |name: &str, node: &str| Switch { name: name.into(), nodes: vec![node.into()], ..Switch::default() };
    let root = Switch { name: "top".into(), switches: vec!["r1".into(), "r2".into()], ..Switch::default() };
    let switches = vec![leaf("r1", "n1"), leaf("r2", "n2"), root];
    let topology = Topology { name: "t".into(), kind: TopologyKind::Tree, switches, ..Topology::default() };
    let mut lab = Lab::new();
    let config = model::Config { topologies: vec![topology], ..config() };
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(config) });
    lab
}

fn create(names: &[&str], topology: Option<&str>) -> Command {
    let config = NodeConfig { cpus: 2, memory_mb: 500, topology: topology.map(String::from), ..NodeConfig::default() };
    let nodes = names.iter().map(|name| NodeName::from(*name)).collect();
    Command::UpdateNodes { nodes, change: NodeChange::Create(Box::new(config)) }
}

fn delete(names: &[&str]) -> Command {
    Command::UpdateNodes { nodes: names.iter().map(|name| NodeName::from(*name)).collect(), change: NodeChange::Delete }
}

fn register(lab: &mut Lab, name: &str, boot: u32, machine: Machine) -> Result<model::Reply, Reject> {
    lab.secs += 1;
    let agent_started = Some(Timestamp::from_secs(lab.secs));
    let machine = Box::new(Machine { boot_id: boot.to_string(), agent_started, ..machine });
    lab.apply(ROOT, Command::RegisterNode { node: name.into(), machine, runs: Vec::new() })
}

fn leaf(lab: &Lab, name: &str) -> Option<String> {
    let network = lab.cluster.network();
    network.shapes[0].unit_name(network.find(name)?).map(String::from)
}

#[test]
fn nodes_are_created_used_and_deleted() {
    let mut lab = lab();
    assert_eq!(lab.apply(ALICE, create(&["d1"], None)), Err(Reject::NotPermitted));
    assert!(matches!(lab.apply(ROOT, create(&["d1", "n1"], None)), Err(Reject::InvalidValue(_))), "n1 exists");
    assert_eq!(lab.apply(ROOT, create(&["d1"], Some("t:zz"))), Err(Reject::NoSuchTopology));
    lab.ok(ROOT, create(&["d1", "d2"], Some("t:top:r2")));
    assert_eq!(lab.node("d1").phase, NodePhase::Unknown);
    assert_eq!((leaf(&lab, "d1").as_deref(), lab.node("d1").partitions.len()), (Some("r2"), 1));
    register(&mut lab, "d1", 1, Machine::default()).unwrap();
    let job = lab.running(batch(), "d1");
    assert_eq!(lab.apply(ROOT, delete(&["d2", "d1"])), Err(Reject::NodesBusy("d1".into())), "all of them or none");
    assert_eq!(lab.apply(ROOT, delete(&["n1"])), Err(Reject::InvalidNodeState), "the file names it");
    assert_eq!(lab.apply(ROOT, delete(&["zz"])), Err(Reject::NoSuchNode("zz".into())));
    lab.exit(job, model::ExitStatus::exited(0)).unwrap();
    // A new file, or a new controller, leaves them where they are.
    let file = (**lab.cluster.config()).clone();
    let file = model::Config { nodes: config().nodes, partitions: config().partitions, ..file };
    lab.ok(ROOT, Command::Reconfigure { config: Box::new(file.clone()) });
    lab.ok(ROOT, Command::Begin { config: Box::new(file) });
    assert_eq!(leaf(&lab, "d1").as_deref(), Some("r2"));
    lab.ok(ROOT, delete(&["d1", "d2"]));
    assert!(lab.cluster.node("d1").is_none() && leaf(&lab, "d2").is_none());
    assert_eq!(register(&mut lab, "d1", 1, Machine::default()), Err(Reject::NoSuchNode("d1".into())));
}

#[test]
fn a_node_may_come_by_itself_and_say_where_it_is() {
    let mut lab = lab();
    let node = NodeConfig { cpus: 8, memory_mb: 100, ..NodeConfig::default() };
    let place = |unit: &str| Machine {
        topology: Some(format!("t:{unit}")),
        dynamic: Some(Box::new(node.clone())),
        ..Machine::default()
    };
    register(&mut lab, "d1", 1, place("r1")).unwrap();
    assert_eq!((lab.node("d1").phase, lab.node("d1").config.cpus), (NodePhase::Up, 8));
    assert_eq!(leaf(&lab, "d1").as_deref(), Some("r1"));
    register(&mut lab, "d1", 1, place("r2")).unwrap();
    assert_eq!(leaf(&lab, "d1").as_deref(), Some("r1"), "an agent that starts again changes nothing");
    let change = NodeChange::Topology(Some("t:r2".into()));
    lab.ok(ROOT, Command::UpdateNodes { nodes: vec!["d1".into()], change });
    register(&mut lab, "d1", 1, place("r1")).unwrap();
    assert_eq!(leaf(&lab, "d1").as_deref(), Some("r2"), "what an administrator said holds");
    register(&mut lab, "d1", 2, place("r1")).unwrap();
    assert_eq!(leaf(&lab, "d1").as_deref(), Some("r1"), "the machine was started anew");
    register(&mut lab, "d1", 3, place("nowhere")).unwrap();
    assert_eq!(leaf(&lab, "d1").as_deref(), Some("r1"), "there is no such place");
    // A node of the file, when it is seen for the first time after it was named.
    let machine = Machine { topology: Some("t:r1".into()), ..Machine::default() };
    register(&mut lab, "n3", 1, machine).unwrap();
    assert_eq!(leaf(&lab, "n3"), None, "it was here before");
}

#[test]
fn jobs_are_at_home_where_an_agent_runs_them() {
    let mut lab = Lab::new();
    let home = |lab: &Lab, uid: u32| state::home_of_jobs_of(&lab.cluster, uid);
    let of = |only: Option<u32>| Machine { runs_only: only, ..Machine::default() };
    assert_eq!(home(&lab, 7), JobHome::Unknown, "no agent has said whose it is");
    register(&mut lab, "n1", 1, of(Some(7))).unwrap();
    assert_eq!((home(&lab, 7), home(&lab, 8), home(&lab, 0)), (JobHome::SomeNode, JobHome::NoNode, JobHome::NoNode));
    register(&mut lab, "n2", 1, of(None)).unwrap();
    assert_eq!((home(&lab, 7), home(&lab, 8)), (JobHome::SomeNode, JobHome::SomeNode), "one that is root's runs all");
    let specs = vec![model::JobSpec { uid: 7, ..batch() }, model::JobSpec { uid: 8, ..batch() }];
    let together = Command::SubmitTogether { specs, blobs: Vec::new() };
    let once = Command::Once { request: model::command::RequestId(1, 1), command: Box::new(together) };
    assert_eq!(state::owners_of_submission(&once), [7, 8]);
}
