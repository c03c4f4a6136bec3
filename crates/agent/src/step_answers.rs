//! What waits for one client of a run: bounded in bytes, for the client and for all that its user has waiting.
//!
//! ```text
//! supervisor ─▶ AnswerQueue ─▶ AnswerStream ─▶ the connection, as it takes them ─▶ handed over ─▶ receipts for the supervisor
//! ```
//! A client that lets more wait than it may is dropped, and is told why. What is dropped is freed at once.
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use model::attach::FromStep;
use model::codec;
use tokio::sync::Notify;
use tokio_stream::Stream;
use tonic::Status;
use wire::proto;

pub type StepAnswer = Result<proto::FromStep, Status>;

/// The client of a step. Its output waits in the supervisor; exchanges of MPI are a few messages, of any size each.
const CLIENT_BYTES_MAX: usize = 16 << 20;
const ONLOOKER_BYTES_MAX: usize = 2 << 20;
/// All that waits for the clients of one user.
const USER_BYTES_MAX: usize = 64 << 20;
/// A client has at least so much, whatever waits for others of its user: less than its run's supervisor takes.
const LEAST_BYTES: usize = 256 << 10;
/// What each message costs besides its content.
const MESSAGE_BYTES: usize = 128;
/// Onlookers that a user has at once, on all runs of a node.
const USER_ONLOOKERS_MAX: usize = 64;

/// One event, written once for all who hear it.
#[derive(Clone)]
pub struct EncodedEvent {
    message: Bytes,
    output_bytes: u64,
    is_last: bool,
}

impl EncodedEvent {
    pub fn of(event: &FromStep) -> EncodedEvent {
        let output_bytes = if let FromStep::Output { data, .. } = event { data.len() as u64 } else { 0 };
        let is_last = matches!(event, FromStep::Finished | FromStep::Failed { .. });
        EncodedEvent { message: codec::encode(event).into(), output_bytes, is_last }
    }

    fn n_bytes(&self) -> usize {
        self.message.len() + MESSAGE_BYTES
    }
}

/// How a client has parted from its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepParting {
    /// It has everything.
    Finished,
    /// It has hung up.
    Broken,
    /// Another client has come for the same step.
    Replaced,
    /// It was dropped, since it takes too little.
    Lagging,
}

/// What all clients of one user have waiting.
#[derive(Default)]
pub struct UserShare {
    n_bytes: AtomicUsize,
    n_onlookers: AtomicUsize,
}

#[derive(Default)]
pub struct UserShares(Mutex<HashMap<u32, Weak<UserShare>>>);

impl UserShares {
    pub fn of(&self, uid: u32) -> Arc<UserShare> {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = users.get(&uid).and_then(Weak::upgrade) {
            return share;
        }
        users.retain(|_, share| share.strong_count() > 0);
        let share = Arc::default();
        users.insert(uid, Arc::downgrade(&share));
        share
    }
}

/// The run's end.
#[derive(Clone)]
pub struct AnswerQueue(Arc<QueueShared>);

struct QueueShared {
    waiting: Mutex<WaitingAnswers>,
    parted: Notify,
    share: Arc<UserShare>,
}

struct WaitingAnswers {
    events: VecDeque<EncodedEvent>,
    n_bytes: usize,
    most_bytes: usize,
    is_onlooker: bool,
    /// The last event is among them, or was handed over.
    is_complete: bool,
    handed_bytes: u64,
    parting: Option<StepParting>,
    refusal: Option<Status>,
    waker: Option<Waker>,
}

/// The connection's end.
pub struct AnswerStream {
    queue: AnswerQueue,
    /// Is told how many bytes of output have been handed over in all.
    on_output: Option<Box<dyn FnMut(u64) + Send>>,
}

impl AnswerQueue {
    pub fn new(share: Arc<UserShare>) -> AnswerQueue {
        let waiting = WaitingAnswers {
            events: VecDeque::new(),
            n_bytes: 0,
            most_bytes: CLIENT_BYTES_MAX,
            is_onlooker: false,
            is_complete: false,
            handed_bytes: 0,
            parting: None,
            refusal: None,
            waker: None,
        };
        AnswerQueue(Arc::new(QueueShared { waiting: Mutex::new(waiting), parted: Notify::new(), share }))
    }

    pub fn stream(&self) -> AnswerStream {
        AnswerStream { queue: self.clone(), on_output: None }
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingAnswers> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one who only looks on; false: this user has too many of them.
    pub fn become_onlooker(&self) -> bool {
        let mut waiting = self.waiting();
        if self.0.share.n_onlookers.load(Ordering::Relaxed) >= USER_ONLOOKERS_MAX {
            return false;
        }
        if !waiting.is_onlooker {
            self.0.share.n_onlookers.fetch_add(1, Ordering::Relaxed);
        }
        (waiting.is_onlooker, waiting.most_bytes) = (true, ONLOOKER_BYTES_MAX);
        true
    }

    /// Never waits. False: nothing more is taken for this client.
    pub fn push(&self, event: &EncodedEvent) -> bool {
        let mut waiting = self.waiting();
        if waiting.parting.is_some() || waiting.is_complete {
            return false;
        }
        let share = &self.0.share.n_bytes;
        let most = match share.load(Ordering::Relaxed) >= USER_BYTES_MAX {
            true => LEAST_BYTES,
            false => waiting.most_bytes,
        };
        // One message, however long, goes to a client that takes what it is given.
        if waiting.n_bytes >= most {
            let n_kib = waiting.n_bytes >> 10;
            let why = format!("dropped: {n_kib} KiB of the step's messages were waiting to be read");
            // A step's client that lives comes again, and is told again what it has not received.
            let refusal = if waiting.is_onlooker { Status::resource_exhausted(why) } else { Status::unavailable(why) };
            drop(waiting);
            self.part(StepParting::Lagging, Some(refusal));
            return false;
        }
        share.fetch_add(event.n_bytes(), Ordering::Relaxed);
        waiting.n_bytes += event.n_bytes();
        waiting.is_complete = event.is_last;
        waiting.events.push_back(event.clone());
        let waker = waiting.waker.take();
        drop(waiting);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// The only answer, where there is nothing to attach to.
    pub fn refuse(&self, refusal: Status) {
        self.part(StepParting::Broken, Some(refusal));
    }

    pub fn replace(&self) {
        self.part(StepParting::Replaced, None);
    }

    fn part(&self, how: StepParting, refusal: Option<Status>) {
        let mut waiting = self.waiting();
        if waiting.parting.is_some() {
            return;
        }
        waiting.parting = Some(how);
        waiting.refusal = refusal;
        let freed = std::mem::take(&mut waiting.events);
        self.0.share.n_bytes.fetch_sub(std::mem::take(&mut waiting.n_bytes), Ordering::Relaxed);
        if waiting.is_onlooker {
            self.0.share.n_onlookers.fetch_sub(1, Ordering::Relaxed);
        }
        let waker = waiting.waker.take();
        drop(waiting);
        drop(freed);
        waker.into_iter().for_each(Waker::wake);
        self.0.parted.notify_waiters();
    }

    pub fn has_parted(&self) -> bool {
        self.waiting().parting.is_some()
    }

    pub async fn parting(&self) -> StepParting {
        loop {
            let notified = self.0.parted.notified();
            tokio::pin!(notified);
            // From here on no word is missed.
            notified.as_mut().enable();
            if let Some(parting) = self.waiting().parting {
                return parting;
            }
            notified.await;
        }
    }

    /// Bytes of output that the connection has taken so far.
    pub fn handed_bytes(&self) -> u64 {
        self.waiting().handed_bytes
    }
}

impl Drop for QueueShared {
    fn drop(&mut self) {
        let waiting = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.share.n_bytes.fetch_sub(waiting.n_bytes, Ordering::Relaxed);
        if waiting.is_onlooker && waiting.parting.is_none() {
            self.share.n_onlookers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl AnswerStream {
    pub fn on_output(mut self, told: impl FnMut(u64) + Send + 'static) -> AnswerStream {
        self.on_output = Some(Box::new(told));
        self
    }
}

impl Stream for AnswerStream {
    type Item = StepAnswer;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<StepAnswer>> {
        let stream = self.get_mut();
        let mut waiting = stream.queue.waiting();
        let Some(event) = waiting.events.pop_front() else {
            if let Some(refusal) = waiting.refusal.take() {
                return Poll::Ready(Some(Err(refusal)));
            }
            if waiting.parting.is_some() {
                return Poll::Ready(None);
            }
            waiting.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        waiting.n_bytes -= event.n_bytes();
        stream.queue.0.share.n_bytes.fetch_sub(event.n_bytes(), Ordering::Relaxed);
        waiting.handed_bytes += event.output_bytes;
        let handed_bytes = waiting.handed_bytes;
        drop(waiting);
        if event.is_last {
            stream.queue.part(StepParting::Finished, None);
        }
        if let Some(on_output) = stream.on_output.as_mut().filter(|_| event.output_bytes > 0) {
            on_output(handed_bytes);
        }
        Poll::Ready(Some(Ok(proto::FromStep { message: event.message })))
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        self.queue.part(StepParting::Broken, None);
    }
}

#[cfg(test)]
mod tests {
    use model::attach::Stream as OutputStream;
    use tokio_stream::StreamExt;

    use super::*;

    fn output(n_bytes: usize) -> EncodedEvent {
        EncodedEvent::of(&FromStep::Output { rank: 0, stream: OutputStream::Stdout, data: vec![0; n_bytes] })
    }

    /// How many pieces are taken before the client is dropped.
    fn n_taken(queue: &AnswerQueue) -> usize {
        (0..100_000).take_while(|_| queue.push(&output(64 << 10))).count()
    }

    #[tokio::test]
    async fn client_that_does_not_read_is_dropped_and_told_why() {
        let share = Arc::<UserShare>::default();
        let queue = AnswerQueue::new(share.clone());
        let mut stream = queue.stream();
        let n_most = CLIENT_BYTES_MAX / (64 << 10) + 1;
        assert!((n_most - 2..=n_most).contains(&n_taken(&queue)));
        assert_eq!(queue.parting().await, StepParting::Lagging);
        assert_eq!(share.n_bytes.load(Ordering::Relaxed), 0, "what it left is freed");
        let refusal = stream.next().await.unwrap().unwrap_err();
        assert!(refusal.message().contains("waiting to be read"), "{refusal}");
        assert!(stream.next().await.is_none());
        // One that reads gets messages of any size.
        let queue = AnswerQueue::new(share);
        let mut stream = queue.stream();
        for _ in 0..3 {
            assert!(queue.push(&output(2 * CLIENT_BYTES_MAX)));
            assert!(stream.next().await.unwrap().is_ok());
        }
        assert_eq!(queue.handed_bytes(), 6 * CLIENT_BYTES_MAX as u64);
        assert!(queue.push(&EncodedEvent::of(&FromStep::Finished)));
        assert!(!queue.push(&output(1)), "nothing follows the last");
        assert!(stream.next().await.unwrap().is_ok());
        assert_eq!(queue.parting().await, StepParting::Finished);
    }

    #[test]
    fn clients_of_one_user_share_what_may_wait() {
        let shares = UserShares::default();
        let queues: Vec<AnswerQueue> = (0..100).map(|_| AnswerQueue::new(shares.of(7))).collect();
        let streams: Vec<AnswerStream> = queues.iter().map(AnswerQueue::stream).collect();
        // Each is filled but not beyond its bound.
        let n_each = CLIENT_BYTES_MAX / (64 << 10) - 1;
        for queue in &queues {
            let _ = (0..n_each).take_while(|_| queue.push(&output(64 << 10))).count();
        }
        let n_bytes = shares.of(7).n_bytes.load(Ordering::Relaxed);
        assert!(n_bytes <= USER_BYTES_MAX + 100 * (LEAST_BYTES + (128 << 10)), "{n_bytes}");
        assert!(AnswerQueue::new(shares.of(8)).push(&output(1)));
        drop((queues, streams));
        assert_eq!(shares.of(7).n_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn onlookers_of_one_user_are_counted() {
        let shares = UserShares::default();
        let looking: Vec<_> = (0..USER_ONLOOKERS_MAX).map(|_| AnswerQueue::new(shares.of(7))).collect();
        assert!(looking.iter().all(AnswerQueue::become_onlooker));
        assert!(!AnswerQueue::new(shares.of(7)).become_onlooker());
        looking[0].replace();
        drop(looking);
        assert_eq!(shares.of(7).n_onlookers.load(Ordering::Relaxed), 0);
        let onlooker = AnswerQueue::new(shares.of(7));
        assert!(onlooker.become_onlooker());
        assert!(n_taken(&onlooker) <= ONLOOKER_BYTES_MAX / (64 << 10) + 1);
    }
}
