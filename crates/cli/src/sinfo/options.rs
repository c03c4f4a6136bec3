//! What `sinfo` is asked: its arguments and environment, read without touching anything.
use model::hostlist;
use model::node_state::{Base, NodeState};

use crate::choices;
use crate::getopt::{Flag, Parsed, Value, flag, words};
use crate::json::{self, Shape};
use crate::viewer::{Asked, Environment, Manual, Refusal, Told, listing};

use super::columns::COLUMNS;
use super::help;

pub const FLAGS: &[Flag] = &[
    flag("all", Some('a'), Value::None),
    flag("clusters", Some('M'), Value::Required),
    flag("dead", Some('d'), Value::None),
    flag("exact", Some('e'), Value::None),
    flag("federation", None, Value::None),
    flag("Format", Some('O'), Value::Required),
    flag("format", Some('o'), Value::Required),
    flag("future", Some('F'), Value::None),
    flag("help", None, Value::None),
    flag("helpFormat", None, Value::None),
    flag("helpformat", None, Value::None),
    flag("helpstate", None, Value::None),
    flag("hide", None, Value::None),
    flag("iterate", Some('i'), Value::Required),
    flag("json", None, Value::Optional),
    flag("list-reasons", Some('R'), Value::None),
    flag("local", None, Value::None),
    flag("long", Some('l'), Value::None),
    flag("Node", Some('N'), Value::None),
    flag("noconvert", None, Value::None),
    flag("nodes", Some('n'), Value::Required),
    flag("noheader", Some('h'), Value::None),
    flag("partition", Some('p'), Value::Required),
    flag("reservation", Some('T'), Value::None),
    flag("responding", Some('r'), Value::None),
    flag("sort", Some('S'), Value::Required),
    flag("states", Some('t'), Value::Required),
    flag("summarize", Some('s'), Value::None),
    flag("usage", None, Value::None),
    flag("verbose", Some('v'), Value::None),
    flag("version", Some('V'), Value::None),
    flag("yaml", None, Value::Optional),
];

/// In the order of Slurm's listing.
#[rustfmt::skip]
const LISTED: &[(&str, &str, Told)] = &[
    ("dead", "dead", Told::Flag), ("exact", "exact", Told::Number), ("format", "format", Told::Text),
    ("iterate", "iterate", Told::Number), ("long", "long", Told::Flag), ("no_header", "noheader", Told::Flag),
    ("node_format", "Node", Told::Flag), ("nodes", "nodes", Told::Text), ("partition", "partition", Told::Text),
    ("responding", "responding", Told::Flag), ("states", "states", Told::Text), ("sort", "sort", Told::Text),
    ("summarize", "summarize", Told::Flag), ("verbose", "verbose", Told::Number),
];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub clusters: Vec<String>,
    pub partitions: Option<Vec<String>>,
    pub nodes: Option<Vec<String>>,
    /// Each entry is a set of states that must hold together.
    pub states: Option<Vec<Vec<StateFilter>>>,
    pub dead: bool,
    pub responding: bool,
    pub all: bool,
    pub exact: bool,
    pub by_node: bool,
    pub long: bool,
    pub reasons: bool,
    pub reservations: bool,
    pub summary: bool,
    pub letters: Option<String>,
    pub names: Option<String>,
    pub sort: Option<String>,
    pub heading: bool,
    pub iterate_secs: Option<u64>,
    pub json: bool,
    /// Whose shape the document has.
    pub shape: Option<Shape>,
    /// As `json`, in the other notation.
    pub yaml: bool,
    pub converts: bool,
    /// What `-v` tells of them.
    pub listing: String,
    pub time_format: Option<String>,
    pub complaints: Vec<String>,
}

/// A word of `--states`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFilter {
    All,
    Unknown,
    Down,
    Idle,
    Allocated,
    Mixed,
    Drain,
    Drained,
    Draining,
    Silent,
    Completing,
    Reserved,
    Maintenance,
    Failed,
    Failing,
    /// A state that no node here can be in.
    Never,
}

const STATES: &[(&str, &str, StateFilter)] = &[
    ("all", "all", StateFilter::All),
    ("unknown", "unk", StateFilter::Unknown),
    ("down", "down", StateFilter::Down),
    ("idle", "idle", StateFilter::Idle),
    ("allocated", "alloc", StateFilter::Allocated),
    ("mixed", "mix", StateFilter::Mixed),
    ("future", "futr", StateFilter::Never),
    ("drain", "drain", StateFilter::Drain),
    ("drained", "drained", StateFilter::Drained),
    ("draining", "drng", StateFilter::Draining),
    ("no_respond", "no_resp", StateFilter::Silent),
    ("reserved", "resv", StateFilter::Reserved),
    ("perfctrs", "npc", StateFilter::Never),
    ("cloud", "cloud", StateFilter::Never),
    ("completing", "comp", StateFilter::Completing),
    ("powering_down", "pow_dn", StateFilter::Never),
    ("powered_down", "pow_off", StateFilter::Never),
    ("power_down", "pow_down", StateFilter::Never),
    ("powering_up", "pow_up", StateFilter::Never),
    ("fail", "fail", StateFilter::Failed),
    ("failing", "failg", StateFilter::Failing),
    ("maint", "maint", StateFilter::Maintenance),
    ("planned", "plnd", StateFilter::Never),
    ("blocked", "block", StateFilter::Never),
    ("reboot", "boot", StateFilter::Never),
    ("reboot^", "boot^", StateFilter::Never),
];

impl StateFilter {
    pub fn fits(self, state: NodeState) -> bool {
        let busy = matches!(state.base, Base::Allocated | Base::Mixed);
        match self {
            StateFilter::All => true,
            StateFilter::Unknown => state.base == Base::Unknown,
            StateFilter::Down => state.base == Base::Down,
            StateFilter::Idle => state.base == Base::Idle,
            StateFilter::Allocated => busy,
            StateFilter::Mixed => state.base == Base::Mixed && !state.drain,
            StateFilter::Drain => state.drain,
            StateFilter::Drained => state.drain && !busy && !state.completing,
            StateFilter::Draining => state.drain && (busy || state.completing),
            StateFilter::Silent => state.silent,
            StateFilter::Completing => state.completing,
            StateFilter::Reserved => state.reserved,
            StateFilter::Maintenance => state.maintenance,
            StateFilter::Failed => state.failed,
            StateFilter::Failing => state.failed && (busy || state.completing),
            StateFilter::Never => false,
        }
    }
}

const MANUAL: Manual = Manual { program: "sinfo", flags: FLAGS, help: help::HELP, usage: help::USAGE };

pub fn parse(arguments: &[String], environment: Environment) -> Result<Asked<Options>, Refusal> {
    MANUAL.read(arguments, |parsed| {
        if let Some(list) = help_list(parsed) {
            return Ok(Asked::Print(list));
        }
        let options = options(parsed, environment).map_err(|lines| Refusal::lines("sinfo", &lines))?;
        Ok(Asked::Show(Box::new(options)))
    })
}

/// What an option takes, if that was asked.
fn help_list(parsed: &Parsed) -> Option<String> {
    let asked = ["helpformat", "helpFormat", "helpstate"].into_iter().find(|name| parsed.has(name))?;
    Some(match asked {
        "helpformat" => choices::letters(COLUMNS.iter().map(|column| column.letter)),
        "helpFormat" => choices::names(&COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>()),
        _ => choices::lines(STATES.iter().filter(|state| state.2 != StateFilter::All).map(|state| state.0)),
    })
}

fn options(parsed: &Parsed, environment: Environment) -> Result<Options, Vec<String>> {
    let list = |option: &str, variable: &str| -> Option<Vec<String>> {
        let given = parsed.value(option).map(str::to_string);
        given.or_else(|| environment(variable)).map(|text| words(&text))
    };
    let conflict =
        |names: &str| vec![format!("error: Conflicting options, {names}, specified. Please choose one or the other.")];
    if parsed.has("all") && parsed.has("partition") {
        return Err(conflict("-a and -p"));
    }
    let is_silent = !parsed.has("all") && !parsed.has("partition");
    if is_silent && environment("SINFO_ALL").is_some() && environment("SINFO_PARTITION").is_some() {
        return Err(conflict("SINFO_ALL and SINFO_PARTITION"));
    }
    let iterate_secs = match parsed.value("iterate") {
        Some(text) => match text.parse() {
            Ok(secs) if secs > 0 => Some(secs),
            _ => return Err(vec![format!("error: Error: invalid entry for --iterate={text}")]),
        },
        None => None,
    };
    let (letters, names) = (parsed.value("format"), parsed.value("Format"));
    if letters.is_some() && names.is_some() {
        return Err(vec!["error: -O (--Format) is incompatible with -o (--format)".into()]);
    }
    // The variable serves the partitions' view only.
    let variable_counts =
        names.is_none() && !parsed.has("Node") && !parsed.has("list-reasons") && !parsed.has("summarize");
    let letters = letters.map(str::to_string).or_else(|| environment("SINFO_FORMAT").filter(|_| variable_counts));
    let time_format = environment("SLURM_TIME_FORMAT").filter(|format| !format.is_empty());
    let complaints = crate::zone::complaint(time_format.as_deref()).map(|problem| format!("error: {problem}"));
    Ok(Options {
        clusters: list("clusters", "SLURM_CLUSTERS").unwrap_or_default(),
        partitions: list("partition", "SINFO_PARTITION").filter(|_| !parsed.has("all")),
        // What is no list of names names nothing.
        nodes: parsed.value("nodes").map(|text| hostlist::expand(text).unwrap_or_default()),
        states: parsed.value("states").map(states).transpose()?,
        dead: parsed.has("dead"),
        responding: parsed.has("responding"),
        all: (parsed.has("all") || environment("SINFO_ALL").is_some()) && !parsed.has("hide"),
        exact: parsed.has("exact"),
        by_node: parsed.has("Node"),
        long: parsed.has("long"),
        reasons: parsed.has("list-reasons"),
        reservations: parsed.has("reservation"),
        summary: parsed.has("summarize"),
        letters,
        names: names.map(str::to_string),
        sort: parsed.value("sort").map(str::to_string).or_else(|| environment("SINFO_SORT")),
        heading: !parsed.has("noheader"),
        iterate_secs,
        json: parsed.has("json") || parsed.has("yaml"),
        shape: json::chosen(parsed)?,
        yaml: parsed.has("yaml"),
        converts: !parsed.has("noconvert"),
        listing: listing(parsed, LISTED),
        time_format,
        complaints: complaints.into_iter().collect(),
    })
}

fn states(text: &str) -> Result<Vec<Vec<StateFilter>>, Vec<String>> {
    let one = |word: &str| {
        let found =
            STATES.iter().find(|(long, short, _)| long.eq_ignore_ascii_case(word) || short.eq_ignore_ascii_case(word));
        found.map(|(.., filter)| *filter).ok_or_else(|| {
            vec![format!("error: Bad state string: \"{word}\""), format!("error: valid states: {}", help::STATES)]
        })
    };
    words(text).iter().map(|word| word.split('&').map(|part| one(part.trim())).collect()).collect()
}
