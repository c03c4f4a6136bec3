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
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use wire::origin::{From, Origin};
use wire::passing::{again, pass_on};
use wire::tls::listen::Caller;

use crate::leading::Leading;
use crate::machine::Published;
use crate::members::{ClusterJournal, Connections};
use crate::rules;

/// A call waits so long for somebody to lead; then its sender must ask again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who root of another machine is here.
const NOBODY: u32 = 65_534;

/// What this controller is now; none: it does not lead.
pub type Lead = watch::Receiver<Option<Arc<Leading>>>;

#[derive(Clone)]
pub struct Router {
    pub journal: ClusterJournal,
    pub connections: Arc<Connections>,
    pub lead: Lead,
    pub published: Published,
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
        let origin = match self.known(&request) {
            Ok(origin) => origin,
            Err(status) => return futures::future::ready(Ok(status.into_http())).boxed(),
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
    /// Who calls, if such a caller is heard.
    fn known(&self, request: &Request<Body>) -> Result<Origin, Status> {
        let origin = Origin::of(request);
        let mut origin = origin.ok_or_else(|| Status::unauthenticated("the caller's identity is unknown"))?;
        rules::check(&origin, request.uri().path())?;
        if let Some(caller) = request.extensions().get::<Caller>() {
            let cluster = self.published.now();
            if cluster.trust().is_revoked(&caller.fingerprint) {
                return Err(Status::permission_denied("this certificate was taken back"));
            }
            // SAFETY: geteuid cannot fail.
            let is_ours = |uid: u32| uid == 0 || uid == unsafe { libc::geteuid() };
            if let (From::Node(_), Some(user)) = (&origin.from, &mut origin.user)
                && is_ours(user.uid)
                && cluster.config().controller.root_squash
            {
                (user.uid, user.gid) = (NOBODY, NOBODY);
            }
        }
        Ok(origin)
    }

    async fn route(mut self, request: Request<Body>, origin: Origin) -> Response<Body> {
        let give_up = Instant::now() + PATIENCE;
        let mut leadership = self.journal.leadership();
        loop {
            let now = *leadership.borrow_and_update();
            let leading = self.lead.borrow_and_update().clone();
            if let Some(leading) = leading {
                if !rules::only_asks(request.uri().path()) || self.is_confirmed().await {
                    return leading.answer(request).await.unwrap_or_else(|never| match never {});
                }
            } else if let Leadership::Follower { leader: Some(leader) } = now {
                let members = self.journal.standing().members;
                if let Some(member) = members.into_iter().find(|member| member.id == leader)
                    && let Ok(channel) = self.connections.to(&member.address).await
                {
                    return match pass_on(channel, request, &origin).await {
                        Ok(answer) => answer,
                        Err(error) => {
                            self.connections.forget(&member.address);
                            again(&format!("the leading controller is gone: {error}"))
                        }
                    };
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
}
