//! `scontrol listpids`, `listjobs`, `liststeps`: what runs on nodes, as the nodes themselves say.
use model::ask::LiveRun;
use model::request::JobFilter;
use model::{JobId, StepId};

use super::{Reply, asking};
use crate::live;

/// `listpids [JOB[.STEP]|*] [NODE]`
pub fn list(rest: &[String]) -> Reply {
    let wanted = match rest.first().map(String::as_str) {
        None | Some("*") => None,
        Some(text) => match place(text) {
            Some(place) => Some(place),
            None => return Reply::failed("scontrol: error: Job id is invalid"),
        },
    };
    let only = rest.get(1);
    asking("listpids", async |controller, cluster| {
        let jobs = wanted.map(|(job, _)| vec![job.into()]).unwrap_or_default();
        let page = controller.all_jobs(&JobFilter { jobs, ..JobFilter::default() }).await?;
        let mut runs = Vec::new();
        for job in page.jobs.iter().filter(|job| job.holds_nodes()) {
            for node in job.allocation.names().filter(|node| only.is_none_or(|only| only == node.as_str())) {
                runs.extend(live::runs_on(cluster, node.as_str(), Some(job.id)).await.unwrap_or_default());
            }
        }
        if let Some((_, Some(step))) = wanted {
            runs.retain(|run| run.step == step);
        }
        Ok(match (runs.is_empty(), wanted) {
            (true, Some((job, Some(step)))) => {
                Reply::failed(&format!("scontrol: error: StepId={job}.{step} does not exist on this node."))
            }
            (true, Some((job, None))) => {
                Reply::failed(&format!("scontrol: error: JobId={job} does not exist on this node."))
            }
            _ => Reply::text(table(&runs)),
        })
    })
}

/// `listjobs [NODE]`: those that have something running there.
pub fn jobs(rest: &[String]) -> Reply {
    listed(rest, "JOBID", |run| run.job.to_string())
}

/// `liststeps [NODE]`
pub fn steps(rest: &[String]) -> Reply {
    listed(rest, "JOBID    STEPID", |run| format!("{:<8} {}", run.job.to_string(), run.step))
}

/// Without a name, of this host, and of all nodes where none has its name: they may all be on one machine.
fn listed(rest: &[String], heading: &str, line: impl Fn(&LiveRun) -> String) -> Reply {
    let only = rest.first();
    asking("list", async |controller, cluster| {
        let nodes = controller.nodes().await?;
        let names: Vec<&str> = nodes.iter().map(|node| node.node.name.as_str()).collect();
        let named: Vec<&str> = match only {
            Some(name) if !names.contains(&name.as_str()) => {
                return Ok(Reply::failed(&format!("scontrol: error: Node {name} not found")));
            }
            Some(name) => vec![name],
            None => {
                let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
                let here: Vec<&str> = names.iter().filter(|name| **name == own).copied().collect();
                if here.is_empty() { names } else { here }
            }
        };
        let mut lines = Vec::new();
        for name in named {
            for run in live::runs_on(cluster, name, None).await.unwrap_or_default() {
                let line = line(&run);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        let rows = std::iter::once(heading.to_string()).chain(lines);
        Ok(Reply::text(rows.map(|row| row + "\n").collect()))
    })
}

fn place(text: &str) -> Option<(JobId, Option<StepId>)> {
    match text.split_once('.') {
        None => Some((text.parse().ok()?, None)),
        Some((job, "batch")) => Some((job.parse().ok()?, Some(StepId::Batch))),
        Some((job, step)) => Some((job.parse().ok()?, Some(StepId::Number(step.parse().ok()?)))),
    }
}

fn table(runs: &[LiveRun]) -> String {
    let line = |pid: &str, job: &str, step: &str, local: &str, global: &str| {
        format!("{pid:<8} {job:<8} {step:<8} {local:<7} {global:<8}\n")
    };
    let mut text = line("PID", "JOBID", "STEPID", "LOCALID", "GLOBALID");
    for run in runs {
        for process in &run.processes {
            let number = |number: Option<u32>| number.map_or("-".to_string(), |number| number.to_string());
            let (local, global) = (process.task.map(|task| task.0), process.task.map(|task| task.1));
            let (pid, job, step) = (process.pid.to_string(), run.job.to_string(), run.step.to_string());
            text.push_str(&line(&pid, &job, &step, &number(local), &number(global)));
        }
    }
    text
}
