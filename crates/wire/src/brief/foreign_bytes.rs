//! Both ends of brief calls, for crate `fuzz_targets`: any bytes in, what our own end makes of them out.
use std::convert::Infallible;

use bytes::BytesMut;
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::server::Connected;
use tower::service_fn;

use super::answer::serve;
use super::ask::beginning;
use super::next_piece;
use super::pieces::Pieces;
use crate::bounded_body::{self, BodyBound};
use crate::connection_table::{ConnectionOwner, ConnectionTable};

/// Some user who is not the daemon's own.
const CALLER: u32 = 54_321;

/// Says all that a caller says to the daemon's end, which answers each request with its body. What the caller hears must be
/// pieces of ours, of which the last may be cut off.
pub async fn answer_brief_caller(table: &ConnectionTable, said: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (near, far) = UnixStream::pair().map_err(|_| "no sockets")?;
    let caller = far.connect_info();
    let slot = table.admit(ConnectionOwner::of_uid(CALLER), &far).map_err(|_| "no room in the table")?;
    let echo = service_fn(|request: Request<Body>| async {
        let (request, _hold) = bounded_body::bound(request, BodyBound::QUESTION);
        Ok::<_, Infallible>(match request.into_body().collect().await {
            Ok(body) => Response::new(Body::new(Full::new(body.to_bytes()))),
            Err(status) => status.into_http(),
        })
    });
    let (mut answers, mut requests) = near.into_split();
    let speaking = async {
        // The daemon may close before it has heard all.
        let _ = requests.write_all(said).await;
        let _ = requests.shutdown().await;
    };
    let mut heard = Vec::new();
    let hearing = async { drop(answers.read_to_end(&mut heard).await) };
    tokio::join!(serve(far, slot, caller, echo), speaking, hearing);
    let (mut read, mut n_left) = (BytesMut::from(heard.as_slice()), 0);
    while next_piece(&mut read, &mut n_left)?.is_some() {}
    Ok(heard)
}

/// What a command makes of a daemon's answer: its content, if it is whole.
pub async fn read_brief_answer(mut said: &[u8]) -> Option<Vec<u8>> {
    let (_, read) = beginning(&mut said).await.ok()?;
    let content = Pieces::new(said, read, |_, _| ()).collect().await.ok()?;
    Some(content.to_bytes().to_vec())
}
