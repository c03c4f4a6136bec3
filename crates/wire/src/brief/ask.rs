//! The caller's side: one socket, a request written at once, an answer read as it comes.
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream as PlainStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tonic::body::Body;
use tonic::codegen::StdError;
use tonic::codegen::http::{HeaderMap, Request, Response};

use super::pieces::{End, Pieces};
use super::{DATA, GREETING, IN_PIECES, Piece, TRAILERS, next_piece, write_headers, write_piece};
use crate::listener_guard;
use crate::long_path::SocketPath;
use crate::refusal::CallError;

/// How much is read at once.
const READ_BYTES: usize = 16 * 1024;

/// A way to a daemon of this machine.
#[derive(Clone)]
pub struct Brief {
    socket: PathBuf,
    /// Who may listen there besides root and the caller.
    owner: Option<u32>,
    /// Calls block the thread: it has no event loop, so it does nothing else.
    blocks: bool,
    /// A connection that nobody uses.
    kept: Arc<Mutex<Option<Kept>>>,
}

struct Kept {
    line: Line,
    /// It has been used, so the other end may have gone meanwhile.
    is_used: bool,
    since: Instant,
}

/// A daemon may close a connection that rests longer.
const FRESH_MAX: Duration = Duration::from_secs(1);

impl Brief {
    /// Connects now; fails at once when nobody listens.
    pub fn open(socket: &Path, owner: Option<u32>) -> Result<Brief, CallError> {
        let blocks = tokio::runtime::Handle::try_current().is_err();
        let brief = Brief { socket: socket.into(), owner, blocks, kept: Arc::default() };
        let line = brief.connect().map_err(|error| listener_guard::error_of(socket, error.to_string()))?;
        brief.keep(line, false);
        Ok(brief)
    }

    fn connect(&self) -> io::Result<Line> {
        // The kernel answers at once, so even an event loop need not wait for it.
        let stream = PlainStream::connect(SocketPath::of(&self.socket)?)?;
        listener_guard::check(stream.as_fd(), &self.socket, self.owner)?;
        if self.blocks {
            return Ok(Line::Blocking(stream));
        }
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream).map(Line::Waking)
    }

    fn keep(&self, line: Line, is_used: bool) {
        *self.kept.lock().expect("nobody panics with it") = Some(Kept { line, is_used, since: Instant::now() });
    }

    fn line(&self) -> io::Result<Line> {
        let kept = self.kept.lock().expect("nobody panics with it").take();
        match kept {
            Some(kept) if (!kept.is_used && kept.since.elapsed() < FRESH_MAX) || kept.line.is_open() => Ok(kept.line),
            _ => self.connect(),
        }
    }

    pub async fn call(self, request: Request<Body>) -> Result<Response<Body>, StdError> {
        let (parts, mut body) = request.into_parts();
        let mut head = parts.uri.path().as_bytes().to_vec();
        head.push(b'\n');
        write_headers(&parts.headers, &mut head);
        let (content, is_all) = at_once(&mut body).await?;
        let length = if is_all { u32::try_from(content.len())? } else { IN_PIECES };
        let mut written = Vec::with_capacity(GREETING.len() + 16 + head.len() + content.len());
        written.extend_from_slice(GREETING);
        written.extend_from_slice(&(head.len() as u32).to_le_bytes());
        written.extend_from_slice(&length.to_le_bytes());
        written.extend_from_slice(&head);
        match is_all {
            true => written.extend_from_slice(&content),
            false => write_piece(DATA, &content, &mut written),
        }
        let mut line = self.line()?;
        let cut = match line.write_all(&written).await {
            Ok(()) => None,
            // A request may be refused, and its connection closed, before all of it has come: the answer says why.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Some(error),
            Err(error) => return Err(error.into()),
        };
        if is_all {
            let is_cut = cut.is_some();
            let begun = beginning(&mut line).await;
            let (headers, read) = begun.map_err(|error| cut.map_or(error, StdError::from))?;
            let keep = move |line, end| {
                if end == End::Whole && !is_cut {
                    self.keep(line, true)
                }
            };
            return Ok(response(headers, Pieces::new(line, read, keep)));
        }
        let Line::Waking(stream) = line else { return Err("this call needs an event loop".into()) };
        let (mut answers, requests) = stream.into_split();
        let sending = tokio::spawn(send(body, requests)).abort_handle();
        let begun = beginning(&mut answers).await.inspect_err(|_| sending.abort());
        let (headers, read) = begun?;
        // Whoever wants no more of the answer has no more to say.
        Ok(response(headers, Pieces::new(answers, read, move |_, _| sending.abort())))
    }
}

/// What the body has now, and whether that is all.
async fn at_once(body: &mut Body) -> Result<(Vec<u8>, bool), StdError> {
    let mut content = Vec::new();
    loop {
        let next = std::future::poll_fn(|context| match Pin::new(&mut *body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(Some(frame)),
            Poll::Pending => Poll::Ready(None),
        });
        match next.await {
            Some(Some(frame)) => content.extend_from_slice(&frame?.into_data().unwrap_or_default()),
            Some(None) => return Ok((content, true)),
            None => return Ok((content, false)),
        }
    }
}

/// The rest of a request that goes on while it is answered.
async fn send(mut body: Body, mut into: OwnedWriteHalf) {
    let mut written = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        written.clear();
        write_piece(DATA, &frame.into_data().unwrap_or_default(), &mut written);
        // The other end has gone: the answer tells.
        if into.write_all(&written).await.is_err() {
            return;
        }
    }
    written.clear();
    write_piece(TRAILERS, &[], &mut written);
    let _ = into.write_all(&written).await;
}

/// The headers of an answer, and what was read after them.
pub(super) async fn beginning(from: &mut (impl AsyncRead + Unpin)) -> Result<(HeaderMap, BytesMut), StdError> {
    let mut read = BytesMut::with_capacity(READ_BYTES);
    loop {
        match next_piece(&mut read, &mut 0)? {
            Some(Piece::Headers(headers)) => return Ok((headers, read)),
            Some(_) => return Err("the answer has no beginning".into()),
            None if from.read_buf(&mut read).await? == 0 => return Err("the connection was closed".into()),
            None => {}
        }
    }
}

fn response<R, D>(headers: HeaderMap, rest: Pieces<R, D>) -> Response<Body>
where
    R: AsyncRead + Unpin + Send + 'static,
    D: FnOnce(R, End) + Unpin + Send + 'static,
{
    let mut response = Response::new(Body::new(rest));
    *response.headers_mut() = headers;
    response
}

/// A connection, with an event loop behind it or none.
enum Line {
    Blocking(PlainStream),
    Waking(UnixStream),
}

impl Line {
    fn is_open(&self) -> bool {
        let fd = match self {
            Line::Blocking(stream) => stream.as_raw_fd(),
            Line::Waking(stream) => stream.as_raw_fd(),
        };
        let mut byte = 0u8;
        // SAFETY: one byte of ours is written at most, and the descriptor is open.
        let n_read = unsafe {
            libc::recv(fd, (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        };
        n_read < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }
}

impl AsyncRead for Line {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Waking(stream) => Pin::new(stream).poll_read(context, into),
            Line::Blocking(stream) => {
                let n_read = retried(|| io::Read::read(stream, into.initialize_unfilled()));
                Poll::Ready(n_read.map(|n_read| into.advance(n_read)))
            }
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Line::Waking(stream) => Pin::new(stream).poll_write(context, bytes),
            Line::Blocking(stream) => Poll::Ready(retried(|| io::Write::write(stream, bytes))),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Line::Waking(stream) => Pin::new(stream).poll_shutdown(context),
            Line::Blocking(stream) => Poll::Ready(stream.shutdown(std::net::Shutdown::Write)),
        }
    }
}

/// A signal in the middle of a wait is not the end of it.
fn retried(mut attempt: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
