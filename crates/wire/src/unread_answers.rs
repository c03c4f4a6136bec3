//! Answers that are made and not yet written. Their owner's calls wait for one another, and no reader is waited for without an end.
//!
//! ```text
//! service ─▶ CountedAnswer: makes nothing while its owner has much unread ─▶ frame (counted) ─▶ the socket has it: counted no more
//! ```
//! The table of connections closes a connection whose oldest frame is overdue: see [`UnreadFrames::is_overdue`].
use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;

/// Frames that are no longer than this are not counted: the number of calls bounds them.
const SMALL_BYTES: usize = 4 << 10;
/// A reader takes a frame within this time,
pub(crate) const READER_PATIENCE: Duration = Duration::from_secs(60);
/// and a long one not slower than this.
const BYTES_PER_SEC_MIN: usize = 100 << 10;

/// What one owner has unread, over all its connections.
#[derive(Debug)]
pub struct UnreadAccount {
    n_max: usize,
    n_bytes: AtomicUsize,
    within: Within,
    room: Notify,
}

/// Whose bytes an owner's are besides.
#[derive(Debug)]
pub(crate) enum Within {
    Alone,
    /// All owners'. One that has nothing unread is never kept waiting by the others.
    All(Arc<UnreadAccount>),
    /// Those of a node, whose word for its users is not worth more memory.
    Node(Arc<UnreadAccount>),
}

impl UnreadAccount {
    pub(crate) fn new(n_max: usize, within: Within) -> Arc<UnreadAccount> {
        Arc::new(UnreadAccount { n_max, n_bytes: AtomicUsize::new(0), within, room: Notify::new() })
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        let n_own = self.n_bytes();
        let has_own = n_own == 0 || n_own < self.n_max;
        has_own
            && match &self.within {
                Within::Alone => true,
                Within::All(all) => n_own == 0 || all.n_bytes() < all.n_max,
                Within::Node(node) => node.n_bytes() < node.n_max,
            }
    }

    async fn wait_for_room(self: Arc<Self>) {
        loop {
            let mut told = pin!(self.room().notified());
            told.as_mut().enable();
            if self.has_room() {
                return;
            }
            told.await;
        }
    }

    /// Where it is told that there may be room.
    fn room(&self) -> &Notify {
        match &self.within {
            Within::Node(node) => &node.room,
            Within::Alone | Within::All(_) => &self.room,
        }
    }

    fn tell_room(&self) {
        match &self.within {
            // Whose turn it is depends on who has how much.
            Within::Node(node) => node.room.notify_waiters(),
            Within::Alone | Within::All(_) => self.room.notify_one(),
        }
    }

    fn add(&self, n_bytes: usize) {
        self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        if let Within::All(more) | Within::Node(more) = &self.within {
            more.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        }
    }

    fn take_off(&self, n_bytes: usize) {
        self.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        if let Within::All(more) | Within::Node(more) = &self.within {
            more.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        }
        self.tell_room();
    }
}

/// Bytes that count for their owner until this is dropped.
#[derive(Debug)]
struct UnreadBytes {
    account: Arc<UnreadAccount>,
    n_bytes: usize,
}

impl UnreadBytes {
    fn of(account: &Arc<UnreadAccount>, n_bytes: usize) -> UnreadBytes {
        account.add(n_bytes);
        UnreadBytes { account: account.clone(), n_bytes }
    }
}

impl Drop for UnreadBytes {
    fn drop(&mut self) {
        self.account.take_off(self.n_bytes);
    }
}

/// With a request: where its call counts what it keeps of its answer until that is read.
#[derive(Clone, Debug, Default)]
pub struct AnswerStock(Option<Arc<StockOfCall>>);

#[derive(Debug)]
struct StockOfCall {
    account: Arc<UnreadAccount>,
    n_held: AtomicUsize,
}

impl AnswerStock {
    /// The bytes, counted until the last piece of them is gone.
    pub fn keep(&self, bytes: Bytes) -> Bytes {
        match &self.0 {
            Some(stock) if bytes.len() > SMALL_BYTES => {
                stock.n_held.fetch_add(1, Ordering::Relaxed);
                let unread = UnreadBytes::of(&stock.account, bytes.len());
                Bytes::from_owner(KeptBytes { bytes, stock: stock.clone(), _unread: unread })
            }
            _ => bytes,
        }
    }

    /// Of the request's call; an answer that nobody counts has a stock without an end.
    pub fn of<T>(request: &tonic::Request<T>) -> AnswerStock {
        request.extensions().get().cloned().unwrap_or_default()
    }

    /// Waits until more may be made, for those who keep nothing yet.
    pub async fn wait_for_room(&self) {
        if let Some(stock) = self.0.as_ref().filter(|_| !self.holds_any()) {
            stock.account.clone().wait_for_room().await;
            if stock.account.has_room() {
                stock.account.tell_room();
            }
        }
    }

    /// Counts so many bytes besides, which the call needs until its answer is read.
    pub async fn hold(&self, n_bytes: usize) -> HeldForAnswer {
        let Some(stock) = self.0.as_ref().filter(|_| n_bytes > SMALL_BYTES) else { return HeldForAnswer(None) };
        self.wait_for_room().await;
        stock.n_held.fetch_add(1, Ordering::Relaxed);
        HeldForAnswer(Some((stock.clone(), UnreadBytes::of(&stock.account, n_bytes))))
    }

    /// What is held already only has to be handed on.
    fn holds_any(&self) -> bool {
        self.0.as_ref().is_some_and(|stock| stock.n_held.load(Ordering::Relaxed) > 0)
    }
}

/// What a call needs for the rest of its answer.
#[derive(Debug)]
pub struct HeldForAnswer(Option<(Arc<StockOfCall>, UnreadBytes)>);

impl Drop for HeldForAnswer {
    fn drop(&mut self) {
        if let Some((stock, _)) = &self.0 {
            stock.n_held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

struct KeptBytes {
    bytes: Bytes,
    stock: Arc<StockOfCall>,
    _unread: UnreadBytes,
}

impl AsRef<[u8]> for KeptBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for KeptBytes {
    fn drop(&mut self) {
        self.stock.n_held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The frames of one connection that its reader has not taken, with when each of them should be gone.
#[derive(Debug, Default)]
pub(crate) struct UnreadFrames(Mutex<FrameDeadlines>);

#[derive(Debug, Default)]
struct FrameDeadlines {
    next: u64,
    until: BTreeMap<u64, Instant>,
}

impl UnreadFrames {
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.lock().until.values().any(|until| *until < now)
    }

    fn begin(self: &Arc<Self>, n_bytes: usize) -> Arc<AwaitedFrame> {
        let patience = READER_PATIENCE + Duration::from_secs((n_bytes / BYTES_PER_SEC_MIN) as u64);
        let mut deadlines = self.lock();
        let number = deadlines.next;
        deadlines.next += 1;
        deadlines.until.insert(number, Instant::now() + patience);
        Arc::new(AwaitedFrame { frames: self.clone(), number })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FrameDeadlines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reader is to take a frame, and then to ask for the next.
#[derive(Debug)]
struct AwaitedFrame {
    frames: Arc<UnreadFrames>,
    number: u64,
}

impl Drop for AwaitedFrame {
    fn drop(&mut self) {
        self.frames.lock().until.remove(&self.number);
    }
}

struct UnreadFrame {
    bytes: Bytes,
    _unread: UnreadBytes,
    _awaited: Arc<AwaitedFrame>,
}

impl AsRef<[u8]> for UnreadFrame {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Who pays for an answer, and by which connection it goes.
#[derive(Clone, Debug)]
pub(crate) struct AnswerPayer {
    pub account: Arc<UnreadAccount>,
    pub frames: Arc<UnreadFrames>,
}

impl AnswerPayer {
    pub fn stock(payer: Option<&AnswerPayer>) -> AnswerStock {
        let of_call =
            |payer: &AnswerPayer| Arc::new(StockOfCall { account: payer.account.clone(), n_held: AtomicUsize::new(0) });
        AnswerStock(payer.map(of_call))
    }
}

/// The answer, made no faster than its owner's answers are read. Without a payer it is as it was.
pub(crate) fn counted(inner: Body, payer: Option<AnswerPayer>, stock: AnswerStock) -> Body {
    match payer {
        Some(payer) => Body::new(CountedAnswer { inner, payer, stock, last: None, waiting: None }),
        None => inner,
    }
}

struct CountedAnswer {
    inner: Body,
    payer: AnswerPayer,
    stock: AnswerStock,
    /// The reader has not asked for more since.
    last: Option<Arc<AwaitedFrame>>,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl CountedAnswer {
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.stock.holds_any() || (self.waiting.is_none() && self.payer.account.has_room()) {
            return Poll::Ready(());
        }
        let account = &self.payer.account;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(account.clone().wait_for_room()));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(())
    }
}

impl http_body::Body for CountedAnswer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let answer = self.get_mut();
        answer.last = None;
        ready!(answer.poll_room(context));
        let has_waited = answer.waiting.take().is_some();
        let next = Pin::new(&mut answer.inner).poll_frame(context);
        let next = next.map(|frame| {
            let frame = match frame?.map(Frame::into_data) {
                Ok(Ok(data)) if data.len() > SMALL_BYTES => {
                    let awaited = answer.payer.frames.begin(data.len());
                    answer.last = Some(awaited.clone());
                    let unread = UnreadBytes::of(&answer.payer.account, data.len());
                    Ok(Frame::data(Bytes::from_owner(UnreadFrame { bytes: data, _unread: unread, _awaited: awaited })))
                }
                Ok(Ok(data)) => Ok(Frame::data(data)),
                Ok(Err(frame)) => Ok(frame),
                Err(status) => Err(status),
            };
            Some(frame)
        });
        // One was woken, and there may be room for another.
        if has_waited && answer.payer.account.has_room() {
            answer.payer.account.tell_room();
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, StreamBody};
    use tokio_stream::StreamExt;

    const FRAME_BYTES: usize = 100 << 10;

    fn answer(payer: &AnswerPayer, n_frames: usize) -> Body {
        let frames = tokio_stream::iter(0..n_frames);
        let frames = frames.map(|_| Ok::<_, Status>(Frame::data(Bytes::from(vec![7; FRAME_BYTES]))));
        counted(Body::new(StreamBody::new(frames)), Some(payer.clone()), AnswerPayer::stock(Some(payer)))
    }

    fn payer(n_max: usize) -> AnswerPayer {
        AnswerPayer { account: UnreadAccount::new(n_max, Within::Alone), frames: Arc::default() }
    }

    async fn next(answer: &mut Body) -> Bytes {
        let frame = tokio::time::timeout(Duration::from_secs(10), answer.frame()).await;
        frame.expect("there is room").unwrap().unwrap().into_data().unwrap()
    }

    async fn read(mut answer: Body) -> usize {
        let mut n_bytes = 0;
        while let Some(frame) = answer.frame().await {
            tokio::task::yield_now().await;
            n_bytes += frame.unwrap().into_data().unwrap().len();
        }
        n_bytes
    }

    #[tokio::test]
    async fn answers_wait_for_those_of_their_owner_that_nobody_reads() {
        let payer = payer(5 * FRAME_BYTES);
        let mut answers: Vec<Body> = (0..100).map(|_| answer(&payer, 3)).collect();
        let mut unread = Vec::new();
        for answer in &mut answers {
            if let Ok(frame) = tokio::time::timeout(Duration::from_millis(1), answer.frame()).await {
                unread.push(frame);
            }
        }
        assert_eq!((unread.len(), payer.account.n_bytes()), (5, 5 * FRAME_BYTES));
        // Whoever else there is has its own.
        let another = AnswerPayer { account: UnreadAccount::new(FRAME_BYTES, Within::Alone), frames: Arc::default() };
        next(&mut answer(&another, 1)).await;
        // All come, when they are read; those that have room wake the others.
        drop(unread);
        let readers: Vec<_> = answers.into_iter().map(|answer| tokio::spawn(read(answer))).collect();
        let mut n_bytes = 0;
        for reader in readers {
            let whole = tokio::time::timeout(Duration::from_secs(10), reader).await;
            n_bytes += whole.expect("it is let through").unwrap();
        }
        assert_eq!(n_bytes, (100 * 3 - 5) * FRAME_BYTES);
        assert_eq!(payer.account.n_bytes(), 0);
    }

    #[tokio::test]
    async fn what_is_held_already_is_handed_on_though_all_is_full() {
        let payer = payer(1);
        let stock = AnswerPayer::stock(Some(&payer));
        let noun = stock.keep(Bytes::from(vec![1; 3 * FRAME_BYTES]));
        let pieces: Vec<Bytes> = (0..3).map(|at| noun.slice(at * FRAME_BYTES..(at + 1) * FRAME_BYTES)).collect();
        drop(noun);
        let frames = tokio_stream::iter(pieces).map(|piece| Ok::<_, Status>(Frame::data(piece)));
        let mut held = counted(Body::new(StreamBody::new(frames)), Some(payer.clone()), stock);
        for _ in 0..3 {
            next(&mut held).await;
        }
        drop(held);
        assert_eq!(payer.account.n_bytes(), 0);
    }

    #[tokio::test]
    async fn who_has_nothing_unread_is_not_kept_waiting_by_others() {
        let all = UnreadAccount::new(FRAME_BYTES, Within::Alone);
        let of_user = || AnswerPayer {
            account: UnreadAccount::new(100 * FRAME_BYTES, Within::All(all.clone())),
            frames: Arc::default(),
        };
        let (greedy, modest) = (of_user(), of_user());
        let mut greedy_answers = [answer(&greedy, 1), answer(&greedy, 1)];
        let unread = next(&mut greedy_answers[0]).await;
        assert!(tokio::time::timeout(Duration::from_millis(20), greedy_answers[1].frame()).await.is_err());
        let unread_too = next(&mut answer(&modest, 1)).await;
        drop((unread, unread_too));
        next(&mut greedy_answers[1]).await;
        assert_eq!(all.n_bytes(), 0);
    }

    #[tokio::test]
    async fn frame_that_nobody_takes_is_overdue() {
        let payer = payer(100 * FRAME_BYTES);
        let mut slow = answer(&payer, 2);
        let frame = next(&mut slow).await;
        let later = Instant::now() + READER_PATIENCE + Duration::from_secs(2);
        assert!(!payer.frames.is_overdue(Instant::now()) && payer.frames.is_overdue(later));
        // Taken, but nobody asks for the rest.
        drop(frame);
        assert!(payer.frames.is_overdue(later));
        drop(next(&mut slow).await);
        assert!(slow.frame().await.is_none());
        assert!(!payer.frames.is_overdue(later));
    }

    #[tokio::test]
    async fn users_of_a_node_wait_for_the_node() {
        let node = UnreadAccount::new(2 * FRAME_BYTES, Within::Alone);
        let users: Vec<AnswerPayer> = (0..50)
            .map(|_| AnswerPayer {
                account: UnreadAccount::new(FRAME_BYTES, Within::Node(node.clone())),
                frames: Arc::default(),
            })
            .collect();
        let readers: Vec<_> = users.iter().map(|user| tokio::spawn(read(answer(user, 3)))).collect();
        for reader in readers {
            let whole = tokio::time::timeout(Duration::from_secs(10), reader).await;
            assert_eq!(whole.expect("each gets its turn").unwrap(), 3 * FRAME_BYTES);
        }
        let unread = (next(&mut answer(&users[0], 1)).await, next(&mut answer(&users[1], 1)).await);
        assert!(tokio::time::timeout(Duration::from_millis(20), answer(&users[2], 1).frame()).await.is_err());
        drop(unread);
        assert_eq!(node.n_bytes(), 0);
    }
}
