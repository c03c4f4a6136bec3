//! What `sprio` is asked: its arguments and environment, read without touching anything.
use model::JobRef;

use super::help;
use crate::getopt::{Flag, Operands, Parsed, Value, flag, parse as read_options};
use crate::job_ids;
use crate::users::uid_of;
use crate::version;
use crate::viewer::{Asked, Refusal};

const FLAGS: &[Flag] = &[
    flag("clusters", Some('M'), Value::Required),
    flag("federation", None, Value::None),
    flag("format", Some('o'), Value::Required),
    flag("help", None, Value::None),
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
    pub partitions: Vec<String>,
    pub letters: Option<String>,
    pub sort: Option<String>,
    pub long: bool,
    pub normalized: bool,
    pub weights: bool,
    pub heading: bool,
    pub verbose: bool,
}

pub fn parse(arguments: &[String], environment: &dyn Fn(&str) -> Option<String>) -> Result<Asked<Options>, Refusal> {
    let refuse = |lines: String| Refusal { stderr: lines, ..Refusal::default() };
    let parsed = read_options(FLAGS, Operands::Mixed, arguments)
        .map_err(|problem| refuse(format!("sprio: {problem}\nTry \"sprio --help\" for more information\n")))?;
    if parsed.has("help") {
        return Ok(Asked::Print(help::HELP.into()));
    }
    if parsed.has("usage") {
        return Ok(Asked::Print(help::USAGE.into()));
    }
    if parsed.has("version") {
        return Ok(Asked::Print(version::line()));
    }
    let options = options(&parsed, environment).map_err(|line| refuse(format!("sprio: error: {line}\n")))?;
    Ok(Asked::Show(Box::new(options)))
}

fn options(parsed: &Parsed, environment: &dyn Fn(&str) -> Option<String>) -> Result<Options, String> {
    let words = |text: &str| -> Vec<String> {
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_string).collect()
    };
    let ids = parsed.value("jobs").map(str::to_string);
    // `-j 1,2` leaves its list among the operands, as getopt does with optional values.
    let ids = ids.into_iter().chain(parsed.operands.iter().cloned()).collect::<Vec<_>>().join(",");
    let job = |word: &str| job_ids::parse_job(word).ok_or_else(|| format!("Invalid job id: {word}"));
    let jobs = job_ids::split_list(&ids).into_iter().map(job).collect::<Result<Vec<_>, _>>()?;
    let users = parsed.value("user").or(parsed.value("users")).map(words).unwrap_or_default();
    let uid = |name: &String| uid_of(name).ok_or_else(|| format!("Invalid user: {name}"));
    let clusters = parsed.value("clusters").map(str::to_string).or_else(|| environment("SLURM_CLUSTERS"));
    Ok(Options {
        clusters: clusters.map(|text| words(&text)).unwrap_or_default(),
        jobs,
        uids: users.iter().map(uid).collect::<Result<_, _>>()?,
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
