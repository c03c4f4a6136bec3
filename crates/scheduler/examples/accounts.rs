//! What accounts cost a pass: `cargo run --release -p scheduler --example accounts [associations] [jobs] [nodes] [repeats queue moment]`.
//! On a busy machine instructions say more than seconds (`profiled`): those of each queue and moment, over those of its like.
//! The same queue is planned with nothing enforced, with limits and fair-share, with limits of every user's own on resources, with limits of a
//! QOS on all, on each account, user and job, and with a tenth of the users at a limit of their own or of the QOS: all of it on an empty
//! cluster, when nothing is new, and after one job has ended, the same everywhere. Jobs have priorities of their own, so that all queues
//! stand in the same order: what is found to be full, and when, makes more of a difference than any limit. All are copies of one cluster:
//! two that were filled one after the other lie otherwise in memory, which alone makes up to 28 %. How many jobs each plan starts is told:
//! where that differs, the plans did not do the same work. Where limits keep jobs back others start instead, and a pass looks further down
//! the queue: such a plan is compared with one in which nothing is enforced and the jobs that are kept back are not there.
#![allow(clippy::disallowed_types, reason = "measures time; not part of the scheduler")]
use std::time::Duration;

use model::accounts::{Change, Edit, EntityFilter, Field, Value};
use model::config::{Enforce, NamedNode};
use model::node::NodeConfig;
use model::priority::PriorityKind;
use model::spec::{JobSpec, Memory, Size, TimeLimit};
use model::{Caller, Command, Config, Entry, JobId, Partition, Plan, Timestamp};
use state::{Cluster, apply};

use self::support::on_cpu;

mod support;

const USERS_IN_AN_ACCOUNT: u32 = 99;
const N_TURNS: u32 = 25;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>().expect("a number"));
    let n_associations = arguments.next().unwrap_or(10_000);
    let n_jobs = arguments.next().unwrap_or(100_000);
    let n_nodes = arguments.next().unwrap_or(1_000);
    // For a profile: so many more plans of each kind, of one queue.
    let n_repeats = arguments.next().unwrap_or(0);
    let queue = arguments.next().unwrap_or(1) as usize;
    let moment = arguments.next();
    let repeat = |clusters: &[Cluster; N], at: u32| {
        let n_repeats = if moment.is_none_or(|moment| moment == at) { n_repeats } else { 0 };
        (0..n_repeats).for_each(|_| profiled(&clusters[queue]));
    };
    // All else is left out then.
    let n_turns = if moment.is_some() { 0 } else { N_TURNS };
    let n_accounts = (n_associations / (USERS_IN_AN_ACCOUNT + 1)).max(1);
    println!("{n_associations} associations, {n_jobs} jobs, {n_nodes} nodes of 64 CPUs");
    if moment.is_none() {
        count(n_nodes, n_accounts);
    }
    let mut full = filled(n_nodes, n_jobs, n_accounts);
    let mut plain = full.clone();
    configure(&mut plain, Enforce::NOTHING, 0);
    let all = || (0..n_accounts * USERS_IN_AN_ACCOUNT).map(user);
    let with = |names: Vec<String>, edits: Vec<Edit>| {
        let mut changed = full.clone();
        let filter = EntityFilter { names: names.into_iter().collect(), ..Default::default() };
        change(&mut changed, Change::ModifyUsers { filter, edits });
        let enforce = changed.config().accounting.enforce;
        configure(&mut changed, enforce, 1001);
        changed
    };
    let tres =
        |field, text: &str| Edit { field, value: Value::Tres(model::accounts::tres::parse(text).expect("amounts")) };
    let own =
        with(all().collect(), vec![tres(Field::GrpTres, "cpu=60000,mem=200000G"), tres(Field::MaxTres, "cpu=1000")]);
    // The others' jobs pass theirs.
    let at_limit = vec![Edit { field: Field::MaxJobs, value: Value::Count(Some(1)) }];
    let limited = with(all().step_by(10).collect(), at_limit);
    let in_qos = |edits: Vec<Edit>| {
        let mut changed = full.clone();
        let filter = EntityFilter { names: ["normal".into()].into(), ..Default::default() };
        change(&mut changed, Change::ModifyQos { filter, edits });
        let enforce = changed.config().accounting.enforce;
        configure(&mut changed, enforce, 1001);
        changed
    };
    let count = |field, most| Edit { field, value: Value::Count(Some(most)) };
    let wide = vec![
        tres(Field::GrpTres, "cpu=60000000"),
        count(Field::MaxJobs, 1_000_000),
        tres(Field::MaxTresUser, "cpu=600000,mem=2000000G"),
        tres(Field::MaxTresAccount, "cpu=600000"),
        tres(Field::MaxTres, "cpu=1000"),
        count(Field::MaxWall, 100_000),
    ];
    let qos = in_qos(wide);
    // About a tenth of what may start otherwise is kept back.
    let qos_limited = in_qos(vec![count(Field::MaxJobs, 1)]);

    let begin = on_cpu();
    let standing = full.standing(Timestamp::from_secs(100));
    println!("{:50} {:>10.2?}", "the fair tree, once a calc_period", on_cpu() - begin);
    assert!(standing.associations.len() as u32 >= n_accounts);

    let enforce = full.config().accounting.enforce;
    configure(&mut full, enforce, 1001);
    let without_tenth = only_first_jobs(&plain, |who| who % 10 == 0);
    let without_others = only_first_jobs(&plain, |_| true);
    let clusters = [plain, full, own, qos, limited, qos_limited, without_tenth, without_others];
    compare("a full plan of the empty cluster", clusters.each_ref(), n_turns);
    repeat(&clusters, 0);
    // The same jobs run everywhere, so that all find the same room: those that both of the last may start, which the others may too.
    let mut starts = scheduler::plan(&clusters[LIMITED]).starts;
    for other in [LIMITED + 1, LIMITED + 2, LIMITED + 3] {
        let other = scheduler::plan(&clusters[other]).starts;
        starts.retain(|start| other.contains(start));
    }
    let known = clusters.map(|mut cluster| {
        run(&mut cluster, Command::AdoptPlan(Plan { starts: starts.clone(), ..Default::default() }));
        let rest = scheduler::plan(&cluster);
        run(&mut cluster, Command::AdoptPlan(rest));
        cluster
    });
    let held = |cluster: &Cluster| cluster.jobs().map(|job| u64::from(job.held().n_cpus)).sum::<u64>();
    println!("CPUs that are held: {:?} of {}", known.each_ref().map(held), n_nodes * 64);
    compare("nothing new", known.each_ref(), n_turns);
    repeat(&known, 1);
    let runs = |cluster: &Cluster, id| cluster.job(id).is_some_and(|job| job.holds_nodes());
    let runs_everywhere = |id: &JobId| known.iter().all(|cluster| runs(cluster, *id));
    // Of somebody who has no other job to start.
    let is_free = |job: &&std::sync::Arc<model::Job>| !(job.spec.uid - FIRST_UID).is_multiple_of(10);
    let ends = known[0].jobs().filter(is_free).map(|job| job.id).find(runs_everywhere).expect("some job does");
    let after = known.map(|mut cluster| {
        end(&mut cluster, ends);
        cluster
    });
    compare("after one job has ended", after.each_ref(), n_turns);
    repeat(&after, 2);
}

/// What a profile looks at: `valgrind --tool=callgrind --toggle-collect='*profiled*' …`.
#[inline(never)]
fn profiled(cluster: &Cluster) {
    drop(std::hint::black_box(scheduler::plan(cluster)));
}

/// What counting costs the state: the same jobs submitted, started and ended where there are no accounts, and where there are.
fn count(n_nodes: u32, n_accounts: u32) {
    const N_JOBS: u32 = 20_000;
    for has_accounts in [false, true] {
        let mut cluster = cluster(n_nodes);
        if has_accounts {
            tree(&mut cluster, n_accounts);
        } else {
            configure(&mut cluster, Enforce::NOTHING, 0);
        }
        let begin = on_cpu();
        fill(&mut cluster, N_JOBS, n_accounts);
        let submitted = on_cpu();
        let starts = scheduler::plan(&cluster).starts;
        let n_starts = starts.len() as u32;
        let ids: Vec<JobId> = starts.iter().map(|start| start.job).collect();
        let planned = on_cpu();
        run(&mut cluster, Command::AdoptPlan(Plan { starts, ..Default::default() }));
        let started = on_cpu();
        ids.into_iter().for_each(|id| end(&mut cluster, id));
        let ended = on_cpu();
        let what = if has_accounts { "with accounts" } else { "without" };
        println!(
            "{what:16} a submission {:.2?}, a start {:.2?}, an end (two entries) {:.2?}",
            (submitted - begin) / N_JOBS,
            (started - planned) / n_starts,
            (ended - started) / n_starts,
        );
    }
}

/// All of them have been given another configuration once, so that what this makes anew lies alike.
fn configure(cluster: &mut Cluster, enforce: Enforce, weight_fair_share: u32) {
    let mut config = (**cluster.config()).clone();
    config.accounting.enforce = enforce;
    config.scheduler.priority.weight_fair_share = weight_fair_share;
    run(cluster, Command::Reconfigure { config: Box::new(config) });
}

fn filled(n_nodes: u32, n_jobs: u32, n_accounts: u32) -> Cluster {
    let mut cluster = cluster(n_nodes);
    tree(&mut cluster, n_accounts);
    let begin = on_cpu();
    fill(&mut cluster, n_jobs, n_accounts);
    println!("{:50} {:>10.2?} each", "submission, limits and fair-share", (on_cpu() - begin) / n_jobs);
    cluster
}

/// Without the jobs that a limit of one job would keep back: of each of these users the first in the queue stays.
fn only_first_jobs(cluster: &Cluster, is_limited: impl Fn(u32) -> bool) -> Cluster {
    let mut changed = cluster.clone();
    let mut seen = std::collections::BTreeSet::new();
    let kept_back =
        |uid: u32, seen: &mut std::collections::BTreeSet<u32>| is_limited(uid - FIRST_UID) && !seen.insert(uid);
    let gone: Vec<model::JobRef> =
        cluster.queue().filter(|job| kept_back(job.spec.uid, &mut seen)).map(|job| job.id.into()).collect();
    run(&mut changed, Command::Cancel { jobs: gone, hurry: false });
    changed
}

const FIRST_UID: u32 = 1000;
const N: usize = 8;
const LIMITED: usize = 4;
/// What limits and fair-share may cost a plan, in hundredths of it.
const MOST_PERCENT: f64 = 10.0;
const QUEUES: [&str; N] = [
    "  nothing enforced",
    "  limits and fair-share",
    "  the same, users with limits on resources",
    "  the same, a QOS with limits",
    "  limits and fair-share, a tenth of users at one",
    "  one job a user by the QOS",
    "  nothing enforced, without what the tenth may not",
    "  nothing enforced, without all but first jobs",
];

/// With which each is compared.
const LIKE: [usize; N] = [0, 0, 0, 0, 6, 7, 6, 7];

/// In turns, so that what disturbs one measurement disturbs the others too; the least of each counts.
fn compare(what: &str, clusters: [&Cluster; N], n_turns: u32) {
    if n_turns == 0 {
        return;
    }
    let mut above = Vec::new();
    let mut least = [Duration::MAX; N];
    let mut n_starts = [0; N];
    for _ in 0..n_turns {
        for (at, cluster) in clusters.iter().enumerate() {
            // What the one before has left behind, in caches and in the heap, is not this one's matter.
            drop(scheduler::plan(cluster));
            let begin = on_cpu();
            let plan = scheduler::plan(cluster);
            least[at] = least[at].min(on_cpu() - begin);
            n_starts[at] = plan.starts.len();
        }
    }
    println!("{what}");
    for (at, name) in QUEUES.iter().enumerate() {
        let more = (least[at].as_secs_f64() / least[LIKE[at]].as_secs_f64() - 1.0) * 100.0;
        println!("{name:50} {:>10.2?}  {more:+6.1} %  {} started", least[at], n_starts[at]);
        if (1..=LIMITED).contains(&at) && more > MOST_PERCENT {
            above.push(name.trim());
        }
    }
    match above.is_empty() {
        true => println!("=> at most {MOST_PERCENT} % more: met"),
        false => println!("=> at most {MOST_PERCENT} % more: not met by {above:?}"),
    }
}

fn end(cluster: &mut Cluster, job: JobId) {
    run(cluster, Command::Cancel { jobs: vec![job.into()], hurry: false });
    let duty = cluster.duty(&model::Owner::Job(job)).expect("its processes are ended").clone();
    run(cluster, Command::DutyDone { duty, result: model::command::DutyResult::Done });
}

fn user(number: u32) -> String {
    format!("user{number}")
}

fn account(number: u32) -> String {
    format!("account{number}")
}

fn run(cluster: &mut Cluster, command: Command) {
    let entry = Entry { at: Timestamp::from_secs(1), by: Caller::SYSTEM, command };
    apply(cluster, &entry).reply.expect("the command is accepted");
}

fn change(cluster: &mut Cluster, change: Change) {
    run(cluster, Command::ChangeAccounts { change: Box::new(change), by_name: "root".into() });
}

fn cluster(n_nodes: u32) -> Cluster {
    let config = NodeConfig { cpus: 64, memory_mb: 256_000, ..Default::default() };
    let names: Vec<model::NodeName> = (1..=n_nodes).map(|number| format!("n{number}").into()).collect();
    let nodes = names.iter().map(|name| NamedNode { name: name.clone(), config: config.clone() }).collect();
    let partition = Partition { name: "all".into(), nodes: names.clone(), is_default: true, ..Default::default() };
    let mut config = Config { nodes, partitions: vec![partition], ..Default::default() };
    config.scheduler.depth = u32::MAX;
    config.accounting.enforce = Enforce::parse("associations,limits,qos").expect("words");
    config.scheduler.priority.kind = PriorityKind::Multifactor;
    config.scheduler.priority.weight_job_size = 100;
    config.scheduler.priority.weight_fair_share = 1000;
    let mut cluster = Cluster::of_today();
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
            uid: FIRST_UID + who,
            user: user(who),
            account: account(who / USERS_IN_AN_ACCOUNT),
            size: Size {
                min_nodes: 1 + number % 4,
                n_tasks: Some(4 + number % 13),
                cpus_per_task: Some(1 + number % 3),
                memory: Memory::PerCpuMb(1000 + u64::from(number % 7)),
                ..Default::default()
            },
            priority: Some(1 + (number.wrapping_mul(0x9e37_79b1) >> 8)),
            time_limit: Some(TimeLimit::Secs(60 * (10 + u64::from(number.wrapping_mul(2_654_435_761) % 600)))),
            ..Default::default()
        };
        run(cluster, Command::Submit { spec: Box::new(spec), blobs: Vec::new() });
    }
}
