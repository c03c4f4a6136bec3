//! What `squeue` is asked: its arguments and environment, read without touching anything.
use model::job_state::JobState;
use model::time::Span;
use model::{JobRef, StepId, duration, hostlist};

use crate::choices;
use crate::getopt::{Flag, Parsed, Value, flag, words};
use crate::job_ids;
use crate::json::{self, Shape};
use crate::users;
use crate::viewer::{Asked, Environment, Manual, Refusal, Told, listing};

use super::columns::COLUMNS;
use super::help;

pub const FLAGS: &[Flag] = &[
    flag("account", Some('A'), Value::Required),
    flag("accounts", None, Value::Required),
    flag("all", Some('a'), Value::None),
    flag("array", Some('r'), Value::None),
    flag("array-unique", None, Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("expand-patterns", None, Value::None),
    flag("federation", None, Value::None),
    flag("Format", Some('O'), Value::Required),
    flag("format", Some('o'), Value::Required),
    flag("help", None, Value::None),
    flag("helpFormat", None, Value::None),
    flag("helpformat", None, Value::None),
    flag("helpstate", None, Value::None),
    flag("hide", None, Value::None),
    flag("iterate", Some('i'), Value::Required),
    flag("jobs", Some('j'), Value::Optional),
    flag("json", None, Value::Optional),
    flag("licenses", Some('L'), Value::Required),
    flag("local", None, Value::None),
    flag("long", Some('l'), Value::None),
    flag("me", None, Value::None),
    flag("name", Some('n'), Value::Required),
    flag("noconvert", None, Value::None),
    flag("nodelist", Some('w'), Value::Required),
    flag("nodes", None, Value::Required),
    flag("noheader", Some('h'), Value::None),
    flag("notme", None, Value::None),
    flag("only-job-state", None, Value::None),
    flag("partitions", Some('p'), Value::Required),
    flag("priority", Some('P'), Value::None),
    flag("qos", Some('q'), Value::Required),
    flag("reservation", Some('R'), Value::Required),
    flag("running-over", None, Value::Required),
    flag("running-under", None, Value::Required),
    flag("sibling", None, Value::None),
    flag("sort", Some('S'), Value::Required),
    flag("start", None, Value::None),
    flag("states", Some('t'), Value::Required),
    flag("steps", Some('s'), Value::Optional),
    flag("usage", None, Value::None),
    flag("user", Some('u'), Value::Required),
    flag("users", None, Value::Required),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("yaml", None, Value::Optional),
];

/// In the order of Slurm's listing.
#[rustfmt::skip]
const LISTED: &[(&str, &str, Told)] = &[
    ("all", "all", Told::Flag), ("array", "array", Told::Flag), ("federation", "federation", Told::Flag),
    ("format", "format", Told::Text), ("iterate", "iterate", Told::Number), ("job_flag", "jobs", Told::Flag),
    ("jobs", "jobs", Told::Text), ("licenses", "licenses", Told::Text), ("local", "local", Told::Flag),
    ("names", "name", Told::Text), ("nodes", "nodelist", Told::Text), ("partitions", "partitions", Told::Text),
    ("priority", "priority", Told::Flag), ("reservation", "reservation", Told::Text), ("sibling", "sibling", Told::Flag),
    ("sort", "sort", Told::Text), ("start_flag", "start", Told::Flag), ("states", "states", Told::Text),
    ("step_flag", "steps", Told::Flag), ("steps", "steps", Told::Text), ("users", "user", Told::Text),
    ("verbose", "verbose", Told::Number),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub jobs: Option<Vec<JobRef>>,
    pub steps: Option<Vec<(JobRef, StepId)>>,
    /// Steps instead of jobs.
    pub shows_steps: bool,
    pub uids: Option<Vec<u32>>,
    /// Not the jobs of this user.
    pub excluded_uid: Option<u32>,
    pub states: States,
    pub partitions: Option<Vec<String>>,
    pub names: Option<Vec<String>>,
    pub accounts: Option<Vec<String>>,
    pub qos: Option<Vec<String>>,
    pub nodes: Option<Vec<String>>,
    pub licenses: Option<Vec<String>>,
    pub reservation: Option<String>,
    /// They run, and have run longer, or not so long.
    pub ran_over: Option<Span>,
    pub ran_under: Option<Span>,
    pub clusters: Vec<String>,
    pub layout: Layout,
    pub heading: bool,
    /// The date above the heading.
    pub banner: bool,
    pub start: bool,
    pub array: bool,
    pub per_partition: bool,
    pub all: bool,
    pub iterate_secs: Option<u64>,
    pub sort: Option<String>,
    pub json: bool,
    /// Whose shape the document has.
    pub shape: Option<Shape>,
    /// As `json`, in the other notation.
    pub yaml: bool,
    pub converts: bool,
    /// Names of files as the job has them, not as they were given.
    pub expands_patterns: bool,
    /// What `-v` tells of them.
    pub listing: String,
    pub tasks_width: usize,
    pub time_format: Option<String>,
    /// Lines for stderr that stop nothing.
    pub complaints: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum States {
    /// What has not ended.
    #[default]
    Live,
    All,
    Only(Vec<JobState>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Layout {
    #[default]
    Default,
    Long,
    Letters(String),
    Names(String),
}

const MANUAL: Manual = Manual { program: "squeue", flags: FLAGS, help: help::HELP, usage: help::USAGE };

pub fn parse(arguments: &[String], environment: Environment) -> Result<Asked<Options>, Refusal> {
    MANUAL.read(&join_optional(arguments), |parsed| {
        if let Some(extra) = parsed.operands.first() {
            let stderr = format!("squeue: error: Unrecognized option: {extra}\n");
            return Err(Refusal { stdout: help::USAGE.into(), stderr });
        }
        if let Some(list) = help_list(parsed) {
            return Ok(Asked::Print(list));
        }
        let options = options(parsed, environment).map_err(|lines| Refusal::lines("squeue", &lines))?;
        Ok(Asked::Show(Box::new(options)))
    })
}

/// What an option takes, if that was asked.
fn help_list(parsed: &Parsed) -> Option<String> {
    let asked = ["helpformat", "helpFormat", "helpstate"].into_iter().find(|name| parsed.has(name))?;
    Some(match asked {
        "helpformat" => choices::letters(COLUMNS.iter().map(|column| column.letter)),
        "helpFormat" => choices::names(&COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>()),
        _ => choices::lines(help::STATES.split(',')),
    })
}

/// `-j 12`: the ids of these options may stand apart, though their value is optional.
fn join_optional(arguments: &[String]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let awaits = joined.last().is_some_and(|last| awaits_ids(last));
        match joined.last_mut() {
            Some(last) if awaits && !argument.starts_with('-') => {
                if last.starts_with("--") {
                    last.push('=');
                }
                last.push_str(argument);
            }
            _ => joined.push(argument.clone()),
        }
    }
    joined
}

fn awaits_ids(argument: &str) -> bool {
    if let Some(long) = argument.strip_prefix("--") {
        let is_prefix = |name: &str, least: usize| long.len() >= least && name.starts_with(long);
        return is_prefix("jobs", 2) || is_prefix("steps", 3);
    }
    let Some(letters) = argument.strip_prefix('-') else { return false };
    let plain = |letter: char| FLAGS.iter().any(|flag| flag.short == Some(letter) && flag.value == Value::None);
    let mut letters = letters.chars();
    matches!(letters.next_back(), Some('j' | 's')) && letters.all(plain)
}

type Problem = Vec<String>;

fn options(parsed: &Parsed, environment: Environment) -> Result<Options, Problem> {
    let mut complaints = Vec::new();
    let list = |option: &str, alias: &str, variable: &str| -> Option<Vec<String>> {
        let given = parsed.value(option).or(parsed.value(alias)).map(str::to_string);
        given.or_else(|| environment(variable)).map(|text| words(&text))
    };
    let step_text = parsed.value("steps");
    let shows_steps = parsed.has("steps");
    let states = states(parsed.value("states").map(str::to_string).or_else(|| environment("SQUEUE_STATES")))?;
    let users = list("user", "users", "SQUEUE_USERS");
    let mut uids = users.map(|users| known_uids(&users, &mut complaints));
    if parsed.has("me") {
        uids = Some(vec![users::own_uid()]);
    }
    let layout = layout(parsed, environment)?;
    let iterate_secs = match parsed.value("iterate") {
        Some(text) => match text.parse() {
            Ok(secs) if secs > 0 => Some(secs),
            _ => return Err(vec![format!("error: --iterate={text}\n")]),
        },
        None => None,
    };
    let time_format = environment("SLURM_TIME_FORMAT").filter(|format| !format.is_empty());
    if let Some(problem) = crate::zone::complaint(time_format.as_deref()) {
        complaints.push(format!("error: {problem}"));
    }
    let banner = layout == Layout::Long || iterate_secs.is_some();
    Ok(Options {
        jobs: parsed.value("jobs").map(job_list).transpose()?,
        steps: step_text.map(step_list).transpose()?,
        shows_steps,
        uids,
        excluded_uid: parsed.has("notme").then(users::own_uid),
        states,
        partitions: list("partitions", "partitions", "SQUEUE_PARTITION"),
        names: list("name", "name", "SQUEUE_NAMES"),
        accounts: list("account", "accounts", "SQUEUE_ACCOUNT"),
        qos: list("qos", "qos", "SQUEUE_QOS"),
        nodes: parsed.value("nodelist").or(parsed.value("nodes")).map(node_list).transpose()?,
        licenses: list("licenses", "licenses", "SQUEUE_LICENSES"),
        reservation: parsed.value("reservation").map(str::to_string),
        ran_over: parsed.value("running-over").map(time_run).transpose()?,
        ran_under: parsed.value("running-under").map(time_run).transpose()?,
        clusters: list("clusters", "clusters", "SLURM_CLUSTERS").unwrap_or_default(),
        layout,
        heading: !parsed.has("noheader"),
        banner,
        start: parsed.has("start"),
        array: parsed.has("array")
            || parsed.has("array-unique")
            || environment("SQUEUE_ARRAY").is_some()
            || environment("SQUEUE_ARRAY_UNIQUE").is_some(),
        per_partition: parsed.has("priority") || environment("SQUEUE_PRIORITY").is_some(),
        all: (parsed.has("all") || environment("SQUEUE_ALL").is_some()) && !parsed.has("hide"),
        iterate_secs,
        sort: parsed.value("sort").map(str::to_string).or_else(|| environment("SQUEUE_SORT")),
        json: parsed.has("json") || parsed.has("yaml"),
        shape: json::chosen(parsed)?,
        yaml: parsed.has("yaml"),
        converts: !parsed.has("noconvert"),
        expands_patterns: parsed.has("expand-patterns"),
        listing: listing(parsed, LISTED),
        tasks_width: environment("SLURM_BITSTR_LEN")
            .and_then(|width| width.parse().ok())
            .unwrap_or(crate::job_view::TASKS_WIDTH),
        time_format,
        complaints,
    })
}

fn layout(parsed: &Parsed, environment: Environment) -> Result<Layout, Problem> {
    let (letters, names) = (parsed.value("format"), parsed.value("Format"));
    if letters.is_some() && names.is_some() {
        let first = parsed.options.iter().find(|(name, _)| matches!(*name, "format" | "Format"));
        return Err(vec![match first {
            Some(("format", _)) => "error: -O (--Format) is incompatible with -o (--format)".into(),
            _ => "error: -o (--format) is incompatible with -O (--Format)".into(),
        }]);
    }
    let long = parsed.has("long");
    if long && (letters.is_some() || names.is_some()) {
        let option = if letters.is_some() { "-o(--format)" } else { "-O(--Format)" };
        let text =
            format!("fatal: Options {option} and -l(--long) are mutually exclusive. Please remove one and retry.");
        return Err(vec![text]);
    }
    Ok(match (letters, names) {
        (Some(letters), _) => Layout::Letters(letters.into()),
        (None, Some(names)) => Layout::Names(names.into()),
        (None, None) if long => Layout::Long,
        (None, None) => match (environment("SQUEUE_FORMAT"), environment("SQUEUE_FORMAT2")) {
            (Some(letters), _) => Layout::Letters(letters),
            (None, Some(names)) => Layout::Names(names),
            (None, None) => Layout::Default,
        },
    })
}

/// A user must exist, even when given by number.
fn known_uids(names: &[String], complaints: &mut Vec<String>) -> Vec<u32> {
    let mut uids = Vec::new();
    for name in names {
        match users::uid_of(name).filter(|uid| users::user_name(*uid).is_some()) {
            Some(uid) => uids.push(uid),
            None => complaints.push(format!("error: Invalid user: {name}\n")),
        }
    }
    uids
}

/// States that no job is ever in here: scripts for later releases ask about them.
const OF_LATER_RELEASES: [&str; 4] = ["EXPEDITING", "LAUNCH_FAILED", "POWER_UP_NODE", "RECONFIG_FAIL"];

fn states(text: Option<String>) -> Result<States, Problem> {
    let Some(text) = text else { return Ok(States::Live) };
    if text.eq_ignore_ascii_case("all") {
        return Ok(States::All);
    }
    let mut states = Vec::new();
    for word in words(&text) {
        if OF_LATER_RELEASES.iter().any(|state| state.eq_ignore_ascii_case(&word)) {
            continue;
        }
        let Ok(state) = word.parse() else {
            return Err(vec![
                format!("error: Invalid job state specified: {word}"),
                format!("error: Valid job states include: {}\n", help::STATES),
            ]);
        };
        states.push(state);
    }
    Ok(States::Only(states))
}

/// As a time limit is written.
fn time_run(text: &str) -> Result<Span, Problem> {
    let limit = duration::parse_limit(text).and_then(|limit| limit.seconds()).filter(|secs| *secs > 0);
    limit.map(Span::from_secs).ok_or_else(|| vec!["fatal: Invalid time limit specification".to_string()])
}

fn job_list(text: &str) -> Result<Vec<JobRef>, Problem> {
    let read = |item: &str| match job_ids::parse_job(item) {
        // As Slurm does: a component's name shows the whole.
        Some(job) => Ok(JobRef { component: None, ..job }),
        None => Err(vec![format!("error: Invalid job id: {item}")]),
    };
    job_ids::split_list(text).into_iter().map(read).collect()
}

fn step_list(text: &str) -> Result<Vec<(JobRef, StepId)>, Problem> {
    let read = |item: &str| match job_ids::parse(item) {
        Some(job_ids::Target { job, step: Some(step) }) => Ok((job, step)),
        _ if item.contains('.') => Err(vec![format!("error: Invalid job_step id: {item}")]),
        _ => Err(vec![format!("error: Invalid job_step id: {item}.??")]),
    };
    job_ids::split_list(text).into_iter().map(read).collect()
}

fn node_list(text: &str) -> Result<Vec<String>, Problem> {
    hostlist::expand(text).map_err(|_| vec![format!("error: Invalid node name {text}")])
}
