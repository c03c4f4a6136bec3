//! `scontrol show bbstat` for native burst buffers: pools, jobs, nodes, and one job's files as its agents know them.
use std::collections::BTreeMap;

use config::Client;
use model::ask::{Answer, MoveError, MovedFile, Question};
use model::buffer::Place;
use model::request::BurstPage;
use model::staging::{Access, Direction, Home};
use model::{Buffer, BufferPhase, Job, JobId, size};
use wire::{CallError, NodeAgent};

use super::Reply;
use crate::live::{other_answer, way};
use crate::staging_view::Total;

const USAGE: &str = "expected pools, jobs, nodes, or job and its number, and then files, errors or manifest";

pub async fn show(cluster: &Client, page: &BurstPage, words: &[String]) -> Result<Reply, CallError> {
    if page.config.is_none() {
        return Ok(Reply::text(String::new()));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match &words[..] {
        [] | ["pools"] => Reply::text(pools(page)),
        ["jobs"] => Reply::text(jobs(page)),
        ["nodes"] => Reply::text(nodes(page)),
        ["job", id, rest @ ..] if rest.len() < 2 => match (find(page, id), rest) {
            (None, _) => Reply::failed(&format!("scontrol: error: job {id} has no burst buffer")),
            (Some((job, buffer)), []) => Reply::text(one(page, job, buffer)),
            (Some((_, buffer)), ["files"]) => Reply::text(files(cluster, buffer, file_line).await?),
            (Some((_, buffer)), ["manifest"]) => Reply::text(files(cluster, buffer, manifest_line).await?),
            (Some((_, buffer)), ["errors"]) => Reply::text(errors(cluster, buffer).await?),
            _ => Reply::failed(&format!("scontrol: error: {USAGE}")),
        },
        _ => Reply::failed(&format!("scontrol: error: {USAGE}")),
    })
}

/// By its number, as a task of an array, or as a component of a heterogeneous job.
fn find<'a>(page: &'a BurstPage, id: &str) -> Option<(&'a Job, &'a Buffer)> {
    let is_it = |job: &&Job| {
        let task = job.array_id().zip(job.array_task()).map(|(array, task)| format!("{array}_{task}"));
        let component = job.het.as_ref().map(|het| format!("{}+{}", het.leader, het.offset));
        job.id.to_string() == id || task.is_some_and(|task| task == id) || component.is_some_and(|it| it == id)
    };
    let job = page.jobs.iter().find(is_it)?;
    Some((job, page.buffers.iter().find(|buffer| buffer.job == job.id)?))
}

fn pools(page: &BurstPage) -> String {
    let mut out = String::from("POOL             TOTAL      FREE       USED       PROBLEMS\n");
    for pool in &page.pools {
        let sizes = [pool.total_bytes, pool.free_bytes, pool.used_bytes];
        let [total, free, used] = sizes.map(size::show_bytes);
        let line = format!("{:<16} {total:<10} {free:<10} {used:<10} {}", pool.name, pool.problems.join("; "));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn jobs(page: &BurstPage) -> String {
    let mut out = String::from("JOBID      STATE        PROGRESS\n");
    page.jobs.iter().for_each(|job| job_line(job, page, &mut out));
    out
}

fn job_line(job: &Job, page: &BurstPage, out: &mut String) {
    let state = job.buffer_state().map_or("", |state| state.word());
    let progress = match Total::of(job, &page.progress) {
        Some(total) => total.show(),
        None => job.buffer_failure.clone(),
    };
    out.push_str(format!("{:<10} {state:<12} {progress}", job.id.to_string()).trim_end());
    out.push('\n');
}

/// The job, and each of its directories with how far it is.
fn one(page: &BurstPage, job: &Job, buffer: &Buffer) -> String {
    let mut out = String::new();
    job_line(job, page, &mut out);
    for place in &buffer.places {
        let own = page.progress.iter().find(|one| one.node == place.node && is_of(job.id, place, &one.progress.home));
        let moving = own.and_then(|one| Total::of(job, std::slice::from_ref(one)));
        let state = match (place.is_done, place.failure.as_str(), moving) {
            (_, failure, _) if !failure.is_empty() => failure.to_owned(),
            (true, _, _) => "done".into(),
            (false, _, Some(total)) => total.show(),
            (false, _, None) if is_filled(place, buffer.phase) => "staged".into(),
            (false, _, None) => "open".into(),
        };
        let mut line = format!("  {} {} {} {state}", place.node, access(place.access), place.root);
        if let Some(one) = own.filter(|_| !place.is_done) {
            let average = size::show_rounded_bytes(one.progress.average_bytes_per_second);
            line.push_str(&format!(" average={average}/s retries={}", one.progress.n_retries));
            if !one.progress.error.is_empty() {
                line.push_str(&format!(" error={}", one.progress.error));
            }
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn is_of(id: JobId, place: &Place, home: &Option<Home>) -> bool {
    matches!(home, Some(Home::Job { job, access, .. }) if *job == id && *access == place.access)
}

/// Its data is there, and is not on its way anywhere.
fn is_filled(place: &Place, phase: BufferPhase) -> bool {
    use BufferPhase::*;
    match phase {
        Allocating | StagingIn | StagedIn | Deleting | PreRun | Revoked | InUse | PostRun => place.is_staged,
        StagingOut | TearingDown => false,
    }
}

fn access(access: Access) -> &'static str {
    match access {
        Access::Shared => "shared",
        Access::Private => "private",
    }
}

fn nodes(page: &BurstPage) -> String {
    let mut out = String::from("NODE             JOBS MOVING RATE\n");
    let mut nodes: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for place in page.buffers.iter().flat_map(|buffer| &buffer.places) {
        nodes.entry(place.node.as_str()).or_default().0 += 1;
    }
    for one in &page.progress {
        let entry = nodes.entry(one.node.as_str()).or_default();
        if one.progress.n_bytes < one.progress.n_bytes_total {
            entry.1 += 1;
            entry.2 += one.progress.bytes_per_second;
        }
    }
    for (node, (jobs, moving, rate)) in nodes {
        out.push_str(&format!("{node:<16} {jobs:<4} {moving:<6} {}/s\n", size::show_rounded_bytes(rate)));
    }
    out
}

type Line = fn(&str, &MovedFile) -> String;

/// `n1 in 12GiB /local/bb/jobs/7.1/private/set/a`
fn file_line(node: &str, file: &MovedFile) -> String {
    format!("{node} {} {} {}\n", way_word(file.direction), size::show_bytes(file.size_bytes), file.path)
}

/// Sum, bytes, path: the first and the last as `sha256sum` has them.
fn manifest_line(_: &str, file: &MovedFile) -> String {
    let hash = if file.hash.is_empty() { "-" } else { &file.hash };
    format!("{hash}  {}  {}\n", file.size_bytes, file.path)
}

fn way_word(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::Out => "out",
    }
}

async fn files(cluster: &Client, buffer: &Buffer, line: Line) -> Result<String, CallError> {
    let mut out = String::new();
    for place in &buffer.places {
        let mut agent = NodeAgent::connect(&way(cluster, place.node.as_str())).await?;
        let mut from = Some(0);
        while let Some(start) = from {
            match agent.ask(&Question::Moved { home: buffer.home(place), from: start }).await? {
                Answer::Moved(told) => {
                    told.files.iter().for_each(|file| out.push_str(&line(place.node.as_str(), file)));
                    from = told.next;
                }
                Answer::Refused { why } => return Err(CallError::Other(why)),
                _ => return Err(other_answer()),
            }
        }
    }
    Ok(out)
}

async fn errors(cluster: &Client, buffer: &Buffer) -> Result<String, CallError> {
    let mut out = String::new();
    for place in &buffer.places {
        let mut agent = NodeAgent::connect(&way(cluster, place.node.as_str())).await?;
        match agent.ask(&Question::MoveErrors { home: buffer.home(place) }).await? {
            Answer::MoveErrors(told) => {
                told.iter().for_each(|error| out.push_str(&error_line(place.node.as_str(), error)));
            }
            Answer::Refused { why } => return Err(CallError::Other(why)),
            _ => return Err(other_answer()),
        }
    }
    Ok(out)
}

fn error_line(node: &str, error: &MoveError) -> String {
    let kind = if error.is_warning { "warning" } else { "error" };
    format!("{node} {} {kind}: {}\n", way_word(error.direction), error.text)
}

#[cfg(test)]
mod tests {
    use model::staging::{NodeProgress, Progress};

    use super::*;

    #[test]
    fn a_node_that_moves_nothing_has_no_rate() {
        let home = Home::Job { job: JobId(7), epoch: 1, access: Access::Private };
        let one = |node: &str, n_bytes: u64| NodeProgress {
            node: node.into(),
            progress: Progress {
                home: Some(home.clone()),
                n_bytes,
                n_bytes_total: 8 << 20,
                bytes_per_second: 2 << 20,
                ..Default::default()
            },
            ..Default::default()
        };
        let place = |node: &str| Place { access: Access::Private, node: node.into(), ..Default::default() };
        let buffer = Buffer { job: JobId(7), places: vec![place("n1"), place("n2")], ..Default::default() };
        // What was told last of n2 was its rate at the end.
        let progress = vec![one("n1", 1 << 20), one("n2", 8 << 20)];
        let page = BurstPage { buffers: vec![buffer], progress, ..Default::default() };
        let lines = ["NODE JOBS MOVING RATE", "n1 1 1 2MiB/s", "n2 1 0 0B/s"];
        let shown = nodes(&page);
        let plain: Vec<String> =
            shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(plain, lines);
    }

    #[test]
    fn a_directory_is_told_of_by_what_moves_there_and_not_beside_it() {
        let progress = |id: u32, n_files, average| NodeProgress {
            node: "n1".into(),
            progress: Progress {
                home: Some(Home::Job { job: JobId(id), epoch: 1, access: Access::Private }),
                attempt: 1,
                n_files,
                n_files_total: 8,
                average_bytes_per_second: average,
                ..Default::default()
            },
            ..Default::default()
        };
        let job = |phase| Job { id: JobId(7), buffer: Some(phase), ..Default::default() };
        let place = |is_staged| Place { access: Access::Private, node: "n1".into(), is_staged, ..Default::default() };
        let buffer = |phase, is_staged| Buffer {
            job: JobId(7),
            attempt: 1,
            phase,
            places: vec![place(is_staged)],
            ..Default::default()
        };
        let page = BurstPage { progress: vec![progress(6, 1, 9 << 20), progress(7, 3, 2 << 20)], ..Default::default() };
        let shown = one(&page, &job(BufferPhase::StagingIn), &buffer(BufferPhase::StagingIn, false));
        assert!(shown.contains("3/8 files") && shown.contains("average=2MiB/s"), "{shown}");
        let page = BurstPage { progress: vec![progress(6, 1, 9 << 20)], ..Default::default() };
        let shown = one(&page, &job(BufferPhase::InUse), &buffer(BufferPhase::InUse, true));
        assert!(shown.ends_with(" staged\n"), "{shown}");
    }
}
