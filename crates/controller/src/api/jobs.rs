//! Reading jobs: pages of one snapshot, or again and again as they change. No page is larger than [`PAGE_BYTES`], but for one job.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::codec::{self, EncodedList, encode_with_lists};
use model::content::encode_without_ids_into;
use model::request::{JobFilter, JobsPage};
use model::{Caller, Event, Job, JobId, Phase, StepId, Timestamp};
use state::Cluster;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, mpsc};
use tonic::Status;
use wire::pages::{PAGE_BYTES, messages};
use wire::proto::JobsReply;

use super::Streamed;
use super::privacy::Reader;
use super::watchers::{WatchKind, WatcherPlace};
use crate::door::Door;
use crate::leader::runner;
use crate::machine::{EventBatch, Published};
use crate::progress::ProgressTable;

const JOBS_PER_PAGE: usize = 1000;
/// Who names more jobs than these, or none at all, is answered in turn with others who do.
const NAMED_MAX: usize = 64;
/// After a page for those who watch so much, its maker rests this many times as long as it took.
const REST: u32 = 3;
/// A watcher that takes in nothing for so long is let go: it may ask again for the present picture.
const READER_PATIENCE: Duration = Duration::from_secs(60);

/// One that makes pictures for those who watch everything, whoever and how many they are.
pub struct WatchTurns(Arc<Semaphore>);

impl Default for WatchTurns {
    fn default() -> Self {
        WatchTurns(Arc::new(Semaphore::new(1)))
    }
}

/// What somebody wants to know of jobs, and may.
#[derive(Clone)]
pub struct JobsQuestion {
    filter: Arc<JobFilter>,
    /// The jobs, arrays and heterogeneous jobs that the filter names.
    named: Arc<BTreeSet<JobId>>,
    by: Caller,
    reader: Reader,
    takes_pages: bool,
    runner: runner::Handle,
    progress: Arc<ProgressTable>,
}

impl JobsQuestion {
    pub fn new(
        mut filter: JobFilter,
        by: Caller,
        reader: Reader,
        takes_pages: bool,
        runner: runner::Handle,
        progress: Arc<ProgressTable>,
    ) -> JobsQuestion {
        // A job that is named again and again is looked up once.
        let mut seen = BTreeSet::new();
        if filter.jobs.len() > NAMED_MAX {
            filter.jobs.retain(|job| seen.insert(codec::encode(job)));
        }
        let named = filter.jobs.iter().map(|named| named.job).collect();
        JobsQuestion { named: Arc::new(named), filter: Arc::new(filter), by, reader, takes_pages, runner, progress }
    }

    pub fn kind(&self) -> WatchKind {
        if (1..=NAMED_MAX).contains(&self.filter.jobs.len()) { WatchKind::Named } else { WatchKind::Wide }
    }
}

/// At least one page, so that the reader always learns the time.
pub async fn pages(cluster: Arc<Cluster>, now: Timestamp, question: JobsQuestion) -> Streamed<JobsReply> {
    let picture = match question.filter.jobs.len() <= NAMED_MAX {
        true => Picture::of(cluster, now, &question),
        false => Picture::of_many(cluster, now, &question).await,
    };
    let takes_pages = question.takes_pages;
    let pages = picture.pages(question, true).flat_map(move |page| messages(page, takes_pages).map(Ok));
    Box::pin(tokio_stream::iter(pages))
}

/// The jobs now, and again each time one of them has changed.
pub fn watch(
    published: Published,
    door: Arc<Door>,
    question: JobsQuestion,
    turns: &WatchTurns,
    place: WatcherPlace,
) -> Streamed<JobsReply> {
    let mut events = published.events();
    let mut notices = published.notices.subscribe();
    let (sender, receiver) = mpsc::channel(2);
    let turns = turns.0.clone();
    tokio::spawn(async move {
        let _place = place;
        let mut heard = Vec::new();
        let mut is_large = question.kind() == WatchKind::Wide;
        loop {
            let mut picture = match is_large {
                false => Picture::of(published.now(), door.now(), &question),
                true => {
                    let Ok(_turn) = turns.acquire().await else { return };
                    Picture::of_many(published.now(), door.now(), &question).await
                }
            };
            picture.first.notices = std::mem::take(&mut heard);
            // Also of an array that has grown large, the next picture is made in turn.
            is_large = picture.ids.len() > JOBS_PER_PAGE || question.kind() == WatchKind::Wide;
            // Callers of earlier releases take each page for the whole picture.
            let is_paged = question.takes_pages || question.kind() == WatchKind::Wide;
            let mut pages = picture.pages(question.clone(), is_paged);
            loop {
                let made;
                (pages, made) = if is_large { in_turn(&turns, pages).await } else { one(pages) };
                let Some(page) = made else { break };
                if send(&sender, page, &question).await.is_none() {
                    return;
                }
            }
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    notice = notices.recv() => if let Ok((job, text)) = notice && question.named.contains(&job) {
                        heard.push(text);
                        break;
                    },
                    batch = events.recv() => match batch {
                        Ok(batch) if !concerns(&batch, &question, &published.now()) => (),
                        Ok(_) | Err(RecvError::Lagged(_)) => break,
                        Err(RecvError::Closed) => return,
                    }
                }
            }
        }
    });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))
}

fn one(mut pages: PicturePages) -> (PicturePages, Option<Vec<u8>>) {
    let made = pages.next();
    (pages, made)
}

/// The next page, made when it is this watcher's turn, off the threads that answer others.
async fn in_turn(turns: &Semaphore, pages: PicturePages) -> (PicturePages, Option<Vec<u8>>) {
    let _turn = turns.acquire().await;
    let begun = Instant::now();
    let made = tokio::task::spawn_blocking(move || one(pages));
    let made = made.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    tokio::time::sleep(begun.elapsed() * REST).await;
    made
}

/// None: the watcher has gone, or takes in nothing.
async fn send(sender: &mpsc::Sender<Result<JobsReply, Status>>, page: Vec<u8>, question: &JobsQuestion) -> Option<()> {
    for message in messages(page, question.takes_pages) {
        match tokio::time::timeout(READER_PATIENCE, sender.send(Ok(message))).await {
            Ok(sent) => sent.ok()?,
            Err(_) => return None,
        }
    }
    Some(())
}

/// The jobs that are asked for, in one snapshot.
struct Picture {
    cluster: Arc<Cluster>,
    ids: Vec<JobId>,
    /// What the first page holds besides jobs.
    first: JobsPage,
}

impl Picture {
    fn of(cluster: Arc<Cluster>, now: Timestamp, question: &JobsQuestion) -> Picture {
        let (ids, unknown) = chosen(&cluster, &question.filter, &question.reader);
        Picture { cluster, ids, first: JobsPage { now, unknown, ..Default::default() } }
    }

    /// As `of`, off the threads that answer others.
    async fn of_many(cluster: Arc<Cluster>, now: Timestamp, question: &JobsQuestion) -> Picture {
        let question = question.clone();
        let chosen = tokio::task::spawn_blocking(move || Picture::of(cluster, now, &question)).await;
        chosen.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    fn pages(self, question: JobsQuestion, is_paged: bool) -> PicturePages {
        let max = if is_paged { (JOBS_PER_PAGE, PAGE_BYTES) } else { (usize::MAX, usize::MAX) };
        PicturePages { rest: self.ids.into_iter(), cluster: self.cluster, next: Some(self.first), question, max }
    }
}

/// Encoded pages, made one by one.
struct PicturePages {
    cluster: Arc<Cluster>,
    rest: std::vec::IntoIter<JobId>,
    /// What the next page holds besides jobs; none: there is none.
    next: Option<JobsPage>,
    question: JobsQuestion,
    /// So many jobs and bytes are enough for a page.
    max: (usize, usize),
}

impl Iterator for PicturePages {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut page = self.next.take()?;
        let (mut jobs, mut steps) = (EncodedList::default(), EncodedList::default());
        let (mut n_left, max_bytes) = self.max;
        while n_left > 0 && jobs.bytes.len() + steps.bytes.len() < max_bytes {
            let Some(id) = self.rest.next() else { break };
            n_left -= 1;
            self.add(id, &mut page, &mut jobs, &mut steps);
        }
        if self.rest.len() > 0 {
            self.next = Some(JobsPage { now: page.now, ..Default::default() });
            page.goes_on = true;
        }
        Some(encode_with_lists(&page, &[("jobs", &jobs), ("steps", &steps)]))
    }
}

impl PicturePages {
    fn add(&self, id: JobId, page: &mut JobsPage, jobs: &mut EncodedList, steps: &mut EncodedList) {
        let (cluster, filter) = (&*self.cluster, &*self.question.filter);
        let Some(job) = cluster.job(id) else { return };
        encode_without_ids_into(&*self.for_reader(job), &mut jobs.bytes);
        jobs.n_items += 1;
        if filter.with_steps {
            for step in cluster.steps_of(id).filter(|step| is_asked_for(filter, step.id)) {
                encode_without_ids_into(&**step, &mut steps.bytes);
                steps.n_items += 1;
            }
        }
        if job.buffer.is_some() {
            page.progress.extend(self.question.progress.of(cluster, id));
        }
    }

    /// With what only the leader knows of it, and what only its owner may.
    fn for_reader(&self, job: &Arc<Job>) -> Arc<Job> {
        let has_environment = job.buffer.is_some() && self.question.by.may_act_for(job.spec.uid);
        if !job.is_frozen && !has_environment {
            return job.clone();
        }
        let mut seen = (**job).clone();
        if seen.is_frozen {
            seen.awaited_nodes = self.question.runner.awaited_nodes(seen.id);
        }
        if has_environment {
            let first = job.allocation.names().next();
            let of = |node| state::buffers::environment(&self.cluster, job, node);
            seen.buffer_environment = first.map(of).unwrap_or_default();
        }
        Arc::new(seen)
    }
}

fn concerns(batch: &EventBatch, question: &JobsQuestion, cluster: &Cluster) -> bool {
    let (filter, named) = (&*question.filter, &*question.named);
    let is_named = |id: JobId| {
        let whole = || cluster.job(id).and_then(|job| job.array_id().or(job.het.as_ref().map(|het| het.leader)));
        named.is_empty() || named.contains(&id) || whole().is_some_and(|whole| named.contains(&whole))
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
