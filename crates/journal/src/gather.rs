//! Group commit: all proposals that wait while the disk syncs become the next batch.
//!
//! A batch is closed when the one before it is on the disk, not earlier (the later it closes, the more it carries)
//! and not later (the disk never idles while somebody waits).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use openraft::error::{ClientWriteError, Fatal};
use openraft::raft::ClientWriteResult;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::applier::{Waiter, Waiters};
use crate::batch::{Batch, Raft, Types};
use crate::error::ProposeError;

/// A batch is closed at this many entries, or this many bytes.
const MAX_ENTRIES: usize = 1024;
const MAX_BYTES: usize = 1 << 20;

/// A leader that has lost its majority cannot tell what becomes of the last proposals, and does not wait for that to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

pub(crate) struct Proposal<R> {
    pub entry: Vec<u8>,
    pub reply: Waiter<R>,
}

/// Runs until every sender is gone or `stop` is set; what was proposed until then is still answered.
pub(crate) async fn run<R: Send + 'static>(
    raft: &Raft,
    mut proposals: mpsc::Receiver<Proposal<R>>,
    waiters: Arc<Waiters<R>>,
    mut flushed: watch::Receiver<u64>,
    mut stop: watch::Receiver<bool>,
) {
    let mut queue = VecDeque::new();
    let mut arrived = Vec::new();
    let mut ticket = 0;
    let mut answers = JoinSet::new();
    loop {
        if queue.is_empty() {
            tokio::select! {
                biased;
                n = proposals.recv_many(&mut arrived, MAX_ENTRIES) => if n == 0 { break },
                _ = stop.wait_for(|stop| *stop), if !proposals.is_closed() => proposals.close(),
            }
        } else {
            while arrived.len() + queue.len() < MAX_ENTRIES
                && let Ok(proposal) = proposals.try_recv()
            {
                arrived.push(proposal);
            }
        }
        queue.extend(arrived.drain(..));
        if queue.is_empty() {
            continue;
        }
        ticket += 1;
        let (entries, replies) = next_batch(&mut queue);
        waiters.add(ticket, replies);
        let overtaken = waiters.overtaken();
        let outcome = match raft.client_write_ff(Batch { ticket, entries: Arc::new(entries) }).await {
            Ok(outcome) => outcome,
            Err(fatal) => {
                refuse(&waiters, ticket, &stopped(&fatal));
                continue;
            }
        };
        let settle = settle(raft.clone(), waiters.clone(), ticket, outcome, overtaken);
        let mut settle = Box::pin(settle);
        tokio::select! {
            () = &mut settle => continue,
            _ = flushed.wait_for(|flushed| *flushed >= ticket) => {}
        }
        answers.spawn(settle);
        while answers.try_join_next().is_some() {}
    }
    let last = async { while answers.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_ANSWERS, last).await.is_err() {
        // Those who still wait are answered when Raft ends.
        answers.detach_all();
    }
}

fn next_batch<R>(queue: &mut VecDeque<Proposal<R>>) -> (Vec<Vec<u8>>, Vec<Waiter<R>>) {
    let mut size_bytes = 0;
    let mut n_entries = 0;
    for proposal in queue.iter().take(MAX_ENTRIES) {
        size_bytes += proposal.entry.len();
        if n_entries > 0 && size_bytes > MAX_BYTES {
            break;
        }
        n_entries += 1;
    }
    queue.drain(..n_entries).map(|proposal| (proposal.entry, proposal.reply)).unzip()
}

/// The applier answers the proposers of what was applied; here those hear of it whose batch never will be.
async fn settle<R>(
    raft: Raft,
    waiters: Arc<Waiters<R>>,
    ticket: u64,
    outcome: oneshot::Receiver<ClientWriteResult<Types>>,
    mut overtaken: watch::Receiver<()>,
) {
    let outcome = tokio::select! {
        biased;
        outcome = outcome => outcome,
        Ok(()) = overtaken.changed() => return refuse(&waiters, ticket, &ProposeError::Unknown),
    };
    let error = match outcome {
        Ok(Ok(_)) => return,
        Ok(Err(ClientWriteError::ForwardToLeader(forward))) => ProposeError::NotLeader { leader: forward.leader_id },
        Ok(Err(ClientWriteError::ChangeMembershipError(error))) => ProposeError::Stopped(error.to_string()),
        Err(_) => why_stopped(&raft),
    };
    refuse(&waiters, ticket, &error);
}

fn refuse<R>(waiters: &Waiters<R>, ticket: u64, error: &ProposeError) {
    for waiter in waiters.take(ticket) {
        // A proposer may have lost patience.
        let _ = waiter.send(Err(error.clone()));
    }
}

pub(crate) fn stopped(fatal: &Fatal<u64>) -> ProposeError {
    ProposeError::Stopped(fatal.to_string())
}

pub(crate) fn why_stopped(raft: &Raft) -> ProposeError {
    match &raft.metrics().borrow().running_state {
        Ok(()) => ProposeError::Stopped("it was shut down".into()),
        Err(fatal) => stopped(fatal),
    }
}
