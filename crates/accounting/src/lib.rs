//! History: what became of every job and step, kept in a database after the controller has forgotten them.
//!
//! ```text
//! controller: what has changed ─▶ record ─▶ Batch ─▶ Store::write ─▶ SQLite file, or PostgreSQL
//! sacct ─▶ controller ─▶ HistoryQuery ─▶ Store::read ─▶ select (SQL, coarse) ─▶ fits (exact) ─▶ runs, in order
//! ```
//! Writing a batch twice is the same as writing it once: rows are named by job, submission and attempt. So a recorder that
//! died before it could say what it had written simply writes it again.
mod fits;
mod postgres;
mod purge;
pub mod record;
mod select;
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use model::history::{HistoryQuery, JobRecord, RunHistory, StepRecord};
use model::secret::SecretText;
use model::{BlobId, JobId, Timestamp};
use tokio::sync::mpsc;

pub use fits::fits;
pub use purge::Kind;

/// Rows to be written together, or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub jobs: Vec<JobRecord>,
    pub steps: Vec<StepRecord>,
    pub blobs: Vec<(BlobId, Arc<[u8]>)>,
}

impl Batch {
    pub fn n_rows(&self) -> usize {
        self.jobs.len() + self.steps.len()
    }
}

/// The database could not be asked, or said no.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

/// Runs on their way to a reader, some at a time; a reader that goes away ends the reading.
pub type Sink = mpsc::Sender<Vec<RunHistory>>;

/// A place that keeps history.
pub trait Store: Send + Sync {
    /// Durable when it resolves.
    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<(), Failure>>;

    /// Sends the runs that `query` asks for, by job id.
    fn read(&self, query: HistoryQuery, now: Timestamp, out: Sink) -> BoxFuture<'_, Result<(), Failure>>;

    /// Forgets what belongs to runs that ended in `[from, before)`, some of it: as far as it gives back, to be called again
    /// from there. Runs that have not ended are never forgotten.
    fn purge(&self, kind: Kind, from: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<Timestamp, Failure>>;

    /// The highest id of a job that was submitted after `since`.
    fn last_job_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Option<JobId>, Failure>>;
}

/// Opens what `[accounting] database` names; tables that are missing are made.
pub async fn open(database: &str) -> Result<Arc<dyn Store>, Failure> {
    open_with(database, &SecretText::default()).await
}

/// As [`open`], with the password that stands apart from the address.
pub async fn open_with(database: &str, password: &SecretText) -> Result<Arc<dyn Store>, Failure> {
    if is_postgres(database) {
        return Ok(Arc::new(postgres::Postgres::open(database, password).await?));
    }
    Ok(Arc::new(sqlite::Sqlite::open(Path::new(database)).await?))
}

pub fn is_postgres(database: &str) -> bool {
    database.starts_with("postgres://") || database.starts_with("postgresql://")
}
