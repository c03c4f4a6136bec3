//! Bodies of requests within bounds: how long a message may be, how long it may take to come, and how much is under way.
//!
//! Who calls, and whether such a caller is heard, is known before a body is read; so nobody makes a daemon keep what it refuses.
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::Request;

use crate::connection_table::{BUDGET_UNIT, ConnectionState};

/// A message that is no longer than this is not counted.
const SMALL_BYTES: usize = 16 << 10;
/// Even a short message may take so long.
const MESSAGE_PATIENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(30) };
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

    const fn one(message_bytes: usize) -> BodyBound {
        BodyBound { message_bytes, is_stream: false }
    }

    pub fn at_most(self, message_bytes: usize) -> BodyBound {
        BodyBound { message_bytes: self.message_bytes.min(message_bytes), ..self }
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
    _permits: Option<Arc<Mutex<Vec<OwnedSemaphorePermit>>>>,
}

/// The request with its body bounded. Its owner pays for it until the hold is dropped: the value made of it lives so long.
pub fn bound(request: Request<Body>, bound: BodyBound) -> (Request<Body>, BodyHold) {
    let exact = request.body().size_hint().exact();
    if exact.is_some_and(|n_bytes| n_bytes as usize <= SMALL_BYTES.min(bound.message_bytes)) {
        return (request, BodyHold::default());
    }
    let connection = request.extensions().get::<Arc<ConnectionState>>().cloned();
    let hold = Arc::new(Mutex::new(Vec::new()));
    let (parts, inner) = request.into_parts();
    let bounded = BoundedBody {
        inner,
        bound,
        connection,
        hold: hold.clone(),
        reading: Reading::Head { digits: [0; MESSAGE_HEAD_BYTES], n_read: 0 },
        n_messages: 0,
        patience: MESSAGE_PATIENCE,
        deadline: None,
        waiting: None,
    };
    (Request::from_parts(parts, Body::new(bounded)), BodyHold { _permits: Some(hold) })
}

type Permits = Pin<Box<dyn Future<Output = Result<Vec<OwnedSemaphorePermit>, Status>> + Send>>;

struct BoundedBody {
    inner: Body,
    bound: BodyBound,
    connection: Option<Arc<ConnectionState>>,
    hold: Arc<Mutex<Vec<OwnedSemaphorePermit>>>,
    reading: Reading,
    n_messages: u64,
    /// How long the present message may take.
    patience: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Data that has come, and what must be free before it is handed on.
    waiting: Option<(Permits, Bytes)>,
}

/// Where in a message the body is.
enum Reading {
    Head { digits: [u8; MESSAGE_HEAD_BYTES], n_read: usize },
    Content { n_left: usize },
}

impl BoundedBody {
    /// Follows the messages in the data; gives how many bytes of them must be counted.
    fn follow(&mut self, mut data: &[u8]) -> Result<usize, Status> {
        let mut n_counted = 0;
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
                    }
                }
                Reading::Content { n_left } => {
                    let n_taken = data.len().min(*n_left);
                    *n_left -= n_taken;
                    data = &data[n_taken..];
                    if *n_left == 0 {
                        self.end_message();
                    }
                }
            }
        }
        Ok(n_counted)
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
        // The message before this one has been made into a value by now.
        self.hold.lock().unwrap_or_else(PoisonError::into_inner).clear();
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
        let is_between = matches!(self.reading, Reading::Head { n_read: 0, .. });
        !self.bound.is_stream || self.n_messages == 0 || !is_between
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
fn permits(connection: &ConnectionState, n_bytes: usize) -> Permits {
    let budgets = connection.budgets();
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

impl http_body::Body for BoundedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let body = self.get_mut();
        loop {
            if let Some((permits, _)) = &mut body.waiting {
                let permits = ready!(permits.as_mut().poll(context));
                let data = body.waiting.take().map(|(_, data)| data).unwrap_or_default();
                return Poll::Ready(Some(permits.map(|permits| {
                    body.hold.lock().unwrap_or_else(PoisonError::into_inner).extend(permits);
                    Frame::data(data)
                })));
            }
            let frame = match Pin::new(&mut body.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(other) => return Poll::Ready(other),
                Poll::Pending if body.is_late(context) => {
                    return Poll::Ready(Some(Err(Status::deadline_exceeded("the request did not come in time"))));
                }
                Poll::Pending => return Poll::Pending,
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            let n_counted = match body.follow(&data) {
                Ok(n_counted) => n_counted,
                Err(status) => return Poll::Ready(Some(Err(status))),
            };
            match &body.connection {
                Some(connection) if n_counted > 0 => body.waiting = Some((permits(connection, n_counted), data)),
                _ => return Poll::Ready(Some(Ok(Frame::data(data)))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.waiting {
            None => self.inner.size_hint(),
            Some(_) => SizeHint::default(),
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
}
