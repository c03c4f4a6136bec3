//! Answers that nobody reads, on a connection that others share.
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::net::UnixListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use wire::guarded::http2_for_members;

const PATIENCE: Duration = Duration::from_secs(20);
const MIB: usize = 1 << 20;

/// Answers every call with many MiB.
#[derive(Clone)]
struct LongAnswers;

impl NamedService for LongAnswers {
    const NAME: &'static str = "test.Long";
}

impl Service<Request<Body>> for LongAnswers {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let frames = tokio_stream::iter(0..64).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![7; MIB]))));
        ready(Ok(Response::new(Body::new(StreamBody::new(frames)))))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_keep_no_other_call_of_the_connection_waiting() {
    let socket = std::env::temp_dir().join(format!("spur-unread-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&socket).unwrap();
    let serving = http2_for_members().add_service(LongAnswers).serve_with_incoming(UnixListenerStream::new(listener));
    tokio::spawn(serving);
    let mut channel = wire::channel::connect(&socket).await.unwrap();
    let mut unread = Vec::new();
    for _ in 0..100 {
        let mut answer = ask(&mut channel).await.into_body();
        answer.frame().await.unwrap().unwrap();
        unread.push(answer);
    }
    let mut read = ask(&mut channel).await.into_body();
    let mut n_bytes = 0;
    while n_bytes < 64 * MIB {
        let frame = tokio::time::timeout(PATIENCE, read.frame()).await.expect("there is room for it");
        n_bytes += frame.unwrap().unwrap().into_data().unwrap().len();
    }
    drop(unread);
    let _ = std::fs::remove_file(socket);
}

async fn ask(channel: &mut tonic::transport::Channel) -> Response<Body> {
    std::future::poll_fn(|context| channel.poll_ready(context)).await.unwrap();
    let request = Request::post("http://spur.local/test.Long/Ask").body(Body::empty()).unwrap();
    let asked = tokio::time::timeout(PATIENCE, channel.call(request)).await;
    asked.expect("there is room for it").unwrap()
}
