//! `scontrol write batch_script`.
use std::path::PathBuf;

use model::request::JobFilter;

use crate::job_ids;
use crate::output::print_data;

use super::update_job::is_short_for as short;
use super::{Reply, asking, text_of};

/// What can be written.
pub const WRITTEN: [&str; 2] = [BATCH_SCRIPT, CONFIG];
const BATCH_SCRIPT: &str = "batch_script";
const CONFIG: &str = "config";

pub fn write(rest: &[String]) -> Reply {
    let Some(what) = rest.first() else {
        return Reply::failed("too few arguments for write keyword");
    };
    if short(what, CONFIG, 1) {
        return super::write_config::write(rest.get(1));
    }
    if !short(what, BATCH_SCRIPT, 1) {
        return Reply::failed(&format!("invalid write argument:{what}"));
    }
    let (Some(id), file) = (rest.get(1), rest.get(2)) else {
        return Reply::failed("too few arguments for write batch_script keyword");
    };
    let retrieval_failed =
        |why: &str| Reply { code: 0, ..Reply::failed(&format!("job script retrieval failed: {why}")) };
    let Some(job) = job_ids::parse_job(id) else { return retrieval_failed("Invalid job id specified") };
    asking("job script retrieval failed", async |controller, _| {
        let filter = JobFilter { jobs: vec![job.clone()], with_finished: true, ..JobFilter::default() };
        let page = controller.all_jobs(&filter).await?;
        let Some(job) = page.jobs.first() else { return Ok(retrieval_failed("Invalid job id specified")) };
        if !job.spec.is_batch() {
            return Ok(retrieval_failed("Only batch jobs are accepted or processed"));
        }
        let content = match controller.script(job.id).await {
            Ok(content) => content,
            Err(error) => return Ok(retrieval_failed(&text_of(&error))),
        };
        if file.is_some_and(|file| file == "-") {
            print_data(&content);
            return Ok(Reply::default());
        }
        let path = file.map_or_else(|| PathBuf::from(format!("slurm-{}.sh", job.id)), PathBuf::from);
        Ok(match std::fs::write(&path, content) {
            Ok(()) => Reply::text(format!("batch script for job {} written to {}\n", job.id, path.display())),
            Err(error) => Reply::failed(&format!("failed to write batch script {}: {error}", path.display())),
        })
    })
}
