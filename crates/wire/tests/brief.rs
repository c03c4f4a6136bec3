//! Brief calls on a real socket: whole requests, requests in pieces, callers and daemons that go away, and HTTP/2 beside them.
use std::convert::Infallible;
use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::net::UnixListener;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request, Response};
use wire::brief::{Brief, incoming};
use wire::connection_table::{ConnectionLimits, ConnectionTable};
use wire::guarded::GuardedStream;
use wire::origin::{From, Origin};

const PATIENCE: Duration = Duration::from_secs(20);

/// What `/enough` says when it listens no more.
const AFTERWARDS: usize = 100;

/// Says back what it hears, piece by piece, and counts the answers it has let go.
#[derive(Clone, Default)]
struct Echo {
    n_dropped: Arc<AtomicUsize>,
}

struct Noticed(Arc<AtomicUsize>);

impl Drop for Noticed {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let noticed = Noticed(self.n_dropped.clone());
        Box::pin(async move {
            let origin = Origin::of(&request).expect("the kernel knows who calls");
            assert_eq!(origin.from, From::Local);
            let said = request.headers().get("said").cloned();
            let path = request.uri().path().to_string();
            let mut body = request.into_body();
            let (sender, frames) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
            tokio::spawn(async move {
                let _noticed = noticed;
                // A caller who sends all at once listens only afterwards.
                if path == "/whole" {
                    let heard = body.collect().await.expect("all of it").to_bytes();
                    let _ = sender.send(Ok(Frame::data(heard))).await;
                    body = Body::empty();
                }
                while let Some(Ok(frame)) = body.frame().await {
                    let Ok(data) = frame.into_data() else { break };
                    if sender.send(Ok(Frame::data(data))).await.is_err() {
                        return;
                    }
                    if path == "/enough" {
                        break;
                    }
                }
                drop(body);
                if path == "/enough" {
                    for _ in 0..AFTERWARDS {
                        tokio::task::yield_now().await;
                        let _ = sender.send(Ok(Frame::data(Bytes::from_static(b"more")))).await;
                    }
                }
                if path == "/never" {
                    sender.closed().await;
                }
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                let _ = sender.send(Ok(Frame::trailers(trailers))).await;
            });
            let mut response = Response::new(Body::new(StreamBody::new(ReceiverStream::new(frames))));
            if let Some(said) = said {
                response.headers_mut().insert("said", said);
            }
            Ok(response)
        })
    }
}

fn socket() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("spur-brief-{}-{number}.sock", std::process::id()))
}

/// A daemon, and what comes out of its socket besides brief calls.
fn daemon(echo: Echo) -> (PathBuf, impl Stream<Item = std::io::Result<GuardedStream<tokio::net::UnixStream>>>) {
    let path = socket();
    let _ = std::fs::remove_file(&path);
    let connections = incoming(UnixListener::bind(&path).expect("a socket"), table(), echo);
    (path, connections.members.merge(connections.others))
}

fn table() -> ConnectionTable {
    ConnectionTable::new(ConnectionLimits::of_process())
}

fn request(path: &str, body: Body) -> Request<Body> {
    let request = Request::builder().uri(format!("http://spur.local{path}")).header("said", "so: it is");
    request.body(body).expect("a request")
}

fn whole(content: &[u8]) -> Body {
    Body::new(Full::new(Bytes::copy_from_slice(content)))
}

async fn check_whole(brief: &Brief, content: &[u8]) {
    let response = brief.clone().call(request("/whole", whole(content))).await.expect("an answer");
    assert_eq!(response.headers()["said"], "so: it is");
    let answer = response.into_body().collect().await.expect("all of it");
    assert_eq!(answer.trailers().expect("trailers")["grpc-status"], "0");
    assert_eq!(answer.to_bytes(), content);
}

#[tokio::test]
async fn whole_requests_are_answered_one_after_the_other() {
    let (path, _others) = daemon(Echo::default());
    let brief = Brief::open(&path, None).expect("somebody listens");
    for size in [0, 1, 5, 70_000, 3 << 20, 7] {
        check_whole(&brief, &vec![b'x'; size]).await;
    }
    std::fs::remove_file(path).expect("the socket's file");
}

#[test]
fn a_thread_without_an_event_loop_calls_too() {
    let daemon_loop = tokio::runtime::Runtime::new().expect("a runtime");
    let (path, _others) = daemon_loop.block_on(async { daemon(Echo::default()) });
    let brief = Brief::open(&path, None).expect("somebody listens");
    let mut context = Context::from_waker(std::task::Waker::noop());
    for size in [3, 500_000, 0] {
        let content = vec![b'y'; size];
        let mut call = Box::pin(check_whole(&brief, &content));
        assert!(call.as_mut().poll(&mut context).is_ready(), "it waits for nothing but its socket");
    }
    std::fs::remove_file(path).expect("the socket's file");
}

#[tokio::test]
async fn a_request_in_pieces_is_answered_while_it_goes_on() {
    let (path, _others) = daemon(Echo::default());
    let brief = Brief::open(&path, None).expect("somebody listens");
    let (sender, frames) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
    sender.send(Ok(Frame::data(Bytes::from_static(b"first")))).await.expect("room");
    let body = Body::new(StreamBody::new(ReceiverStream::new(frames)));
    let response = brief.call(request("/echo", body)).await.expect("an answer");
    let mut answer = response.into_body();
    for word in ["first", "second", "third"] {
        if word != "first" {
            sender.send(Ok(Frame::data(Bytes::from_static(word.as_bytes())))).await.expect("room");
        }
        let piece = answer.frame().await.expect("a piece").expect("a good one");
        assert_eq!(piece.into_data().expect("data"), word);
    }
    drop(sender);
    let last = answer.frame().await.expect("a piece").expect("a good one");
    assert_eq!(last.into_trailers().expect("trailers")["grpc-status"], "0");
    std::fs::remove_file(path).expect("the socket's file");
}

#[tokio::test]
async fn a_daemon_that_has_heard_enough_says_all_it_has_to_say() {
    let (path, _others) = daemon(Echo::default());
    for _ in 0..20 {
        let brief = Brief::open(&path, None).expect("somebody listens");
        let (sender, frames) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
        sender.send(Ok(Frame::data(Bytes::from_static(b"first")))).await.expect("room");
        let body = Body::new(StreamBody::new(ReceiverStream::new(frames)));
        let mut answer = brief.call(request("/enough", body)).await.expect("an answer").into_body();
        let mut n_pieces = 0;
        loop {
            match answer.frame().await.expect("a piece").expect("a good one").into_data() {
                Ok(_) => n_pieces += 1,
                Err(last) => {
                    assert_eq!(last.into_trailers().expect("trailers")["grpc-status"], "0");
                    break;
                }
            }
        }
        assert_eq!(n_pieces, 1 + AFTERWARDS);
        drop(sender);
    }
    std::fs::remove_file(path).expect("the socket's file");
}

/// Waits until the daemon has let go of so many answers.
async fn let_go(echo: &Echo, n_expected: usize) {
    let waited = async {
        while echo.n_dropped.load(Ordering::SeqCst) < n_expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect("the daemon notices that its caller has gone");
}

#[tokio::test]
async fn a_caller_who_goes_is_noticed() {
    let echo = Echo::default();
    let (path, _others) = daemon(echo.clone());
    let brief = Brief::open(&path, None).expect("somebody listens");
    let never = brief.clone().call(request("/never", whole(b"x"))).await.expect("a beginning");
    drop(never);
    let_go(&echo, 1).await;
    let (sender, frames) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
    let body = Body::new(StreamBody::new(ReceiverStream::new(frames)));
    sender.send(Ok(Frame::data(Bytes::from_static(b"x")))).await.expect("room");
    let never = brief.clone().call(request("/never", body)).await.expect("a beginning");
    drop(never);
    let_go(&echo, 2).await;
    check_whole(&brief, b"still there").await;
    std::fs::remove_file(path).expect("the socket's file");
}

#[tokio::test]
async fn whoever_speaks_otherwise_comes_out_of_the_stream() {
    let (path, others) = daemon(Echo::default());
    let mut others = std::pin::pin!(others);
    let mut caller = std::os::unix::net::UnixStream::connect(&path).expect("somebody listens");
    caller.write_all(b"PRI * HTTP/2.0\r\n").expect("written");
    let other =
        tokio::time::timeout(PATIENCE, others.next()).await.expect("at once").expect("one").expect("a good one");
    let mut heard = [0; 3];
    tokio::io::AsyncReadExt::read_exact(&mut { other }, &mut heard).await.expect("nothing was taken");
    assert_eq!(&heard, b"PRI");
    // Nonsense in our own words ends the connection, and nothing else.
    let mut liar = std::os::unix::net::UnixStream::connect(&path).expect("somebody listens");
    liar.write_all(b"spurcall\xff\xff\xff\xff\xff\xff\xff\x7f").expect("written");
    liar.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let ended = tokio::task::spawn_blocking(move || std::io::Read::read(&mut liar, &mut [0; 1]));
    assert_eq!(ended.await.expect("no panic").expect("no time-out"), 0);
    check_whole(&Brief::open(&path, None).expect("somebody listens"), b"still there").await;
    std::fs::remove_file(path).expect("the socket's file");
}

#[tokio::test]
async fn a_daemon_that_goes_is_noticed_and_its_successor_found() {
    let path = socket();
    assert!(Brief::open(&path, None).is_err(), "nobody listens");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let brief = Brief::open(&path, None).expect("somebody listens");
    let taken = listener.accept().expect("a caller");
    drop((taken, listener));
    assert!(brief.clone().call(request("/echo", whole(b"x"))).await.is_err(), "it has gone");
    std::fs::remove_file(&path).expect("the socket's file");
    let _others = incoming(UnixListener::bind(&path).expect("a socket"), table(), Echo::default());
    check_whole(&brief, b"the next one").await;
    std::fs::remove_file(path).expect("the socket's file");
}
