//! Every call's first stop: answered here if this controller leads, passed on to the one that does otherwise.
//!
//! The whole request goes on as it came, with a note of where it came from, so no call needs to know of it. Of several
//! members, the leader asks the others whether it still leads before it answers a question: nobody reads an old state.
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use journal::Leadership;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderValue, Request, Response};
use tonic::server::NamedService;
use wire::origin::{self, Origin};
use wire::reach::AGAIN_HEADER;

use crate::leading::Leading;
use crate::members::{ClusterJournal, Connections};

/// A call waits so long for somebody to lead; then its sender must ask again.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a call has been passed on; more than a few times means nobody knows who leads.
const HOPS_HEADER: &str = "spur-hops";
const HOPS_MAX: u32 = 4;

/// What this controller is now; none: it does not lead.
pub type Lead = watch::Receiver<Option<Arc<Leading>>>;

#[derive(Clone)]
pub struct Router {
    pub journal: ClusterJournal,
    pub connections: Arc<Connections>,
    pub lead: Lead,
}

impl NamedService for Router {
    const NAME: &'static str = "spur.v1.Controller";
}

impl Service<Request<Body>> for Router {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let Some(origin) = Origin::of(&request) else {
            let status = Status::unauthenticated("the caller's identity is unknown");
            return futures::future::ready(Ok(status.into_http())).boxed();
        };
        request.extensions_mut().insert(origin.clone());
        let leading = self.lead.borrow().clone();
        match leading {
            // Nobody else could lead: as if there were no router.
            Some(leading) if leading.is_lone() => leading.answer(request),
            _ => self.clone().route(request, origin).map(Ok).boxed(),
        }
    }
}

impl Router {
    async fn route(mut self, request: Request<Body>, origin: Origin) -> Response<Body> {
        let give_up = Instant::now() + PATIENCE;
        let mut leadership = self.journal.leadership();
        loop {
            let now = *leadership.borrow_and_update();
            let leading = self.lead.borrow_and_update().clone();
            if let Some(leading) = leading {
                if writes(request.uri().path()) || self.is_confirmed().await {
                    return leading.answer(request).await.unwrap_or_else(|never| match never {});
                }
            } else if let Leadership::Follower { leader: Some(leader) } = now {
                let members = self.journal.standing().members;
                if let Some(member) = members.into_iter().find(|member| member.id == leader)
                    && let Ok(channel) = self.connections.to(&member.address).await
                {
                    return self.pass_on(channel, &member.address, request, &origin).await;
                }
            }
            // Somebody may win an election that we hear of late: look again even if nothing seems to happen.
            let look_again = (Instant::now() + Duration::from_millis(100)).min(give_up);
            let changed = async {
                tokio::select! {
                    changed = leadership.changed() => changed.is_ok(),
                    changed = self.lead.changed() => changed.is_ok(),
                }
            };
            let _ = tokio::time::timeout_at(look_again, changed).await;
            if Instant::now() >= give_up {
                return again("no controller leads now");
            }
        }
    }

    async fn is_confirmed(&self) -> bool {
        matches!(tokio::time::timeout(PATIENCE, self.journal.confirm()).await, Ok(Ok(())))
    }

    async fn pass_on(
        &self,
        mut channel: tonic::transport::Channel,
        address: &str,
        mut request: Request<Body>,
        origin: &Origin,
    ) -> Response<Body> {
        let headers = request.headers_mut();
        let n_hops = headers.get(HOPS_HEADER).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(0u32) + 1;
        if n_hops > HOPS_MAX {
            return again("the controllers do not agree who leads");
        }
        headers.insert(HOPS_HEADER, n_hops.into());
        match HeaderValue::from_str(&origin.written()) {
            Ok(value) => headers.insert(origin::HEADER, value),
            Err(_) => return again("the caller has an unusual name"),
        };
        let answer = async {
            std::future::poll_fn(|context| channel.poll_ready(context)).await?;
            channel.call(request).await
        };
        match answer.await {
            Ok(answer) => answer,
            Err(error) => {
                self.connections.forget(address);
                again(&format!("the leading controller is gone: {error}"))
            }
        }
    }
}

/// An answer that says: nothing is known to have been done here, ask again.
pub fn again(why: &str) -> Response<Body> {
    let mut answer = Status::unavailable(why).into_http();
    answer.headers_mut().insert(AGAIN_HEADER, HeaderValue::from_static("1"));
    answer
}

/// What only proposes needs no confirmation: the log itself knows who leads.
fn writes(path: &str) -> bool {
    const QUESTIONS: &[&str] = &[
        "Jobs",
        "WatchJobs",
        "History",
        "Nodes",
        "Configuration",
        "Reservations",
        "Licenses",
        "Diagnose",
        "Blob",
        "Burst",
        "WatchStaging",
        "Why",
        "Accounts",
        "Members",
    ];
    let call = path.rsplit('/').next().unwrap_or(path);
    !QUESTIONS.contains(&call)
}
