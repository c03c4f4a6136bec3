//! Reading jobs: pages of one snapshot, or again and again as they change.
use std::collections::BTreeSet;
use std::sync::Arc;

use model::request::{JobFilter, JobsPage};
use model::{Caller, Event, Job, JobId, Phase, StepId, Timestamp};
use state::Cluster;
use tokio::sync::broadcast::error::RecvError;
use tonic::Status;
use wire::proto::JobsReply;

use super::Streamed;
use super::privacy::Reader;
use crate::door::Door;
use crate::leader::runner;
use crate::machine::{EventBatch, Published};
use crate::progress::ProgressTable;

const JOBS_PER_PAGE: usize = 1000;

/// At least one page, so that the reader always learns the time.
pub fn pages(
    cluster: Arc<Cluster>,
    runner: runner::Handle,
    now: Timestamp,
    filter: JobFilter,
    progress: Arc<ProgressTable>,
    by: Caller,
    reader: Reader,
) -> Streamed<JobsReply> {
    let (ids, unknown) = chosen(&cluster, &filter, &reader);
    let mut first = Some(unknown);
    let mut pages: Vec<Vec<JobId>> = ids.chunks(JOBS_PER_PAGE).map(<[JobId]>::to_vec).collect();
    if pages.is_empty() {
        pages.push(Vec::new());
    }
    let stream = pages.into_iter().map(move |ids| {
        let unknown = first.take().unwrap_or_default();
        let page = page(&cluster, &runner, &ids, &filter, now, unknown, by);
        Ok(reply(&with_progress(page, &cluster, &progress)))
    });
    Box::pin(tokio_stream::iter(stream))
}

/// The jobs now, and again each time one of them has changed.
pub fn watch(
    published: Published,
    runner: runner::Handle,
    door: Arc<Door>,
    filter: JobFilter,
    progress: Arc<ProgressTable>,
    by: Caller,
    reader: Reader,
) -> Streamed<JobsReply> {
    let mut events = published.events();
    let mut notices = published.notices.subscribe();
    let (sender, receiver) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        let mut heard = Vec::new();
        loop {
            let cluster = published.now();
            let (ids, unknown) = chosen(&cluster, &filter, &reader);
            let page = page(&cluster, &runner, &ids, &filter, door.now(), unknown, by);
            let mut page = with_progress(page, &cluster, &progress);
            page.notices = std::mem::take(&mut heard);
            let message: Result<JobsReply, Status> = Ok(reply(&page));
            if sender.send(message).await.is_err() {
                return;
            }
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    notice = notices.recv() => if let Ok((job, text)) = notice
                        && filter.jobs.iter().any(|named| named.job == job)
                    {
                        heard.push(text);
                        break;
                    },
                    batch = events.recv() => match batch {
                        Ok(batch) if !concerns(&batch, &filter, &published.now()) => (),
                        Ok(_) | Err(RecvError::Lagged(_)) => break,
                        Err(RecvError::Closed) => return,
                    }
                }
            }
        }
    });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))
}

fn concerns(batch: &EventBatch, filter: &JobFilter, cluster: &Cluster) -> bool {
    let is_named = |id: JobId| {
        let whole = cluster.job(id).and_then(|job| job.array_id().or(job.het.as_ref().map(|het| het.leader)));
        filter.jobs.is_empty() || filter.jobs.iter().any(|named| named.job == id || Some(named.job) == whole)
    };
    batch.iter().any(|event| match event {
        Event::JobChanged { job, .. }
        | Event::JobSubmitted { job, .. }
        | Event::JobUpdated { job, .. }
        | Event::BufferChanged { job, .. }
        | Event::JobGone { job, .. } => is_named(*job),
        Event::StepChanged { job, step, .. } => filter.with_steps && is_asked_for(filter, *step) && is_named(*job),
        Event::TimeUsed { .. } => false,
        Event::NodeChanged { .. } | Event::ReservationChanged { .. } | Event::Reconfigured { .. } => false,
    })
}

fn is_asked_for(filter: &JobFilter, step: StepId) -> bool {
    filter.only_steps.is_empty() || filter.only_steps.contains(&step)
}

/// The jobs that pass the filter, in order, and the ids that are not known at all.
fn chosen(cluster: &Cluster, filter: &JobFilter, reader: &Reader) -> (Vec<JobId>, Vec<JobId>) {
    let passes = |job: &Job| {
        (filter.with_finished || job.phase != Phase::Done)
            && (filter.uids.is_empty() || filter.uids.contains(&job.spec.uid))
            && reader.may_see_job(cluster, job)
    };
    if filter.jobs.is_empty() {
        return (cluster.jobs().filter(|job| passes(job)).map(|job| job.id).collect(), Vec::new());
    }
    let mut found = BTreeSet::new();
    let mut unknown = Vec::new();
    for named in &filter.jobs {
        // What may not be seen is not known.
        let may_see = |id: &JobId| cluster.job(*id).is_some_and(|job| reader.may_see_job(cluster, job));
        match cluster.named(named).filter(|ids| ids.iter().any(may_see)) {
            Some(ids) => found.extend(ids),
            None => unknown.push(named.job),
        }
    }
    let passing = found.into_iter().filter(|id| cluster.job(*id).is_some_and(|job| passes(job)));
    (passing.collect(), unknown)
}

fn page(
    cluster: &Cluster,
    runner: &runner::Handle,
    ids: &[JobId],
    filter: &JobFilter,
    now: Timestamp,
    unknown: Vec<JobId>,
    by: Caller,
) -> JobsPage {
    let for_reader = |job: &Arc<Job>| {
        let mut job = (**job).clone();
        if job.is_frozen {
            job.awaited_nodes = runner.awaited_nodes(job.id);
        }
        if job.buffer.is_some() && by.may_act_for(job.spec.uid) {
            let first = job.allocation.names().next();
            job.buffer_environment =
                first.map(|node| state::buffers::environment(cluster, &job, node)).unwrap_or_default();
        }
        job
    };
    let jobs: Vec<Job> = ids.iter().filter_map(|id| cluster.job(*id)).map(for_reader).collect();
    let steps = match filter.with_steps {
        true => {
            let steps = ids.iter().flat_map(|id| cluster.steps_of(*id));
            steps.filter(|step| is_asked_for(filter, step.id)).map(|step| (**step).clone()).collect()
        }
        false => Vec::new(),
    };
    JobsPage { jobs, steps, now, unknown, ..Default::default() }
}

fn with_progress(page: JobsPage, cluster: &Cluster, progress: &ProgressTable) -> JobsPage {
    let progress = page.jobs.iter().flat_map(|job| progress.of(cluster, job.id)).collect();
    JobsPage { progress, ..page }
}

fn reply(page: &JobsPage) -> JobsReply {
    JobsReply { page: model::content::encode_without_ids(page).into() }
}
