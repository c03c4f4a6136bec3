//! `sacctmgr list` of what is not an account: configuration, statistics, events, transactions, problems, runaway jobs.
use model::chronicle::{NodeEvent, Transaction};
use model::history::HistoryQuery;
use model::request::JobFilter;
use model::when::{self, Lean};
use model::{Timestamp, history};
use wire::Controller;

use self::wish::Wish;
use super::show::ClusterFacts;
use super::{Options, configuration};
use crate::output::print;
use crate::trouble::Trouble;
use crate::users::Names;
use crate::zone::Clock;

mod fields;
mod wish;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    Configuration,
    Event,
    Federation,
    Problem,
    Reservation,
    RunawayJobs,
    Stats,
    Transaction,
}

/// With as many letters as Slurm needs of each.
pub const RECORDS: &[(&str, usize, Record)] = &[
    ("configuration", 2, Record::Configuration),
    ("events", 1, Record::Event),
    ("federations", 3, Record::Federation),
    ("problems", 1, Record::Problem),
    ("reservations", 4, Record::Reservation),
    ("runawayjobs", 2, Record::RunawayJobs),
    ("stats", 2, Record::Stats),
    ("transactions", 1, Record::Transaction),
];

/// The answer's exit code.
pub async fn show(
    controller: &mut Controller,
    record: Record,
    words: &[String],
    facts: &ClusterFacts,
    options: &Options,
) -> Result<i32, Trouble> {
    let now = controller.configuration().await?.now;
    let clock = Clock::local(std::env::var("SLURM_TIME_FORMAT").ok().as_deref(), now);
    let wish = match Wish::read(record, words, &clock) {
        Ok(wish) => wish,
        Err(text) => {
            eprintln!("{text}");
            return Ok(1);
        }
    };
    let text = match record {
        Record::Configuration => Ok(configuration::text(&controller.configuration().await?, &clock)),
        Record::Stats => Ok(crate::sdiag::accounting(controller.diagnose().await?, &clock)),
        Record::Event => wish.table(record, options, events(controller, &wish, facts, &clock).await?),
        Record::Transaction => wish.table(record, options, transactions(controller, &wish, facts, &clock).await?),
        Record::Problem => wish.table(record, options, problems(controller, &wish, facts).await?),
        Record::Reservation => wish.table(record, options, reservations(controller, &wish, facts, &clock).await?),
        Record::RunawayJobs => return runaways(controller, &wish, facts, options, &clock).await,
        // There are none, and none can be added.
        Record::Federation => wish.table(record, options, Vec::new()),
    };
    match text {
        Ok(text) => {
            print(&text);
            Ok(0)
        }
        Err(field) => {
            eprintln!("Unknown field '{field}'");
            Ok(1)
        }
    }
}

type Cells = Vec<(&'static str, String)>;

/// By default those since yesterday's midnight, and all that last.
async fn events(
    controller: &mut Controller,
    wish: &Wish,
    facts: &ClusterFacts,
    clock: &Clock,
) -> Result<Vec<Cells>, Trouble> {
    let names = Names::default();
    let start = match (wish.all_time, wish.asks("states")) {
        (true, _) => Timestamp(0),
        (false, true) => wish.start.unwrap_or(clock.now()),
        (false, false) => wish.start.unwrap_or_else(|| yesterday(clock)),
    };
    let fits = |from: Timestamp, until: Option<Timestamp>| {
        until.is_none_or(|until| until >= start)
            && wish.end.is_none_or(|end| from <= end)
            && !(wish.only_open && until.is_some())
    };
    let is_wanted = |event: &&NodeEvent| {
        let user = names.user(event.by_uid);
        fits(event.from, event.until)
            && wish.wants_nodes([event.node.as_str()])
            && wish.wants("clusters", [facts.name.as_str()])
            && wish.wants("reason", [event.reason.as_str()])
            && wish.wants_state(event)
            && wish.wants_cpus(event.n_cpus.into())
            && wish.wants("user", [user.as_str()])
    };
    let chronicle = controller.chronicle().await?;
    let row = |event: &NodeEvent| -> Cells {
        let until = event.until.unwrap_or(clock.now());
        vec![
            ("Cluster", facts.name.clone()),
            ("CPUCount", event.n_cpus.to_string()),
            ("TRES", format!("cpu={},node=1", event.n_cpus)),
            ("Duration", model::duration::show((until - event.from).secs())),
            ("NodeNames", event.node.to_string()),
            ("TimeStart", clock.show(event.from)),
            ("TimeEnd", event.until.map_or("Unknown".into(), |until| clock.show(until))),
            ("State", event.state.clone()),
            ("StateRaw", raw_state(&event.state).to_string()),
            ("Reason", event.reason.clone()),
            ("User", format!("{}({})", names.user(event.by_uid), event.by_uid)),
            ("Event", "Node".into()),
            ("EventRaw", "2".into()),
        ]
    };
    let mut rows: Vec<Cells> = match wish.wants_events_of("node") {
        true => chronicle.events.iter().filter(is_wanted).map(row).collect(),
        false => Vec::new(),
    };
    // The cluster has had today's nodes since it was first heard of.
    let n_cpus = facts.amounts.iter().find(|(name, _)| *name == "cpu").map_or(0, |(_, amount)| *amount);
    let reason = "Cluster Registered TRES";
    let began = chronicle.began.filter(|began| {
        wish.wants_events_of("cluster")
            && fits(*began, None)
            && wish.wants("clusters", [facts.name.as_str()])
            && wish.wants("reason", [reason])
            && wish.wants_cpus(n_cpus)
    });
    if let Some(began) = began {
        let cells = vec![
            ("Cluster", facts.name.clone()),
            ("ClusterNodes", facts.nodes.clone()),
            ("CPUCount", n_cpus.to_string()),
            ("TRES", facts.tres.clone()),
            ("Duration", model::duration::show((clock.now() - began).secs())),
            ("TimeStart", clock.show(began)),
            ("TimeEnd", "Unknown".into()),
            ("StateRaw", "0".into()),
            ("Reason", reason.into()),
            ("Event", "Cluster".into()),
            ("EventRaw", "1".into()),
        ];
        rows.insert(0, cells);
    }
    Ok(rows)
}

fn yesterday(clock: &Clock) -> Timestamp {
    let now = clock.now().secs() as i64;
    let midnight = when::parse("midnight", now, clock, Lean::Past).unwrap_or(now);
    Timestamp::from_secs((midnight - 86_400).max(0) as u64)
}

/// The number that Slurm's accounting has for a state of a node, with its flags.
fn raw_state(state: &str) -> u32 {
    let one = |word: &str| match word {
        "DOWN" => 1,
        "IDLE" => 2,
        "ALLOCATED" => 3,
        "MIXED" => 5,
        "DRAIN" | "DRAINED" | "DRAINING" => 1 << 9,
        "FAIL" | "FAILING" => 1 << 12,
        _ => 0,
    };
    state.split(['+', '*']).map(one).fold(0, |all, bits| all | bits)
}

async fn transactions(
    controller: &mut Controller,
    wish: &Wish,
    facts: &ClusterFacts,
    clock: &Clock,
) -> Result<Vec<Cells>, Trouble> {
    let all = controller.chronicle().await?.transactions;
    let is_wanted = |one: &&Transaction| {
        let id = one.id.to_string();
        wish.start.is_none_or(|start| one.at >= start)
            && wish.end.is_none_or(|end| one.at <= end)
            && wish.wants("accounts", one.accounts.iter().map(String::as_str))
            && wish.wants("users", one.users.iter().map(String::as_str))
            && wish.wants("actors", [one.actor.as_str()])
            && wish.wants("actions", [one.action.as_str()])
            && wish.wants("ids", [id.as_str()])
            && wish.wants("clusters", [facts.shown(&one.cluster)])
    };
    let row = |one: &Transaction| -> Cells {
        vec![
            ("Time", clock.show(one.at)),
            ("Action", one.action.clone()),
            ("Actor", one.actor.clone()),
            ("Where", one.whom.clone()),
            ("Info", one.info.clone()),
            ("Accounts", one.accounts.join(",")),
            ("Clusters", one.cluster.clone()),
            ("ID", one.id.to_string()),
            ("Users", one.users.join(",")),
        ]
    };
    Ok(all.iter().filter(is_wanted).map(row).collect())
}

/// What an administrator may have forgotten.
async fn problems(controller: &mut Controller, wish: &Wish, facts: &ClusterFacts) -> Result<Vec<Cells>, Trouble> {
    let all = controller.accounts().await?;
    let mut rows: Vec<Cells> = Vec::new();
    for account in all.accounts.values() {
        let own = all.associations.values().find(|one| one.is_account() && one.account == account.name);
        let has_users = all
            .associations
            .values()
            .any(|one| !one.is_account() && all.lineage(one.id).any(|above| above.account == account.name));
        let (cluster, problem) = match (own, has_users) {
            (None, _) => (String::new(), "Account has no Associations"),
            (Some(own), false) => (facts.shown(&own.cluster).to_string(), "Account has no users"),
            (Some(_), true) => continue,
        };
        rows.push(vec![("Cluster", cluster), ("Account", account.name.clone()), ("Problem", problem.into())]);
    }
    for user in all.users.values() {
        if !all.associations.values().any(|one| one.user == user.name) {
            rows.push(vec![("User", user.name.clone()), ("Problem", "User has no Associations".into())]);
        }
        if crate::users::uid_of(&user.name).is_none() {
            rows.push(vec![("User", user.name.clone()), ("Problem", "User does not have a uid".into())]);
        }
    }
    let cell = |row: &Cells, of: &str| {
        row.iter().find(|(name, _)| *name == of).map_or(String::new(), |(_, text)| text.clone())
    };
    rows.retain(|row| {
        let is_asked = |key: &str, of: &str| wish.wants(key, [cell(row, of).as_str()]);
        // No problem is one of a partition.
        !wish.asks("partitions")
            && is_asked("clusters", "Cluster")
            && is_asked("accounts", "Account")
            && is_asked("users", "User")
    });
    Ok(rows)
}

/// By default those since yesterday's midnight: those that are there, and the times that others have had.
async fn reservations(
    controller: &mut Controller,
    wish: &Wish,
    facts: &ClusterFacts,
    clock: &Clock,
) -> Result<Vec<Cells>, Trouble> {
    let there = controller.reservations().await?;
    let chronicle = controller.chronicle().await?;
    // No reservation has a number here.
    if wish.asks("ids") || !wish.wants("clusters", [facts.name.as_str()]) {
        return Ok(Vec::new());
    }
    let start = wish.start.unwrap_or_else(|| yesterday(clock));
    let is_wanted = |name: &str, from: Timestamp, until: Option<Timestamp>| {
        until.is_none_or(|until| until >= start)
            && wish.end.is_none_or(|end| from <= end)
            && wish.wants("names", [name])
    };
    let row = |one: &model::Reservation| -> Cells {
        let flags: Vec<&str> = one.flags.iter().map(|flag| flag.word()).collect();
        vec![
            ("Cluster", facts.name.clone()),
            ("Name", one.name.clone()),
            ("Associations", [&one.accounts.names[..], &one.users.names[..]].concat().join(",")),
            ("Flags", flags.join(",")),
            ("TRES", format!("node={}", one.nodes.len())),
            ("NodeNames", model::hostlist::compress(one.nodes.iter().map(|node| node.as_str()))),
            ("TimeStart", clock.show(one.start)),
            ("TimeEnd", clock.show(one.end)),
        ]
    };
    let buffer = |one: &model::chronicle::BufferEvent| -> Cells {
        vec![
            ("Cluster", facts.name.clone()),
            ("Name", one.name.clone()),
            ("Associations", format!("{}/{}", one.account, one.user)),
            ("TRES", format!("bb/{}={}", one.plugin, model::size::show_megabytes(one.bytes >> 20))),
            ("TimeStart", clock.show(one.from)),
            ("TimeEnd", one.until.map_or("Unknown".into(), |until| clock.show(until))),
        ]
    };
    let has_nodes = |one: &&model::Reservation| wish.wants_nodes(one.nodes.iter().map(|node| node.as_str()));
    let reservations = chronicle.reservations.iter().chain(there.iter());
    let reservations = reservations.filter(|one| is_wanted(&one.name, one.start, Some(one.end))).filter(has_nodes);
    let buffers =
        chronicle.buffers.iter().filter(|one| !wish.asks("nodes") && is_wanted(&one.name, one.from, one.until));
    Ok(reservations.map(row).chain(buffers.map(buffer)).collect())
}

/// Jobs that history takes to be there, though the controller does not know them.
async fn runaways(
    controller: &mut Controller,
    wish: &Wish,
    facts: &ClusterFacts,
    options: &Options,
    clock: &Clock,
) -> Result<i32, Trouble> {
    let states = ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING"].map(str::to_string).to_vec();
    let query = HistoryQuery { states, ..HistoryQuery::default() };
    let mut found: Vec<history::RunHistory> = Vec::new();
    {
        let mut pages = controller.history(&query).await?;
        while let Some(page) = pages.next().await? {
            found.extend(page.runs);
        }
    }
    let known = controller.all_jobs(&JobFilter::default()).await?;
    found.retain(|run| run.job.ended.is_none() && !known.jobs.iter().any(|one| one.id == run.job.job));
    if found.is_empty() {
        print(&format!("Runaway Jobs: No runaway jobs found on cluster {}\n", facts.name));
        return Ok(0);
    }
    let row = |run: &history::RunHistory| -> Cells {
        let shown = |at: Option<Timestamp>| at.map_or("Unknown".into(), |at| clock.show(at));
        vec![
            ("ID", run.job.job.to_string()),
            ("Name", run.job.name.clone()),
            ("Partition", run.job.partition.clone()),
            ("Cluster", facts.name.clone()),
            ("State", run.job.state.to_string()),
            ("TimeSubmit", shown(Some(run.job.submitted))),
            ("TimeStart", shown(run.job.started)),
            ("TimeEnd", shown(None)),
        ]
    };
    match wish.table(Record::RunawayJobs, options, found.iter().map(row).collect()) {
        Ok(text) => {
            print(
                "NOTE: Runaway jobs are jobs that don't exist in the controller but have a start time and no end time in the database\n",
            );
            print(&text);
            eprintln!(
                "sacctmgr: history is written from the controller's own records; these rows come from another cluster or an older copy of the state and are left as they are"
            );
            Ok(0)
        }
        Err(field) => {
            eprintln!("Unknown field '{field}'");
            Ok(1)
        }
    }
}
