//! The daemon's side: callers are told apart by their first bytes; brief ones are answered here, the others are HTTP/2's.
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::os::fd::AsRawFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderMap, Method, Request, Response, Uri, Version};
use tonic::transport::server::{Connected, UdsConnectInfo};

use super::long_body::{Leftover, LongBody};
use super::pieces::{End, Pieces};
use super::{
    DATA, GREETING, HEAD_MAX_BYTES, HEADERS, IN_PIECES, READ_AHEAD_MAX_BYTES, TRAILERS, read_headers, write_lines,
    write_piece, write_piece_head,
};
use crate::bounded_body::MESSAGE_PATIENCE;
use crate::channel::MAX_MESSAGE_BYTES;
use crate::connection_table::{ConnectionOwner, ConnectionSlot, ConnectionState, ConnectionTable};
use crate::guarded::{ConnectionPeer, GuardedConnections, GuardedStream, lengthen_queue, refuse_http2};
use crate::unread_answers::{AnswerPayer, counted};

/// An answer is written when so much of it is there, or when its maker takes a rest.
const WRITE_BYTES: usize = 256 * 1024;
/// What is shorter is copied rather than written by itself.
const SHORT_BYTES: usize = 4 * 1024;
/// A body that is no longer is read before it is known who may send it.
const WHOLE_BODY_MAX_BYTES: usize = 64 * 1024;
/// What is left of a body that nobody wants is read for so long, since its sender listens only afterwards.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(10);
/// Nothing tells when there are descriptors again.
const LISTEN_AGAIN: Duration = Duration::from_millis(50);
/// Connections that wait for HTTP/2 to take them.
const BACKLOG: usize = 128;
/// So many callers are told at a time why they are refused; the others only see that they are.
const REFUSALS_MAX: usize = 32;
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);

/// Answers brief callers of the socket with `service`; all others come out of the streams.
pub fn incoming<S>(listener: UnixListener, table: ConnectionTable, service: S) -> GuardedConnections<UnixStream>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    lengthen_queue(&listener);
    let (to_members, members) = mpsc::channel(BACKLOG);
    let (to_others, others) = mpsc::channel(BACKLOG);
    tokio::spawn(async move {
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        let mut has_failed = false;
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => {
                    has_failed = false;
                    stream
                }
                // Too many open files, or a caller who has gone again: neither ends the service.
                Err(error) => {
                    // Said once for as long as it lasts.
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%error, "a caller was not heard");
                    }
                    tokio::time::sleep(LISTEN_AGAIN).await;
                    continue;
                }
            };
            let caller = stream.connect_info();
            // The kernel always knows.
            let Some(uid) = caller.peer_cred.as_ref().map(|peer| peer.uid()) else { continue };
            let slot = match table.admit(ConnectionOwner::of_uid(uid), &stream) {
                Ok(slot) => slot,
                Err(refusal) => {
                    if let Ok(permit) = refusals.clone().try_acquire_owned() {
                        tokio::spawn(async move {
                            refuse(stream, &refusal.to_string()).await;
                            drop(permit);
                        });
                    }
                    continue;
                }
            };
            let service = service.clone();
            let others = if slot.state().owner().is_member() { to_members.clone() } else { to_others.clone() };
            tokio::spawn(async move {
                match is_brief(&stream).await {
                    Ok(true) => serve(stream, slot, caller, service).await,
                    Ok(false) => {
                        let guarded = GuardedStream::new(slot, ConnectionPeer::Local(caller), stream);
                        drop(others.send(Ok(guarded)).await);
                    }
                    Err(_) => drop(slot),
                }
            });
        }
    });
    GuardedConnections { members: ReceiverStream::new(members), others: ReceiverStream::new(others) }
}

/// Says why in the caller's own words, brief or HTTP/2's.
async fn refuse(mut stream: UnixStream, why: &str) {
    match tokio::time::timeout(REFUSAL_PATIENCE, is_brief(&stream)).await {
        Ok(Ok(true)) => {
            let answer = Status::resource_exhausted(why).into_http::<Body>();
            let mut written = Vec::new();
            write_lines(HEADERS, answer.headers(), &mut written);
            write_lines(TRAILERS, &HeaderMap::new(), &mut written);
            let _ = tokio::time::timeout(REFUSAL_PATIENCE, stream.write_all(&written)).await;
        }
        Ok(Ok(false)) => refuse_http2(&mut stream, why).await,
        _ => {}
    }
}

/// Looks at the first bytes without taking them.
async fn is_brief(stream: &UnixStream) -> io::Result<bool> {
    let mut first = [0u8; GREETING.len()];
    let n_seen = stream
        .async_io(Interest::READABLE, || {
            // SAFETY: at most `first.len()` bytes are written into `first`.
            let n_seen =
                unsafe { libc::recv(stream.as_raw_fd(), first.as_mut_ptr().cast(), first.len(), libc::MSG_PEEK) };
            if n_seen < 0 { Err(io::Error::last_os_error()) } else { Ok(n_seen as usize) }
        })
        .await?;
    // Our callers write their greeting at once, so a part of it is somebody else's.
    Ok(n_seen == first.len() && first == *GREETING)
}

/// Answers one request after the other until the caller has gone.
pub(super) async fn serve<S>(mut stream: UnixStream, slot: ConnectionSlot, caller: UdsConnectInfo, mut service: S)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let state = slot.state().clone();
    let mut read = BytesMut::with_capacity(4096);
    while let Ok(Some((head, length))) = next_head(&mut stream, &mut read).await {
        let Ok(()) = std::future::poll_fn(|context| service.poll_ready(context)).await;
        if length == IN_PIECES {
            let _call = match state.begin_call() {
                Ok(call) => call,
                Err(status) => {
                    let _ = answer(&mut stream, status.into_http(), std::future::pending()).await;
                    return;
                }
            };
            let (requests, mut answers) = stream.into_split();
            // The place in the table goes before the socket does.
            let _slot = slot;
            let (tell, told) = oneshot::channel();
            let done = |_, end: End| {
                if end == End::Broken {
                    let _ = tell.send(());
                }
            };
            let body = Body::new(Pieces::new(requests, read, done));
            let Some(request) = request(&head, body, (&caller, &state)) else { return };
            let gone = async {
                // A request that has ended in order, or is not read any more, says nothing of the caller's patience.
                if told.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            let response = called(&mut service, &state, request).await;
            let _ = answer(&mut answers, response, gone).await;
            return;
        }
        let length = length as usize;
        let call = state.begin_call();
        if length > WHOLE_BODY_MAX_BYTES {
            // Who calls is judged before the body is read.
            let (requests, mut answers) = stream.into_split();
            let (body, left) = LongBody::new(requests, read, length);
            let Some(request) = request(&head, Body::new(body), (&caller, &state)) else { return };
            let response = match &call {
                Ok(_) => called(&mut service, &state, request).await,
                Err(status) => {
                    drop(request);
                    status.clone().into_http()
                }
            };
            // Its sender may still be writing, and listens only afterwards.
            if answer(&mut answers, response, std::future::pending()).await.is_err() {
                return;
            }
            let Ok(Ok(leftover)) = tokio::time::timeout(LEFTOVER_PATIENCE, left).await else { return };
            let Some((requests, rest)) = skip(leftover).await else { return };
            let Ok(whole) = requests.reunite(answers) else { return };
            (stream, read) = (whole, rest);
            continue;
        }
        // It is little, and a call under way meanwhile.
        let whole = tokio::time::timeout(MESSAGE_PATIENCE, fill(&mut stream, &mut read, length));
        if !matches!(whole.await, Ok(Ok(true))) {
            return;
        }
        let body = Body::new(Full::new(read.split_to(length).freeze()));
        let Some(request) = request(&head, body, (&caller, &state)) else { return };
        let response = match &call {
            Ok(_) => called(&mut service, &state, request).await,
            Err(status) => status.clone().into_http(),
        };
        let (mut reader, mut writer) = stream.split();
        // Ends when the caller has closed, or speaks before it was answered.
        let gone = async { drop(reader.read_u8().await) };
        if answer(&mut writer, response, gone).await.is_err() {
            return;
        }
        drop(call);
    }
}

/// The answer, as fast as those before it are read.
async fn called<S>(service: &mut S, state: &ConnectionState, mut request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let payer = state.payer(&request);
    let stock = AnswerPayer::stock(payer.as_ref());
    request.extensions_mut().insert(stock.clone());
    let Ok(response) = service.call(request).await;
    response.map(|body| counted(body, payer, stock))
}

/// Passes over what nobody has read of a body, so that its sender hears the answer.
async fn skip(leftover: Leftover) -> Option<(OwnedReadHalf, BytesMut)> {
    let Leftover { mut stream, mut read, mut n_left } = leftover;
    let skipping = async {
        loop {
            let n_here = read.len().min(n_left);
            drop(read.split_to(n_here));
            n_left -= n_here;
            if n_left == 0 {
                return Some((stream, read));
            }
            read.clear();
            read.reserve(WHOLE_BODY_MAX_BYTES);
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        }
    };
    tokio::time::timeout(LEFTOVER_PATIENCE, skipping).await.ok().flatten()
}

/// The head of the next request, and the length of its body. None when the caller has closed, or says what we do not understand.
async fn next_head(stream: &mut UnixStream, read: &mut BytesMut) -> io::Result<Option<(BytesMut, u32)>> {
    const START_BYTES: usize = GREETING.len() + 8;
    if !fill(stream, read, START_BYTES).await? {
        return Ok(None);
    }
    let start = read.split_to(START_BYTES);
    let length = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
    let (n_head, n_body) = (length(GREETING.len()) as usize, length(GREETING.len() + 4));
    let is_too_long = n_head > HEAD_MAX_BYTES || (n_body != IN_PIECES && n_body as usize > MAX_MESSAGE_BYTES);
    if start[..GREETING.len()] != *GREETING || is_too_long || !fill(stream, read, n_head).await? {
        return Ok(None);
    }
    Ok(Some((read.split_to(n_head), n_body)))
}

fn request(
    head: &[u8],
    body: Body,
    (caller, connection): (&UdsConnectInfo, &Arc<ConnectionState>),
) -> Option<Request<Body>> {
    let path_ends = head.iter().position(|byte| *byte == b'\n')?;
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = Uri::try_from(&head[..path_ends]).ok()?;
    *request.headers_mut() = read_headers(&head[path_ends + 1..])?;
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(connection.clone());
    Some(request)
}

/// Reads until so much is there; false if the caller goes before.
async fn fill(stream: &mut UnixStream, read: &mut BytesMut, n_bytes: usize) -> io::Result<bool> {
    while read.len() < n_bytes {
        read.reserve((n_bytes - read.len()).min(READ_AHEAD_MAX_BYTES));
        if stream.read_buf(read).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the answer as it is made, unless the caller has gone.
async fn answer(
    into: &mut (impl AsyncWrite + Unpin),
    response: Response<Body>,
    gone: impl Future<Output = ()>,
) -> io::Result<()> {
    let (parts, mut body) = response.into_parts();
    let mut gone = pin!(gone);
    let mut ready = ReadyAnswer::default();
    write_lines(HEADERS, &parts.headers, &mut ready.end);
    let mut trailers = HeaderMap::new();
    loop {
        let mut next = body.frame();
        let frame = match now(&mut next).await {
            Some(frame) => frame,
            None => {
                // Whoever makes the answer needs time: what there is goes out.
                ready.write(into).await?;
                tokio::select! {
                    frame = next => frame,
                    () = &mut gone => return Err(io::ErrorKind::BrokenPipe.into()),
                }
            }
        };
        match frame.map(|frame| frame.map(|frame| frame.into_data())) {
            None => break,
            Some(Ok(Ok(data))) => ready.push(data),
            Some(Ok(Err(frame))) => trailers = frame.into_trailers().unwrap_or_default(),
            // Without its last piece an answer is known to be broken.
            Some(Err(_)) => return Err(io::ErrorKind::Other.into()),
        }
        if ready.n_bytes >= WRITE_BYTES {
            ready.write(into).await?;
        }
    }
    write_lines(TRAILERS, &trailers, &mut ready.end);
    ready.write(into).await
}

/// What is to be written. Data stays as it was made, so it counts as unread until it is written.
#[derive(Default)]
struct ReadyAnswer {
    pieces: Vec<Bytes>,
    /// After the pieces.
    end: Vec<u8>,
    n_bytes: usize,
}

impl ReadyAnswer {
    fn push(&mut self, data: Bytes) {
        self.n_bytes += data.len();
        if data.len() < SHORT_BYTES {
            return write_piece(DATA, &data, &mut self.end);
        }
        write_piece_head(DATA, data.len(), &mut self.end);
        self.pieces.push(std::mem::take(&mut self.end).into());
        self.pieces.push(data);
    }

    async fn write(&mut self, into: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        self.n_bytes = 0;
        if self.pieces.is_empty() {
            into.write_all(&self.end).await?;
            self.end.clear();
            return Ok(());
        }
        self.pieces.push(std::mem::take(&mut self.end).into());
        let mut pieces = WrittenTogether(std::mem::take(&mut self.pieces).into());
        into.write_all_buf(&mut pieces).await
    }
}

/// Each is let go of when it is written.
struct WrittenTogether(VecDeque<Bytes>);

impl Buf for WrittenTogether {
    fn remaining(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.0.front().map_or(&[], |first| first)
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [io::IoSlice<'a>]) -> usize {
        let n_slices = into.len().min(self.0.len());
        for (slice, piece) in into.iter_mut().zip(&self.0) {
            *slice = io::IoSlice::new(piece);
        }
        n_slices
    }

    fn advance(&mut self, mut n_bytes: usize) {
        while let Some(first) = self.0.front_mut() {
            if n_bytes < first.len() {
                return first.advance(n_bytes);
            }
            n_bytes -= first.len();
            self.0.pop_front();
        }
    }
}

/// What the future gives at once, if it does.
async fn now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|context| match Pin::new(&mut *future).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::connection_table::ConnectionLimits;

    #[tokio::test]
    async fn brief_body_that_stops_is_given_up() {
        let path = std::env::temp_dir().join(format!("spur-brief-stop-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let table = ConnectionTable::new(ConnectionLimits::of_process());
        let service = tower::service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
        let _connections = incoming(listener, table, service);
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let head = b"/spur.v1.Controller/Ping\n";
        let lengths = [(head.len() as u32).to_le_bytes(), 10u32.to_le_bytes()].concat();
        stream.write_all(&[&GREETING[..], &lengths, head, b"half"].concat()).await.unwrap();
        let mut stream = stream.into_std().unwrap();
        let closed = tokio::task::spawn_blocking(move || {
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(MESSAGE_PATIENCE * 10)).unwrap();
            stream.read(&mut [0])
        });
        assert_eq!(closed.await.unwrap().unwrap(), 0, "it is waited for");
        std::fs::remove_file(path).unwrap();
    }
}
