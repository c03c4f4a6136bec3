//! `spur sim`: a workload through the real scheduler on a simulated clock, beside another configuration or the textbook's rule.
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use model::{Config, duration};
use replay::{Outcome, Summary, Workload, easy, made, picture};
use serde_json::{Value as Json, json};

use super::Call;
use crate::getopt::{self, Flag, Operands, Parsed, Value, flag};

pub const USAGE: &str = "sim FILE|- [--config FILE] [--against FILE] [--easy] [--nodes N] [--cpus C] [--jobs N] \
    [--load FACTOR] [--users N] [--svg FILE] [--json] | sim --make N --cpus C [--nodes N] [--load SHARE] [--seed S]";

const FLAGS: &[Flag] = &[
    flag("config", Some('f'), Value::Required),
    flag("against", None, Value::Required),
    flag("easy", None, Value::None),
    flag("nodes", None, Value::Required),
    flag("cpus", None, Value::Required),
    flag("jobs", None, Value::Required),
    flag("load", None, Value::Required),
    flag("users", None, Value::Required),
    flag("svg", None, Value::Required),
    flag("json", None, Value::None),
    flag("make", None, Value::Required),
    flag("seed", None, Value::Required),
];

/// One way to run the workload, and what came of it.
struct Played {
    name: String,
    outcome: Outcome,
    summary: Summary,
    took: Duration,
}

pub fn run(call: &Call) -> Result<i32, String> {
    let parsed = getopt::parse(FLAGS, Operands::Mixed, call.arguments)?;
    if parsed.value("make").is_some() {
        return make(&parsed);
    }
    let [file] = &parsed.operands[..] else { return Err(format!("usage: spur {USAGE}")) };
    let mut workload = replay::parse(&read(file)?).map_err(|problem| format!("{file}: {problem}"))?;
    if let Some(n_jobs) = number(&parsed, "jobs")? {
        workload.shorten(n_jobs as usize);
    }
    if let Some(factor) = positive(&parsed, "load")? {
        workload.compress(factor);
    }
    let config = match parsed.value("config") {
        Some(_) if parsed.value("nodes").or(parsed.value("cpus")).is_some() => {
            return Err("--nodes and --cpus make a plain machine; with --config the nodes are those of the file".into());
        }
        Some(file) => load(file)?,
        None => replay::machine(&workload, number(&parsed, "nodes")?, number(&parsed, "cpus")?).config(),
    };
    let n_cpus: u64 = config.nodes.iter().map(|node| u64::from(node.config.cpus)).sum();
    let mut played = vec![play(parsed.value("config").unwrap_or("spur"), &config, &workload)];
    if let Some(file) = parsed.value("against") {
        played.push(play(file, &load(file)?, &workload));
    }
    if parsed.has("easy") {
        let begin = Instant::now();
        let outcome = easy::run(n_cpus, &workload);
        let summary = outcome.summary(&workload);
        played.push(Played { name: "textbook EASY".into(), outcome, summary, took: begin.elapsed() });
    }
    if let Some(path) = parsed.value("svg") {
        let shown: Vec<picture::Shown> =
            played.iter().map(|one| picture::Shown { name: &one.name, outcome: &one.outcome }).collect();
        let title = format!("{file}: {} jobs on {n_cpus} CPUs", workload.requests.len());
        let svg = picture::draw(&title, &workload, &shown);
        std::fs::write(path, svg).map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    let n_users = number(&parsed, "users")?.unwrap_or(0) as usize;
    match parsed.has("json") {
        true => say!("{}", as_json(&workload, &played, n_users)),
        false => {
            crate::output::print(&as_text(&workload, n_cpus, &played, n_users));
        }
    }
    Ok(0)
}

/// Writes a workload that nobody ran.
fn make(parsed: &Parsed) -> Result<i32, String> {
    let n_requests = number(parsed, "make")?.expect("it was given") as usize;
    let cpus =
        number(parsed, "cpus")?.ok_or("--make needs --cpus: how many there are, or with --nodes on each node")?;
    let n_cpus = cpus.checked_mul(number(parsed, "nodes")?.unwrap_or(1)).ok_or("too many CPUs")?;
    let seed = number(parsed, "seed")?.unwrap_or(1).into();
    let load = positive(parsed, "load")?.unwrap_or(0.8);
    crate::output::print(&made::swf(&made::workload(&made::Recipe { seed, n_requests, n_cpus, load })));
    Ok(0)
}

fn read(file: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let done = match file {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        _ => std::fs::read(file).map(|content| bytes = content),
    };
    done.map_err(|error| format!("{file}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn load(file: &str) -> Result<Config, String> {
    let (config, warnings) = config::load_with_warnings(Path::new(file)).map_err(|problems| problems.to_string())?;
    warnings.to_string().lines().for_each(|line| eprintln!("{line}"));
    Ok(config)
}

fn number(parsed: &Parsed, name: &str) -> Result<Option<u32>, String> {
    let Some(text) = parsed.value(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| format!("--{name}: {text:?} is not a number from 1"))
}

fn positive(parsed: &Parsed, name: &str) -> Result<Option<f64>, String> {
    let Some(text) = parsed.value(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.map(Some).ok_or_else(|| format!("--{name}: {text:?} is not a number above 0"))
}

fn play(name: &str, config: &Config, workload: &Workload) -> Played {
    let begin = Instant::now();
    let mut bar = Bar::new(name, workload.requests.len());
    let outcome = replay::run(config, workload, &mut |n_over| bar.show(n_over));
    bar.clear();
    let summary = outcome.summary(workload);
    Played { name: name.into(), outcome, summary, took: begin.elapsed() }
}

/// How far it is, on the terminal of whoever waits.
struct Bar<'a> {
    name: &'a str,
    n_all: usize,
    shown_at: Option<Instant>,
    is_terminal: bool,
}

impl<'a> Bar<'a> {
    const CELLS: usize = 30;

    fn new(name: &'a str, n_all: usize) -> Bar<'a> {
        Bar { name, n_all, shown_at: None, is_terminal: crate::output::TalkStream::Stderr.is_terminal() }
    }

    fn show(&mut self, n_over: usize) {
        let is_due = self.shown_at.is_none_or(|at| at.elapsed() > Duration::from_millis(100));
        if !self.is_terminal || !is_due {
            return;
        }
        self.shown_at = Some(Instant::now());
        let n_cells = n_over * Self::CELLS / self.n_all.max(1);
        let cells = format!("{}{}", "#".repeat(n_cells), ".".repeat(Self::CELLS - n_cells.min(Self::CELLS)));
        crate::output::redraw(&format!("\r{} [{cells}] {n_over}/{} jobs\x1b[K", self.name, self.n_all));
    }

    fn clear(&self) {
        if self.shown_at.is_some() {
            crate::output::redraw("\r\x1b[K");
        }
    }
}

/// A measure's name, its value, and how the value is read.
type Measure = (&'static str, fn(&Summary) -> f64, fn(f64) -> String);

const MEASURES: &[Measure] = &[
    ("jobs run", |summary| summary.n_runs as f64, |value| format!("{value:.0}")),
    ("mean wait", |summary| summary.mean_wait, |value| duration::show(value as u64)),
    ("median wait", |summary| summary.median_wait as f64, |value| duration::show(value as u64)),
    ("95 % waited at most", |summary| summary.p95_wait as f64, |value| duration::show(value as u64)),
    ("longest wait", |summary| summary.max_wait as f64, |value| duration::show(value as u64)),
    ("bounded slowdown", |summary| summary.bounded_slowdown, |value| format!("{value:.2}")),
    ("utilisation", |summary| summary.utilisation, |value| format!("{:.1} %", value * 100.0)),
    ("makespan", |summary| summary.makespan as f64, |value| duration::show(value as u64)),
];

fn as_text(workload: &Workload, n_cpus: u64, played: &[Played], n_users: usize) -> String {
    let mut text = format!(
        "{} jobs, {n_cpus} CPUs, load {:.2}; {} records left out\n\n",
        workload.requests.len(),
        workload.load(n_cpus),
        workload.n_left_out
    );
    let width = played.iter().map(|one| one.name.chars().count()).max().unwrap_or(0).max(14);
    text.push_str(&format!("{:20}", ""));
    for one in played {
        text.push_str(&format!("  {:>width$}", one.name));
    }
    text.push('\n');
    for (name, value, show) in MEASURES {
        text.push_str(&format!("{name:20}"));
        for one in played {
            text.push_str(&format!("  {:>width$}", show(value(&one.summary))));
        }
        if let [first, second, ..] = played
            && *name != "jobs run"
        {
            let (first, second) = (value(&first.summary), value(&second.summary));
            if second > 0.0 {
                text.push_str(&format!("  {:+.1} %", (first / second - 1.0) * 100.0));
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("{:20}", "simulated in"));
    for one in played {
        text.push_str(&format!("  {:>width$}", format!("{:.1} s", one.took.as_secs_f64())));
    }
    text.push('\n');
    for one in played {
        if let Some(first) = one.outcome.refused.first() {
            let n_refused = one.outcome.refused.len();
            text.push_str(&format!("{}: {n_refused} refused; job {}: {}\n", one.name, first.name, first.why));
        }
        if one.outcome.n_never_started > 0 {
            text.push_str(&format!("{}: {} never started\n", one.name, one.outcome.n_never_started));
        }
    }
    for one in played.iter().filter(|_| n_users > 0) {
        text.push_str(&format!(
            "\n{}\n{:12} {:>7} {:>12} {:>12} {:>10}\n",
            one.name, "user", "jobs", "CPU hours", "mean wait", "slowdown"
        ));
        for user in one.outcome.users(workload).iter().take(n_users) {
            let wait = duration::show(user.mean_wait as u64);
            let (hours, slowdown) = (user.cpu_seconds / 3600.0, user.bounded_slowdown);
            text.push_str(&format!("{:12} {:>7} {hours:>12.1} {wait:>12} {slowdown:>10.2}\n", user.user, user.n_runs));
        }
    }
    text
}

fn as_json(workload: &Workload, played: &[Played], n_users: usize) -> Json {
    let each = played.iter().map(|one| {
        let Summary { n_runs, mean_wait, median_wait, p95_wait, max_wait, bounded_slowdown, utilisation, makespan } =
            &one.summary;
        let users = one.outcome.users(workload).into_iter().take(n_users).map(|user| {
            json!({ "user": user.user, "jobs": user.n_runs, "cpu_seconds": user.cpu_seconds,
                "mean_wait": user.mean_wait, "bounded_slowdown": user.bounded_slowdown })
        });
        let users: Vec<Json> = users.collect();
        let refused = one.outcome.refused.iter().map(|one| json!({ "job": one.name, "why": one.why }));
        let refused: Vec<Json> = refused.collect();
        json!({ "name": one.name, "jobs": n_runs, "mean_wait": mean_wait, "median_wait": median_wait, "p95_wait": p95_wait,
            "max_wait": max_wait, "bounded_slowdown": bounded_slowdown, "utilisation": utilisation, "makespan": makespan,
            "plans": one.outcome.n_plans, "seconds": one.took.as_secs_f64(), "never_started": one.outcome.n_never_started,
            "refused": refused, "users": users })
    });
    json!({ "jobs": workload.requests.len(), "left_out": workload.n_left_out, "runs": each.collect::<Vec<_>>() })
}
