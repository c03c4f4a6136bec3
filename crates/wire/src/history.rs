//! Runs of history, page by page: an answer that breaks off, because the controller that gave it is gone, goes on elsewhere.
use std::collections::HashSet;
use std::pin::Pin;

use model::history::{HistoryPage, HistoryQuery, RunHistory};
use model::{JobId, Timestamp, codec};
use tokio_stream::{Stream, StreamExt};

use crate::client::{BREAKS_MAX, Controller};
use crate::pages::nouns;
use crate::proto::HistoryRequest;
use crate::refusal::CallError;

type PageStream = Pin<Box<dyn Stream<Item = Result<HistoryPage, CallError>> + Send>>;

pub struct Pages {
    controller: Controller,
    query: HistoryQuery,
    answer: PageStream,
    /// What has been given out already, where the question may be asked again.
    given: HashSet<Key>,
    n_breaks_left: u32,
}

/// What names a run.
type Key = (JobId, Timestamp, u32);

fn key(run: &RunHistory) -> Key {
    (run.job.job, run.job.submitted, run.job.attempt)
}

impl Pages {
    pub(crate) async fn ask(mut controller: Controller, query: &HistoryQuery) -> Result<Pages, CallError> {
        let answer = ask(&mut controller, query).await?;
        let n_breaks_left = if controller.is_patient { BREAKS_MAX } else { 0 };
        Ok(Pages { controller, query: query.clone(), answer, given: HashSet::new(), n_breaks_left })
    }

    pub async fn next(&mut self) -> Result<Option<HistoryPage>, CallError> {
        loop {
            match self.read().await {
                Err(CallError::Broken(_)) if self.n_breaks_left > 0 => {
                    self.n_breaks_left -= 1;
                    self.answer = ask(&mut self.controller, &self.query).await?;
                }
                other => return other,
            }
        }
    }

    async fn read(&mut self) -> Result<Option<HistoryPage>, CallError> {
        let Some(page) = self.answer.next().await else { return Ok(None) };
        let mut page = page?;
        if self.controller.is_patient {
            page.runs.retain(|run| self.given.insert(key(run)));
        }
        Ok(Some(page))
    }
}

async fn ask(controller: &mut Controller, query: &HistoryQuery) -> Result<PageStream, CallError> {
    let request = HistoryRequest { query: codec::encode(query).into() };
    Ok(Box::pin(nouns(controller.client.history(request).await?.into_inner())))
}
