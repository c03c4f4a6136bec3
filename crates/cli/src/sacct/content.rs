//! `sacct -B` and `--env-vars`: what a job ran, and in which environment.
use model::history::RunHistory;

use super::options::{Contents, Options};
use super::row;

pub fn write(options: &Options, runs: &[RunHistory], out: &mut String) {
    for run in runs {
        let (title, content) = match options.contents {
            Some(Contents::Script) => ("Batch Script", String::from_utf8_lossy(&run.script).into_owned()),
            Some(Contents::Environment) => {
                let entries = run.environment.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
                let lines: Vec<String> = entries.map(|entry| String::from_utf8_lossy(entry).into_owned()).collect();
                ("Environment used", lines.join("\n"))
            }
            None => return,
        };
        let title = match options.contents {
            Some(Contents::Environment) => format!("{title} for {} (must be batch to display)", row::job_id(&run.job)),
            _ => format!("{title} for {}", row::job_id(&run.job)),
        };
        let line = "-".repeat(80);
        let content = if content.is_empty() { "NONE" } else { content.as_str() };
        out.push_str(&format!("{title}\n{line}\n{content}\n"));
    }
}
