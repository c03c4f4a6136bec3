//! `sacctmgr list` of what is not an account: configuration, statistics, events, transactions, problems, runaway jobs.
use model::chronicle::{NodeEvent, Transaction};
use model::history::HistoryQuery;
use model::request::JobFilter;
use model::when::{self, Lean};
use model::{Timestamp, history};
use wire::Controller;

use super::show::ClusterFacts;
use super::{Options, configuration};
use crate::accounting;
use crate::output::print;
use crate::table::{Column, Table};
use crate::trouble::Trouble;
use crate::users::Names;
use crate::zone::Clock;

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
        Record::Transaction => wish.table(record, options, transactions(controller, &wish, &clock).await?),
        Record::Problem => wish.table(record, options, problems(controller, facts).await?),
        Record::Reservation => wish.table(record, options, reservations(controller, facts, &clock).await?),
        Record::RunawayJobs => return runaways(controller, &wish, facts, options, &clock).await,
        // There are none, and none can be added.
        Record::Federation => wish.table(record, options, Ok(Vec::new())),
    };
    match text {
        Ok(text) => {
            print(&text);
            Ok(0)
        }
        Err(field) => {
            eprintln!(" Unknown field '{field}'");
            Ok(1)
        }
    }
}

type Cells = Vec<(&'static str, String)>;

/// Columns: name, title, width, whether it is shown unasked.
type Field = (&'static str, &'static str, i32, bool);

const EVENT: &[Field] = &[
    ("Cluster", "Cluster", 10, true),
    ("ClusterNodes", "Cluster Nodes", 20, false),
    ("CPUCount", "CPUs", 7, false),
    ("Duration", "Duration", 13, false),
    ("NodeName", "NodeName", -15, true),
    ("TimeStart", "TimeStart", 19, true),
    ("Start", "TimeStart", 19, false),
    ("TimeEnd", "TimeEnd", 19, true),
    ("End", "TimeEnd", 19, false),
    ("State", "State", 6, true),
    ("Reason", "Reason", 30, true),
    ("User", "User", 10, true),
    ("Event", "Event", 7, false),
    ("TRES", "TRES", 20, false),
];
const TRANSACTION: &[Field] = &[
    ("Time", "Time", 19, true),
    ("TimeStamp", "Time", 19, false),
    ("Action", "Action", 20, true),
    ("Actor", "Actor", 10, true),
    ("Where", "Where", 20, true),
    ("Info", "Info", 20, true),
    ("Accounts", "Accounts", 20, false),
    ("Clusters", "Clusters", 20, false),
    ("ID", "ID", 6, false),
    ("Users", "Users", 20, false),
];
const PROBLEM: &[Field] = &[
    ("Cluster", "Cluster", 10, true),
    ("Account", "Account", 10, true),
    ("User", "User", 10, true),
    ("Problem", "Problem", 40, true),
];
const RESERVATION: &[Field] = &[
    ("Cluster", "Cluster", 10, true),
    ("Name", "Name", 15, true),
    ("Assocs", "Assocs", 10, false),
    ("Flags", "Flags", 20, false),
    ("NodeNames", "NodeNames", 20, false),
    ("TRES", "TRES", 30, true),
    ("TimeStart", "TimeStart", 19, true),
    ("TimeEnd", "TimeEnd", 19, true),
    ("UnusedWall", "UnusedWall", 10, true),
];
const FEDERATION: &[Field] = &[
    ("Federation", "Federation", 10, true),
    ("Name", "Federation", 10, false),
    ("Cluster", "Cluster", 10, true),
    ("ID", "ID", 2, true),
    ("Features", "Features", 20, true),
    ("FedState", "FedState", 12, true),
];
const RUNAWAY: &[Field] = &[
    ("ID", "ID", 12, true),
    ("Name", "Name", 10, true),
    ("Partition", "Partition", 10, true),
    ("Cluster", "Cluster", 10, true),
    ("State", "State", 10, true),
    ("TimeSubmit", "TimeSubmit", 19, true),
    ("TimeStart", "TimeStart", 19, true),
    ("TimeEnd", "TimeEnd", 19, true),
];

fn fields(record: Record) -> &'static [Field] {
    match record {
        Record::Event => EVENT,
        Record::Transaction => TRANSACTION,
        Record::Problem => PROBLEM,
        Record::Reservation => RESERVATION,
        Record::Federation => FEDERATION,
        Record::RunawayJobs => RUNAWAY,
        Record::Configuration | Record::Stats => &[],
    }
}

/// Which lines are wanted, and how.
#[derive(Default)]
struct Wish {
    format: Option<String>,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    all_time: bool,
    conditions: Vec<(&'static str, Vec<String>)>,
}

/// Which conditions each has, with as many letters as are needed.
fn conditions(record: Record) -> &'static [(&'static str, usize)] {
    match record {
        Record::Event => &[("clusters", 2), ("nodes", 1), ("reason", 1), ("states", 4), ("user", 1)],
        Record::Transaction => {
            &[("accounts", 4), ("actions", 4), ("actors", 4), ("clusters", 3), ("ids", 1), ("users", 1)]
        }
        Record::Reservation => &[("clusters", 1), ("names", 2), ("nodes", 2), ("ids", 1)],
        Record::RunawayJobs | Record::Problem => &[("clusters", 1)],
        Record::Federation => &[("names", 1)],
        Record::Configuration | Record::Stats => &[],
    }
}

impl Wish {
    fn read(record: Record, words: &[String], clock: &Clock) -> Result<Wish, String> {
        let mut wish = Wish::default();
        for word in words {
            let lower = word.to_lowercase();
            if matches!(lower.as_str(), "where" | "tree" | "withclusters" | "withassoc" | "all_clusters") {
                continue;
            }
            if lower == "all_time" {
                wish.all_time = true;
                continue;
            }
            let (key, value) = word.split_once('=').unwrap_or(("names", word.as_str()));
            let value = value.trim_matches(['"', '\'']);
            let key = key.to_lowercase();
            let begins = |of: &str, least: usize| key.len() >= least && of.starts_with(&key);
            let moment = || {
                let now = clock.now().secs() as i64;
                let found =
                    when::parse(value, now, clock, Lean::Past).map(|secs| Timestamp::from_secs(secs.max(0) as u64));
                found.ok_or_else(|| format!(" Bad time: {word}"))
            };
            let timed = matches!(record, Record::Event | Record::Transaction | Record::Reservation);
            let condition = conditions(record).iter().find(|(name, least)| begins(name, *least));
            match condition {
                _ if begins("format", 1) => wish.format = Some(value.to_string()),
                _ if timed && begins("start", 3) => wish.start = Some(moment()?),
                _ if timed && begins("end", 1) => wish.end = Some(moment()?),
                Some((name, _)) => {
                    let values = value.split(',').map(|one| one.trim().to_lowercase()).filter(|one| !one.is_empty());
                    wish.conditions.push((name, values.collect()));
                }
                None => return Err(format!(" Unknown condition: {word}")),
            }
        }
        Ok(wish)
    }

    /// Whether what is asked of `key` is among these.
    fn wants<'a>(&self, key: &str, values: impl IntoIterator<Item = &'a str> + Clone) -> bool {
        let fits = |wanted: &Vec<String>| {
            values.clone().into_iter().any(|value| wanted.iter().any(|one| value.eq_ignore_ascii_case(one)))
        };
        self.conditions.iter().filter(|(name, _)| *name == key).all(|(_, wanted)| fits(wanted))
    }

    fn table(&self, record: Record, options: &Options, rows: Result<Vec<Cells>, String>) -> Result<String, String> {
        let rows = rows?;
        let fields = fields(record);
        let usual = || fields.iter().filter(|field| field.3).map(|field| field.0).collect::<Vec<_>>().join(",");
        let format = self.format.clone().unwrap_or_else(usual);
        let chosen = accounting::chosen(fields, &format, |field| field.0, |field| (field.1, field.2))?;
        let (chosen, columns): (Vec<&Field>, Vec<Column>) = chosen.into_iter().unzip();
        let table = Table { columns, style: options.style.clone() };
        let mut text = String::new();
        if options.has_heading {
            table.heading(&mut text);
        }
        for row in rows {
            // Two names of one column have one title.
            let cell = |field: &Field| {
                let of = |name: &str| fields.iter().any(|one| one.0 == name && one.1 == field.1);
                row.iter().find(|(name, _)| of(name)).map_or("", |(_, text)| text.as_str())
            };
            table.row(chosen.iter().map(|field| cell(field)), &mut text);
        }
        Ok(text)
    }
}

/// By default those of the last day that touch it, and all that last.
async fn events(
    controller: &mut Controller,
    wish: &Wish,
    facts: &ClusterFacts,
    clock: &Clock,
) -> Result<Result<Vec<Cells>, String>, Trouble> {
    let names = Names::default();
    let yesterday = Timestamp::from_secs(clock.now().secs().saturating_sub(86_400));
    let start = if wish.all_time { Timestamp(0) } else { wish.start.unwrap_or(yesterday) };
    let is_wanted = |event: &&NodeEvent| {
        let user = names.user(event.by_uid);
        event.until.is_none_or(|until| until >= start)
            && wish.end.is_none_or(|end| event.from <= end)
            && wish.wants("nodes", [event.node.as_str()])
            && wish.wants("clusters", [facts.name.as_str()])
            && wish.wants("reason", [event.reason.as_str()])
            && wish.wants("states", event.state.split(['+', '*']))
            && wish.wants("user", [user.as_str()])
    };
    let all = controller.chronicle().await?.events;
    let row = |event: &NodeEvent| -> Cells {
        let until = event.until.unwrap_or(clock.now());
        vec![
            ("Cluster", facts.name.clone()),
            ("CPUCount", event.n_cpus.to_string()),
            ("TRES", format!("cpu={},node=1", event.n_cpus)),
            ("Duration", model::duration::show((until - event.from).secs())),
            ("NodeName", event.node.to_string()),
            ("TimeStart", clock.show(event.from)),
            ("TimeEnd", event.until.map_or("Unknown".into(), |until| clock.show(until))),
            ("State", event.state.clone()),
            ("Reason", event.reason.clone()),
            ("User", format!("{}({})", names.user(event.by_uid), event.by_uid)),
            ("Event", "Node".into()),
        ]
    };
    Ok(Ok(all.iter().filter(is_wanted).map(row).collect()))
}

async fn transactions(
    controller: &mut Controller,
    wish: &Wish,
    clock: &Clock,
) -> Result<Result<Vec<Cells>, String>, Trouble> {
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
    Ok(Ok(all.iter().filter(is_wanted).map(row).collect()))
}

/// What an administrator may have forgotten.
async fn problems(controller: &mut Controller, facts: &ClusterFacts) -> Result<Result<Vec<Cells>, String>, Trouble> {
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
    Ok(Ok(rows))
}

async fn reservations(
    controller: &mut Controller,
    facts: &ClusterFacts,
    clock: &Clock,
) -> Result<Result<Vec<Cells>, String>, Trouble> {
    let list = controller.reservations().await?;
    let row = |one: &model::Reservation| -> Cells {
        vec![
            ("Cluster", facts.name.clone()),
            ("Name", one.name.clone()),
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
            ("Assocs", format!("{}/{}", one.account, one.user)),
            ("TRES", format!("bb/{}={}", one.plugin, model::size::show_megabytes(one.bytes >> 20))),
            ("TimeStart", clock.show(one.from)),
            ("TimeEnd", one.until.map_or("Unknown".into(), |until| clock.show(until))),
        ]
    };
    let buffers = controller.chronicle().await?.buffers;
    Ok(Ok(list.iter().map(row).chain(buffers.iter().map(buffer)).collect()))
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
    match wish.table(Record::RunawayJobs, options, Ok(found.iter().map(row).collect())) {
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
            eprintln!(" Unknown field '{field}'");
            Ok(1)
        }
    }
}
