//! Follows jobs for a waiting command, over restarts of the controller.
use std::pin::Pin;
use std::time::Duration;

use config::Client;
use model::request::{JobFilter, JobsPage};
use model::{StepId, StepSpec};
use tokio_stream::{Stream, StreamExt};
use wire::{CallError, Controller};

type Pages = Pin<Box<dyn Stream<Item = Result<JobsPage, CallError>>>>;

/// How long to wait before another attempt to reach a controller that is away.
const AWAY_MIN: Duration = Duration::from_millis(50);
const AWAY_MAX: Duration = Duration::from_secs(2);

/// The present state of some jobs, again and again.
pub struct Watch {
    cluster: Client,
    filter: JobFilter,
    /// A connection that is open already.
    controller: Option<Controller>,
    pages: Option<Pages>,
}

impl Watch {
    pub fn new(cluster: &Client, filter: JobFilter, controller: Option<Controller>) -> Self {
        Watch { cluster: cluster.clone(), filter, controller, pages: None }
    }

    /// From now on only this step of the jobs is of interest: what happens to hundreds of others is not told.
    pub fn narrow(&mut self, step: StepId) {
        (self.filter.with_steps, self.filter.room_for) = (true, None);
        self.filter.only_steps = vec![step];
        self.pages = None;
    }

    /// From now on it tells only, with empty pages, that it is time to ask again for this step.
    pub fn for_room(&mut self, step: &StepSpec) {
        self.filter.room_for = Some(StepSpec { arguments: Vec::new(), programs: Vec::new(), ..step.clone() });
        self.pages = None;
    }

    /// The next state; waits while the controller is away. An error is a refusal, not an absence.
    pub async fn next(&mut self) -> Result<JobsPage, CallError> {
        let mut pause = AWAY_MIN;
        loop {
            match self.attempt().await {
                Ok(page) => return Ok(page),
                Err(error @ (CallError::Refused(_) | CallError::Other(_))) => return Err(error),
                Err(CallError::Unreachable { .. } | CallError::Broken(_)) => {
                    self.controller = None;
                    self.pages = None;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(AWAY_MAX);
                }
            }
        }
    }

    async fn attempt(&mut self) -> Result<JobsPage, CallError> {
        if self.pages.is_none() {
            let mut controller = match self.controller.take() {
                Some(controller) => controller,
                None => Controller::connect(&self.cluster.controller_socket).await?,
            };
            self.pages = Some(Box::pin(controller.watch_jobs(&self.filter).await?));
            self.controller = Some(controller);
        }
        let pages = self.pages.as_mut().expect("opened above");
        pages.next().await.unwrap_or_else(|| Err(CallError::Broken("the stream has ended".to_string())))
    }
}
