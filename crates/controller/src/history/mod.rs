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

use std::sync::Arc;
use std::time::Duration;

use accounting::{Failure, Store};
use model::history::{HistoryPage, HistoryQuery};
use model::{Timestamp, codec};
use tokio::sync::{mpsc, watch};
use tonic::Status;
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
    pub async fn read(&self, query: HistoryQuery, now: Timestamp) -> Result<Streamed<HistoryReply>, Status> {
        let cluster = self.published.now();
        if !cluster.config().accounting.records {
            return Err(Status::failed_precondition("Slurm accounting storage is disabled"));
        }
        let store = self.up_to(cluster.history().last()).await?;
        let (sender, mut runs) = mpsc::channel(4);
        let reading = tokio::spawn(async move { store.read(query, now, sender).await });
        let (out, pages) = mpsc::channel(4);
        tokio::spawn(async move {
            while let Some(runs) = runs.recv().await {
                let page = HistoryPage { runs, now };
                if out.send(Ok(HistoryReply { page: codec::encode(&page).into() })).await.is_err() {
                    return;
                }
            }
            let trouble = match reading.await {
                Ok(Ok(())) => return,
                Ok(Err(failure)) => failure.to_string(),
                Err(error) => error.to_string(),
            };
            // Whoever asked may be gone.
            let _ = out.send(Err(unreadable(&trouble))).await;
        });
        Ok(Box::pin(tokio_stream::wrappers::ReceiverStream::new(pages)))
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

fn unreadable(why: &str) -> Status {
    Status::unavailable(format!("Problem talking to the database: {why}"))
}
