//! Passing a call on to another daemon as it came, with a note of where it came from.
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderValue, Request, Response};
use tonic::transport::Channel;
use tonic::{Status, transport};

use crate::bounded_body::{self, BodyBound};
use crate::origin::{self, Origin};
use crate::reach::AGAIN_HEADER;
use crate::tls::listen::Caller;

/// How often a call has been passed on; more than a few times means nobody knows who leads.
const HOPS_HEADER: &str = "spur-hops";
const HOPS_MAX: u32 = 5;

/// The answer, also when it says that the sender must ask again; an error is a connection that broke.
///
/// The sender pays here for its bytes: to the next daemon, all that comes from this one looks alike.
pub async fn pass_on(
    mut channel: Channel,
    request: Request<Body>,
    origin: &Origin,
    bound: BodyBound,
) -> Result<Response<Body>, transport::Error> {
    let (mut request, hold) = bounded_body::bound_whole(request, bound);
    let headers = request.headers_mut();
    let n_hops = headers.get(HOPS_HEADER).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0u32) + 1;
    if n_hops > HOPS_MAX {
        return Ok(again("the controllers do not agree who leads"));
    }
    headers.insert(HOPS_HEADER, n_hops.into());
    match HeaderValue::from_str(&origin.written()) {
        Ok(value) => headers.insert(origin::HEADER, value),
        Err(_) => return Ok(again("the caller has an unusual name")),
    };
    // Whatever the sender wrote there is not the sender's to say.
    headers.remove(origin::CERTIFICATE_HEADER);
    let shown = request.extensions().get::<Caller>().filter(|caller| caller.principal.is_some());
    if let Some(Ok(value)) = shown.map(|caller| HeaderValue::from_str(&caller.fingerprint)) {
        request.headers_mut().insert(origin::CERTIFICATE_HEADER, value);
    }
    std::future::poll_fn(|context| channel.poll_ready(context)).await?;
    match (channel.call(request).await, hold.fault()) {
        // Its sender broke off, or was too slow; the connection is as good as before.
        (Err(_), Some(fault)) => Ok(fault.into_http()),
        (answer, _) => answer,
    }
}

/// An answer that says: nothing is known to have been done here, ask again.
pub fn again(why: &str) -> Response<Body> {
    let mut answer = Status::unavailable(why).into_http();
    answer.headers_mut().insert(AGAIN_HEADER, HeaderValue::from_static("1"));
    answer
}
