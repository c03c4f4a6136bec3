//! `sprio`: what the priorities of waiting jobs are made of.
use model::capacity::Measures;
use model::config::Config;
use model::priority::{self, Factors, PriorityKind, TresPart};
use model::request::{JobFilter, JobsPage};
use model::{Job, Phase, Reason};

use crate::output::print;
use crate::render::{Format, parse_letters, parse_sort, sort_rows};
use crate::trouble::Trouble;
use crate::users::Names;
use crate::viewer::{Shown, Viewer};

mod columns;
mod help;
mod options;

pub use columns::{COLUMNS, Priorities};
pub use help::HELP;
pub use options::{FLAGS, Options, parse};

const VIEWER: Viewer = Viewer { program: "sprio", call: "slurm_load_jobs error:" };

pub fn run(arguments: &[String]) -> i32 {
    let asked = parse(arguments, &|name| std::env::var(name).ok());
    VIEWER.run(asked, |options| &options.complaints, |_| false, show)
}

async fn show(options: &Options) -> Result<i32, Trouble> {
    if options.verbose {
        let jobs: Vec<String> = options.jobs.iter().map(|job| job.to_string()).collect();
        let line = "-".repeat(29);
        let or_null = |text: String| if text.is_empty() { "(null)".to_string() } else { text };
        let users: Vec<String> = options.uids.iter().map(|uid| uid.to_string()).collect();
        let format = options.letters.as_deref().unwrap_or("(null)");
        let (flag, partitions) = (u8::from(!jobs.is_empty()), options.partitions.join(","));
        print(&format!(
            "{line}\nformat     = {format}\njob_flag   = {flag}\njobs       = {}\npartition  = {}\nusers      = {}\nverbose    = 1\n{line}\n\n\n",
            or_null(jobs.join(",")),
            or_null(partitions),
            or_null(users.join(",")),
        ));
    }
    let Some((_, mut controller)) = VIEWER.connect(options.verbose, &options.clusters).await? else {
        return Ok(1);
    };
    let config = controller.configuration().await?.config;
    let filter = JobFilter { jobs: options.jobs.clone(), uids: options.uids.clone(), ..Default::default() };
    let page = controller.all_jobs(&filter).await?;
    Ok(render(options, &page, &config).put_out().unwrap_or(0))
}

/// Columns that have no order.
const UNSORTED: &str = "bnoBS";

/// One job in one of its partitions, or the weights.
pub struct Row<'a> {
    pub job: Option<&'a Job>,
    pub partition: &'a str,
    pub factors: Factors,
    pub tres: Vec<TresPart>,
    pub priority: u32,
    pub config: &'a Config,
    pub names: &'a Names,
}

/// Everything `sprio` prints for one answer of the controller.
pub fn render(options: &Options, page: &JobsPage, config: &Config) -> Shown {
    let mut shown = Shown::default();
    if config.scheduler.priority.kind != PriorityKind::Multifactor {
        shown.complaints.push(
            "You are not running a supported priority plugin\n(priority/basic).\n\
             Only 'priority/multifactor' is supported."
                .into(),
        );
        shown.failed = true;
        return shown;
    }
    let names = Names::default();
    let (mut format, unknown) = format(options, config);
    format.cells.retain(|cell| cell.column.is_some());
    let complaint = |letter: String| format!("sprio: error: Invalid job format specification: {letter}");
    shown.complaints.extend(unknown.into_iter().map(complaint));
    let mut scratch = String::new();
    if options.weights {
        if options.heading {
            format.heading(&mut shown.text);
        }
        let weights = Row {
            job: None,
            partition: "",
            factors: Factors::default(),
            tres: Vec::new(),
            priority: 0,
            config,
            names: &names,
        };
        format.row(&weights, &mut scratch, &mut shown.text);
        return shown;
    }
    let mut rows = rows(options, page, config, &names);
    let wanted = options.sort.as_deref().unwrap_or("i");
    let has_order = |sign: char| {
        ",#+-".contains(sign) || !UNSORTED.contains(sign) && COLUMNS.iter().any(|column| column.letter == sign)
    };
    // The last that is wrong, as in Slurm.
    let sorts = match wanted.chars().rev().find(|sign| !has_order(*sign)) {
        Some(letter) => Err(letter.to_string()),
        None => parse_sort(COLUMNS, wanted),
    };
    match sorts {
        Ok(sorts) => sort_rows(&sorts, &mut rows),
        Err(letter) => {
            if options.heading {
                format.heading(&mut shown.text);
            }
            shown.complaints.push(format!("sprio: error: Invalid sort specification: {letter}"));
            shown.failed = true;
            return shown;
        }
    }
    if rows.is_empty() && !options.jobs.is_empty() {
        shown.text.push_str("Unable to find jobs matching user/id(s) specified\n");
        return shown;
    }
    if options.heading {
        format.heading(&mut shown.text);
    }
    for row in &rows {
        format.row(row, &mut scratch, &mut shown.text);
    }
    shown
}

/// What has been eligible once may wait for its own siblings, or for a moment again.
fn waits_beside_the_queue(job: &Job) -> bool {
    let reasons = [Reason::JobArrayTaskLimit, Reason::BeginTime, Reason::Dependency, Reason::DependencyNeverSatisfied];
    job.reason.is_some_and(|reason| reasons.contains(&reason))
}

/// Jobs that are not eligible yet have none that counts; a job has one in each of its partitions. Those that have their nodes keep theirs, unless it is
/// computed for them too.
fn rows<'a>(options: &Options, page: &'a JobsPage, config: &'a Config, names: &'a Names) -> Vec<Row<'a>> {
    let computed = config.scheduler.priority.calculates_running;
    let is_weighed = |job: &&Job| match job.phase {
        Phase::Pending => job.held.is_none() && job.eligible.is_some() && !waits_beside_the_queue(job),
        Phase::Starting | Phase::Running | Phase::Suspended => computed,
        Phase::Ending | Phase::Finishing | Phase::Done => false,
    };
    let weighed = page.jobs.iter().filter(|_| !options.is_about_nobody).filter(is_weighed);
    let is_meant = |name: &&String| options.partitions.is_empty() || options.partitions.contains(name);
    let measures = Measures::of(config);
    let row = |job: &'a Job, partition: &'a str| {
        let (factors, tres, priority) = match job.spec.priority {
            Some(priority) => (Factors::default(), Vec::new(), priority),
            None => {
                let factors = Factors::of(config, &measures, job, partition, page.now);
                let tres = priority::tres_parts(config, &measures, job, partition);
                (factors, tres, priority::total(config, job, &factors))
            }
        };
        Row { job: Some(job), partition, factors, tres, priority, config, names }
    };
    let mut rows = Vec::new();
    for job in weighed {
        rows.extend(job.spec.partitions.iter().filter(is_meant).map(|partition| row(job, partition)));
    }
    rows
}

fn format(options: &Options, config: &Config) -> (Format<Priorities>, Vec<String>) {
    if let Some(letters) = &options.letters {
        return parse_letters(COLUMNS, letters);
    }
    // Who asks for users wants to see them.
    let user = if options.uids.is_empty() { "" } else { " %.8u" };
    let text = match (options.normalized, options.long) {
        (true, true) => "%.15i %9r %.8u %10y %10a %10b %10f %10j %10p %10q %20t".to_string(),
        (false, true) => "%.15i %9r %.8u %.10Y %.10S %.10A %.10B %.10F %.10J %.10P %.10Q %.11N %.20T".to_string(),
        (true, false) => {
            with_weighted(config, &format!("%.15i %9r{user} %10y"), |letter, width| format!(" %{width}{letter}"))
        }
        (false, false) => with_weighted(config, &format!("%.15i %9r{user} %.10Y %.10S"), |letter, width| {
            format!(" %.{width}{}", letter.to_ascii_uppercase())
        }),
    };
    parse_letters(COLUMNS, &text)
}

/// Only factors that count are shown.
fn with_weighted(config: &Config, begin: &str, field: impl Fn(char, u32) -> String) -> String {
    let weights = &config.scheduler.priority;
    let by_letter = [
        ('a', weights.weight_age),
        ('b', weights.weight_association),
        ('f', weights.weight_fair_share),
        ('j', weights.weight_job_size),
        ('p', weights.weight_partition),
        ('q', weights.weight_qos),
    ];
    let fields = by_letter.iter().filter(|(_, weight)| *weight > 0).map(|(letter, _)| field(*letter, 10));
    let tres = (!weights.weight_tres.is_empty()).then(|| field('t', 20));
    std::iter::once(begin.to_string()).chain(fields).chain(tres).collect()
}

#[cfg(test)]
mod tests;
