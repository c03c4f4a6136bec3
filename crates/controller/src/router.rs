//! Every call's first stop: answered here if this controller leads, passed on to the one that does otherwise.
//!
//! The whole request goes on as it came, with a note of where it came from, so no call needs to know of it. Of several
//! members, the leader asks the others whether it still leads before it answers a question: nobody reads an old state.
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::{FutureExt, TryFutureExt};
use journal::Leadership;
use model::Reject;
use model::trust::Trust;
use state::Cluster;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use wire::bearer::{self, Worthless};
use wire::bounded_body::{self, BodyBound};
use wire::channel::MAX_MESSAGE_BYTES;
use wire::connection_table::ConnectionState;
use wire::origin::{From, Origin};
use wire::passing::{again, pass_on};
use wire::peer::Peer;
use wire::reach::AGAIN_HEADER;
use wire::refusal::to_status;
use wire::retry;
use wire::tls::listen::Caller;

use crate::api::authority::{Level, level};
use crate::audit::AuditLog;
use crate::call_limiter::CallLimiter;
use crate::certificates::{self, Belief};
use crate::leading::Leading;
use crate::machine::Published;
use crate::members::{ClusterJournal, Connections};
use crate::names::Names;
use crate::rules;
use crate::vouching::{self, Vouched};

/// A call waits so long for somebody to lead; then its sender must ask again.
const PATIENCE: Duration = Duration::from_secs(10);
const PROTOCOL: &str = model::loudness::DebugFlag::Protocol.target();

/// With a request: root of this node makes it, though it may be nobody here. Some of what concerns the node is its own to say.
#[derive(Clone, Debug)]
pub struct RootOf(pub String);

/// What this controller is now; none: it does not lead.
pub type Lead = watch::Receiver<Option<Arc<Leading>>>;

#[derive(Clone)]
pub struct Router {
    pub journal: ClusterJournal,
    pub connections: Arc<Connections>,
    pub lead: Lead,
    pub published: Published,
    pub names: Arc<Names>,
    pub audit: AuditLog,
    pub limiter: CallLimiter,
    /// Only its owner, root and administrators are heard.
    pub is_private: bool,
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let origin = match self.known(&request) {
            Ok(origin) => origin,
            Err(status) => {
                self.audit.unheard(&request, &status);
                return futures::future::ready(Ok(status.into_http())).boxed();
            }
        };
        tracing::debug!(target: PROTOCOL, call = request.uri().path(), ?origin);
        let leading = self.lead.borrow().clone();
        match leading {
            // Nobody else could lead: as if there were no router.
            Some(leading) if leading.is_lone() => self.answer(&leading, request, origin),
            _ => self.clone().route(request, origin).map(Ok).boxed(),
        }
    }
}

impl Router {
    /// Who calls, if such a caller is heard.
    pub fn known(&self, request: &Request<Body>) -> Result<Origin, Status> {
        let origin = Origin::of(request);
        let mut origin = origin.ok_or_else(|| Status::unauthenticated("the caller's identity is unknown"))?;
        let cluster = self.published.now();
        self.stands(&cluster, request, &origin)?;
        if let Some(token) = bearer::sent(request.headers()) {
            origin = bearer_of(token, cluster.trust())?;
            if let Some(connection) = request.extensions().get::<Arc<ConnectionState>>() {
                connection.note_token();
            }
        }
        rules::check(&origin, request.uri().path())?;
        self.check_privacy(&cluster, &origin, request.uri().path())?;
        Ok(origin)
    }

    /// Jobs of strangers could only run as the owner of a private cluster, or fail; and what is in it is the owner's business.
    fn check_privacy(&self, cluster: &Cluster, origin: &Origin, path: &str) -> Result<(), Status> {
        let Some(user) = origin.user.filter(|_| self.is_private && !rules::asks_who_answers(path)) else {
            return Ok(());
        };
        if level(cluster, user, &self.names) >= Level::Administrator {
            return Ok(());
        }
        // SAFETY: geteuid cannot fail.
        let owner = self.names.user(unsafe { libc::geteuid() });
        Err(Status::permission_denied(format!("this is a private cluster of {owner}, who started it with `spur up`")))
    }

    /// The connection's certificate, and the one that a controller says it was shown.
    fn stands(&self, cluster: &Cluster, request: &Request<Body>, origin: &Origin) -> Result<(), Status> {
        let leads = || self.lead.borrow().is_some();
        let refused = |belief: Belief| {
            let Some(status) = belief.refusal(leads()) else { return Ok(()) };
            Err(if belief == Belief::Unknown && !leads() { ask_again(status) } else { status })
        };
        if let Some(Caller { principal: Some(principal), fingerprint, .. }) = request.extensions().get::<Caller>() {
            refused(certificates::of_connection(cluster, &self.journal, principal, fingerprint))?;
        }
        match Origin::passed_on_certificate(request) {
            Some(fingerprint) => refused(certificates::of_passed_on(cluster, &origin.from, fingerprint)),
            None => Ok(()),
        }
    }

    /// With the user that a node's word comes to.
    pub fn vouched(&self, origin: Origin, path: &str) -> Result<Origin, Status> {
        let (From::Node(node), Some(said)) = (&origin.from, origin.user) else { return Ok(origin) };
        let cluster = self.published.now();
        let user = match vouching::vouched(&cluster, &self.names, node, said) {
            Vouched::Believed(user) if rules::is_heard_through(path, cluster.is_login_node(node)) => user,
            Vouched::Believed(_) => return Err(to_status(&Reject::NotPermitted)),
            // What root of a node may say of it, the call itself judges.
            Vouched::Squashed(nobody) if !rules::changes_something(path) || is_health(path, said) => nobody,
            Vouched::Squashed(_) => {
                let why = format!(
                    "Access/permission denied: node {node} does not vouch for uid {}, only for users with jobs there",
                    said.uid
                );
                return Err(Status::permission_denied(why));
            }
        };
        Ok(Origin { user: Some(user), ..origin })
    }

    /// As much of a body as the call may have. Nothing of it has been read yet.
    fn body_bound(&self, origin: &Origin, path: &str) -> BodyBound {
        let mut bound = rules::body(origin, path);
        if bound == BodyBound::CONTENT {
            // A site that allows longer scripts gets them.
            let script = self.published.now().config().jobs.max_script_bytes.min(MAX_MESSAGE_BYTES as u64 / 2) as usize;
            bound.message_bytes = bound.message_bytes.max(script + BodyBound::CHANGE.message_bytes);
        }
        bound
    }

    /// For the API of a controller that leads, if whoever calls is mighty enough.
    fn present(&self, request: &mut Request<Body>, origin: Origin) -> Result<(), Status> {
        let root_of = match (&origin.from, origin.user) {
            (From::Node(node), Some(user)) if is_health(request.uri().path(), user) => Some(RootOf(node.clone())),
            _ => None,
        };
        let origin = self.vouched(origin, request.uri().path())?;
        let least = rules::least(request.uri().path());
        if let Some(user) = origin.user
            && least > Level::User
            // What root of a node may say of it, the call itself judges.
            && root_of.is_none()
            && level(&self.published.now(), user, &self.names) < least
        {
            return Err(to_status(&Reject::NotPermitted));
        }
        request.extensions_mut().insert(origin);
        if let Some(root_of) = root_of {
            request.extensions_mut().insert(root_of);
        }
        Ok(())
    }

    /// Here, by the one who leads; the audit has what became of it.
    fn answer(
        &self,
        leading: &Leading,
        mut request: Request<Body>,
        origin: Origin,
    ) -> <Self as Service<Request<Body>>>::Future {
        if let Some(put_off) = self.put_off(&request, &origin) {
            return futures::future::ready(Ok(put_off)).boxed();
        }
        let audited = self.audit.begin(&origin, &mut request);
        let bound = self.body_bound(&origin, request.uri().path());
        if let Err(status) = self.present(&mut request, origin) {
            audited.refuse(&status);
            return futures::future::ready(Ok(status.into_http())).boxed();
        }
        let (request, hold) = bounded_body::bound(request, bound);
        let answered = leading.answer(request).inspect_ok(move |response| {
            drop(hold);
            audited.end(response);
        });
        answered.boxed()
    }

    /// What a user gets to hear who has made too many calls; administrators make as many as they like.
    pub fn put_off(&self, request: &Request<Body>, origin: &Origin) -> Option<Response<Body>> {
        let cluster = self.published.now();
        let limit = &cluster.config().controller.call_limit;
        if !limit.binds() {
            return None;
        }
        // Who is refused anyway costs nothing here.
        let user = self.vouched(origin.clone(), request.uri().path()).ok()?.user?;
        if level(&cluster, user, &self.names) == Level::Administrator {
            return None;
        }
        let call = request.uri().path().rsplit('/').next().unwrap_or_default();
        let wait = self.limiter.take(limit, user.uid, call).err()?;
        Some(retry::put_off(wait))
    }

    async fn route(mut self, request: Request<Body>, origin: Origin) -> Response<Body> {
        let give_up = Instant::now() + PATIENCE;
        let mut leadership = self.journal.leadership();
        loop {
            let now = *leadership.borrow_and_update();
            let leading = self.lead.borrow_and_update().clone();
            if let Some(leading) = leading {
                if !rules::only_asks(request.uri().path()) || self.is_confirmed().await {
                    return self.answer(&leading, request, origin).await.unwrap_or_else(|never| match never {});
                }
            } else if let Leadership::Follower { leader: Some(leader) } = now {
                let members = self.journal.standing().members;
                if let Some(member) = members.into_iter().find(|member| member.id == leader)
                    && let Ok(channel) = self.connections.to(&member.address).await
                {
                    let bound = self.body_bound(&origin, request.uri().path());
                    return match pass_on(channel, request, &origin, bound).await {
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

/// The one whom a token names, if we have signed it and it has not ended.
fn bearer_of(token: &str, trust: &Trust) -> Result<Origin, Status> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let refused = |why: Worthless| Status::unauthenticated(why.to_string());
    let old_keys = trust.old_jwt_keys.iter().filter(|old| old.until.secs() > now).map(|old| &old.key);
    let mut said = Err(Worthless::Forged);
    for key in std::iter::once(&trust.jwt_key).chain(old_keys) {
        said = bearer::claims(key, token, now);
        if said != Err(Worthless::Forged) {
            break;
        }
    }
    let said = said.map_err(refused)?;
    let unknown = || Status::unauthenticated(format!("Protocol authentication error: no user {} here", said.user));
    let account = wire::accounts::account_of(&said.user).ok_or_else(unknown)?;
    // By the name that the database has: a token may name its user by number.
    let known = trust.user_tokens.get(&account.name);
    if known.is_some_and(|known| known.revoked_secs > 0 && said.issued_secs <= known.revoked_secs) {
        return Err(refused(Worthless::Revoked));
    }
    let user = Peer { uid: account.uid, gid: account.gid, pid: None };
    Ok(Origin { from: From::Bearer, user: Some(user) })
}

/// Root of a node says how the node is.
fn is_health(path: &str, user: Peer) -> bool {
    user.uid == 0 && path.ends_with("/UpdateNodes")
}

/// Somebody else may know.
fn ask_again(mut status: Status) -> Status {
    status.metadata_mut().insert(AGAIN_HEADER, MetadataValue::from_static("1"));
    status
}
