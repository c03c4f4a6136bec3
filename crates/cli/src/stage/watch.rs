//! `spur stage watch JOB`: a bar for each node and direction, until the job's data is where it belongs.
use model::request::{JobFilter, StagePage};
use model::staging::{Direction, NodeProgress};
use model::{JobId, JobRef, Reject};
use tokio_stream::StreamExt;
use wire::{CallError, Controller};

use super::bar::{Bar, Screen};
use crate::{context, job_ids};

pub const USAGE: &str = "stage watch JOB";

/// How long a controller that is away is waited for before the next try.
const AWAY: std::time::Duration = std::time::Duration::from_millis(200);

pub fn run(arguments: &[String]) -> Result<i32, String> {
    let job = match arguments {
        [verb, job] if verb == "watch" => job,
        _ => return Err(format!("usage: spur {USAGE}")),
    };
    let named = job_ids::parse_job(job).ok_or_else(|| format!("'{job}' is not the number of a job"))?;
    let cluster = context::cluster()?;
    context::block_on(async {
        let job = number_of(&cluster.controller_socket, job, named).await?;
        let mut screen = Screen::new("");
        let mut is_known = false;
        loop {
            match follow(&cluster.controller_socket, job, &mut screen, &mut is_known).await {
                Ok(last) => return conclude(job, last.as_ref()),
                // A controller that restarts goes on where it was; so do we.
                Err(CallError::Unreachable { .. } | CallError::Broken(_)) if is_known => tokio::time::sleep(AWAY).await,
                Err(error) => return Err(error.to_string()),
            }
        }
    })
}

/// A task of an array and a component of a heterogeneous job have numbers of their own.
async fn number_of(socket: &model::config::Sockets, text: &str, named: JobRef) -> Result<JobId, String> {
    if named.tasks.is_none() && named.component.is_none() {
        return Ok(named.job);
    }
    let told = |error: CallError| error.to_string();
    let mut controller = Controller::connect(socket).await.map_err(told)?;
    let filter = JobFilter { jobs: vec![named], with_finished: true, ..JobFilter::default() };
    let jobs = controller.all_jobs(&filter).await.map_err(told)?.jobs;
    let own: Vec<JobId> = jobs.iter().filter(|job| job.waiting_tasks.is_none()).map(|job| job.id).collect();
    match (&own[..], jobs.is_empty()) {
        ([one], _) => Ok(*one),
        ([], true) => Err(Reject::NoSuchJob.to_string()),
        ([], false) => Err(format!("{text} waits for its turn: nothing is staged for it yet")),
        (_, _) => Err(format!("{text} is several jobs: name one")),
    }
}

/// The last page, when nothing is left to move.
pub async fn follow(
    socket: &model::config::Sockets,
    job: JobId,
    screen: &mut Screen,
    is_known: &mut bool,
) -> Result<Option<StagePage>, CallError> {
    let mut controller = Controller::connect(socket).await?;
    let mut pages = std::pin::pin!(controller.watch_staging(job).await?);
    let mut last = None;
    while let Some(page) = pages.next().await {
        let page = page?;
        *is_known = true;
        if !screen.show(&heading(&page), &bars(&page.progress)) {
            break;
        }
        last = Some(page);
    }
    Ok(last)
}

fn conclude(job: JobId, last: Option<&StagePage>) -> Result<i32, String> {
    let Some(page) = last else { return Err(format!("job {job} is gone")) };
    if page.job.spec.buffer.is_none() {
        return Err(format!("job {job} has asked for no burst buffer"));
    }
    Ok(0)
}

/// `JobId=7 PENDING staging-in`, with what has failed.
pub fn heading(page: &StagePage) -> String {
    let state = page.job.state().name();
    let mut text = format!("JobId={} {state}", page.job.id);
    if let Some(buffer) = page.job.buffer_state() {
        text.push_str(&format!(" {}", buffer.word()));
    }
    if let Some(buffer) = page.buffer.as_ref().filter(|buffer| !buffer.failure.is_empty()) {
        text.push_str(&format!(": {}", buffer.failure));
    }
    text
}

pub fn bars(progress: &[NodeProgress]) -> Vec<Bar> {
    let width = progress.iter().map(|one| one.node.as_str().len()).max().unwrap_or(0);
    let bar = |one: &NodeProgress| {
        let direction = match one.progress.direction {
            Direction::In => "in ",
            Direction::Out => "out",
        };
        let note = match (one.is_stalled, one.progress.error.is_empty()) {
            (true, _) => "stalled".to_owned(),
            (false, _) => one.progress.error.clone(),
        };
        Bar {
            label: format!("{:width$} {direction}", one.node.as_str()),
            files: one.progress.n_files,
            files_total: one.progress.n_files_total,
            bytes: one.progress.n_bytes,
            bytes_total: one.progress.n_bytes_total,
            bytes_per_second: one.progress.bytes_per_second,
            note,
        }
    };
    progress.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::staging::Progress;

    #[test]
    fn every_node_and_direction_has_its_bar() {
        let one = |node: &str, direction, is_stalled| NodeProgress {
            node: node.into(),
            progress: Progress { direction, n_files: 1, n_files_total: 4, ..Progress::default() },
            is_stalled,
        };
        let bars = bars(&[one("n1", Direction::In, false), one("n10", Direction::Out, true)]);
        assert!(bars[0].line().starts_with("n1  in  [######...."), "{}", bars[0].line());
        assert!(bars[1].line().starts_with("n10 out [######"), "{}", bars[1].line());
        assert!(bars[1].line().ends_with("stalled"));
    }
}
