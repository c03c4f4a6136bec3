//! What burst buffers cost a pass: `cargo run --release -p scheduler --example contention [nodes] [jobs]`.
//!
//! The same queue twice: once every job wants a buffer of one pool that holds a hundredth of them, once nobody wants any.
#![allow(clippy::disallowed_types, reason = "measures time; not part of the scheduler")]
use std::time::Duration;

use model::config::NamedNode;
use model::node::NodeConfig;
use model::pool::{BurstBufferConfig, Pool, PoolKind};
use model::spec::{JobKind, JobSpec, Memory, Size, TimeLimit};
use model::{Caller, Command, Config, Entry, Owner, Partition, Timestamp};
use state::{Cluster, apply};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>().expect("a number"));
    let n_nodes = arguments.next().unwrap_or(1_000);
    let n_jobs = arguments.next().unwrap_or(10_000);
    let empty = cluster(n_nodes, u64::from(n_jobs / 100) << 30);
    println!("{n_nodes} nodes of 64 CPUs, {n_jobs} queued jobs, room for {} buffers", n_jobs / 100);
    for (what, fills) in [("empty cluster", false), ("full cluster", true)] {
        let mut base = empty.clone();
        if fills {
            submit(&mut base, n_nodes, "", |_| Size { n_tasks: Some(64), ..Default::default() });
            adopt(&mut base);
        }
        let mut without = base.clone();
        submit(&mut without, n_jobs, "", mixed);
        let mut with = base.clone();
        submit(&mut with, n_jobs, "capacity=1", mixed);
        let mut settled = with.clone();
        adopt(&mut settled);
        adopt(&mut settled);
        let mut known = without.clone();
        adopt(&mut known);
        compare(&format!("{what}, first look"), measure(&without), measure(&with));
        compare(&format!("{what}, the pool is full"), measure(&known), measure(&settled));
    }
}

fn mixed(number: u32) -> Size {
    Size {
        min_nodes: 1 + number % 4,
        n_tasks: Some(4 + number % 13),
        memory: Memory::PerCpuMb(1000 + u64::from(number % 7)),
        ..Default::default()
    }
}

fn compare(what: &str, without: Duration, with: Duration) {
    let ratio = with.as_secs_f64() / without.as_secs_f64();
    println!("{what:35} without buffers {without:>9.2?}, with {with:>9.2?}: {ratio:.2} times");
}

/// Time this thread has had a CPU, so that a busy machine does not count.
#[allow(clippy::disallowed_methods, reason = "measures time; not part of the scheduler")]
fn on_cpu() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanos = told.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("the first word is a number"))
}

/// The kernel's clock of threads goes by ticks of 4 ms, so many plans are timed together.
fn measure(cluster: &Cluster) -> Duration {
    const PLANS: u32 = 50;
    let round = |_| {
        let begin = on_cpu();
        (0..PLANS).for_each(|_| drop(scheduler::plan(cluster)));
        (on_cpu() - begin) / PLANS
    };
    (0..3).map(round).min().expect("some")
}

fn run(cluster: &mut Cluster, command: Command) {
    let entry = Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command };
    apply(cluster, &entry).reply.expect("the command is accepted");
}

fn adopt(cluster: &mut Cluster) {
    let plan = scheduler::plan(cluster);
    run(cluster, Command::AdoptPlan(plan));
    debug_assert!(cluster.duties().all(|duty| !matches!(duty.owner, Owner::Step(..))));
}

fn submit(cluster: &mut Cluster, n_jobs: u32, buffer: &str, size: impl Fn(u32) -> Size) {
    for number in 0..n_jobs {
        let minutes = 10 + u64::from(number.wrapping_mul(2_654_435_761) % 600);
        let spec = JobSpec {
            size: size(number),
            kind: JobKind::Allocation,
            time_limit: Some(TimeLimit::Secs(minutes * 60)),
            burst_buffer: buffer.into(),
            ..Default::default()
        };
        run(cluster, Command::Submit { spec: Box::new(spec), blobs: Vec::new() });
    }
}

fn cluster(n_nodes: u32, pool_bytes: u64) -> Cluster {
    let config = NodeConfig { cpus: 64, memory_mb: 256_000, ..Default::default() };
    let names: Vec<model::NodeName> = (1..=n_nodes).map(|number| format!("n{number}").into()).collect();
    let nodes = names.iter().map(|name| NamedNode { name: name.clone(), config: config.clone() }).collect();
    let partition = Partition { name: "all".into(), nodes: names.clone(), is_default: true, ..Default::default() };
    let pool = Pool {
        name: "flash".into(),
        kind: PoolKind::Shared,
        root: "/flash".into(),
        granularity_bytes: 1 << 30,
        total_bytes: Some(pool_bytes),
        ..Default::default()
    };
    let mut config = Config { nodes, partitions: vec![partition], ..Default::default() };
    config.scheduler.depth = u32::MAX;
    config.burst_buffer = Some(BurstBufferConfig { pools: vec![pool], ..Default::default() });
    let mut cluster = Cluster::of_today();
    run(&mut cluster, Command::Reconfigure { config: Box::new(config) });
    for node in names {
        run(&mut cluster, Command::RegisterNode { node, machine: Default::default(), runs: Default::default() });
    }
    cluster
}
