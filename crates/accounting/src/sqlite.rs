//! History in one file beside the journal: nothing to set up.
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use model::history::{HistoryQuery, RunHistory};
use model::{JobId, Timestamp, codec};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::select::{self, Order};
use crate::{Batch, Failure, Kind, Sink, Store, fits, purge};

/// Readers beyond this many open a connection of their own.
const MAX_IDLE_READERS: usize = 4;

pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    file: PathBuf,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

impl Sqlite {
    pub async fn open(file: &Path) -> Result<Sqlite, Failure> {
        let file = file.to_path_buf();
        blocking(move || {
            let writer = open_writer(&file).map_err(|error| Failure(format!("{}: {error}", file.display())))?;
            let inner = Inner { file, writer: Mutex::new(writer), readers: Mutex::default() };
            Ok(Sqlite { inner: Arc::new(inner) })
        })
        .await
    }
}

fn open_writer(file: &Path) -> Result<Connection, rusqlite::Error> {
    make_private(file);
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // A batch that was reported as written must survive a power failure.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    connection.execute_batch(&select::TABLES.replace("{blob}", "BLOB"))?;
    connection.execute(select::ADOPT_CONTENTS, [select::now()])?;
    Ok(connection)
}

/// What jobs did is the business of their owners; the controller shows it to those who may see it.
fn make_private(file: &Path) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    // SQLite gives the files beside it the same mode. What is wrong with the file, SQLite tells.
    let _ = std::fs::File::options().append(true).create(true).mode(0o600).open(file);
    let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
}

impl Inner {
    fn reader(&self) -> Result<Connection, rusqlite::Error> {
        if let Some(reader) = self.readers.lock().expect("no holder panics").pop() {
            return Ok(reader);
        }
        let reader = Connection::open_with_flags(&self.file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        reader.busy_timeout(Duration::from_secs(10))?;
        reader.pragma_update(None, "mmap_size", 256 << 20)?;
        Ok(reader)
    }

    fn give_back(&self, reader: Connection) {
        let mut readers = self.readers.lock().expect("no holder panics");
        if readers.len() < MAX_IDLE_READERS {
            readers.push(reader);
        }
    }

    fn write(&self, batch: &Batch) -> Result<(), rusqlite::Error> {
        let mut writer = self.writer.lock().expect("no holder panics");
        let transaction = writer.transaction()?;
        {
            let mut put = transaction.prepare_cached(select::PUT_JOB)?;
            for job in &batch.jobs {
                put.execute(params![
                    job.job.0,
                    select::number(job.submitted),
                    job.attempt,
                    select::group(job),
                    job.uid,
                    select::ended(job),
                    codec::encode(job)
                ])?;
            }
            let mut put = transaction.prepare_cached(select::PUT_STEP)?;
            for step in &batch.steps {
                let submitted = select::number(step.submitted);
                let number = select::step_number(step.step);
                put.execute(params![step.job.0, submitted, step.attempt, number, codec::encode(step)])?;
            }
            let mut put = transaction.prepare_cached(select::PUT_CONTENT)?;
            let mut note_use = transaction.prepare_cached(select::PUT_USE)?;
            for (id, content) in &batch.blobs {
                put.execute(params![select::content_key(*id), &content[..]])?;
                note_use.execute(params![select::content_key(*id), select::now()])?;
            }
        }
        transaction.commit()
    }

    fn read(&self, query: &HistoryQuery, now: Timestamp, out: &Sink) -> Result<(), rusqlite::Error> {
        let reader = self.reader()?;
        {
            let mut statement = reader.prepare(&select::jobs(query))?;
            let mut rows = statement.query([])?;
            let mut order = Order::default();
            let mut page: Vec<RunHistory> = Vec::new();
            while let Some(row) = rows.next()? {
                let Some(job) = decoded(row.get_ref(0)?.as_blob()?) else { continue };
                if !fits(query, &job, now) {
                    continue;
                }
                for certain in order.push(query, job) {
                    page.push(with_parts(&reader, query, select::run(certain))?);
                }
                if page.len() >= select::runs_per_page(query) && out.blocking_send(std::mem::take(&mut page)).is_err() {
                    return Ok(());
                }
            }
            for last in order.finish() {
                page.push(with_parts(&reader, query, select::run(last))?);
            }
            // A reader that went away needs nothing.
            let _ = out.blocking_send(page);
        }
        self.give_back(reader);
        Ok(())
    }

    fn purge(&self, kind: Kind, from: Timestamp, before: Timestamp) -> Result<Timestamp, rusqlite::Error> {
        let (from, before) = purge::interval(from, before);
        let mut writer = self.writer.lock().expect("no holder panics");
        let transaction = writer.transaction()?;
        let next = transaction.query_row(&purge::slice_end(), [from, before], |row| row.get(0)).optional()?;
        let reached = purge::reach(from, before, next);
        transaction.execute(purge::STEPS, [from, reached])?;
        if kind == Kind::Runs {
            transaction.execute(purge::RUNS, [from, reached])?;
            if reached == before {
                transaction.execute(purge::CONTENTS, [before])?;
                transaction.execute(purge::USES, [before])?;
            }
        }
        transaction.commit()?;
        Ok(purge::moment(reached))
    }

    fn last_job_since(&self, since: Timestamp) -> Result<Option<JobId>, rusqlite::Error> {
        let writer = self.writer.lock().expect("no holder panics");
        let last: Option<u32> = writer.query_row(select::LAST_JOB, [select::number(since)], |row| row.get(0))?;
        Ok(last.map(JobId))
    }
}

/// The steps of a run, and what else was asked for.
fn with_parts(reader: &Connection, query: &HistoryQuery, mut run: RunHistory) -> Result<RunHistory, rusqlite::Error> {
    if query.with_steps {
        let mut statement = reader.prepare_cached(select::GET_STEPS)?;
        let key = params![run.job.job.0, select::number(run.job.submitted), run.job.attempt];
        let mut rows = statement.query(key)?;
        while let Some(row) = rows.next()? {
            run.steps.extend(decoded(row.get_ref(0)?.as_blob()?));
        }
    }
    let content = |id: Option<model::BlobId>, wanted: bool| -> Result<Vec<u8>, rusqlite::Error> {
        let Some(id) = id.filter(|_| wanted) else { return Ok(Vec::new()) };
        let mut statement = reader.prepare_cached(select::GET_CONTENT)?;
        let found: Option<Vec<u8>> = statement.query_row([select::content_key(id)], |row| row.get(0)).optional()?;
        Ok(found.unwrap_or_default())
    };
    run.script = content(run.job.script, query.with_scripts)?;
    run.environment = content(run.job.environment, query.with_environments)?;
    Ok(run)
}

/// A row that cannot be read is told of and left out; the others are still worth showing.
pub(crate) fn decoded<T: codec::Decode>(bytes: &[u8]) -> Option<T> {
    match codec::decode(bytes) {
        Ok(record) => Some(record),
        Err(error) => {
            tracing::error!(%error, "a row of history cannot be read");
            None
        }
    }
}

impl Store for Sqlite {
    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<(), Failure>> {
        let inner = self.inner.clone();
        Box::pin(blocking(move || inner.write(&batch).map_err(failure)))
    }

    fn read(&self, query: HistoryQuery, now: Timestamp, out: Sink) -> BoxFuture<'_, Result<(), Failure>> {
        let inner = self.inner.clone();
        Box::pin(blocking(move || inner.read(&query, now, &out).map_err(failure)))
    }

    fn purge(&self, kind: Kind, from: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<Timestamp, Failure>> {
        let inner = self.inner.clone();
        Box::pin(blocking(move || inner.purge(kind, from, before).map_err(failure)))
    }

    fn last_job_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Option<JobId>, Failure>> {
        let inner = self.inner.clone();
        Box::pin(blocking(move || inner.last_job_since(since).map_err(failure)))
    }
}

fn failure(error: rusqlite::Error) -> Failure {
    Failure(error.to_string())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Failure(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::BlobId;
    use model::history::{JobRecord, StepRecord};

    fn run(id: u32, ended: Option<u64>, script: Option<BlobId>) -> JobRecord {
        let ended = ended.map(Timestamp::from_secs);
        let submitted = Timestamp::from_secs(1);
        JobRecord { job: JobId(id), submitted, eligible: Some(submitted), ended, script, ..Default::default() }
    }

    fn step(id: u32) -> StepRecord {
        StepRecord { job: JobId(id), submitted: Timestamp::from_secs(1), ..Default::default() }
    }

    async fn known(store: &Sqlite) -> Vec<(u32, usize)> {
        let (out, mut pages) = tokio::sync::mpsc::channel(100);
        let query = HistoryQuery { with_steps: true, ..Default::default() };
        store.read(query, Timestamp::from_secs(10_000), out).await.unwrap();
        let mut all = Vec::new();
        while let Some(page) = pages.recv().await {
            all.extend(page.iter().map(|run| (run.job.job.0, run.steps.len())));
        }
        all
    }

    #[tokio::test]
    async fn what_is_old_is_forgotten_in_slices_and_the_rest_is_kept() {
        let dir = std::env::temp_dir().join(format!("spur-purge-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let store = Sqlite::open(&dir.join("history.sqlite")).await.unwrap();
        let old: Vec<JobRecord> = (1..=4_500).map(|id| run(id, Some(1_000 + u64::from(id)), None)).collect();
        let script = BlobId([1, 2, 3, 4]);
        let mut jobs = old.clone();
        jobs.extend([run(5_000, Some(8_000), Some(script)), run(5_001, None, None)]);
        let steps = (1..=4_500).chain([5_000, 5_001]).map(step).collect();
        let blobs = vec![(script, Arc::from(&b"#!/bin/sh"[..]))];
        store.write(Batch { jobs, steps, blobs }).await.unwrap();

        // Steps first: the runs stay.
        let (mut from, before) = (Timestamp(0), Timestamp::from_secs(2_000));
        while from < before {
            from = store.purge(Kind::Steps, from, before).await.unwrap();
        }
        let all = known(&store).await;
        assert_eq!(all.len(), 4_502);
        assert_eq!(all.iter().filter(|(_, n_steps)| *n_steps == 0).count(), 999);

        // Then everything of those that ended before: more than one slice of them.
        let (mut from, before, mut n_slices) = (Timestamp(0), Timestamp::from_secs(7_000), 0);
        while from < before {
            from = store.purge(Kind::Runs, from, before).await.unwrap();
            n_slices += 1;
        }
        assert_eq!(n_slices, 3);
        assert_eq!(known(&store).await, [(5_000, 1), (5_001, 1)]);
        let kept = |store: &Sqlite| -> i64 {
            let writer = store.inner.writer.lock().unwrap();
            writer.query_row("SELECT count(*) FROM content", [], |row| row.get(0)).unwrap()
        };
        assert_eq!(kept(&store), 1, "a script that is still in use");
        store.purge(Kind::Runs, Timestamp(0), Timestamp(u64::MAX)).await.unwrap();
        assert_eq!(known(&store).await, [(5_001, 1)], "what runs is never forgotten");
        assert_eq!(kept(&store), 0);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
