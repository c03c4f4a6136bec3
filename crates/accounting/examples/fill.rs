//! Fills a history with made-up jobs, through the same code that records real ones: `fill DATABASE JOBS [FIRST_ID]`.
//! Each job has a batch script, every fourth a numbered step too; users, names, states and times vary.
use std::time::{SystemTime, UNIX_EPOCH};

use accounting::Batch;
use model::history::{JobRecord, StepRecord};
use model::{ExitStatus, JobId, StepId, Timestamp};

const JOBS_PER_BATCH: u32 = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, database, count, more @ ..] = &words[..] else { return Err("fill DATABASE JOBS [FIRST_ID]".into()) };
    let (count, first) = (count.parse::<u32>()?, more.first().map_or(Ok(1), |word| word.parse::<u32>())?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = accounting::open(database).await?;
        for from in (0..count).step_by(JOBS_PER_BATCH as usize) {
            let mut batch = Batch::default();
            for number in from..count.min(from + JOBS_PER_BATCH) {
                // One a second, the last of them an hour ago.
                add(&mut batch, first + number, now - 3_600 - u64::from(count - number));
            }
            store.write(batch).await?;
        }
        Ok(())
    })
}

fn add(batch: &mut Batch, id: u32, submitted: u64) {
    let submitted = Timestamp::from_secs(submitted);
    let (started, ended) = (submitted.0 + 2_000_000, submitted.0 + 2_000_000 + u64::from(id % 3_000) * 1_000_000);
    let failed = id.is_multiple_of(10);
    let state = if failed { "FAILED" } else { "COMPLETED" };
    let exit = if failed { ExitStatus::exited(1) } else { ExitStatus::SUCCESS };
    batch.jobs.push(JobRecord {
        job: JobId(id),
        attempt: 1,
        submitted,
        name: format!("made-up-{}", id % 500),
        uid: 1_000 + id % 50,
        gid: 1_000,
        user: format!("user{}", id % 50),
        group: "users".into(),
        account: format!("account{}", id % 7),
        partition: "debug".into(),
        work_dir: format!("/home/user{}", id % 50),
        is_batch: true,
        state: state.into(),
        exit,
        eligible: Some(submitted),
        started: Some(Timestamp(started)),
        ended: Some(Timestamp(ended)),
        nodes: format!("n{}", 1 + id % 8),
        ..Default::default()
    });
    let numbered = id.is_multiple_of(4).then_some(StepId::Number(0));
    for step in [Some(StepId::Batch), numbered].into_iter().flatten() {
        batch.steps.push(StepRecord {
            job: JobId(id),
            attempt: 1,
            submitted,
            step,
            name: if step == StepId::Batch { "batch" } else { "work" }.into(),
            state: state.into(),
            exit,
            started: Some(Timestamp(started)),
            ended: Some(Timestamp(ended)),
            nodes: format!("n{}", 1 + id % 8),
            ..Default::default()
        });
    }
}
