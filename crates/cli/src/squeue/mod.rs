//! `squeue`: the jobs of the cluster, or their steps.
use std::time::{Duration, Instant};

use model::Reject;
use model::config::Config;
use model::request::JobsPage;
use model::time::Span;

use crate::job_view::Scene;
use crate::json;
use crate::output::print;
use crate::render::{Format, View, all_letters, known_sort, parse_letters, parse_names, parse_sort, sort_rows};
use crate::trouble::Trouble;
use crate::users;
use crate::viewer::Viewer;
use crate::watch::Watch;
use crate::zone::Clock;

mod columns;
mod filter;
mod help;
mod options;
pub mod steps;

pub use crate::viewer::{Asked, Refusal, Shown};
pub use columns::{COLUMNS, Jobs};
pub use filter::{fits, is_meant, request};
pub use help::HELP;
pub use options::{FLAGS, Layout, Options, States, parse};

const DEFAULT: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
const LONG: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
const START: &str = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
const STEPS: &str = "%.15i %.8j %.9P %.8u %.9M %N";
const SORT: &str = "P,t,-p";
const SORT_START: &str = "S";

const VIEWER: Viewer = Viewer { program: "squeue", call: "slurm_load_jobs error:" };

pub fn run(arguments: &[String]) -> i32 {
    let asked = parse(arguments, &|name| std::env::var(name).ok());
    VIEWER.run(asked, |options| &options.complaints, |options| options.iterate_secs.is_some(), show)
}

async fn show(options: &Options) -> Result<i32, Trouble> {
    print(&options.listing);
    let Some((cluster, mut controller)) = VIEWER.connect(!options.listing.is_empty(), &options.clusters).await? else {
        return Ok(1);
    };
    let config = controller.configuration().await?.config;
    let options = &Options { all: options.all || users::sees_hidden(&config), ..options.clone() };
    if config.hides_partitions() && !options.shows_steps {
        eprintln!("slurm_load_partitions: {}", Reject::NotPermitted);
    }
    if let Some(secs) = options.iterate_secs {
        let watch = Watch::new(&cluster, request(options), Some(controller));
        return show_again_and_again(options, &config, watch, Duration::from_secs(secs)).await;
    }
    let page = controller.all_jobs(&request(options)).await?;
    Ok(put_out(options, &page, &config).unwrap_or(0))
}

/// Every interval what the jobs are then; the controller tells what has changed, nobody asks.
async fn show_again_and_again(
    options: &Options,
    config: &Config,
    mut watch: Watch,
    interval: Duration,
) -> Result<i32, Trouble> {
    let mut page = watch.next().await?;
    let mut received = Instant::now();
    loop {
        let now = page.now + Span(received.elapsed().as_micros() as u64);
        if let Some(code) = put_out(options, &JobsPage { now, ..page.clone() }, config) {
            return Ok(code);
        }
        if !print("\n") {
            return Ok(0);
        }
        let next_time = tokio::time::sleep(interval);
        tokio::pin!(next_time);
        loop {
            tokio::select! {
                () = &mut next_time => break,
                newer = watch.next() => {
                    page = newer?;
                    received = Instant::now();
                }
            }
        }
    }
}

fn put_out(options: &Options, page: &JobsPage, config: &Config) -> Option<i32> {
    let clock = Clock::local(options.time_format.as_deref(), page.now);
    render(options, page, config, &clock).put_out()
}

/// Everything `squeue` prints for one answer of the controller.
pub fn render(options: &Options, page: &JobsPage, config: &Config, clock: &Clock) -> Shown {
    if let (Some([_]), [_]) = (options.jobs.as_deref(), &page.unknown[..]) {
        let complaints = vec!["slurm_load_jobs error: Invalid job id specified".to_string()];
        return Shown { complaints, failed: true, ..Shown::default() };
    }
    if let Some(unknown) = unknown_node(options, config) {
        let complaints = vec![format!("squeue: error: Invalid node name {unknown}")];
        return Shown { complaints, failed: true, ..Shown::default() };
    }
    let scene = Scene {
        clock,
        config,
        progress: &page.progress,
        tasks_width: options.tasks_width,
        converts: options.converts,
        expands_patterns: options.expands_patterns,
        largest: Default::default(),
        measures: Default::default(),
    };
    if options.json {
        let rows = filter::one_by_one(options, filter::rows(options, &page.jobs, &scene));
        let text = json::jobs(json::settled(options.shape, config), "squeue", &config.cluster_name, &rows);
        return Shown { text: if options.yaml { json::yaml(&text) } else { text }, ..Shown::default() };
    }
    let mut shown = Shown::default();
    if !options.clusters.is_empty() {
        shown.text.push_str(&format!("CLUSTER: {}\n", config.cluster_name));
    }
    if options.banner && options.heading {
        shown.text.push_str(&clock.banner());
        shown.text.push('\n');
    }
    if options.shows_steps {
        let mut rows = steps::live_steps(&page.jobs, &page.steps, &scene);
        rows.retain(|row| fits(options, row.job.job, config, clock.now()) && is_step_meant(options, row));
        let usual = Usual { what: "job step", format: STEPS, sort: "" };
        table(options, &usual, steps::COLUMNS, rows, |rows| rows, &mut shown);
    } else {
        let mut rows = filter::rows(options, &page.jobs, &scene);
        filter::as_they_came(&mut rows);
        // Slurm has them so before it looks at what was asked for.
        sort_rows(&parse_sort(COLUMNS, "-S").unwrap_or_default(), &mut rows);
        let format = match (&options.layout, options.start) {
            (Layout::Long, false) => LONG,
            (_, true) => START,
            (_, false) => DEFAULT,
        };
        let usual = Usual { what: "job", format, sort: if options.start { SORT_START } else { SORT } };
        table(options, &usual, COLUMNS, rows, |rows| filter::one_by_one(options, rows), &mut shown);
    }
    shown
}

fn unknown_node<'a>(options: &'a Options, config: &Config) -> Option<&'a String> {
    let known = |name: &String| config.nodes.iter().any(|node| node.name.as_str() == name.as_str());
    options.nodes.iter().flatten().find(|name| !known(name))
}

fn is_step_meant(options: &Options, row: &steps::StepView) -> bool {
    let Some(wanted) = &options.steps else { return true };
    wanted.iter().any(|(job, step)| *step == row.id && is_meant(job, row.job.job))
}

/// Once the order of what each node gives.
const GONE: char = 'b';
/// Columns of jobs that have no order.
const UNSORTED: &str = "akoqrswxyAEFKRWXYZ";

/// What is listed where nothing else was asked for.
struct Usual {
    what: &'static str,
    format: &'static str,
    sort: &'static str,
}

fn table<'a, V: View>(
    options: &Options,
    usual: &Usual,
    columns: &'static [crate::render::Column<V>],
    mut rows: Vec<V::Row<'a>>,
    apart: impl FnOnce(Vec<V::Row<'a>>) -> Vec<V::Row<'a>>,
    shown: &mut Shown,
) {
    let (format, unknown) = match &options.layout {
        Layout::Letters(text) if text == "%all" => (all_letters(columns, columns::ALL), Vec::new()),
        Layout::Letters(text) => parse_letters(columns, text),
        Layout::Names(text) => parse_names(columns, text),
        Layout::Default | Layout::Long => parse_letters(columns, usual.format),
    };
    let what = usual.what;
    let complaint = |word: String| format!("squeue: error: Invalid {what} format specification: {word}");
    shown.complaints.extend(unknown.into_iter().map(complaint));
    let wanted = options.sort.as_deref().unwrap_or(usual.sort);
    // Told, and passed over.
    let gone = wanted.chars().filter(|letter| *letter == GONE);
    shown.complaints.extend(gone.map(|letter| format!("squeue: Invalid sort specification: {letter}")));
    let sorts = match options.shows_steps {
        true => Ok(known_sort(columns, wanted)),
        false => match wanted.chars().rev().find(|letter| UNSORTED.contains(*letter)) {
            Some(letter) => Err(letter.to_string()),
            None => parse_sort(columns, wanted),
        },
    };
    match sorts {
        Ok(sorts) => sort_rows(&sorts, &mut rows),
        Err(letter) => {
            if options.heading {
                format.heading(&mut shown.text);
            }
            shown.complaints.push(format!("squeue: error: Invalid sort specification: {letter}"));
            shown.failed = true;
            return;
        }
    }
    write_table(&format, &apart(rows), options.heading, &mut shown.text);
}

fn write_table<V: View>(format: &Format<V>, rows: &[V::Row<'_>], heading: bool, out: &mut String) {
    out.reserve(rows.len() * 96);
    if heading {
        format.heading(out);
    }
    let mut scratch = String::new();
    for row in rows {
        format.row(row, &mut scratch, out);
    }
}

#[cfg(test)]
mod tests;
