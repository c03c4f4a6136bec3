//! The coarse question to the database. Only numbers go into it: whatever is text is looked at in `fits`.
use model::history::{HistoryQuery, JobChoice, JobRecord, RunHistory};
use model::{BlobId, Timestamp};

/// Later than any end: a run that has not ended.
pub const NOT_ENDED: i64 = i64::MAX;

/// Runs sent to the reader at a time.
const RUNS_PER_PAGE: usize = 500;
/// The same, with their scripts or environments: megabytes each.
const LONG_RUNS_PER_PAGE: usize = 8;

pub fn runs_per_page(query: &HistoryQuery) -> usize {
    if query.with_scripts || query.with_environments { LONG_RUNS_PER_PAGE } else { RUNS_PER_PAGE }
}

/// `record` is last; the types are those that SQLite and PostgreSQL both know once `{blob}` is filled in.
pub const TABLES: &str = "
CREATE TABLE IF NOT EXISTS job (
    job_id BIGINT NOT NULL, submitted BIGINT NOT NULL, attempt BIGINT NOT NULL,
    group_id BIGINT NOT NULL, uid BIGINT NOT NULL, ended BIGINT NOT NULL, record {blob} NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS job_key ON job (job_id, submitted, attempt);
CREATE INDEX IF NOT EXISTS job_group ON job (group_id);
CREATE INDEX IF NOT EXISTS job_ended ON job (ended);
CREATE INDEX IF NOT EXISTS job_submitted ON job (submitted);
CREATE TABLE IF NOT EXISTS step (
    job_id BIGINT NOT NULL, submitted BIGINT NOT NULL, attempt BIGINT NOT NULL, step BIGINT NOT NULL,
    record {blob} NOT NULL, PRIMARY KEY (job_id, submitted, attempt, step));
CREATE TABLE IF NOT EXISTS content (id {blob} NOT NULL PRIMARY KEY, content {blob} NOT NULL);
CREATE TABLE IF NOT EXISTS content_use (id {blob} NOT NULL PRIMARY KEY, used BIGINT NOT NULL);
";

/// Contents of earlier releases count as used when this one first sees them.
pub const ADOPT_CONTENTS: &str = "INSERT INTO content_use (id, used) SELECT id, $1 FROM content
    WHERE NOT EXISTS (SELECT 1 FROM content_use WHERE content_use.id = content.id)";

pub const PUT_JOB: &str = "INSERT INTO job (job_id, submitted, attempt, group_id, uid, ended, record)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (job_id, submitted, attempt)
    DO UPDATE SET group_id = excluded.group_id, uid = excluded.uid, ended = excluded.ended, record = excluded.record";
pub const PUT_STEP: &str = "INSERT INTO step (job_id, submitted, attempt, step, record) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (job_id, submitted, attempt, step) DO UPDATE SET record = excluded.record";
pub const PUT_CONTENT: &str = "INSERT INTO content (id, content) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
pub const PUT_USE: &str =
    "INSERT INTO content_use (id, used) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET used = excluded.used";
pub const GET_STEPS: &str =
    "SELECT record FROM step WHERE job_id = $1 AND submitted = $2 AND attempt = $3 ORDER BY step";
pub const GET_CONTENT: &str = "SELECT content FROM content WHERE id = $1";
pub const LAST_JOB: &str = "SELECT max(job_id) FROM job WHERE submitted > $1";

/// The runs that may fit; those of an array or a heterogeneous job together, earlier runs of one job first.
pub fn jobs(query: &HistoryQuery) -> String {
    let mut conditions = vec!["true".to_string()];
    if !query.jobs.is_empty() {
        conditions.push(named(query));
    }
    if let Some(after) = query.after {
        conditions.push(format!("ended >= {}", number(Timestamp::from_secs(after.secs()))));
    }
    if let Some(before) = query.before {
        conditions.push(format!("submitted < {}", number(Timestamp::from_secs(before.secs().saturating_add(1)))));
    }
    if !query.uids.is_empty() {
        conditions.push(format!("uid IN ({})", list(query.uids.iter().copied())));
    }
    let conditions = conditions.join(" AND ");
    format!("SELECT record FROM job WHERE {conditions} ORDER BY group_id, job_id, submitted, attempt")
}

fn named(query: &HistoryQuery) -> String {
    let ids = list(query.jobs.iter().map(|choice: &JobChoice| choice.job.0));
    match query.whole_het_job {
        Some(true) => {
            format!("(group_id IN ({ids}) OR group_id IN (SELECT group_id FROM job WHERE job_id IN ({ids})))")
        }
        Some(false) | None => format!("(group_id IN ({ids}) OR job_id IN ({ids}))"),
    }
}

fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

pub fn number(moment: Timestamp) -> i64 {
    i64::try_from(moment.0).unwrap_or(i64::MAX)
}

/// The array or the heterogeneous job a run belongs to, or its own id.
pub fn group(job: &JobRecord) -> i64 {
    i64::from(job.array.or(job.het_job).unwrap_or(job.job).0)
}

pub fn ended(job: &JobRecord) -> i64 {
    job.ended.map_or(NOT_ENDED, number)
}

/// Numbered steps in order, the batch script before them, as Slurm lists them.
pub fn step_number(step: model::StepId) -> i64 {
    match step {
        model::StepId::Batch => -1,
        model::StepId::Number(number) => i64::from(number),
    }
}

/// This moment, for notes of when something was used.
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub fn content_key(id: BlobId) -> Vec<u8> {
    id.0.iter().flat_map(|part| part.to_be_bytes()).collect()
}

/// The order in which runs are shown. Of the runs of one job id, which come one after the other, only the latest passes
/// unless all are wanted. The last task of an array has the array's own id, and so comes first; it is shown after the others.
#[derive(Default)]
pub struct Order {
    held: Option<JobRecord>,
    last_tasks: Vec<JobRecord>,
}

impl Order {
    /// Takes the next run that fits; gives back those that come now.
    pub fn push(&mut self, query: &HistoryQuery, next: JobRecord) -> Vec<JobRecord> {
        let mut ready = Vec::new();
        let (next_job, next_group) = (next.job, group(&next));
        if let Some(before) = self.held.replace(next)
            && (query.with_duplicates || before.job != next_job)
        {
            self.place(before, &mut ready);
        }
        if self.last_tasks.first().is_some_and(|task| group(task) != next_group) {
            ready.append(&mut self.last_tasks);
        }
        ready
    }

    fn place(&mut self, run: JobRecord, ready: &mut Vec<JobRecord>) {
        if run.task.is_some() && run.array == Some(run.job) {
            self.last_tasks.push(run);
        } else {
            ready.push(run);
        }
    }

    pub fn finish(mut self) -> Vec<JobRecord> {
        let mut ready = Vec::new();
        if let Some(last) = self.held.take() {
            self.place(last, &mut ready);
        }
        ready.append(&mut self.last_tasks);
        ready
    }
}

pub fn run(job: JobRecord) -> RunHistory {
    RunHistory { job, ..Default::default() }
}
