//! The oracle's cluster as values: eight nodes, its partitions, and jobs of every kind. For tests only.
use std::sync::Arc;

use model::config::{Config, NamedNode};
use model::gres::Gres;
use model::job::ArrayPlace;
use model::node::{Machine, NodeConfig, NodePhase, NodeReason};
use model::partition::PartitionState;
use model::ranges::parse_array;
use model::request::NodeView;
use model::spec::{ArraySpec, TimeLimit};
use model::time::Span;
use model::{
    Allocation, BlobId, CpuSet, HeldBy, Job, JobId, JobKind, JobSpec, Node, NodeName, NodeShare, Partition, Phase,
    Reason, Timestamp,
};

use crate::zone::Clock;

/// 2026-11-15T22:01:07, when the oracle's jobs were submitted.
pub const SUBMITTED: u64 = 1_794_780_067;

/// Five seconds later.
pub fn clock() -> Clock {
    Clock::utc(Timestamp::from_secs(SUBMITTED + 5))
}

pub fn config() -> Config {
    let name = |number: u32| NodeName::from(format!("n{number}"));
    let all: Vec<NodeName> = (1..=8).map(name).collect();
    let nodes = (1..=8).map(|number| NamedNode { name: name(number), config: node_config(number) }).collect();
    let partition = |name: &str, nodes: &[NodeName], state| Partition {
        name: name.into(),
        nodes: nodes.to_vec(),
        state,
        priority_tier: 1,
        priority_job_factor: 1,
        ..Partition::default()
    };
    let mut config = Config {
        cluster_name: "oracle".into(),
        nodes,
        partitions: vec![
            Partition { is_default: true, ..partition("debug", &all, PartitionState::Up) },
            partition("down", &all, PartitionState::Down),
            Partition {
                max_time: Some(TimeLimit::Secs(600)),
                default_time: Some(TimeLimit::Secs(300)),
                ..partition("short", &all[..2], PartitionState::Up)
            },
            Partition {
                max_time: Some(TimeLimit::Secs(2 * 86_400)),
                max_nodes: Some(1),
                ..partition("limited", &all[2..4], PartitionState::Up)
            },
            Partition { allow_groups: vec!["root".into()], ..partition("rootonly", &all, PartitionState::Up) },
            partition("drained", &all[..2], PartitionState::Drain),
            partition("inact", &all[..2], PartitionState::Inactive),
        ],
        ..Config::default()
    };
    config.scheduler.default_memory_per_cpu_mb = Some(100);
    config
}

fn node_config(number: u32) -> NodeConfig {
    let features: &[&str] = if number <= 4 { &["fast", "amd"] } else { &["big"] };
    let gpus = Gres { name: "gpu".into(), count: 2, ..Gres::default() };
    NodeConfig {
        cpus: 8,
        memory_mb: 4000,
        features: features.iter().map(|feature| feature.to_string()).collect(),
        gres: if number >= 7 { vec![gpus] } else { Vec::new() },
        weight: 1,
        address: "127.0.0.1".into(),
        ..NodeConfig::default()
    }
}

/// All nodes, idle.
pub fn idle_nodes() -> Vec<NodeView> {
    let node = |number: u32| Node {
        name: format!("n{number}").into(),
        config: node_config(number),
        machine: Machine {
            hostname: "vm".into(),
            architecture: "x86_64".into(),
            system: "Linux 6.18.44".into(),
            version: "1".into(),
            booted: Some(Timestamp::from_secs(1_794_778_404)),
            agent_started: Some(Timestamp::from_secs(1_794_778_947)),
            ..Machine::default()
        },
        phase: NodePhase::Up,
        answers: true,
        last_busy: Some(Timestamp::from_secs(SUBMITTED)),
        ..Node::default()
    };
    (1..=8).map(|number| NodeView { node: node(number), ..NodeView::default() }).collect()
}

/// n1 allocated, n2 and n7 mixed, n3 draining, n4 drained, n5 and n8 down.
pub fn mixed_nodes() -> Vec<NodeView> {
    let mut nodes = idle_nodes();
    let mut busy = |index: usize, n_cpus: u32| {
        nodes[index].has_live_job = true;
        nodes[index].node.used.cpus = CpuSet::first(n_cpus);
        nodes[index].node.used.memory_mb = u64::from(n_cpus) * 100;
    };
    busy(0, 8);
    busy(1, 3);
    busy(2, 2);
    busy(6, 1);
    let mut because = |index: usize, text: &str, at: u64| {
        let at = Timestamp::from_secs(SUBMITTED + at);
        nodes[index].node.reason = Some(NodeReason { text: text.into(), by_uid: 0, at });
    };
    because(2, "disk is failing badly, replace", 65);
    because(3, "bad", 65);
    because(4, "dead fan", 66);
    because(7, "off", 67);
    nodes[2].node.drain = true;
    nodes[3].node.drain = true;
    nodes[4].node.phase = NodePhase::Down;
    nodes[7].node.phase = NodePhase::Down;
    nodes
}

fn job(id: u32, name: &str, partition: &str) -> Job {
    let spec = JobSpec {
        name: name.into(),
        user: "root".into(),
        group: "root".into(),
        partitions: vec![partition.into()],
        kind: JobKind::Batch { script: BlobId::default() },
        work_dir: "/work/oracle/w".into(),
        submit_host: "localhost".into(),
        stdout: Some("/dev/null".into()),
        ..JobSpec::default()
    };
    Job {
        id: JobId(id),
        spec: Arc::new(spec),
        partition: partition.into(),
        priority: 4_294_901_823 - id,
        submitted: Timestamp::from_secs(SUBMITTED),
        eligible: Some(Timestamp::from_secs(SUBMITTED)),
        last_evaluated: Some(Timestamp::from_secs(SUBMITTED)),
        ..Job::default()
    }
}

fn spec(job: &mut Job) -> &mut JobSpec {
    Arc::make_mut(&mut job.spec)
}

pub fn pending(id: u32, name: &str, partition: &str, reason: Reason) -> Job {
    Job { reason: Some(reason), ..job(id, name, partition) }
}

/// Runs since it was submitted, with so many CPUs on each node.
pub fn running(id: u32, name: &str, shares: &[(&str, u32)]) -> Job {
    let share = |(node, n_cpus): &(&str, u32)| NodeShare {
        node: (*node).into(),
        cpus: CpuSet::first(*n_cpus),
        memory_mb: 100 * u64::from(*n_cpus),
        n_tasks: *n_cpus,
        ..NodeShare::default()
    };
    Job {
        phase: Phase::Running,
        alive: true,
        started: Some(Timestamp::from_secs(SUBMITTED)),
        allocation: Allocation { nodes: shares.iter().map(share).collect(), is_exclusive: false },
        ..job(id, name, "debug")
    }
}

/// The oracle's queue.
pub fn queue() -> Vec<Job> {
    let mut one_hour = running(496, "running", &[("n1", 1)]);
    let asked = spec(&mut one_hour);
    asked.time_limit = Some(TimeLimit::Secs(3600));
    asked.comment = "a comment".into();
    asked.command = "/work/oracle/w/job.sh".into();
    asked.arguments = vec!["one".into(), "two".into()];
    asked.stdout = Some("out.%j".into());
    asked.stderr = Some("err.%j".into());
    let mut two_nodes = running(497, "twonodes", &[("n1", 7), ("n2", 4)]);
    spec(&mut two_nodes).account = "acct".into();
    spec(&mut two_nodes).size.n_tasks = Some(6);
    spec(&mut two_nodes).size.cpus_per_task = Some(2);
    let task = |id, task| {
        let mut job = running(id, "runarr", &[("n2", 1)]);
        job.array = Some(ArrayPlace { array: JobId(499), task: Some(task) });
        job.priority = 4_294_901_324;
        job
    };
    let array = |mut job: Job, tasks: &str| {
        let (tasks, limit) = parse_array(tasks).expect("an array");
        job.array = Some(ArrayPlace { array: job.id, task: None });
        job.waiting_tasks = Some(tasks.clone());
        spec(&mut job).array = Some(ArraySpec { tasks, limit });
        job
    };
    let mut nobodys = running(500, "nobodys", &[("n2", 1)]);
    spec(&mut nobodys).user = "nobody".into();
    spec(&mut nobodys).uid = 65_534;
    let mut bigger = pending(502, "bigger", "debug", Reason::Resources);
    spec(&mut bigger).size.min_nodes = 8;
    spec(&mut bigger).time_limit = Some(TimeLimit::Secs(600));
    let mut begin = pending(507, "begin", "debug", Reason::BeginTime);
    spec(&mut begin).begin = Some(Timestamp::from_secs(SUBMITTED + 3600));
    let mut dependent = pending(504, "dep", "debug", Reason::Dependency);
    dependent.dependency = model::dependency::parse("afterok:496,afterany:497").expect("a dependency");
    let mut held = pending(506, "held", "debug", Reason::JobHeldUser);
    held.held = Some(HeldBy::User);
    let mut failed = job(516, "failed", "debug");
    failed.phase = Phase::Done;
    failed.outcome = Some(model::Outcome::Failed);
    failed.reason = Some(Reason::NonZeroExitCode);
    failed.exit = model::ExitStatus::exited(3);
    failed.started = Some(Timestamp::from_secs(SUBMITTED));
    failed.ended = failed.started;
    let mut cancelled = job(518, "canc", "down");
    cancelled.phase = Phase::Done;
    cancelled.outcome = Some(model::Outcome::Cancelled);
    let mut suspended = running(524, "susp", &[("n2", 1)]);
    suspended.phase = Phase::Suspended;
    suspended.suspended_at = Some(Timestamp::from_secs(SUBMITTED + 3));
    suspended.run_before_suspend = Span::from_secs(3);
    vec![
        one_hour,
        two_nodes,
        array(pending(499, "runarr", "debug", Reason::JobArrayTaskLimit), "3-6%2"),
        task(521, 1),
        task(522, 2),
        nobodys,
        bigger,
        dependent,
        held,
        begin,
        array(pending(508, "downpart", "down", Reason::PartitionDown), "10,12,14-20:2"),
        pending(509, "toolong", "short", Reason::PartitionTimeLimit),
        pending(510, "longnamelongnamelongname", "limited", Reason::PartitionNodeLimit),
        failed,
        cancelled,
        suspended,
    ]
}
