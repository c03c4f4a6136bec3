//! `seff`: how much of what a job held it made use of.
use model::history::RunHistory;
use model::spec::Memory;
use model::{Timestamp, duration};

use crate::getopt::{self, Flag, Operands, Value, flag};
use crate::output::print;
use crate::trouble::Trouble;
use crate::version;
use crate::viewer::{Asked, Refusal, Viewer};
use crate::zone::Clock;

use super::options::{self, Options};
use super::row;

pub const FLAGS: &[Flag] = &[flag("help", Some('h'), Value::None), flag("version", Some('v'), Value::None)];

pub const HELP: &str = "\
Usage: seff [Options] <Jobid>
       Options:
       -h    Help menu
       -v    Version
";

const VIEWER: Viewer = Viewer { program: "seff", call: "seff: error:" };

pub fn run(arguments: &[String]) -> i32 {
    let parsed = match getopt::parse(FLAGS, Operands::Mixed, arguments) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("seff: {problem}");
            return misused();
        }
    };
    if parsed.has("version") {
        print(&version::line());
        return 1;
    }
    let [job] = &parsed.operands[..] else { return misused() };
    if parsed.has("help") {
        return misused();
    }
    VIEWER.run(query(job), |options| &options.complaints, |_| false, show)
}

/// As with the script of this name, whoever only wants help has not got what seff is for.
fn misused() -> i32 {
    print(HELP);
    1
}

/// The same question as `sacct -j JOB`, whatever sacct's own variables say.
fn query(job: &str) -> Result<Asked<Options>, Refusal> {
    options::parse(&["-j".to_string(), job.to_string()], &|_| None, &Clock::local(None, Timestamp::default()))
}

async fn show(options: &Options) -> Result<i32, Trouble> {
    let Some((_, mut controller)) = VIEWER.connect(false, &[]).await? else { return Ok(1) };
    let config = controller.configuration().await?.config;
    let mut pages = controller.history(&options.query).await?;
    while let Some(page) = pages.next().await? {
        let clock = Clock::local(None, page.now);
        let accounts = Default::default();
        let scene = row::Scene { clock: &clock, config: &config, options, accounts: &accounts };
        if let Some(run) = page.runs.last() {
            let row = row::of_job(run, &scene);
            print(&report(run, &config.cluster_name, row.n_cpus(), row.elapsed_secs()));
            return Ok(0);
        }
    }
    eprintln!("Job not found.");
    Ok(2)
}

/// What there is to say of the job.
pub(super) fn report(run: &RunHistory, cluster_name: &str, n_cpus: u32, elapsed_secs: u64) -> String {
    let job = &run.job;
    let (n_cpus, n_nodes) = (u64::from(n_cpus.max(1)), u64::from(job.held.n_nodes.max(1)));
    let mut lines = vec![format!("Job ID: {}", job.job)];
    if let (Some(array), Some(task)) = (job.array, job.task) {
        lines.push(format!("Array Job ID: {array}_{task}"));
    }
    lines.push(format!("Cluster: {cluster_name}"));
    lines.push(format!("User/Group: {}/{}", job.user, job.group));
    lines.push(match job.state.as_str() {
        state @ ("PENDING" | "RUNNING") => format!("State: {state}"),
        state => format!("State: {state} (exit code {})", job.exit.code),
    });
    match n_cpus {
        1 => lines.push("Cores: 1".into()),
        _ => lines.extend([format!("Nodes: {n_nodes}"), format!("Cores per node: {}", n_cpus / n_nodes)]),
    }
    if job.state == "PENDING" {
        lines.push("Efficiency not available for jobs in the PENDING state.".into());
        return lines.join("\n") + "\n";
    }
    let usages = || run.steps.iter().filter_map(|step| step.usage.as_deref());
    let cpu_micros: u64 = usages().map(|usage| usage.user_cpu.0 + usage.system_cpu.0).sum();
    let (cpu_secs, walltime) = ((cpu_micros + 500_000) / 1_000_000, elapsed_secs * n_cpus);
    lines.push(format!("CPU Utilized: {}", duration::show(cpu_secs)));
    let efficiency = percent(cpu_secs, walltime);
    lines.push(format!("CPU Efficiency: {efficiency:.2}% of {} core-walltime", duration::show(walltime)));
    lines.push(format!("Job Wall-clock time: {}", duration::show(elapsed_secs)));
    // The step with the largest task; all its tasks may have been as large.
    let largest = usages().filter(|usage| usage.rss_bytes.max > 0).max_by_key(|usage| usage.rss_bytes.max);
    let (n_tasks, used) =
        largest.map_or((0, 0), |usage| (usage.n_tasks, usage.rss_bytes.max / 1024 * u64::from(usage.n_tasks)));
    let (held, part) = match job.memory {
        Memory::PerCpuMb(megabytes) => (megabytes * 1024 * n_cpus, (megabytes * 1024, "core")),
        Memory::PerNodeMb(megabytes) => (megabytes * 1024 * n_nodes, (megabytes * 1024, "node")),
        Memory::Default | Memory::WholeNode | Memory::PerGpuMb(_) => {
            let all = job.held.memory_mb * 1024;
            (all, (all / n_nodes, "node"))
        }
    };
    let (used_text, held_text) = (size(used), size(held));
    let efficiency = percent(used, held);
    match n_tasks {
        1 => {
            lines.push(format!("Memory Utilized: {used_text}"));
            lines.push(format!("Memory Efficiency: {efficiency:.2}% of {held_text}"));
        }
        _ => {
            lines.push(format!("Memory Utilized: {used_text} (estimated maximum)"));
            let (each, of) = part;
            lines.push(format!("Memory Efficiency: {efficiency:.2}% of {held_text} ({}/{of})", size(each)));
        }
    }
    if job.state == "RUNNING" {
        lines.push("WARNING: Efficiency statistics may be misleading for RUNNING jobs.".into());
    }
    lines.join("\n") + "\n"
}

fn percent(used: u64, held: u64) -> f64 {
    if held == 0 { 0.0 } else { used as f64 / held as f64 * 100.0 }
}

/// Kilobytes in the largest unit of which there is one.
fn size(kilobytes: u64) -> String {
    if kilobytes == 0 {
        return "0.00 MB".into();
    }
    let units = ["KB", "MB", "GB", "TB", "PB", "EB"];
    let (mut value, mut unit) = (kilobytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    format!("{value:.2} {}", units[unit])
}
