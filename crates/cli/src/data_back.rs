//! `--wait-bb`: a command that returns only when the job's data is back from its burst buffer.
use config::Client;
use model::request::JobFilter;
use model::{BufferPhase, Job, JobId};

use crate::watch::Watch;

/// Says whether everything came back; what is in its way is told, and ends the wait.
pub async fn wait(program: &str, cluster: &Client, job: JobId) -> bool {
    let filter = JobFilter { jobs: vec![job.into()], with_finished: true, ..JobFilter::default() };
    let mut watch = Watch::new(cluster, filter, None);
    // A job that nobody knows any more has nothing on its way.
    while let Ok(page) = watch.next().await {
        if let Some(stuck) = page.jobs.iter().find(|job| is_stuck(job)) {
            eprintln!("{program}: error: {}", stuck.buffer_failure);
            return false;
        }
        if page.jobs.iter().all(is_back) {
            return true;
        }
    }
    true
}

/// It is over, and nothing is left of its buffer.
pub fn is_back(job: &Job) -> bool {
    job.is_over() && job.buffer.is_none()
}

/// Its data is not brought back before somebody helps.
pub fn is_stuck(job: &Job) -> bool {
    let is_out = matches!(job.buffer, Some(BufferPhase::PostRun | BufferPhase::StagingOut));
    is_out && !job.buffer_failure.is_empty()
}
