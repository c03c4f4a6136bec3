//! History in PostgreSQL, for sites that have one. The same rows as in SQLite; a lost connection is made again.
use futures::future::{BoxFuture, try_join_all};
use futures::{TryStreamExt, pin_mut};
use model::history::{HistoryQuery, RunHistory};
use model::secret::SecretText;
use model::{JobId, Timestamp, codec};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Config, NoTls, config::SslMode};

use crate::select::{self, Order};
use crate::sqlite::decoded;
use crate::{Batch, Failure, Kind, Sink, Store, fits, purge};

pub struct Postgres {
    config: Config,
    /// Used by one writer at a time.
    writer: Mutex<Option<Client>>,
}

impl Postgres {
    pub async fn open(url: &str, password: &SecretText) -> Result<Postgres, Failure> {
        // Whatever is wrong, the parser would quote it, and that may be a part of the password.
        let mut config: Config = url.parse().map_err(|_| {
            Failure(
                "the database's address is none: write \"postgres://user@host/name\", signs such as `@` as %40".into(),
            )
        })?;
        if !password.is_empty() {
            config.password(password.expose());
        }
        if config.get_ssl_mode() == SslMode::Require {
            return Err(Failure("sslmode=require is not supported: reach the server over a socket or a tunnel".into()));
        }
        config.application_name("spur").connect_timeout(std::time::Duration::from_secs(5));
        let store = Postgres { config, writer: Mutex::new(None) };
        let client = store.connect().await?;
        client.batch_execute(&select::TABLES.replace("{blob}", "BYTEA")).await.map_err(failure)?;
        client.execute(select::ADOPT_CONTENTS, &[&select::now()]).await.map_err(failure)?;
        *store.writer.lock().await = Some(client);
        Ok(store)
    }

    async fn connect(&self) -> Result<Client, Failure> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(failure)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%error, "the connection to the database broke");
            }
        });
        Ok(client)
    }

    async fn write_batch(&self, batch: &Batch) -> Result<(), Failure> {
        let mut writer = self.writer.lock().await;
        let mut client = match writer.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect().await?,
        };
        // A client that failed is dropped: what it was in the middle of is rolled back.
        write_rows(&mut client, batch).await.map_err(failure)?;
        *writer = Some(client);
        Ok(())
    }

    async fn read_runs(&self, query: &HistoryQuery, now: Timestamp, out: &Sink) -> Result<(), Failure> {
        // One client streams jobs, the other answers for their parts.
        let (jobs, parts) = (self.connect().await?, self.connect().await?);
        let rows = jobs.query_raw(&select::jobs(query), Vec::<i64>::new()).await.map_err(failure)?;
        pin_mut!(rows);
        let mut order = Order::default();
        let mut page = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(failure)? {
            let Some(job) = decoded(row.get(0)) else { continue };
            if !fits(query, &job, now) {
                continue;
            }
            page.extend(order.push(query, job));
            if page.len() >= select::runs_per_page(query) {
                let whole = with_parts(&parts, query, std::mem::take(&mut page)).await.map_err(failure)?;
                if out.send(whole).await.is_err() {
                    return Ok(());
                }
            }
        }
        page.extend(order.finish());
        let whole = with_parts(&parts, query, page).await.map_err(failure)?;
        // A reader that went away needs nothing.
        let _ = out.send(whole).await;
        Ok(())
    }
}

/// All rows are on their way before the first answer is back.
async fn write_rows(client: &mut Client, batch: &Batch) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let (put_job, put_step, put_content) = futures::try_join!(
        transaction.prepare(select::PUT_JOB),
        transaction.prepare(select::PUT_STEP),
        transaction.prepare(select::PUT_CONTENT)
    )?;
    let (transaction_ref, put_job, put_step, put_content) = (&transaction, &put_job, &put_step, &put_content);
    let jobs = batch.jobs.iter().map(|job| async move {
        let key = (i64::from(job.job.0), select::number(job.submitted), i64::from(job.attempt));
        let (group, uid, ended) = (select::group(job), i64::from(job.uid), select::ended(job));
        let record = codec::encode(job);
        transaction_ref.execute(put_job, &[&key.0, &key.1, &key.2, &group, &uid, &ended, &record]).await
    });
    try_join_all(jobs).await?;
    let steps = batch.steps.iter().map(|step| async move {
        let key = (i64::from(step.job.0), select::number(step.submitted), i64::from(step.attempt));
        let (number, record) = (select::step_number(step.step), codec::encode(step));
        transaction_ref.execute(put_step, &[&key.0, &key.1, &key.2, &number, &record]).await
    });
    try_join_all(steps).await?;
    for (id, content) in &batch.blobs {
        transaction.execute(put_content, &[&select::content_key(*id), &&content[..]]).await?;
        transaction.execute(select::PUT_USE, &[&select::content_key(*id), &select::now()]).await?;
    }
    transaction.commit().await
}

async fn purge_slice(
    client: &mut Client,
    kind: Kind,
    (from, before): (i64, i64),
) -> Result<i64, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let next = transaction.query_opt(&purge::slice_end(), &[&from, &before]).await?.map(|row| row.get(0));
    let reached = purge::reach(from, before, next);
    transaction.execute(purge::STEPS, &[&from, &reached]).await?;
    if kind == Kind::Runs {
        transaction.execute(purge::RUNS, &[&from, &reached]).await?;
        if reached == before {
            transaction.execute(purge::CONTENTS, &[&before]).await?;
            transaction.execute(purge::USES, &[&before]).await?;
        }
    }
    transaction.commit().await?;
    Ok(reached)
}

async fn with_parts(
    client: &Client,
    query: &HistoryQuery,
    jobs: Vec<model::history::JobRecord>,
) -> Result<Vec<RunHistory>, tokio_postgres::Error> {
    let (get_steps, get_content) =
        futures::try_join!(client.prepare(select::GET_STEPS), client.prepare(select::GET_CONTENT))?;
    let (get_steps, get_content) = (&get_steps, &get_content);
    let runs = jobs.into_iter().map(|job| async move {
        let mut run = select::run(job);
        if query.with_steps {
            let job = &run.job;
            let key = (i64::from(job.job.0), select::number(job.submitted), i64::from(job.attempt));
            let rows = client.query(get_steps, &[&key.0, &key.1, &key.2]).await?;
            run.steps = rows.iter().filter_map(|row| decoded(row.get(0))).collect();
        }
        let content = async |id: Option<model::BlobId>, wanted: bool| -> Result<Vec<u8>, tokio_postgres::Error> {
            let Some(id) = id.filter(|_| wanted) else { return Ok(Vec::new()) };
            let row = client.query_opt(get_content, &[&select::content_key(id)]).await?;
            Ok(row.map(|row| row.get(0)).unwrap_or_default())
        };
        run.script = content(run.job.script, query.with_scripts).await?;
        run.environment = content(run.job.environment, query.with_environments).await?;
        Ok(run)
    });
    try_join_all(runs).await
}

impl Store for Postgres {
    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { self.write_batch(&batch).await })
    }

    fn read(&self, query: HistoryQuery, now: Timestamp, out: Sink) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { self.read_runs(&query, now, &out).await })
    }

    fn purge(&self, kind: Kind, from: Timestamp, before: Timestamp) -> BoxFuture<'_, Result<Timestamp, Failure>> {
        Box::pin(async move {
            let mut client = self.connect().await?;
            let reached = purge_slice(&mut client, kind, purge::interval(from, before)).await.map_err(failure)?;
            Ok(purge::moment(reached))
        })
    }

    fn last_job_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Option<JobId>, Failure>> {
        Box::pin(async move {
            let client = self.connect().await?;
            let row = client.query_one(select::LAST_JOB, &[&select::number(since)]).await.map_err(failure)?;
            let last: Option<i64> = row.get(0);
            Ok(last.and_then(|last| u32::try_from(last).ok()).map(JobId))
        })
    }
}

/// The server's own words, where it has some.
fn failure(error: tokio_postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(told) => Failure(format!("the database says: {}", told.message())),
        None => Failure(format!("the database: {error}")),
    }
}
