//! How long a pass takes: `cargo run --release -p scheduler --example speed [nodes] [jobs] [repeats]`.
#![allow(clippy::disallowed_types, reason = "measures time; not part of the scheduler")]
use std::time::Duration;

use model::config::NamedNode;
use model::node::NodeConfig;
use model::spec::{JobSpec, Memory, Size, TimeLimit};
use model::{Caller, Command, Config, Entry, Partition, Timestamp};
use state::{Cluster, apply};

use self::support::on_cpu;

mod support;

fn main() {
    let mut arguments = std::env::args().skip(1).take(2).map(|text| text.parse::<u32>().expect("a number"));
    let n_nodes = arguments.next().unwrap_or(10_000);
    let n_jobs = arguments.next().unwrap_or(10_000);
    let one_task = |_: u32| Size { n_tasks: Some(1), ..Default::default() };
    let mixed = |number: u32| Size {
        min_nodes: 1 + number % 4,
        n_tasks: Some(4 + number % 13),
        cpus_per_task: Some(1 + number % 3),
        memory: Memory::PerCpuMb(1000 + u64::from(number % 7)),
        ..Default::default()
    };
    let wide = |number: u32| Size { min_nodes: 2 + number % 30, ..Default::default() };

    println!("{n_nodes} nodes of 64 CPUs, {n_jobs} queued jobs");
    let empty = cluster(n_nodes);
    show("empty cluster, one task each", &queued(&empty, n_jobs, one_task));
    show("empty cluster, mixed shapes", &queued(&empty, n_jobs, mixed));
    show("empty cluster, two to thirty nodes each", &queued(&empty, n_jobs, wide));

    let mut full = queued(&empty, n_nodes, |_| Size { n_tasks: Some(64), ..Default::default() });
    adopt(&mut full);
    show("full cluster, first look at the queue", &queued(&full, n_jobs, mixed));
    let mut known = queued(&full, n_jobs, mixed);
    adopt(&mut known);
    show("full cluster, nothing new", &known);

    let mut nearly = queued(&empty, n_nodes, |_| Size { n_tasks: Some(62), ..Default::default() });
    adopt(&mut nearly);
    let too_large = |number: u32| Size { n_tasks: Some(3 + number % 60), max_nodes: Some(1), ..Default::default() };
    let mut stuck = queued(&nearly, n_jobs, too_large);
    adopt(&mut stuck);
    show("two CPUs free on every node, nothing fits", &stuck);

    // Every job says how long it takes, so all that waits has a place to be found in the future.
    let mut backlog =
        queued_for(&empty, n_jobs, mixed, |number| 10 + u64::from(number.wrapping_mul(2_654_435_761) % 600));
    show("mixed jobs with time limits, a full plan", &backlog);
    adopt(&mut backlog);
    show("the same, nothing new", &backlog);
    end_one(&mut backlog);
    // For a profile of the plan that matters most.
    let n_repeats: u32 = std::env::args().nth(3).map_or(0, |text| text.parse().expect("a number"));
    (0..n_repeats).for_each(|_| drop(scheduler::plan(&backlog)));
    show("the same, after one job has ended", &backlog);
    let mut none = backlog.clone();
    reconfigure(&mut none, |config| config.scheduler.backfill.n_reservations = 0);
    show("the same, no places in the future", &none);
    let mut conservative = backlog.clone();
    reconfigure(&mut conservative, |config| config.scheduler.backfill.n_reservations = 500);
    show("the same, 500 places in the future", &conservative);
}

fn reconfigure(cluster: &mut Cluster, change: impl Fn(&mut Config)) {
    let mut config = (**cluster.config()).clone();
    change(&mut config);
    run(cluster, Command::Reconfigure { config: Box::new(config) });
}

/// The first job that runs is over.
fn end_one(cluster: &mut Cluster) {
    let job = cluster.jobs().find(|job| job.holds_nodes()).expect("some job runs").id;
    run(cluster, Command::Cancel { jobs: vec![job.into()], hurry: false });
    let duty = cluster.duty(&model::Owner::Job(job)).expect("its processes are ended").clone();
    run(cluster, Command::DutyDone { duty, result: model::command::DutyResult::Done });
}

fn show(what: &str, cluster: &Cluster) {
    let mut best = Duration::MAX;
    let mut plan = model::Plan::default();
    for _ in 0..3 {
        let begin = on_cpu();
        plan = scheduler::plan(cluster);
        best = best.min(on_cpu() - begin);
    }
    let n_promised = plan.expected_starts.len();
    println!(
        "{what:45} {best:>10.2?}  {} start, {} reasons, {n_promised} places",
        plan.starts.len(),
        plan.reasons.len()
    );
}

fn run(cluster: &mut Cluster, command: Command) {
    let entry = Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command };
    apply(cluster, &entry).reply.expect("the command is accepted");
}

fn adopt(cluster: &mut Cluster) {
    let plan = scheduler::plan(cluster);
    run(cluster, Command::AdoptPlan(plan));
}

fn cluster(n_nodes: u32) -> Cluster {
    let config = NodeConfig { cpus: 64, memory_mb: 256_000, ..Default::default() };
    let names: Vec<model::NodeName> = (1..=n_nodes).map(|number| format!("n{number}").into()).collect();
    let nodes = names.iter().map(|name| NamedNode { name: name.clone(), config: config.clone() }).collect();
    let partition = Partition { name: "all".into(), nodes: names.clone(), is_default: true, ..Default::default() };
    let mut cluster = Cluster::of_today();
    let mut config = Config { nodes, partitions: vec![partition], ..Default::default() };
    config.scheduler.depth = u32::MAX;
    run(&mut cluster, Command::Reconfigure { config: Box::new(config) });
    for node in names {
        run(&mut cluster, Command::RegisterNode { node, machine: Default::default(), runs: Default::default() });
    }
    cluster
}

fn queued(cluster: &Cluster, n_jobs: u32, size: impl Fn(u32) -> Size) -> Cluster {
    queue(cluster, n_jobs, |number| JobSpec { size: size(number), ..Default::default() })
}

fn queued_for(cluster: &Cluster, n_jobs: u32, size: impl Fn(u32) -> Size, minutes: impl Fn(u32) -> u64) -> Cluster {
    queue(cluster, n_jobs, |number| {
        let time_limit = Some(TimeLimit::Secs(minutes(number) * 60));
        JobSpec { size: size(number), time_limit, ..Default::default() }
    })
}

fn queue(cluster: &Cluster, n_jobs: u32, spec: impl Fn(u32) -> JobSpec) -> Cluster {
    let mut cluster = cluster.clone();
    for number in 0..n_jobs {
        let spec = Box::new(spec(number));
        run(&mut cluster, Command::Submit { spec, blobs: Vec::new() });
    }
    cluster
}
