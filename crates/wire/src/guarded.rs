//! Connections that are in the table, and services whose calls are counted for them.
use std::convert::Infallible;
use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::transport::server::{Connected, UdsConnectInfo};

use crate::connection_table::{CallUnderWay, ConnectionSlot, ConnectionState, STREAMS_MAX};
use crate::tls::listen::Caller;
use crate::unread_answers::{AnswerPayer, counted};

/// Headers hold a path, a token and a few words.
const HEADERS_MAX_BYTES: u32 = 16 << 10;
const SIGN_OF_LIFE: Duration = Duration::from_secs(60);
/// A refused connection may take so long to hear why.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);

/// The other end, as the kernel or its certificate names it.
#[derive(Clone)]
pub enum ConnectionPeer {
    Local(UdsConnectInfo),
    Remote(Caller),
}

/// A connection with its place in the table. The place is given up before the socket is closed.
pub struct GuardedStream<S> {
    slot: ConnectionSlot,
    peer: ConnectionPeer,
    stream: S,
}

impl<S> GuardedStream<S> {
    pub fn new(slot: ConnectionSlot, peer: ConnectionPeer, stream: S) -> GuardedStream<S> {
        GuardedStream { slot, peer, stream }
    }

    pub fn is_member(&self) -> bool {
        self.slot.state().owner().is_member()
    }
}

/// With each request: the connection that it came by.
#[derive(Clone)]
pub struct GuardedInfo {
    state: Arc<ConnectionState>,
    peer: ConnectionPeer,
}

impl<S> Connected for GuardedStream<S> {
    type ConnectInfo = GuardedInfo;

    fn connect_info(&self) -> GuardedInfo {
        GuardedInfo { state: self.slot.state().clone(), peer: self.peer.clone() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// Connections that were let in, by how much HTTP/2 trusts them. See [`http2_for_members`] and [`http2_for_others`].
pub struct GuardedConnections<S> {
    pub members: ReceiverStream<io::Result<GuardedStream<S>>>,
    pub others: ReceiverStream<io::Result<GuardedStream<S>>>,
}

/// For controllers, nodes and root: one connection carries the calls of many.
pub fn http2_for_members() -> Server {
    Server::builder()
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .max_concurrent_streams(STREAMS_MAX)
        .http2_max_header_list_size(HEADERS_MAX_BYTES)
}

/// For users and strangers: what waits unread on a connection is small.
pub fn http2_for_others() -> Server {
    Server::builder()
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(128 << 10)
        .max_concurrent_streams(64)
        .http2_max_header_list_size(HEADERS_MAX_BYTES)
}

/// Over a network, the other end shows now and then that it lives.
pub fn alive(http2: Server) -> Server {
    http2.http2_keepalive_interval(Some(SIGN_OF_LIFE)).http2_keepalive_timeout(Some(SIGN_OF_LIFE))
}

/// Says where a request comes from, and counts its call until the answer has gone out. Without this, callers are nobody.
#[derive(Clone)]
pub struct CallGuard<S>(pub S);

impl<S: NamedService> NamedService for CallGuard<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for CallGuard<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Some(info) = request.extensions_mut().remove::<GuardedInfo>() else {
            let unknown = Status::unauthenticated("the caller's identity is unknown");
            return Box::pin(std::future::ready(Ok(unknown.into_http())));
        };
        let call = match info.state.begin_call() {
            Ok(call) => call,
            Err(status) => return Box::pin(std::future::ready(Ok(status.into_http()))),
        };
        match info.peer {
            ConnectionPeer::Local(peer) => request.extensions_mut().insert(peer).is_none(),
            ConnectionPeer::Remote(caller) => request.extensions_mut().insert(caller).is_none(),
        };
        let payer = info.state.payer(&request);
        let stock = AnswerPayer::stock(payer.as_ref());
        request.extensions_mut().insert(stock.clone());
        request.extensions_mut().insert(info.state);
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?.map(|inner| counted(inner, payer, stock));
            Ok(answer.map(|inner| Body::new(HeldAnswer { inner, _call: call })))
        })
    }
}

/// An answer on its way: its call ends with it.
struct HeldAnswer {
    inner: Body,
    _call: CallUnderWay,
}

impl http_body::Body for HeldAnswer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        http_body::Body::poll_frame(Pin::new(&mut self.get_mut().inner), context)
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.inner)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.inner)
    }
}

/// Connections that wait to be accepted: with too short a queue the kernel tells newcomers nothing for a second.
pub(crate) fn lengthen_queue(listener: &impl AsRawFd) {
    const QUEUE_MAX: libc::c_int = 4096;
    // SAFETY: a plain system call on an open descriptor. A socket that listens goes on; the kernel has its own maximum.
    unsafe { libc::listen(listener.as_raw_fd(), QUEUE_MAX) };
}

/// Tells a caller in HTTP/2's words that it is not wanted now: empty settings, then the end of the connection.
pub(crate) async fn refuse_http2(stream: &mut (impl AsyncWrite + Unpin), why: &str) {
    const NO_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GO_AWAY: u8 = 7;
    const ENHANCE_YOUR_CALM: u32 = 11;
    let mut written = NO_SETTINGS.to_vec();
    written.extend_from_slice(&((8 + why.len()) as u32).to_be_bytes()[1..]);
    written.extend_from_slice(&[GO_AWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    written.extend_from_slice(&ENHANCE_YOUR_CALM.to_be_bytes());
    written.extend_from_slice(why.as_bytes());
    let telling = async {
        stream.write_all(&written).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(REFUSAL_PATIENCE, telling).await;
}
