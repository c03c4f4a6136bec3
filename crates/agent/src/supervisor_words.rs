//! What is to be said to one supervisor, in order. The agent's own words are few; those of clients wait for room.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::attach::ToStep;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::protocol::ToSupervisor;

/// Words of the agent's own on their way to one supervisor.
const OWN_WORDS_MAX: usize = 4096;
/// Words of clients on their way to one supervisor, in bytes; one alone may be longer.
const CLIENT_BYTES_MAX: usize = 1 << 20;
/// What each word costs besides its content.
const WORD_BYTES: usize = 256;
/// Input on its way to the tasks of a run, at most.
const INPUT_BYTES_MAX: usize = 256 * 1024;

/// A word that has its room until it is on the supervisor's line.
enum QueuedWord {
    Said(ToSupervisor, OwnedSemaphorePermit),
    /// One at a time, whatever has been received by the time it is read.
    Receipt,
}

/// Every word holds a permit, so the queue is bounded though the channel is not.
#[derive(Clone)]
pub struct SupervisorWords {
    queue: UnboundedSender<QueuedWord>,
    own: Arc<Semaphore>,
    clients: Arc<Semaphore>,
    input: Arc<Semaphore>,
    receipt: Arc<PendingReceipt>,
}

#[derive(Default)]
struct PendingReceipt {
    total_bytes: AtomicU64,
    is_queued: AtomicBool,
}

/// The end that whoever writes to the supervisor reads from.
pub struct WordsToWrite {
    queue: UnboundedReceiver<QueuedWord>,
    receipt: Arc<PendingReceipt>,
}

impl WordsToWrite {
    /// The next; its room is given back with it, since only one is written at a time.
    pub async fn next(&mut self) -> Option<ToSupervisor> {
        Some(match self.queue.recv().await? {
            QueuedWord::Said(message, _room) => message,
            QueuedWord::Receipt => {
                self.receipt.is_queued.store(false, Ordering::Relaxed);
                let total_bytes = self.receipt.total_bytes.load(Ordering::Relaxed);
                ToSupervisor::Step(ToStep::Received { total_bytes })
            }
        })
    }
}

impl SupervisorWords {
    pub fn new() -> (SupervisorWords, WordsToWrite) {
        let (queue, words) = unbounded_channel();
        let room = |n| Arc::new(Semaphore::new(n));
        let (own, clients, input) = (room(OWN_WORDS_MAX), room(CLIENT_BYTES_MAX), room(INPUT_BYTES_MAX));
        let receipt = Arc::<PendingReceipt>::default();
        let words = WordsToWrite { queue: words, receipt: receipt.clone() };
        (SupervisorWords { queue, own, clients, input, receipt }, words)
    }

    /// The present client has been handed so many bytes of output.
    pub fn receive(&self, total_bytes: u64) {
        self.receipt.total_bytes.store(total_bytes, Ordering::Relaxed);
        if !self.receipt.is_queued.swap(true, Ordering::Relaxed) {
            let _ = self.queue.send(QueuedWord::Receipt);
        }
    }

    /// The agent's own. A supervisor that has taken none of thousands gets no more: it is ended over its head.
    pub fn say(&self, message: ToSupervisor) {
        match self.own.clone().try_acquire_owned() {
            Ok(room) => drop(self.queue.send(QueuedWord::Said(message, room))),
            Err(_) => tracing::warn!(?message, "a supervisor takes no more words"),
        }
    }

    /// A client's, of so many bytes. False: the supervisor is gone.
    pub async fn pass_on(&self, message: ToStep, n_bytes: usize) -> bool {
        if let ToStep::Input { data, .. } = &message {
            // One message may be larger than the room; it then waits until all of it is free.
            let needed = data.len().min(INPUT_BYTES_MAX);
            let Ok(room) = self.input.acquire_many(needed as u32).await else { return false };
            room.forget();
        }
        let needed = (n_bytes + WORD_BYTES).min(CLIENT_BYTES_MAX);
        let Ok(room) = self.clients.clone().acquire_many_owned(needed as u32).await else { return false };
        self.queue.send(QueuedWord::Said(ToSupervisor::Step(message), room)).is_ok()
    }

    /// So much of the clients' input has gone to the tasks.
    pub fn input_taken(&self, n_bytes: u64) {
        let missing = INPUT_BYTES_MAX.saturating_sub(self.input.available_permits());
        self.input.add_permits(missing.min(usize::try_from(n_bytes).unwrap_or(missing)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// How many of a client's messages are taken while the supervisor takes none.
    async fn n_taken(message: ToStep, n_bytes: usize) -> usize {
        let (words, queue) = SupervisorWords::new();
        let mut n_taken = 0;
        let passing = async {
            while words.pass_on(message.clone(), n_bytes).await {
                n_taken += 1;
            }
        };
        assert!(tokio::time::timeout(Duration::from_millis(200), passing).await.is_err());
        drop(queue);
        assert!(!words.pass_on(message, n_bytes).await, "nobody waits for a supervisor that is gone");
        n_taken
    }

    #[tokio::test]
    async fn clients_wait_for_a_supervisor_that_takes_nothing() {
        let gathered = ToStep::Gathered { group: "0-1".into(), sequence: 0, data: vec![0; 1000] };
        assert!(n_taken(gathered, 1000).await <= 1000);
        assert!(n_taken(ToStep::Signal { signal: 10 }, 10).await <= CLIENT_BYTES_MAX / WORD_BYTES);
        assert_eq!(n_taken(ToStep::EndOfInput, 32 << 20).await, 1);
    }

    #[tokio::test]
    async fn receipts_that_nobody_has_read_are_one() {
        let (words, mut queue) = SupervisorWords::new();
        (1..=1_000_000).for_each(|total_bytes| words.receive(total_bytes));
        words.say(ToSupervisor::Release);
        let received = queue.next().await;
        assert!(matches!(received, Some(ToSupervisor::Step(ToStep::Received { total_bytes: 1_000_000 }))));
        assert!(matches!(queue.next().await, Some(ToSupervisor::Release)));
    }

    #[tokio::test]
    async fn room_for_input_is_never_more_than_at_first() {
        let (words, _queue) = SupervisorWords::new();
        words.input_taken(u64::MAX);
        assert_eq!(words.input.available_permits(), INPUT_BYTES_MAX);
        let long = ToStep::Input { rank: None, data: vec![0; 3 * INPUT_BYTES_MAX] };
        assert!(words.pass_on(long, 3 * INPUT_BYTES_MAX).await);
        words.input_taken(3 * INPUT_BYTES_MAX as u64);
        assert_eq!(words.input.available_permits(), INPUT_BYTES_MAX);
    }
}
