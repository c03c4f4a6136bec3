//! Room in an allocation, for steps that wait for it.
//!
//! A loop of `srun --exact … &` makes hundreds wait. If each were told of every end, each would ask, in vain, through the log:
//! so it is looked here whether asking is of use, and of those for whom it is, one at a time is told.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use model::request::JobsPage;
use model::{Event, JobId, StepSpec, codec};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::error::TrySendError;
use wire::proto::JobsReply;

use super::Streamed;
use crate::machine::{EventBatch, Published};

/// How long one that was told may take to ask before the next is told too.
const TURN: Duration = Duration::from_millis(100);

/// Whose turn it is, job by job.
#[derive(Default)]
pub struct Turns(Mutex<BTreeMap<JobId, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    fn of(&self, job: JobId) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.0.lock().expect("nobody panics with it");
        if let Some(turn) = all.get(&job).and_then(Weak::upgrade) {
            return turn;
        }
        all.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        all.insert(job, Arc::downgrade(&turn));
        turn
    }
}

/// An empty page each time that the step should be asked for.
pub fn watch(published: Published, turns: &Turns, job: JobId, spec: StepSpec) -> Streamed<JobsReply> {
    let mut events = published.events();
    let turn = turns.of(job);
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    // Ports may be held by steps of any job.
    let whose = (!state::may_have_ports(&published.now(), &spec)).then_some(job);
    tokio::spawn(async move {
        let may_ask = || state::need_not_wait(&published.now(), job, &spec);
        loop {
            while !may_ask() {
                tokio::select! {
                    () = sender.closed() => return,
                    is_open = changes(&mut events, whose) => if !is_open { return },
                }
            }
            let own_turn = tokio::select! {
                () = sender.closed() => return,
                own = turn.lock() => own,
            };
            events = events.resubscribe();
            if !may_ask() {
                continue;
            }
            let told = sender
                .try_send(Ok(JobsReply { page: codec::encode(&JobsPage::default()).into(), ..Default::default() }));
            if let Err(TrySendError::Closed(_)) = told {
                return;
            }
            // It has it, or somebody else has: either way the next may look.
            tokio::select! {
                () = sender.closed() => return,
                is_open = changes(&mut events, whose) => if !is_open { return },
                () = tokio::time::sleep(TURN) => (),
            }
            drop(own_turn);
        }
    });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))
}

/// Waits until something has happened to the job or its steps (none: to any); false when nothing will any more.
async fn changes(events: &mut Receiver<EventBatch>, job: Option<JobId>) -> bool {
    loop {
        match events.recv().await {
            Ok(batch) if !concerns(&batch, job) => (),
            Ok(_) | Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}

fn concerns(batch: &EventBatch, id: Option<JobId>) -> bool {
    batch.iter().any(|event| match event {
        Event::StepChanged { job, .. } | Event::JobChanged { job, .. } | Event::JobUpdated { job, .. } => {
            id.is_none_or(|id| *job == id)
        }
        _ => false,
    })
}
