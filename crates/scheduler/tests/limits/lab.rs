//! A small tree of accounts, and what becomes of jobs in it.
use model::accounts::{Change, Edit, EntityFilter, Field, NamedValue, Value};
use model::config::Enforce;
use model::gres::{Gres, GresRequest};
use model::node::NodeConfig;
use model::spec::{JobSpec, Memory, Size, TimeLimit};
use model::{Caller, Command, Entry, JobId, Reject};

use crate::world::{World, partition};

pub fn change(world: &mut World, change: Change) {
    world.apply(Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() });
}

pub fn filter(name: &str) -> EntityFilter {
    EntityFilter { names: [name.to_string()].into(), ..Default::default() }
}

/// root > a1 > a11 > ann; QOS q1, and pq for the partition `short`.
pub fn lab() -> World {
    let gpus = Gres { name: "gpu".into(), count: 4, ..Default::default() };
    let node = NodeConfig { cpus: 8, memory_mb: 4000, gres: vec![gpus], ..Default::default() };
    let names = ["n1", "n2", "n3", "n4"];
    let mut short = partition("short", &names);
    short.qos = "pq".into();
    let mut world = World::new(names.map(|name| (name, node.clone())).to_vec(), vec![short]);
    let mut config = (**world.cluster.config()).clone();
    config.accounting.enforce = Enforce::parse("associations,limits,qos,safe").unwrap();
    config.scheduler.default_memory_per_cpu_mb = Some(100);
    config.licenses = model::license::parse_list("a:8").unwrap();
    world.apply(Command::Reconfigure { config: Box::new(config) });
    let none = Vec::new;
    change(&mut world, Change::AddQos { names: vec!["q1".into(), "pq".into()], edits: none() });
    change(
        &mut world,
        Change::AddAccounts { names: vec!["a1".into()], parent: "root".into(), edits: none(), clusters: Vec::new() },
    );
    change(
        &mut world,
        Change::AddAccounts { names: vec!["a11".into()], parent: "a1".into(), edits: none(), clusters: Vec::new() },
    );
    let edits = vec![both_qualities()];
    let names = vec!["ann".into(), "bob".into()];
    change(
        &mut world,
        Change::AddUsers { names, accounts: vec!["a11".into()], partitions: Vec::new(), edits, clusters: Vec::new() },
    );
    world
}

/// `-n3 -N1 -t 11 --mem=200 -p short`; -G: GPUs of each node, -L: licences
pub fn spec(text: &str, qos: &str) -> JobSpec {
    let mut spec = JobSpec { user: "ann".into(), qos: qos.into(), ..Default::default() };
    spec.size = Size { min_nodes: 1, ..Default::default() };
    for word in text.split_whitespace() {
        let number = || word[2..].parse::<u32>().unwrap();
        match word {
            _ if word.starts_with("-n") => spec.size.n_tasks = Some(number()),
            _ if word.starts_with("-N") => (spec.size.min_nodes, spec.size.max_nodes) = (number(), Some(number())),
            _ if word.starts_with("-t") => spec.time_limit = Some(TimeLimit::Secs(u64::from(number()) * 60)),
            _ if word.starts_with("-m") => spec.size.memory = Memory::PerNodeMb(number().into()),
            _ if word.starts_with("-G") => {
                spec.size.gres = vec![GresRequest { name: "gpu".into(), count: number(), ..Default::default() }]
            }
            _ if word.starts_with("-L") => spec.licenses = model::license::parse(&format!("a:{}", number())).unwrap(),
            _ if word.starts_with("-p") => spec.partitions = vec![word[2..].into()],
            _ => panic!("{word}"),
        }
    }
    spec
}

pub fn submit(world: &mut World, spec: JobSpec) -> Result<JobId, Reject> {
    let command = Command::Submit { spec: Box::new(spec), blobs: Vec::new() };
    let entry = Entry { at: world.now, by: Caller::SYSTEM, command };
    match state::apply(&mut world.cluster, &entry).reply {
        Ok(model::Reply::Submitted(id)) => Ok(id),
        Ok(other) => panic!("{other:?}"),
        Err(reject) => Err(reject),
    }
}

pub fn set(world: &mut World, level: &str, field: Field, value: &str) {
    let value = match value.parse() {
        Ok(count) => Value::Count(Some(count)),
        Err(_) => Value::Tres(model::accounts::tres::parse(value).unwrap()),
    };
    let edits = vec![Edit { field, value }];
    change(
        world,
        match level {
            "qos" => Change::ModifyQos { filter: filter("q1"), edits },
            "pq" => Change::ModifyQos { filter: filter("pq"), edits },
            "ann in a11" => {
                let filter = EntityFilter { accounts: ["a11".to_string()].into(), ..filter("ann") };
                Change::ModifyUsers { filter, edits }
            }
            "user" => Change::ModifyUsers { filter: filter("ann"), edits },
            account => Change::ModifyAccounts { filter: filter(account), edits },
        },
    );
}

/// What becomes of each job: `R`, the reason it waits for, or `!` and the reason it was refused for.
pub fn outcome(world: &mut World, qos: &str, jobs: &[&str]) -> String {
    let submitted: Vec<Result<JobId, Reject>> = jobs.iter().map(|job| submit(world, spec(job, qos))).collect();
    world.schedule();
    state::check::check(&world.cluster).unwrap();
    let word = |one: &Result<JobId, Reject>| match one {
        Err(Reject::Limit(reason)) => format!("!{reason}"),
        Err(other) => format!("!{other}"),
        Ok(id) => {
            let job = world.cluster.job(*id).unwrap();
            if job.holds_nodes() { "R".into() } else { job.reason.unwrap().to_string() }
        }
    };
    submitted.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Users may use these two.
pub fn both_qualities() -> Edit {
    let names = NamedValue::Set(["normal".to_string(), "q1".to_string()].into());
    Edit { field: Field::Qos, value: Value::Names(names) }
}

pub fn flag(world: &mut World, qos: &str, name: &str) {
    let flags = Value::Names(NamedValue::Set([name.to_string()].into()));
    change(world, Change::ModifyQos { filter: filter(qos), edits: vec![Edit { field: Field::Flags, value: flags }] });
}
