//! Bodies of requests within bounds: how long a message may be, how long it may take to come, and how much is under way.
//!
//! Who calls, and whether such a caller is heard, is known before a body is read; so nobody makes a daemon keep what it refuses.
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::Request;

use crate::connection_table::{BUDGET_UNIT, BytesPayer, ConnectionState};
use crate::origin::Origin;

/// A message that is no longer than this is not counted.
const SMALL_BYTES: usize = 16 << 10;
/// Even a short message may take so long.
pub(crate) const MESSAGE_PATIENCE: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(30) };
/// A long one may take longer: so many bytes a second are a poor line.
const BYTES_PER_SEC_MIN: usize = 100 << 10;
/// A request waits so long for others of its owner to be read.
const BUDGET_PATIENCE: Duration = Duration::from_secs(30);
/// Length and kind before each message of gRPC.
const MESSAGE_HEAD_BYTES: usize = 5;

/// How long a message of a call may be, and whether more than one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyBound {
    pub message_bytes: usize,
    pub is_stream: bool,
}

impl BodyBound {
    /// Of calls that ask for nothing in particular, and of strangers.
    pub const BRIEF: BodyBound = BodyBound::one(64 << 10);
    pub const QUESTION: BodyBound = BodyBound::one(1 << 20);
    /// A list of all jobs that a command line can name.
    pub const CHANGE: BodyBound = BodyBound::one(8 << 20);
    /// Scripts and environments.
    pub const CONTENT: BodyBound = BodyBound::one(32 << 20);
    /// What an agent says of its node.
    pub const REPORTS: BodyBound = BodyBound { message_bytes: 32 << 20, is_stream: true };
    /// What passes between a command and its step.
    pub const STEP: BodyBound = BodyBound { message_bytes: 32 << 20, is_stream: true };
    /// A piece of a file that sbcast brings is 64 MiB at most.
    pub const PIECE: BodyBound = BodyBound::one(65 << 20);
    pub const PIECES: BodyBound = BodyBound { message_bytes: 4 << 20, is_stream: true };
    /// The log and its snapshots, between controllers.
    pub const LOG: BodyBound = BodyBound::one(crate::channel::MAX_MESSAGE_BYTES);
    /// Of calls for controllers, which bound them further: they know the site's own limits.
    pub const RELAYED: BodyBound = BodyBound::one(crate::channel::MAX_MESSAGE_BYTES);

    const fn one(message_bytes: usize) -> BodyBound {
        BodyBound { message_bytes, is_stream: false }
    }

    pub fn at_most(self, message_bytes: usize) -> BodyBound {
        BodyBound { message_bytes: self.message_bytes.min(message_bytes), ..self }
    }

    /// Of calls that an agent passes on.
    pub fn of_relayed_call(path: &str) -> BodyBound {
        match path.contains(".Agent/") {
            true => BodyBound::of_agent_call(path),
            false => BodyBound::RELAYED,
        }
    }

    /// Of calls for agents.
    pub fn of_agent_call(path: &str) -> BodyBound {
        match path.rsplit('/').next() {
            Some("Attach") => BodyBound::STEP,
            Some("Ask") => BodyBound::PIECE,
            Some("Mirror") => BodyBound::PIECES,
            _ => BodyBound::BRIEF,
        }
    }
}

/// What a request has under way, until this is dropped.
#[derive(Clone, Debug, Default)]
pub struct BodyHold {
    account: Arc<Mutex<BodyAccount>>,
}

#[derive(Debug, Default)]
struct BodyAccount {
    permits: Vec<OwnedSemaphorePermit>,
    /// Why the body has ended before its time.
    fault: Option<Status>,
}

impl BodyHold {
    fn lock(&self) -> MutexGuard<'_, BodyAccount> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was wrong with the body, if that is why the call has failed.
    pub fn fault(&self) -> Option<Status> {
        self.lock().fault.clone()
    }
}

/// The request with its body bounded. Its owner pays for it until the hold is dropped: the value made of it lives so long.
pub fn bound(request: Request<Body>, bound: BodyBound) -> (Request<Body>, BodyHold) {
    wrap(request, bound, None)
}

/// As [`bound`], for a call that another daemon answers: a message goes on when it is whole, so that a body that stops
/// stops here.
pub fn bound_whole(request: Request<Body>, bound: BodyBound) -> (Request<Body>, BodyHold) {
    wrap(request, bound, Some(BytesMut::new()))
}

fn wrap(request: Request<Body>, bound: BodyBound, held_back: Option<BytesMut>) -> (Request<Body>, BodyHold) {
    let connection = request.extensions().get::<Arc<ConnectionState>>().cloned();
    let is_for_user = Origin::of(&request).is_some_and(|origin| origin.user.is_some());
    let payer = match (is_for_user, &held_back) {
        (false, _) => BytesPayer::Owner,
        (true, None) => BytesPayer::User,
        (true, Some(_)) => BytesPayer::PassedOn,
    };
    let hold = BodyHold::default();
    let (parts, inner) = request.into_parts();
    let bounded = BoundedBody {
        inner,
        bound,
        connection,
        payer,
        hold: hold.clone(),
        reading: Reading::Head { digits: [0; MESSAGE_HEAD_BYTES], n_read: 0 },
        n_messages: 0,
        patience: MESSAGE_PATIENCE,
        deadline: None,
        waiting: None,
        held_back,
    };
    (Request::from_parts(parts, Body::new(bounded)), hold)
}

type Permits = Pin<Box<dyn Future<Output = Result<Vec<OwnedSemaphorePermit>, Status>> + Send>>;

struct BoundedBody {
    inner: Body,
    bound: BodyBound,
    connection: Option<Arc<ConnectionState>>,
    payer: BytesPayer,
    hold: BodyHold,
    reading: Reading,
    n_messages: u64,
    /// How long the present message may take.
    patience: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Data that has come, and what must be free before it is handed on.
    waiting: Option<(Permits, Portion)>,
    /// The beginning of a message that goes on when it is whole; none: messages go on as they come.
    held_back: Option<BytesMut>,
}

/// What has come at once, and how far whole messages reach in it.
struct Portion {
    data: Bytes,
    n_whole: usize,
}

/// Where in a message the body is.
enum Reading {
    Head { digits: [u8; MESSAGE_HEAD_BYTES], n_read: usize },
    Content { n_left: usize },
}

impl BoundedBody {
    /// Follows the messages in the data: how many bytes of them must be counted, and where the last whole one ends.
    fn follow(&mut self, all: &[u8]) -> Result<(usize, usize), Status> {
        let (mut n_counted, mut n_whole, mut data) = (0, 0, all);
        while !data.is_empty() {
            match &mut self.reading {
                Reading::Head { digits, n_read } => {
                    let n_taken = data.len().min(MESSAGE_HEAD_BYTES - *n_read);
                    digits[*n_read..*n_read + n_taken].copy_from_slice(&data[..n_taken]);
                    *n_read += n_taken;
                    data = &data[n_taken..];
                    if *n_read == MESSAGE_HEAD_BYTES {
                        let n_bytes = u32::from_be_bytes([digits[1], digits[2], digits[3], digits[4]]) as usize;
                        n_counted += self.begin(n_bytes)?;
                        if n_bytes == 0 {
                            n_whole = all.len() - data.len();
                        }
                    }
                }
                Reading::Content { n_left } => {
                    let n_taken = data.len().min(*n_left);
                    *n_left -= n_taken;
                    data = &data[n_taken..];
                    if *n_left == 0 {
                        self.end_message();
                        n_whole = all.len() - data.len();
                    }
                }
            }
        }
        Ok((n_counted, n_whole))
    }

    fn begin(&mut self, n_bytes: usize) -> Result<usize, Status> {
        let most = self.bound.message_bytes;
        if n_bytes > most {
            let why = format!("the request has {n_bytes} bytes, and this call takes {most} at most");
            return Err(Status::resource_exhausted(why));
        }
        if !self.bound.is_stream && self.n_messages > 0 {
            return Err(Status::invalid_argument("this call takes one message"));
        }
        self.n_messages += 1;
        self.patience = MESSAGE_PATIENCE + Duration::from_secs((n_bytes / BYTES_PER_SEC_MIN) as u64);
        self.deadline = None;
        self.reading = Reading::Content { n_left: n_bytes };
        if n_bytes == 0 {
            self.end_message();
        }
        Ok(if n_bytes > SMALL_BYTES { n_bytes } else { 0 })
    }

    fn end_message(&mut self) {
        self.reading = Reading::Head { digits: [0; MESSAGE_HEAD_BYTES], n_read: 0 };
        self.deadline = None;
        self.patience = MESSAGE_PATIENCE;
    }

    /// Between the messages of a stream there may be days.
    fn must_come(&self) -> bool {
        !self.bound.is_stream || self.n_messages == 0 || !self.is_between()
    }

    fn is_between(&self) -> bool {
        matches!(self.reading, Reading::Head { n_read: 0, .. })
    }

    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        if !self.must_come() {
            return false;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        deadline.as_mut().poll(context).is_ready()
    }
}

/// Waits for room, first of the owner, then of all.
fn permits(connection: &ConnectionState, payer: BytesPayer, n_bytes: usize) -> Permits {
    let budgets = connection.budgets(payer);
    let owner = connection.owner().to_string();
    Box::pin(async move {
        let n_units = n_bytes.div_ceil(BUDGET_UNIT);
        let taking = async {
            let mut permits = Vec::new();
            for (budget, n_all) in budgets {
                permits.push(budget.acquire_many_owned(n_units.min(n_all) as u32).await.ok()?);
            }
            Some(permits)
        };
        match tokio::time::timeout(BUDGET_PATIENCE, taking).await {
            Ok(Some(permits)) => Ok(permits),
            Ok(None) | Err(_) => Err(Status::resource_exhausted(format!(
                "requests of {owner} are too large to be read at once: make fewer calls side by side"
            ))),
        }
    })
}

impl BoundedBody {
    /// What goes on now of what has come; none: its message is not whole yet.
    fn let_on(&mut self, portion: Portion) -> Option<Bytes> {
        let Some(held_back) = &mut self.held_back else { return Some(portion.data) };
        held_back.extend_from_slice(&portion.data);
        if portion.n_whole == 0 {
            return None;
        }
        let n_left = portion.data.len() - portion.n_whole;
        Some(held_back.split_to(held_back.len() - n_left).freeze())
    }

    fn poll_bounded(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some((permits, _)) = &mut self.waiting {
                let permits = ready!(permits.as_mut().poll(context))?;
                self.hold.lock().permits.extend(permits);
                if let Some((_, portion)) = self.waiting.take()
                    && let Some(data) = self.let_on(portion)
                {
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
            }
            let frame = match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(None) if self.held_back.as_ref().is_some_and(|held_back| !held_back.is_empty()) => {
                    return Poll::Ready(Some(Err(Status::invalid_argument("the request ends within a message"))));
                }
                Poll::Ready(other) => return Poll::Ready(other),
                Poll::Pending if self.is_late(context) => {
                    return Poll::Ready(Some(Err(Status::deadline_exceeded("the request did not come in time"))));
                }
                Poll::Pending => return Poll::Pending,
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            let (n_counted, n_whole) = self.follow(&data)?;
            let portion = Portion { data, n_whole };
            match &self.connection {
                Some(connection) if n_counted > 0 => {
                    self.waiting = Some((permits(connection, self.payer, n_counted), portion));
                }
                _ => {
                    if let Some(data) = self.let_on(portion) {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
            }
        }
    }
}

impl http_body::Body for BoundedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = self.get_mut();
        // The message before has been made into a value, and its reader asks for the next one.
        if body.bound.is_stream && body.waiting.is_none() && body.is_between() {
            body.hold.lock().permits.clear();
        }
        let polled = body.poll_bounded(context);
        if let Poll::Ready(Some(Err(status))) = &polled {
            body.hold.lock().fault = Some(status.clone());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let is_holding = self.held_back.as_ref().is_some_and(|held_back| !held_back.is_empty());
        self.waiting.is_none() && !is_holding && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.waiting, &self.held_back) {
            (None, None) => self.inner.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

impl fmt::Debug for BoundedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedBody").field("bound", &self.bound).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full, StreamBody};
    use tokio_stream::StreamExt;

    fn message(n_claimed: u32, n_bytes: usize) -> Vec<u8> {
        [&[0][..], &n_claimed.to_be_bytes(), &vec![7; n_bytes]].concat()
    }

    async fn read(body: Body, within: BodyBound) -> Result<usize, Status> {
        let (request, _hold) = bound(Request::new(body), within);
        request.into_body().collect().await.map(|all| all.to_bytes().len())
    }

    fn in_pieces(pieces: Vec<Vec<u8>>, is_cut: bool) -> Body {
        let pieces = tokio_stream::iter(pieces).map(|piece| Ok::<_, Status>(Frame::data(Bytes::from(piece))));
        match is_cut {
            true => Body::new(StreamBody::new(pieces.chain(tokio_stream::pending()))),
            false => Body::new(StreamBody::new(pieces)),
        }
    }

    #[tokio::test]
    async fn length_that_is_only_claimed_is_refused_at_once() {
        let status = read(in_pieces(vec![message(u32::MAX, 3)], true), BodyBound::QUESTION).await.unwrap_err();
        assert_eq!(status.message(), "the request has 4294967295 bytes, and this call takes 1048576 at most");
        let full = Body::new(Full::new(Bytes::from(message(70_000, 70_000))));
        assert!(read(full, BodyBound::BRIEF).await.is_err());
        let full = Body::new(Full::new(Bytes::from(message(70_000, 70_000))));
        assert_eq!(read(full, BodyBound::QUESTION).await.unwrap(), 70_005);
        // However it is cut.
        let bytes = message(70_000, 70_000);
        for cut in [1, 4, 5, 6, 69_999] {
            let pieces = vec![bytes[..cut].to_vec(), bytes[cut..].to_vec()];
            assert!(read(in_pieces(pieces, false), BodyBound::BRIEF).await.is_err(), "{cut}");
        }
    }

    #[tokio::test]
    async fn one_message_is_not_followed_by_more_but_in_streams() {
        let two = || in_pieces(vec![message(3, 3), message(0, 0), message(20_000, 20_000)], false);
        assert_eq!(read(two(), BodyBound::REPORTS).await.unwrap(), 8 + 5 + 20_005);
        assert_eq!(read(two(), BodyBound::CONTENT).await.unwrap_err().message(), "this call takes one message");
    }

    #[tokio::test]
    async fn body_that_does_not_come_is_given_up() {
        let late = read(in_pieces(vec![message(3, 2)], true), BodyBound::BRIEF).await.unwrap_err();
        assert_eq!(late.message(), "the request did not come in time");
        assert!(read(in_pieces(vec![], true), BodyBound::REPORTS).await.is_err());
        // Between two messages a stream may rest.
        let resting = read(in_pieces(vec![message(3, 3)], true), BodyBound::REPORTS);
        assert!(tokio::time::timeout(MESSAGE_PATIENCE * 5, resting).await.is_err());
    }

    /// As over HTTP/2, where a caller says how much will come.
    struct Announced(u64);

    impl http_body::Body for Announced {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Pending
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    #[tokio::test]
    async fn small_body_that_is_only_announced_is_given_up() {
        let reading = read(Body::new(Announced(10)), BodyBound::BRIEF);
        let late = tokio::time::timeout(MESSAGE_PATIENCE * 5, reading).await.expect("it is not waited for");
        assert_eq!(late.unwrap_err().message(), "the request did not come in time");
    }

    #[tokio::test]
    async fn message_is_passed_on_when_it_is_whole() {
        let bytes = [message(3, 3), message(70_000, 70_000)].concat();
        let pieces = vec![bytes[..4].to_vec(), bytes[4..10].to_vec(), bytes[10..60_000].to_vec()];
        let (request, hold) = bound_whole(Request::new(in_pieces(pieces, true)), BodyBound::STEP);
        let mut body = request.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, message(3, 3));
        assert_eq!(body.frame().await.unwrap().unwrap_err().code(), tonic::Code::DeadlineExceeded);
        assert_eq!(hold.fault().map(|status| status.code()), Some(tonic::Code::DeadlineExceeded));
        let pieces = bytes.chunks(7).map(<[u8]>::to_vec).collect();
        let (request, hold) = bound_whole(Request::new(in_pieces(pieces, false)), BodyBound::STEP);
        assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), bytes);
        assert!(hold.fault().is_none());
        let cut = in_pieces(vec![bytes[..100].to_vec()], false);
        let (request, _hold) = bound_whole(Request::new(cut), BodyBound::RELAYED);
        assert!(request.into_body().collect().await.is_err());
    }
}
