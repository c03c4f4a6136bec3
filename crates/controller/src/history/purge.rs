//! When old history is forgotten: once an hour, a slice at a time, so that what happens meanwhile is still recorded.
use std::time::Duration;

use accounting::{Failure, Kind, Store};
use model::Timestamp;
use model::config::AccountingConfig;
use model::time::Span;
use tokio::time::Instant;

const EVERY: Duration = Duration::from_secs(3600);
/// The horizon moves in whole hours: it stands still while slices are taken.
const HOUR: u64 = 3_600_000_000;
/// A database that failed is asked again after this long.
const RETRY: Duration = Duration::from_secs(60);

/// How far history is forgotten.
pub struct Purge {
    due: Instant,
    steps: Timestamp,
    runs: Timestamp,
}

impl Purge {
    pub fn new() -> Self {
        Purge { due: Instant::now(), steps: Timestamp(0), runs: Timestamp(0) }
    }

    pub fn due(&self) -> Instant {
        self.due
    }

    /// One slice; `due` tells when the next may be taken.
    pub async fn go_on(&mut self, store: &dyn Store, wanted: &AccountingConfig, now: Timestamp) {
        self.due = Instant::now();
        match self.slice(store, wanted, now).await {
            Ok(true) => {}
            Ok(false) => self.due += EVERY,
            Err(failure) => {
                tracing::warn!(%failure, "old history cannot be forgotten");
                self.due += RETRY;
            }
        }
    }

    /// False when there was nothing to do.
    async fn slice(&mut self, store: &dyn Store, wanted: &AccountingConfig, now: Timestamp) -> Result<bool, Failure> {
        let kinds = [
            (Kind::Runs, wanted.purge_jobs_after, &mut self.runs),
            (Kind::Steps, wanted.purge_steps_after, &mut self.steps),
        ];
        for (kind, age, reached) in kinds {
            let Some(before) = age.map(|age| horizon(now, age)) else { continue };
            if *reached < before {
                *reached = store.purge(kind, *reached, before).await?;
                tracing::debug!(?kind, up_to = reached.secs(), "old history is forgotten");
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn horizon(now: Timestamp, age: Span) -> Timestamp {
    let moment = now.0.saturating_sub(age.0);
    Timestamp(moment - moment % HOUR)
}
