//! History as the controller sees it: what changes is recorded behind the writers' backs, and readers wait for the record.
//!
//! ```text
//! snapshot ──▶ collect ──▶ Store::write ──▶ Command::Recorded{up_to} ──▶ the state forgets what it kept for history
//!     ▲ numbered changes      (database)
//! ```
mod amend;
mod collect;
mod purge;
mod recorder;

use std::iter::empty;
use std::sync::Arc;
use std::time::Duration;

use accounting::{Failure, Store};
use model::codec::{EncodedList, encode_with_lists};
use model::history::{HistoryPage, HistoryQuery, RunHistory};
use model::{Timestamp, codec};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::Status;
use wire::pages::{PAGE_BYTES, messages};
use wire::proto::HistoryReply;

use crate::api::Streamed;
use crate::machine::Published;

pub use recorder::start;

/// A reader that would wait longer for the latest changes is told so.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the recorder is at; shared with those who read.
#[derive(Clone)]
pub struct History {
    published: Published,
    progress: watch::Receiver<Progress>,
    /// Asks the recorder not to wait for more.
    hurry: mpsc::Sender<()>,
}

#[derive(Clone, Default)]
pub struct Progress {
    store: Option<Arc<dyn Store>>,
    /// The latest change that is in the database.
    recorded: u64,
    /// Why the database has not taken the last batch.
    trouble: Option<Failure>,
}

impl History {
    /// Everything that had happened when this was called is part of the answer.
    pub async fn read(
        &self,
        query: HistoryQuery,
        now: Timestamp,
        takes_pages: bool,
    ) -> Result<Streamed<HistoryReply>, Status> {
        let cluster = self.published.now();
        if !cluster.config().accounting.records {
            return Err(Status::failed_precondition("Slurm accounting storage is disabled"));
        }
        let store = self.up_to(cluster.history().last()).await?;
        let (sender, runs) = mpsc::channel(1);
        let reading = tokio::spawn(async move { store.read(query, now, sender).await });
        let reader = HistoryReader { runs, reading: Some(reading), now, takes_pages, messages: Box::new(empty()) };
        // Nothing is encoded before its reader asks for it.
        Ok(Box::pin(futures::stream::unfold(reader, async |mut reader| Some((reader.next().await?, reader)))))
    }

    async fn up_to(&self, change: u64) -> Result<Arc<dyn Store>, Status> {
        let mut progress = self.progress.clone();
        if progress.borrow().recorded < change {
            // A full channel is a request that stands already.
            let _ = self.hurry.try_send(());
        }
        let is_there = |progress: &Progress| progress.recorded >= change || progress.trouble.is_some();
        let waited = tokio::time::timeout(PATIENCE, progress.wait_for(is_there)).await;
        let progress = match waited {
            Ok(Ok(progress)) => progress.clone(),
            Ok(Err(_)) => return Err(unreadable("the recorder has stopped")),
            Err(_) => return Err(unreadable("it does not answer")),
        };
        match (progress.trouble, progress.store) {
            (Some(trouble), _) => Err(unreadable(&trouble.to_string())),
            (None, Some(store)) => Ok(store),
            (None, None) => Err(unreadable("it is not open")),
        }
    }
}

/// An answer on its way from the database.
struct HistoryReader {
    runs: mpsc::Receiver<Vec<RunHistory>>,
    /// None: how it ended has been told.
    reading: Option<JoinHandle<Result<(), Failure>>>,
    now: Timestamp,
    takes_pages: bool,
    /// Of the runs in hand.
    messages: Box<dyn Iterator<Item = HistoryReply> + Send>,
}

impl HistoryReader {
    async fn next(&mut self) -> Option<Result<HistoryReply, Status>> {
        loop {
            if let Some(message) = self.messages.next() {
                return Some(Ok(message));
            }
            let Some(runs) = self.runs.recv().await else { break };
            let takes_pages = self.takes_pages;
            self.messages = Box::new(pages(runs, self.now).flat_map(move |page| messages(page, takes_pages)));
        }
        let trouble = match self.reading.take()?.await {
            Ok(Ok(())) => return None,
            Ok(Err(failure)) => failure.to_string(),
            Err(error) => error.to_string(),
        };
        Some(Err(unreadable(&trouble)))
    }
}

/// Encoded pages: runs with their scripts and environments may be many and long.
fn pages(runs: Vec<RunHistory>, now: Timestamp) -> impl Iterator<Item = Vec<u8>> + Send {
    let mut rest = runs.into_iter();
    let mut is_first = true;
    std::iter::from_fn(move || {
        let mut runs = EncodedList::default();
        while runs.bytes.len() < PAGE_BYTES
            && let Some(run) = rest.next()
        {
            codec::encode_into(&run, &mut runs.bytes);
            runs.n_items += 1;
        }
        let is_wanted = runs.n_items > 0 || std::mem::take(&mut is_first);
        is_first = false;
        let page = HistoryPage { now, ..Default::default() };
        is_wanted.then(|| encode_with_lists(&page, &[("runs", &runs)]))
    })
}

fn unreadable(why: &str) -> Status {
    Status::unavailable(format!("Problem talking to the database: {why}"))
}
