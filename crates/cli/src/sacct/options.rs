//! What `sacct` is asked: its arguments and environment, read without touching anything.
use model::history::{HistoryQuery, JobChoice, StepChoice};
use model::job_state::JobState;
use model::when::{self, Lean};
use model::{JobId, StepId, Timestamp, duration, hostlist};

use crate::getopt::{Flag, Parsed, Value, flag};
use crate::job_ids;
use crate::users;
use crate::viewer::{Asked, Environment, Manual, Refusal};
use crate::zone::{self, Clock};

use super::help;
use super::layout::{self, Layout, Style};
use super::units::{self, Units};

pub const FLAGS: &[Flag] = &[
    flag("accounts", Some('A'), Value::Required),
    flag("allclusters", Some('L'), Value::None),
    flag("allocations", Some('X'), Value::None),
    flag("allusers", Some('a'), Value::None),
    flag("array", None, Value::None),
    flag("associations", Some('x'), Value::Required),
    flag("batch-script", Some('B'), Value::None),
    flag("brief", Some('b'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("completion", Some('c'), Value::None),
    flag("constraints", Some('C'), Value::Required),
    flag("delimiter", None, Value::Required),
    flag("duplicates", Some('D'), Value::None),
    flag("endtime", Some('E'), Value::Required),
    flag("env-vars", None, Value::None),
    flag("expand-patterns", None, Value::None),
    flag("federation", None, Value::None),
    flag("fields", None, Value::Required),
    flag("file", Some('f'), Value::Required),
    flag("flags", Some('F'), Value::Required),
    flag("format", Some('o'), Value::Required),
    flag("gid", Some('g'), Value::Required),
    flag("group", None, Value::Required),
    flag("help", Some('h'), Value::None),
    flag("help-fields", None, Value::None),
    flag("helpformat", Some('e'), Value::None),
    flag("helpreason", None, Value::None),
    flag("helpstate", None, Value::None),
    flag("jobs", Some('j'), Value::Required),
    flag("json", None, Value::Optional),
    flag("local", None, Value::None),
    flag("long", Some('l'), Value::None),
    flag("name", None, Value::Required),
    flag("ncpus", Some('I'), Value::Required),
    flag("nnodes", Some('i'), Value::Required),
    flag("noconvert", None, Value::None),
    flag("nodelist", Some('N'), Value::Required),
    flag("noheader", Some('n'), Value::None),
    flag("parsable", Some('p'), Value::None),
    flag("parsable2", Some('P'), Value::None),
    flag("partition", Some('r'), Value::Required),
    flag("qos", Some('q'), Value::Required),
    flag("reason", Some('R'), Value::Required),
    flag("starttime", Some('S'), Value::Required),
    flag("state", Some('s'), Value::Required),
    flag("timelimit-max", Some('K'), Value::Required),
    flag("timelimit-min", Some('k'), Value::Required),
    flag("truncate", Some('T'), Value::None),
    flag("uid", Some('u'), Value::Required),
    flag("user", None, Value::Required),
    flag("units", None, Value::Required),
    flag("usage", None, Value::None),
    flag("use-local-uid", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("wckeys", Some('W'), Value::Required),
    flag("whole-hetjob", None, Value::Optional),
    flag("yaml", None, Value::Optional),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub query: HistoryQuery,
    /// Only jobs of these associations (`-x`), by their numbers; empty: of any.
    pub associations: Vec<u32>,
    pub clusters: Vec<String>,
    pub layout: Layout,
    pub units: Units,
    pub contents: Option<Contents>,
    /// Times are cut to those looked at.
    pub truncates: bool,
    pub json: bool,
    /// Whose shape the document has.
    pub shape: Option<crate::json::Shape>,
    /// As `json`, in the other notation.
    pub yaml: bool,
    pub verbose: bool,
    pub time_format: Option<String>,
    pub complaints: Vec<String>,
}

impl Options {
    /// Whether the cluster's accounts must be looked at.
    pub fn names_associations(&self) -> bool {
        let is_shown = |column: &super::layout::Column| matches!(column.field.name, "AssocID" | "QOSRAW");
        !self.associations.is_empty() || !self.query.qos.is_empty() || self.layout.columns.iter().any(is_shown)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    Script,
    Environment,
}

/// A line for stderr, with its kind.
struct Problem(String);

fn fatal(text: impl std::fmt::Display) -> Problem {
    Problem(format!("sacct: fatal: {text}\n"))
}

fn error(text: impl std::fmt::Display) -> Problem {
    Problem(format!("sacct: error: {text}\n"))
}

const MANUAL: Manual = Manual { program: "sacct", flags: FLAGS, help: help::HELP, usage: help::USAGE };

pub fn parse(arguments: &[String], environment: Environment, clock: &Clock) -> Result<Asked<Options>, Refusal> {
    MANUAL.read(arguments, |parsed| {
        let asked = |name: &str| parsed.has(name);
        if asked("helpformat") || asked("help-fields") {
            return Ok(Asked::Print(help::fields()));
        }
        if asked("helpstate") {
            return Ok(Asked::Print(help::states()));
        }
        if asked("helpreason") {
            return Ok(Asked::Print(help::reasons()));
        }
        let options = options(parsed, environment, clock).map_err(|Problem(stderr)| Refusal::told(stderr))?;
        Ok(Asked::Show(Box::new(options)))
    })
}

fn options(parsed: &Parsed, environment: Environment, clock: &Clock) -> Result<Options, Problem> {
    refuse_unsupported(parsed)?;
    let contents = match (parsed.has("batch-script"), parsed.has("env-vars")) {
        (true, true) => return Err(fatal("Options --batch-script and --env-vars are mutually exclusive")),
        (true, false) => Some(Contents::Script),
        (false, true) => Some(Contents::Environment),
        (false, false) => None,
    };
    if let (Some(_), None) = (contents, parsed.value("jobs")) {
        let what = if contents == Some(Contents::Script) { "job scripts" } else { "job environment" };
        return Err(fatal(format!("When requesting {what} you must also request specific jobs with the '-j' option.")));
    }
    let mut query = query(parsed, clock)?;
    query.with_steps = !parsed.has("allocations") && contents.is_none();
    query.with_scripts = contents == Some(Contents::Script);
    query.with_environments = contents == Some(Contents::Environment);
    let time_format = environment("SLURM_TIME_FORMAT");
    let complaints = zone::complaint(time_format.as_deref()).map(|text| format!("error: {text}")).into_iter().collect();
    let units = match parsed.value("units") {
        Some(text) => units::parse(text).ok_or_else(|| {
            let told = format!("sacct: error: Invalid unit type '{text}'. Possible options are 'KMGTP'\n");
            Problem(format!("{told}sacct: fatal: Invalid unit type\n"))
        })?,
        None if parsed.has("noconvert") => Units::Unconverted,
        None => Units::Exact,
    };
    Ok(Options {
        query,
        // As in Slurm, what is no number is association 0, which nobody has.
        associations: all(parsed, "associations").iter().map(|text| text.parse().unwrap_or(0)).collect(),
        clusters: all(parsed, "clusters"),
        layout: layout(parsed, environment)?,
        units,
        contents,
        truncates: parsed.has("truncate"),
        json: parsed.has("json") || parsed.has("yaml"),
        shape: crate::json::chosen(parsed).unwrap_or_default(),
        yaml: parsed.has("yaml"),
        verbose: parsed.has("verbose"),
        time_format,
        complaints,
    })
}

fn refuse_unsupported(parsed: &Parsed) -> Result<(), Problem> {
    if !parsed.operands.is_empty() {
        let named: String = parsed.operands.iter().map(|extra| format!("sacct: error:  {extra}\n")).collect();
        return Err(Problem(format!("sacct: error: Unknown arguments:\n{named}")));
    }
    if let Some(file) = parsed.value("file").filter(|file| !std::path::Path::new(file).is_file()) {
        return Err(Problem(format!("{file} is not a valid file\n")));
    }
    if parsed.has("completion") || parsed.has("file") {
        return Err(Problem("Slurm job completion is disabled\n".into()));
    }
    crate::json::wish(parsed).map_err(fatal)?;
    Ok(())
}

fn query(parsed: &Parsed, clock: &Clock) -> Result<HistoryQuery, Problem> {
    let jobs = jobs(parsed)?;
    let states = states(parsed)?;
    let (after, before) = window(parsed, clock, !jobs.is_empty(), !states.is_empty())?;
    let whole_het_job = match (parsed.has("whole-hetjob"), parsed.value("whole-hetjob")) {
        (false, _) => None,
        (true, None) => Some(true),
        (true, Some(word)) if word.eq_ignore_ascii_case("yes") => Some(true),
        (true, Some(word)) if word.eq_ignore_ascii_case("no") => Some(false),
        (true, Some(word)) => {
            return Err(error(format!("Invalid --whole-hetjob value \"{word}\". Valid values: [yes|no].")));
        }
    };
    Ok(HistoryQuery {
        uids: uids(parsed, !jobs.is_empty())?,
        gids: gids(parsed)?,
        accounts: all(parsed, "accounts").iter().map(|name| name.to_lowercase()).collect(),
        partitions: all(parsed, "partition"),
        qos: all(parsed, "qos"),
        wckeys: all(parsed, "wckeys"),
        names: all(parsed, "name"),
        nodes: nodes(parsed)?,
        constraints: all(parsed, "constraints"),
        reasons: all(parsed, "reason"),
        n_nodes: range(parsed, "nnodes")?,
        n_cpus: range(parsed, "ncpus")?,
        time_limit: time_limit(parsed)?,
        with_duplicates: parsed.has("duplicates"),
        was_backfilled: scheduler(parsed)?,
        whole_het_job,
        jobs,
        states,
        after,
        before,
        ..Default::default()
    })
}

/// Every value of an option that may be repeated, item by item.
fn all(parsed: &Parsed, option: &str) -> Vec<String> {
    let given = parsed.options.iter().filter(|(name, _)| *name == option).filter_map(|(_, value)| value.as_deref());
    given.flat_map(|value| value.split(',')).map(str::trim).filter(|item| !item.is_empty()).map(String::from).collect()
}

fn jobs(parsed: &Parsed) -> Result<Vec<JobChoice>, Problem> {
    let given = parsed.options.iter().filter(|(name, _)| *name == "jobs").filter_map(|(_, value)| value.as_deref());
    let mut choices = Vec::new();
    for text in given {
        for word in job_ids::split_list(text).into_iter().flat_map(str::split_whitespace) {
            choices.push(choice(word).ok_or_else(|| bad_job(word))?);
        }
    }
    Ok(choices)
}

fn bad_job(word: &str) -> Problem {
    match word.split_once('.') {
        Some((number, _)) if choice(number).is_some() => fatal(format!("Bad step specified: {number}")),
        _ => fatal(format!("Bad job/step specified: {word}")),
    }
}

/// `12`, `12_3`, `12_[1-3]`, `12+1`, each with `.0`, `.batch` or `.extern`
pub fn choice(word: &str) -> Option<JobChoice> {
    let (job, step) = match word.split_once('.') {
        None => (word, None),
        Some((job, "batch")) => (job, Some(StepChoice::Step(StepId::Batch))),
        Some((job, "extern")) => (job, Some(StepChoice::Extern)),
        Some((job, number)) => (job, Some(StepChoice::Step(StepId::Number(number.parse().ok()?)))),
    };
    if let Some((leader, offset)) = job.split_once('+') {
        let leader: u32 = leader.parse().ok()?;
        return Some(JobChoice { job: JobId(leader), het_offset: Some(offset.parse().ok()?), step, tasks: None });
    }
    let named = job_ids::parse_job(job)?;
    Some(JobChoice { job: named.job, tasks: named.tasks, het_offset: None, step })
}

fn states(parsed: &Parsed) -> Result<Vec<String>, Problem> {
    let word = |text: &String| match text.parse::<JobState>() {
        Ok(state) => Ok(state.name().to_string()),
        Err(()) => Err(fatal(format!("unrecognized job state value '{text}'"))),
    };
    all(parsed, "state").iter().map(word).collect()
}

/// The time looked at; its usual bounds depend on what else was asked.
fn window(
    parsed: &Parsed,
    clock: &Clock,
    has_jobs: bool,
    has_states: bool,
) -> Result<(Option<Timestamp>, Option<Timestamp>), Problem> {
    let now = clock.now();
    let moment = |option: &str| -> Result<Option<Timestamp>, Problem> {
        let Some(text) = parsed.value(option) else { return Ok(None) };
        let found = when::parse(text, now.secs() as i64, clock, Lean::Past);
        match found.and_then(|secs| u64::try_from(secs).ok()) {
            Some(secs) => Ok(Some(Timestamp::from_secs(secs))),
            None => Err(Problem(format!("Invalid time specification (pos=0): {text}\n"))),
        }
    };
    let (after, before) = (moment("starttime")?, moment("endtime")?);
    let midnight =
        || when::parse("midnight", now.secs() as i64, clock, Lean::Past).map_or(0, |secs| secs.max(0) as u64);
    let usual_after = match (has_jobs, has_states) {
        (true, _) => None,
        (false, true) => Some(now),
        (false, false) => Some(Timestamp::from_secs(midnight())),
    };
    // Of a state asked for with a beginning only, that moment is meant.
    let before = before.or(after.filter(|_| has_states));
    let after = after.or(usual_after);
    if let (Some(after), Some(before)) = (after, before.or(Some(now)))
        && after.secs() > before.secs()
    {
        let (after, before) = (clock.show(after), clock.show(before));
        return Err(error(format!("Start time ({after}) requested is after end time ({before}).")));
    }
    Ok((after, before))
}

/// Without jobs or users named, everybody but root sees their own.
fn uids(parsed: &Parsed, has_jobs: bool) -> Result<Vec<u32>, Problem> {
    let mut named = all(parsed, "uid");
    named.extend(all(parsed, "user"));
    if parsed.has("allusers") {
        return Ok(Vec::new());
    }
    if named.is_empty() {
        let own = users::own_uid();
        return Ok(if own == 0 || has_jobs { Vec::new() } else { vec![own] });
    }
    let uid = |name: &String| {
        let number = name.parse().ok().or_else(|| users::uid_of(name));
        number.ok_or_else(|| error(format!("Invalid user id: {name}")))
    };
    named.iter().map(uid).collect()
}

fn gids(parsed: &Parsed) -> Result<Vec<u32>, Problem> {
    let mut named = all(parsed, "gid");
    named.extend(all(parsed, "group"));
    let gid = |name: &String| {
        let number = name.parse().ok().or_else(|| users::gid_of(name));
        number.ok_or_else(|| error(format!("Invalid group id: {name}")))
    };
    named.iter().map(gid).collect()
}

fn nodes(parsed: &Parsed) -> Result<Vec<model::NodeName>, Problem> {
    let given = parsed.options.iter().filter(|(name, _)| *name == "nodelist").filter_map(|(_, value)| value.as_deref());
    let mut nodes = Vec::new();
    for text in given {
        let names = hostlist::expand(text).map_err(|problem| error(format!("Invalid node list {text}: {problem}")))?;
        nodes.extend(names.into_iter().map(model::NodeName::from));
    }
    Ok(nodes)
}

/// `2`, `2-4`
fn range(parsed: &Parsed, option: &str) -> Result<Option<(u32, u32)>, Problem> {
    let Some(text) = parsed.value(option) else { return Ok(None) };
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    match (min.parse(), max.parse()) {
        (Ok(min), Ok(max)) if min <= max => Ok(Some((min, max))),
        _ => Err(fatal(format!("Invalid --{option} specification: {text}"))),
    }
}

/// In minutes.
fn time_limit(parsed: &Parsed) -> Result<Option<(u64, u64)>, Problem> {
    let minutes = |option: &str| -> Result<Option<u64>, Problem> {
        let Some(text) = parsed.value(option) else { return Ok(None) };
        let limit = duration::parse_limit(text).and_then(|limit| limit.seconds());
        match limit {
            Some(secs) => Ok(Some(secs.div_ceil(60))),
            None => Err(fatal(format!("Invalid time limit specification: {text}"))),
        }
    };
    Ok(match (minutes("timelimit-min")?, minutes("timelimit-max")?) {
        (Some(min), Some(max)) => Some((min, max)),
        (Some(exact), None) => Some((exact, exact)),
        (None, _) => None,
    })
}

fn scheduler(parsed: &Parsed) -> Result<Option<bool>, Problem> {
    let flags = all(parsed, "flags");
    let is = |name: &str| flags.iter().any(|flag| flag.eq_ignore_ascii_case(name));
    let known = ["SchedSubmit", "SchedMain", "SchedBackfill"];
    if let Some(other) = flags.iter().find(|flag| !known.iter().any(|known| known.eq_ignore_ascii_case(flag))) {
        return Err(error(format!("str_2_job_flags: Invalid job flag {other}")));
    }
    Ok(match (is("SchedMain") || is("SchedSubmit"), is("SchedBackfill")) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    })
}

fn layout(parsed: &Parsed, environment: Environment) -> Result<Layout, Problem> {
    let mut format: Vec<String> = Vec::new();
    for (name, value) in &parsed.options {
        match (*name, value) {
            ("format" | "fields", Some(text)) => format.push(text.clone()),
            ("brief", _) => format.push(help::BRIEF.into()),
            ("long", _) => format.push(help::LONG.into()),
            _ => {}
        }
    }
    let usual = || environment("SACCT_FORMAT").unwrap_or_else(|| help::DEFAULT.into());
    let text = if format.is_empty() { usual() } else { format.join(",") };
    let columns = layout::columns(&text).map_err(|name| error(format!("Invalid field requested: \"{name}\"")))?;
    let delimiter = parsed.value("delimiter").unwrap_or("|").to_string();
    let last = parsed.options.iter().rev().map(|(name, _)| *name).find(|name| name.starts_with("parsable"));
    let style = match last {
        Some("parsable2") => Style::Between(delimiter),
        Some(_) => Style::After(delimiter),
        None => Style::Table,
    };
    Ok(Layout { columns, style, heading: !parsed.has("noheader") })
}
