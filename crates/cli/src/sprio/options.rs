//! What `sprio` is asked: its arguments and environment, read without touching anything.
use model::JobRef;

use super::columns::COLUMNS;
use super::help;
use crate::choices;
use crate::getopt::{Flag, Parsed, Value, flag, words};
use crate::job_ids;
use crate::users::uid_of;
use crate::viewer::{Asked, Environment, Manual, Refusal};

pub const FLAGS: &[Flag] = &[
    flag("clusters", Some('M'), Value::Required),
    flag("federation", None, Value::None),
    flag("format", Some('o'), Value::Required),
    flag("help", None, Value::None),
    flag("helpformat", None, Value::None),
    flag("jobs", Some('j'), Value::Optional),
    flag("local", None, Value::None),
    flag("long", Some('l'), Value::None),
    flag("noheader", Some('h'), Value::None),
    flag("norm", Some('n'), Value::None),
    flag("partition", Some('p'), Value::Required),
    flag("sibling", None, Value::None),
    flag("sort", Some('S'), Value::Required),
    flag("usage", None, Value::None),
    flag("user", Some('u'), Value::Required),
    flag("users", None, Value::Required),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("weights", Some('w'), Value::None),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub clusters: Vec<String>,
    pub jobs: Vec<JobRef>,
    pub uids: Vec<u32>,
    /// Users were named, and there is none of them.
    pub is_about_nobody: bool,
    /// Lines for stderr that stop nothing.
    pub complaints: Vec<String>,
    pub partitions: Vec<String>,
    pub letters: Option<String>,
    pub sort: Option<String>,
    pub long: bool,
    pub normalized: bool,
    pub weights: bool,
    pub heading: bool,
    pub verbose: bool,
}

const MANUAL: Manual = Manual { program: "sprio", flags: FLAGS, help: help::HELP, usage: help::USAGE };

pub fn parse(arguments: &[String], environment: Environment) -> Result<Asked<Options>, Refusal> {
    MANUAL.read(arguments, |parsed| {
        if parsed.has("helpformat") {
            return Ok(Asked::Print(choices::letters(COLUMNS.iter().map(|column| column.letter))));
        }
        let options = options(parsed, environment);
        options
            .map(|options| Asked::Show(Box::new(options)))
            .map_err(|line| Refusal::told(format!("sprio: error: {line}\n")))
    })
}

fn options(parsed: &Parsed, environment: Environment) -> Result<Options, String> {
    let ids = parsed.value("jobs").map(str::to_string);
    // `-j 1,2` leaves its list among the operands, as getopt does with optional values.
    let ids = ids.into_iter().chain(parsed.operands.iter().cloned()).collect::<Vec<_>>().join(",");
    let job = |word: &str| job_ids::parse_job(word).ok_or_else(|| format!("Invalid job id: {word}"));
    let jobs = job_ids::split_list(&ids).into_iter().map(job).collect::<Result<Vec<_>, _>>()?;
    let users = parsed.value("user").or(parsed.value("users")).map(words).unwrap_or_default();
    let mut complaints = Vec::new();
    let mut uids = Vec::new();
    for name in &users {
        match uid_of(name) {
            Some(uid) => uids.push(uid),
            None => complaints.push(format!("error: Invalid user: {name}\n")),
        }
    }
    let clusters = parsed.value("clusters").map(str::to_string).or_else(|| environment("SLURM_CLUSTERS"));
    Ok(Options {
        clusters: clusters.map(|text| words(&text)).unwrap_or_default(),
        jobs,
        is_about_nobody: uids.is_empty() && !users.is_empty(),
        uids,
        complaints,
        partitions: parsed.value("partition").map(words).unwrap_or_default(),
        letters: parsed.value("format").map(str::to_string).or_else(|| environment("SPRIO_FORMAT")),
        sort: parsed.value("sort").map(str::to_string),
        long: parsed.has("long"),
        normalized: parsed.has("norm"),
        weights: parsed.has("weights"),
        heading: !parsed.has("noheader"),
        verbose: parsed.has("verbose"),
    })
}
