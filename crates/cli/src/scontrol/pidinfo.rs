//! `scontrol pidinfo PID`: the job a process on this machine belongs to, and how long that may still run.
use model::JobId;
use model::request::JobFilter;

use super::{Reply, asking, now};
use crate::live;

pub fn tell(rest: &[String]) -> Reply {
    let Some(word) = rest.first() else { return Reply::failed("too few arguments for keyword:pidinfo") };
    let Ok(pid) = word.parse::<u32>() else {
        return Reply::failed("numeric arguments required for keyword:pidinfo");
    };
    asking("slurm_pid2jobid error", async |controller, cluster| {
        let page = controller.all_jobs(&JobFilter::default()).await?;
        for job in page.jobs.iter().filter(|job| job.holds_nodes()) {
            for node in job.allocation.names() {
                let runs = live::runs_on(cluster, node.as_str(), Some(job.id)).await.unwrap_or_default();
                if runs.iter().flat_map(|run| &run.processes).any(|process| process.pid == pid) {
                    return Ok(Reply::text(text(job.id, job.end_time())));
                }
            }
        }
        Ok(Reply::failed("Failed to locate job for requested pid"))
    })
}

fn text(job: JobId, end: Option<model::Timestamp>) -> String {
    let clock = now();
    let left = end.map_or("INFINITE".to_string(), |end| end.secs().saturating_sub(clock.now().secs()).to_string());
    format!("Slurm JobId={job} ends at {}\nJob remaining time is {left}\n", clock.show_or(end, "Unknown"))
}
