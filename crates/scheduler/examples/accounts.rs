//! What accounts cost a pass: `cargo run --release -p scheduler --example accounts [associations] [jobs] [nodes] [repeats queue moment]`.
//! The same queue is planned with nothing enforced, with limits and fair-share, with limits of every user's own on resources, with limits of a
//! QOS on all, on each account, user and job, and with a tenth of the users at a limit of their own or of the QOS: all of it on an empty
//! cluster, when nothing is new, and after one job has ended, the same everywhere. Jobs have priorities of their own, so that all queues
//! stand in the same order: what is found to be full, and when, makes more of a difference than any limit. How many jobs each plan starts
//! is told: where that differs, the plans did not do the same work. Where limits keep jobs back others start instead, and a pass looks
//! further down the queue: such a plan is compared with one in which nothing is enforced and the jobs that are kept back are not there.
//!
//! Where in memory a cluster lies makes up to 28 %, more than any limit. So all are copies of one cluster, and they are made anew in each
//! round, every time in another order; of the rounds' figures the one in the middle counts.
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
/// How often each plan is made in a round; the least time counts.
const N_TURNS: u32 = 9;
const N_ROUNDS: usize = 9;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>().expect("a number"));
    let n_associations = arguments.next().unwrap_or(10_000);
    let n_jobs = arguments.next().unwrap_or(100_000);
    let n_nodes = arguments.next().unwrap_or(1_000);
    let n_accounts = (n_associations / (USERS_IN_AN_ACCOUNT + 1)).max(1);
    println!("{n_associations} associations, {n_jobs} jobs, {n_nodes} nodes of 64 CPUs");
    // So many plans of one queue at one moment and nothing else, for a profile.
    if let Some(n_repeats) = arguments.next() {
        let queue = arguments.next().unwrap_or(1) as usize;
        let moment = arguments.next().unwrap_or(0) as usize;
        let base = filled(n_nodes, n_jobs, n_accounts);
        let at_moments = |at: usize, clusters: &[Cluster; N]| {
            (0..n_repeats).filter(|_| at == moment).for_each(|_| profiled(&clusters[queue]));
        };
        return round(&base, n_accounts, 0, at_moments);
    }
    count(n_nodes, n_accounts);
    let base = filled(n_nodes, n_jobs, n_accounts);
    let begin = on_cpu();
    let standing = base.standing(Timestamp::from_secs(100));
    println!("{:50} {:>10.2?}", "the fair tree, once a calc_period", on_cpu() - begin);
    assert!(standing.associations.len() as u32 >= n_accounts);
    let mut measured: [Vec<[Measured; N]>; MOMENTS.len()] = Default::default();
    for number in 0..N_ROUNDS {
        round(&base, n_accounts, number, |at, clusters| measured[at].push(measure(clusters)));
    }
    MOMENTS.iter().zip(&measured).for_each(|(moment, rounds)| report(moment, rounds));
}

/// Brings all queues from moment to moment.
fn round(base: &Cluster, n_accounts: u32, number: usize, mut at_moment: impl FnMut(usize, &[Cluster; N])) {
    let clusters = in_turn(number, |queue| queue_of(queue, base, n_accounts));
    at_moment(0, &clusters);
    // The same jobs run everywhere, so that all find the same room: those that both of the last may start, which the others may too.
    let mut starts = scheduler::plan(&clusters[LIMITED]).starts;
    for other in [LIMITED + 1, LIMITED + 2, LIMITED + 3] {
        let other = scheduler::plan(&clusters[other]).starts;
        starts.retain(|start| other.contains(start));
    }
    let known = in_turn(number, |queue| {
        let mut cluster = clusters[queue].clone();
        run(&mut cluster, Command::AdoptPlan(Plan { starts: starts.clone(), ..Default::default() }));
        let rest = scheduler::plan(&cluster);
        run(&mut cluster, Command::AdoptPlan(rest));
        cluster
    });
    drop(clusters);
    at_moment(1, &known);
    let runs = |cluster: &Cluster, id| cluster.job(id).is_some_and(|job| job.holds_nodes());
    let runs_everywhere = |id: &JobId| known.iter().all(|cluster| runs(cluster, *id));
    // Of somebody who has no other job to start.
    let is_free = |job: &&std::sync::Arc<model::Job>| !(job.spec.uid - FIRST_UID).is_multiple_of(10);
    let ends = known[0].jobs().filter(is_free).map(|job| job.id).find(runs_everywhere).expect("some job does");
    let after = known.map(|mut cluster| {
        end(&mut cluster, ends);
        cluster
    });
    at_moment(2, &after);
}

/// Something of each queue, in another order in each round.
fn in_turn(round: usize, mut make: impl FnMut(usize) -> Cluster) -> [Cluster; N] {
    let mut made = [const { None }; N];
    for step in 0..N {
        let queue = if round.is_multiple_of(2) { step + round } else { N + round - step } % N;
        made[queue] = Some(make(queue));
    }
    made.map(|cluster| cluster.expect("each has its turn"))
}

/// The queue, as `QUEUES` says, of a copy.
fn queue_of(number: usize, base: &Cluster, n_accounts: u32) -> Cluster {
    let mut cluster = base.clone();
    let users = || (0..n_accounts * USERS_IN_AN_ACCOUNT).map(user);
    let tres =
        |field, text: &str| Edit { field, value: Value::Tres(model::accounts::tres::parse(text).expect("amounts")) };
    let count = |field, most| Edit { field, value: Value::Count(Some(most)) };
    let mut of_users = |names: Vec<String>, edits: Vec<Edit>| {
        let filter = EntityFilter { names: names.into_iter().collect(), ..Default::default() };
        change(&mut cluster, Change::ModifyUsers { filter, edits });
    };
    match number {
        2 => {
            let own = vec![tres(Field::GrpTres, "cpu=60000,mem=200000G"), tres(Field::MaxTres, "cpu=1000")];
            of_users(users().collect(), own);
        }
        // The others' jobs pass theirs.
        LIMITED => of_users(users().step_by(10).collect(), vec![count(Field::MaxJobs, 1)]),
        _ => (),
    }
    let of_qos = match number {
        3 => vec![
            tres(Field::GrpTres, "cpu=60000000"),
            count(Field::MaxJobs, 1_000_000),
            tres(Field::MaxTresUser, "cpu=600000,mem=2000000G"),
            tres(Field::MaxTresAccount, "cpu=600000"),
            tres(Field::MaxTres, "cpu=1000"),
            count(Field::MaxWall, 100_000),
        ],
        // About a tenth of what may start otherwise is kept back.
        5 => vec![count(Field::MaxJobs, 1)],
        _ => Vec::new(),
    };
    if !of_qos.is_empty() {
        let filter = EntityFilter { names: ["normal".into()].into(), ..Default::default() };
        change(&mut cluster, Change::ModifyQos { filter, edits: of_qos });
    }
    let (enforce, weight) = match LIKE[number] == number {
        true => (Enforce::NOTHING, 0),
        false => (cluster.config().accounting.enforce, 1001),
    };
    configure(&mut cluster, enforce, weight);
    match number {
        6 => only_first_jobs(&mut cluster, |who| who % 10 == 0),
        7 => only_first_jobs(&mut cluster, |_| true),
        _ => (),
    }
    cluster
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
fn only_first_jobs(cluster: &mut Cluster, is_limited: impl Fn(u32) -> bool) {
    let mut seen = std::collections::BTreeSet::new();
    let kept_back =
        |uid: u32, seen: &mut std::collections::BTreeSet<u32>| is_limited(uid - FIRST_UID) && !seen.insert(uid);
    let gone: Vec<model::JobRef> =
        cluster.queue().filter(|job| kept_back(job.spec.uid, &mut seen)).map(|job| job.id.into()).collect();
    run(cluster, Command::Cancel { jobs: gone, hurry: false });
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

const MOMENTS: [&str; 3] = ["a full plan of the empty cluster", "nothing new", "after one job has ended"];

#[derive(Clone, Copy, Default)]
struct Measured {
    least: Duration,
    n_starts: usize,
    n_held: u64,
}

/// In turns, so that what disturbs one disturbs the others too.
fn measure(clusters: &[Cluster; N]) -> [Measured; N] {
    let mut measured = [Measured { least: Duration::MAX, ..Default::default() }; N];
    for _ in 0..N_TURNS {
        for (cluster, one) in clusters.iter().zip(&mut measured) {
            // What the one before has left behind, in caches and in the heap, is not this one's matter.
            drop(scheduler::plan(cluster));
            let begin = on_cpu();
            let plan = scheduler::plan(cluster);
            one.least = one.least.min(on_cpu() - begin);
            one.n_starts = plan.starts.len();
        }
    }
    for (cluster, one) in clusters.iter().zip(&mut measured) {
        one.n_held = cluster.jobs().map(|job| u64::from(job.held().n_cpus)).sum();
    }
    measured
}

fn report(moment: &str, rounds: &[[Measured; N]]) {
    println!("{moment}: the middle of {} rounds, and half of them", rounds.len());
    let mut above = Vec::new();
    for (at, name) in QUEUES.iter().enumerate() {
        let mut times: Vec<Duration> = rounds.iter().map(|round| round[at].least).collect();
        times.sort_unstable();
        let percent =
            |round: &[Measured; N]| (round[at].least.as_secs_f64() / round[LIKE[at]].least.as_secs_f64() - 1.0) * 100.0;
        let mut more: Vec<f64> = rounds.iter().map(percent).collect();
        more.sort_unstable_by(f64::total_cmp);
        let (quarter, middle) = (rounds.len() / 4, rounds.len() / 2);
        println!(
            "{name:50} {:>10.2?}  {:+6.1} %  ({:+.1} to {:+.1})  {} started, {} CPUs held",
            times[middle],
            more[middle],
            more[quarter],
            more[rounds.len() - 1 - quarter],
            rounds[0][at].n_starts,
            rounds[0][at].n_held,
        );
        if (1..=LIMITED).contains(&at) && more[middle] > MOST_PERCENT {
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
