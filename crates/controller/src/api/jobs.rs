//! Reading jobs: pages of one snapshot, or again and again as they change. No page is larger than [`PAGE_BYTES`], but for one job.
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Instant;

use model::codec::{self, EncodedList, encode_with_lists};
use model::content::encode_without_ids_into;
use model::request::{JobFilter, JobsPage};
use model::{Caller, Event, Job, JobId, Phase, StepId, Timestamp};
use state::Cluster;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tonic::Status;
use wire::pages::{PAGE_BYTES, messages};
use wire::proto::JobsReply;
use wire::unread_answers::AnswerStock;

use super::Streamed;
use super::privacy::Reader;
use super::watchers::{WatchKind, WatcherPlace, held};
use crate::door::Door;
use crate::fair_turns::FairTurns;
use crate::leader::runner;
use crate::machine::{EventBatch, Published};
use crate::progress::ProgressTable;

const JOBS_PER_PAGE: usize = 1000;
/// Who names more jobs than these, or none at all, is answered in turn with others who do.
const NAMED_MAX: usize = 64;
/// A picture of more bytes is large, whatever it shows: the next one is made in turn.
const LARGE_BYTES: usize = 64 << 10;
/// Jobs are looked up so many at a time.
const BATCH: usize = 64;
/// After a page for those who watch so much, its maker rests this many times as long as it took.
const REST: u32 = 3;

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
pub async fn pages(
    cluster: Arc<Cluster>,
    now: Timestamp,
    question: JobsQuestion,
    turns: &FairTurns,
    stock: &AnswerStock,
) -> Result<Streamed<JobsReply>, Status> {
    let picture = match question.filter.jobs.len() <= NAMED_MAX {
        true => Picture::of(cluster, now, &question),
        false => {
            let (uid, asked) = (question.by.uid, question.clone());
            turns.work(uid, stock.wait_for_room(), move || Picture::of(cluster, now, &asked)).await?
        }
    };
    let ids_held = stock.hold(picture.ids.n_bytes()).await;
    let takes_pages = question.takes_pages;
    let pages = picture.pages(question, true).flat_map(move |page| messages(page, takes_pages).map(Ok));
    Ok(Box::pin(tokio_stream::iter(pages.map(move |page| held(&ids_held, page)))))
}

/// The jobs now, and again each time one of them has changed. Nothing is made before its reader asks for it.
pub fn watch(
    published: Published,
    door: Arc<Door>,
    question: JobsQuestion,
    turns: FairTurns,
    place: WatcherPlace,
) -> Streamed<JobsReply> {
    let watcher = JobsWatcher {
        events: published.events(),
        notices: published.notices.subscribe(),
        published,
        door,
        is_large: question.kind() == WatchKind::Wide,
        question,
        turns,
        heard: Vec::new(),
        now: WatchedNow::Due,
        messages: Vec::new().into_iter(),
        _place: place,
    };
    Box::pin(futures::stream::unfold(watcher, async |mut watcher| {
        let message = watcher.next().await?;
        Some((Ok(message), watcher))
    }))
}

/// One who watches jobs.
struct JobsWatcher {
    published: Published,
    door: Arc<Door>,
    question: JobsQuestion,
    turns: FairTurns,
    events: Receiver<EventBatch>,
    notices: Receiver<(JobId, String)>,
    /// Notices for the next picture.
    heard: Vec<String>,
    is_large: bool,
    now: WatchedNow,
    /// Of the page in hand.
    messages: std::vec::IntoIter<JobsReply>,
    _place: WatcherPlace,
}

/// How far a watcher is.
enum WatchedNow {
    /// A picture is to be made.
    Due,
    /// A picture, and the bytes it has had so far.
    Under(Box<PicturePages>, usize),
    /// The last picture is still true.
    Seen,
}

impl JobsWatcher {
    /// None: there will be no more.
    async fn next(&mut self) -> Option<JobsReply> {
        loop {
            if let Some(message) = self.messages.next() {
                return Some(message);
            }
            self.now = match std::mem::replace(&mut self.now, WatchedNow::Seen) {
                WatchedNow::Due => WatchedNow::Under(Box::new(self.picture().await?), 0),
                WatchedNow::Under(pages, n_bytes) => match self.page(pages).await? {
                    (pages, Some(page)) => {
                        let n_bytes = n_bytes + page.len();
                        let messages: Vec<JobsReply> = messages(page, self.question.takes_pages).collect();
                        self.messages = messages.into_iter();
                        WatchedNow::Under(pages, n_bytes)
                    }
                    (_, None) => {
                        self.is_large = n_bytes > LARGE_BYTES || self.question.kind() == WatchKind::Wide;
                        WatchedNow::Seen
                    }
                },
                WatchedNow::Seen => {
                    self.change().await?;
                    WatchedNow::Due
                }
            };
        }
    }

    async fn picture(&mut self) -> Option<PicturePages> {
        let (cluster, now, question) = (self.published.now(), self.door.now(), self.question.clone());
        let mut picture = match self.is_large {
            false => Picture::of(cluster, now, &question),
            true => {
                let (uid, asked) = (question.by.uid, question.clone());
                let chosen = self.turns.work(uid, std::future::ready(()), move || Picture::of(cluster, now, &asked));
                chosen.await.ok()?
            }
        };
        picture.first.notices = std::mem::take(&mut self.heard);
        // Callers of earlier releases take each page for the whole picture.
        let is_paged = question.takes_pages || question.kind() == WatchKind::Wide;
        Some(picture.pages(question, is_paged))
    }

    /// The next page; of a large picture when it is this watcher's turn, off the threads that answer others.
    async fn page(&mut self, mut pages: Box<PicturePages>) -> Option<(Box<PicturePages>, Option<Vec<u8>>)> {
        if !self.is_large {
            let made = pages.next();
            return Some((pages, made));
        }
        let turn = self.turns.take(self.question.by.uid).await;
        let begun = Instant::now();
        let made = tokio::task::spawn_blocking(move || {
            let made = pages.next();
            (pages, made, turn)
        });
        let (pages, made, turn) = made.await.ok()?;
        let rest = begun.elapsed() * REST;
        tokio::spawn(async move {
            tokio::time::sleep(rest).await;
            drop(turn);
        });
        Some((pages, made))
    }

    /// Waits until the picture is no longer true. None: nothing happens any more.
    async fn change(&mut self) -> Option<()> {
        loop {
            tokio::select! {
                notice = self.notices.recv() => if let Ok((job, text)) = notice && self.question.named.contains(&job) {
                    self.heard.push(text);
                    return Some(());
                },
                batch = self.events.recv() => match batch {
                    Ok(batch) if !concerns(&batch, &self.question, &self.published.now()) => (),
                    Ok(_) | Err(RecvError::Lagged(_)) => return Some(()),
                    Err(RecvError::Closed) => return None,
                }
            }
        }
    }
}

/// The jobs that are asked for, in one snapshot.
struct Picture {
    cluster: Arc<Cluster>,
    ids: ChosenJobs,
    /// What the first page holds besides jobs.
    first: JobsPage,
}

/// Which jobs a picture shows.
enum ChosenJobs {
    /// All that pass the filter, looked for as the pages are made.
    All,
    Named(Vec<JobId>),
}

impl ChosenJobs {
    fn n_bytes(&self) -> usize {
        match self {
            ChosenJobs::All => 0,
            ChosenJobs::Named(ids) => size_of_val(&ids[..]),
        }
    }
}

impl Picture {
    fn of(cluster: Arc<Cluster>, now: Timestamp, question: &JobsQuestion) -> Picture {
        let (ids, unknown) = chosen(&cluster, &question.filter, &question.reader);
        Picture { cluster, ids, first: JobsPage { now, unknown, ..Default::default() } }
    }

    fn pages(self, question: JobsQuestion, is_paged: bool) -> PicturePages {
        let max = if is_paged { (JOBS_PER_PAGE, PAGE_BYTES) } else { (usize::MAX, usize::MAX) };
        let rest: Box<dyn Iterator<Item = JobId> + Send> = match self.ids {
            ChosenJobs::Named(ids) => Box::new(ids.into_iter()),
            ChosenJobs::All => Box::new(all_passing(self.cluster.clone(), question.clone())),
        };
        PicturePages { rest: rest.peekable(), cluster: self.cluster, next: Some(self.first), question, max }
    }
}

/// All jobs that pass the filter, looked for a few at a time.
fn all_passing(cluster: Arc<Cluster>, question: JobsQuestion) -> impl Iterator<Item = JobId> + Send {
    let (mut batch, mut last) = (Vec::new().into_iter(), None);
    std::iter::from_fn(move || {
        loop {
            if let Some(id) = batch.next() {
                return Some(id);
            }
            let mut passing = Vec::with_capacity(BATCH);
            let mut seen = None;
            for job in cluster.jobs_after(last, BATCH) {
                seen = Some(job.id);
                if passes(&cluster, &question.filter, &question.reader, job) {
                    passing.push(job.id);
                }
            }
            last = Some(seen?);
            batch = passing.into_iter();
        }
    })
}

/// Encoded pages, made one by one.
struct PicturePages {
    cluster: Arc<Cluster>,
    rest: Peekable<Box<dyn Iterator<Item = JobId> + Send>>,
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
        if self.rest.peek().is_some() {
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

fn passes(cluster: &Cluster, filter: &JobFilter, reader: &Reader, job: &Job) -> bool {
    (filter.with_finished || job.phase != Phase::Done)
        && (filter.uids.is_empty() || filter.uids.contains(&job.spec.uid))
        && reader.may_see_job(cluster, job)
}

/// The jobs that pass the filter, in order, and the ids that are not known at all.
fn chosen(cluster: &Cluster, filter: &JobFilter, reader: &Reader) -> (ChosenJobs, Vec<JobId>) {
    if filter.jobs.is_empty() {
        return (ChosenJobs::All, Vec::new());
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
    let passing =
        found.into_iter().filter(|id| cluster.job(*id).is_some_and(|job| passes(cluster, filter, reader, job)));
    (ChosenJobs::Named(passing.collect()), unknown)
}
