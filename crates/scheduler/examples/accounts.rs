//! What accounts cost a pass: `cargo run --release -p scheduler --example accounts [associations] [jobs] [nodes]`.
//! The same queue is planned without limits and fair-share, with both, and with a tenth of the users at a limit.
#![allow(clippy::disallowed_types, reason = "measures time; not part of the scheduler")]
use std::time::Duration;

use model::accounts::{Change, Edit, EntityFilter, Field, Value};
use model::config::{Enforce, NamedNode};
use model::node::NodeConfig;
use model::priority::PriorityKind;
use model::spec::{JobSpec, Size, TimeLimit};
use model::{Caller, Command, Config, Entry, Partition, Timestamp};
use state::{Cluster, apply};

const USERS_IN_AN_ACCOUNT: u32 = 99;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>().expect("a number"));
    let n_associations = arguments.next().unwrap_or(10_000);
    let n_jobs = arguments.next().unwrap_or(100_000);
    let n_nodes = arguments.next().unwrap_or(1_000);
    let n_accounts = (n_associations / (USERS_IN_AN_ACCOUNT + 1)).max(1);
    let mut plain = cluster(n_nodes, false);
    tree(&mut plain, n_accounts);
    let begin = on_cpu();
    fill(&mut plain, n_jobs, n_accounts);
    println!("{n_associations} associations, {n_jobs} jobs, {n_nodes} nodes of 64 CPUs");
    println!("{:50} {:>10.2?} each", "submission, nothing enforced", (on_cpu() - begin) / n_jobs);
    let without = measure(&plain);
    println!("{:50} {without:>10.2?}", "plan, nothing enforced");

    let mut full = cluster(n_nodes, true);
    tree(&mut full, n_accounts);
    let begin = on_cpu();
    fill(&mut full, n_jobs, n_accounts);
    println!("{:50} {:>10.2?} each", "submission, limits and fair-share", (on_cpu() - begin) / n_jobs);
    let with = measure(&full);
    let more = (with.as_secs_f64() / without.as_secs_f64() - 1.0) * 100.0;
    println!("{:50} {with:>10.2?}  {more:+.1} %", "plan, limits and fair-share");
    let begin = on_cpu();
    let standing = full.standing(Timestamp::from_secs(100));
    println!("{:50} {:>10.2?}", "the fair tree, once a calc_period", on_cpu() - begin);
    assert!(standing.associations.len() as u32 >= n_accounts);

    // Every tenth user may have one job: the others' jobs pass theirs.
    let names = (0..n_accounts * USERS_IN_AN_ACCOUNT).filter(|number| number % 10 == 0).map(user).collect();
    let edits = vec![Edit { field: Field::MaxJobs, value: Value::Count(Some(1)) }];
    change(&mut full, Change::ModifyUsers { filter: EntityFilter { names, ..Default::default() }, edits });
    let limited = measure(&full);
    let more = (limited.as_secs_f64() / without.as_secs_f64() - 1.0) * 100.0;
    println!("{:50} {limited:>10.2?}  {more:+.1} %", "the same, a tenth of the users at a limit");
}

fn user(number: u32) -> String {
    format!("user{number}")
}

fn account(number: u32) -> String {
    format!("account{number}")
}

fn measure(cluster: &Cluster) -> Duration {
    let once = || {
        let begin = on_cpu();
        let plan = scheduler::plan(cluster);
        let spent = on_cpu() - begin;
        assert!(!plan.starts.is_empty());
        spent
    };
    (0..3).map(|_| once()).min().expect("three")
}

/// Time this thread has had a CPU, so that a busy machine does not count.
#[allow(clippy::disallowed_methods, reason = "measures time; not part of the scheduler")]
fn on_cpu() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let nanos = told.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("the first word is a number"))
}

fn run(cluster: &mut Cluster, command: Command) {
    let entry = Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command };
    apply(cluster, &entry).reply.expect("the command is accepted");
}

fn change(cluster: &mut Cluster, change: Change) {
    run(cluster, Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() });
}

fn cluster(n_nodes: u32, is_enforced: bool) -> Cluster {
    let config = NodeConfig { cpus: 64, memory_mb: 256_000, ..Default::default() };
    let names: Vec<model::NodeName> = (1..=n_nodes).map(|number| format!("n{number}").into()).collect();
    let nodes = names.iter().map(|name| NamedNode { name: name.clone(), config: config.clone() }).collect();
    let partition = Partition { name: "all".into(), nodes: names.clone(), is_default: true, ..Default::default() };
    let mut config = Config { nodes, partitions: vec![partition], ..Default::default() };
    config.scheduler.depth = u32::MAX;
    config.accounting.enforce = Enforce::NOTHING;
    config.scheduler.priority.kind = PriorityKind::Multifactor;
    config.scheduler.priority.weight_job_size = 100;
    if is_enforced {
        config.accounting.enforce = Enforce::parse("associations,limits,qos").expect("words");
        config.scheduler.priority.weight_fair_share = 1000;
    }
    let mut cluster = Cluster::default();
    run(&mut cluster, Command::Reconfigure { config: Box::new(config) });
    for node in names {
        run(&mut cluster, Command::RegisterNode { node, machine: Default::default(), runs: Default::default() });
    }
    cluster
}

/// Accounts under the root with their users; accounts and users have limits that let everything pass.
fn tree(cluster: &mut Cluster, n_accounts: u32) {
    let limit = |field, most| vec![Edit { field, value: Value::Count(Some(most)) }];
    let cpus = Edit { field: Field::GrpTres, value: Value::Tres(vec![("cpu".into(), Some(1_000_000))]) };
    for number in 0..n_accounts {
        let edits = limit(Field::GrpJobs, 1_000_000).into_iter().chain([cpus.clone()]).collect();
        let names = vec![account(number)];
        change(cluster, Change::AddAccounts { names, parent: "root".into(), edits, clusters: Vec::new() });
        let first = number * USERS_IN_AN_ACCOUNT;
        let names = (first..first + USERS_IN_AN_ACCOUNT).map(user).collect();
        let (accounts, edits) = (vec![account(number)], limit(Field::MaxJobs, 1_000_000));
        change(cluster, Change::AddUsers { names, accounts, partitions: Vec::new(), edits, clusters: Vec::new() });
    }
}

fn fill(cluster: &mut Cluster, n_jobs: u32, n_accounts: u32) {
    for number in 0..n_jobs {
        let who = number.wrapping_mul(2_654_435_761) % (n_accounts * USERS_IN_AN_ACCOUNT);
        let spec = JobSpec {
            uid: 1000 + who,
            user: user(who),
            account: account(who / USERS_IN_AN_ACCOUNT),
            size: Size { n_tasks: Some(1 + number % 32), ..Default::default() },
            time_limit: Some(TimeLimit::Secs(600 + u64::from(number % 50) * 60)),
            ..Default::default()
        };
        run(cluster, Command::Submit { spec: Box::new(spec), blobs: Vec::new() });
    }
}
