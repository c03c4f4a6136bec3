//! Callers of every kind, who send any bytes to any call: users by the kernel's word, nodes and strangers over TLS, tokens.
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio_stream::StreamExt;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::{self, Method, Request as HttpRequest, Response};
use tonic::codegen::{BoxFuture, Service, StdError};
use tonic::transport::Channel;
use tonic::{Request, Status};
use wire::brief::Brief;
use wire::tls::connect::{Expected, connect, connect_pinned};
use wire::tls::identity::Keyring;

/// Longer than any call may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// A stream that was not refused by then was taken.
const STREAM_PATIENCE: Duration = Duration::from_millis(100);

/// Messages as they are.
#[derive(Clone, Copy, Default)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = RawCodec;
    type Decoder = RawCodec;

    fn encoder(&mut self) -> RawCodec {
        RawCodec
    }

    fn decoder(&mut self) -> RawCodec {
        RawCodec
    }
}

impl Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(into, &item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let n_bytes = bytes::Buf::remaining(from);
        Ok(Some(bytes::Buf::copy_to_bytes(from, n_bytes).to_vec()))
    }
}

/// The way to a daemon: HTTP/2, or few words on a Unix socket.
#[derive(Clone)]
enum CallWay {
    Http2(Channel),
    Brief(Brief),
}

impl Service<http::Request<Body>> for CallWay {
    type Response = http::Response<Body>;
    type Error = StdError;
    type Future = BoxFuture<http::Response<Body>, StdError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StdError>> {
        match self {
            CallWay::Http2(channel) => channel.poll_ready(context).map_err(StdError::from),
            CallWay::Brief(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match self {
            CallWay::Http2(channel) => {
                let answering = channel.call(request);
                Box::pin(async move { answering.await.map_err(StdError::from) })
            }
            CallWay::Brief(brief) => Box::pin(brief.clone().call(request)),
        }
    }
}

/// How a caller comes in.
#[derive(Clone, Debug)]
pub enum Entrance {
    /// A process of this user at a Unix socket.
    Local { socket: PathBuf, uid: u32, gid: u32 },
    /// The same, in the few words of brief calls.
    LocalBrief { socket: PathBuf, uid: u32, gid: u32 },
    /// The holder of a node's or controller's certificate.
    Certificate { address: String, tls_dir: PathBuf },
    /// The holder of a certificate, at a node's agent.
    Agent { address: String, tls_dir: PathBuf, node: String },
    /// Nobody's certificate; the authority's mark is known.
    Stranger { address: String, authority: [u8; 32] },
}

const PIECE_BYTES: usize = 16 << 10;

/// What there is of a body that never ends.
struct StalledBody {
    pieces: VecDeque<Vec<u8>>,
}

impl http_body::Body for StalledBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.get_mut().pieces.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
            None => Poll::Pending,
        }
    }
}

/// A connection of one caller, and the words it sends along.
pub struct RawCaller {
    way: CallWay,
    headers: Vec<(&'static str, String)>,
}

impl RawCaller {
    /// On a thread of its own for local users: the thread takes on their identity, and the kernel notes it for the socket.
    pub async fn open(entrance: &Entrance, headers: &[(&'static str, String)]) -> RawCaller {
        let channel = match entrance {
            Entrance::LocalBrief { socket, uid, gid } => {
                become_user(*uid, *gid);
                let brief = Brief::open(socket, None).expect("the socket is open to all");
                return RawCaller { way: CallWay::Brief(brief), headers: headers.to_vec() };
            }
            Entrance::Local { socket, uid, gid } => {
                become_user(*uid, *gid);
                wire::channel::connect(socket).await.expect("the socket is open to all")
            }
            Entrance::Certificate { address, tls_dir } => {
                let keyring = Arc::new(Keyring::open(tls_dir).expect("the certificate is there"));
                connect(address, keyring, Expected::AnyController).await.expect("the certificate is believed")
            }
            Entrance::Agent { address, tls_dir, node } => {
                let keyring = Arc::new(Keyring::open(tls_dir).expect("the certificate is there"));
                connect(address, keyring, Expected::Node(node.clone())).await.expect("the certificate is believed")
            }
            Entrance::Stranger { address, authority } => {
                connect_pinned(address, *authority).await.expect("a stranger may connect")
            }
        };
        RawCaller { way: CallWay::Http2(channel), headers: headers.to_vec() }
    }

    /// The first answer, if one comes before the call ends. A stream that asks for more is left after a moment.
    pub async fn call(&self, path: &str, body: Vec<u8>, streams_requests: bool) -> Result<Vec<u8>, Status> {
        let patience = if streams_requests { STREAM_PATIENCE } else { PATIENCE };
        match tokio::time::timeout(patience, self.first_answer(path, body, streams_requests)).await {
            Ok(answer) => answer,
            Err(_) if streams_requests => Ok(Vec::new()),
            Err(_) => Err(Status::deadline_exceeded("no answer")),
        }
    }

    /// The first answer to one message, whenever it comes; a stream stays open meanwhile.
    pub async fn first_answer(&self, path: &str, body: Vec<u8>, streams_requests: bool) -> Result<Vec<u8>, Status> {
        let mut grpc = Grpc::new(self.way.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error: StdError| Status::unavailable(error.to_string()))?;
        let at = path.parse().expect("a path");
        let answers = match streams_requests {
            true => {
                let waits = tokio_stream::iter([body]).chain(tokio_stream::pending());
                grpc.streaming(self.with_headers(Request::new(waits)), at, RawCodec).await
            }
            false => grpc.server_streaming(self.with_headers(Request::new(body)), at, RawCodec).await,
        };
        answers?.into_inner().message().await.map(Option::unwrap_or_default)
    }

    /// The messages of an answer, until it ends or so many are there.
    pub async fn messages(&self, path: &str, body: Vec<u8>, n_max: usize) -> Result<Vec<Vec<u8>>, Status> {
        let mut grpc = Grpc::new(self.way.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error: StdError| Status::unavailable(error.to_string()))?;
        let at = path.parse().expect("a path");
        let answering = async {
            let mut answers =
                grpc.server_streaming(self.with_headers(Request::new(body)), at, RawCodec).await?.into_inner();
            let mut messages = Vec::new();
            while messages.len() < n_max
                && let Some(message) = answers.message().await?
            {
                messages.push(message);
            }
            Ok(messages)
        };
        let waited = tokio::time::timeout(PATIENCE, answering).await;
        waited.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
    }

    /// An answer that stays open, and that nobody reads beyond its beginning.
    pub async fn open_stream(&self, path: &str, body: Vec<u8>) -> Result<tonic::Streaming<Vec<u8>>, Status> {
        let mut grpc = Grpc::new(self.way.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error: StdError| Status::unavailable(error.to_string()))?;
        let answers =
            grpc.server_streaming(self.with_headers(Request::new(body)), path.parse().expect("a path"), RawCodec).await;
        Ok(answers?.into_inner())
    }

    /// A request that claims so many bytes, sends so many and waits. The answer, if the daemon gives it up.
    pub async fn stall(&self, path: &str, n_claimed: u32, n_sent: usize) -> Result<Response<Body>, StdError> {
        let head = [&[0][..], &n_claimed.to_be_bytes()].concat();
        let pieces = [head].into_iter().chain(
            (0..n_sent.div_ceil(PIECE_BYTES)).map(|number| vec![0x91; PIECE_BYTES.min(n_sent - number * PIECE_BYTES)]),
        );
        let mut request = HttpRequest::new(Body::new(StalledBody { pieces: pieces.collect() }));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().expect("a path");
        let headers = [("content-type", "application/grpc".to_owned()), ("te", "trailers".to_owned())];
        for (name, value) in headers.iter().chain(&self.headers) {
            request.headers_mut().insert(*name, value.parse().expect("a header's text"));
        }
        let mut way = self.way.clone();
        std::future::poll_fn(|context| way.poll_ready(context)).await?;
        way.call(request).await
    }

    fn with_headers<T>(&self, mut request: Request<T>) -> Request<T> {
        for (name, value) in &self.headers {
            request.metadata_mut().insert(*name, value.parse().expect("a header's text"));
        }
        request
    }
}

/// Only the calling thread: the C library would change all of them.
pub fn become_user(uid: u32, gid: u32) {
    // SAFETY: plain system calls on valid values.
    unsafe {
        if libc::geteuid() == 0 && uid != 0 {
            assert_eq!(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()), 0);
            assert_eq!(libc::syscall(libc::SYS_setresgid, gid, gid, gid), 0);
            assert_eq!(libc::syscall(libc::SYS_setresuid, uid, uid, uid), 0);
        }
    }
}

/// Does the work on a thread of its own, whose identity may change.
pub fn on_own_thread<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || runtime().block_on(work)).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The mark of a cluster's authority, as tokens hold it.
pub fn authority_of(tls_dir: &Path) -> [u8; 32] {
    let pem = std::fs::read_to_string(tls_dir.join("ca.pem")).unwrap();
    wire::tls::token::mark(&pem).expect("a certificate").try_into().expect("32 bytes")
}
