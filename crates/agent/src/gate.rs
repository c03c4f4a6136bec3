//! The agent's door for other machines: TLS, where controllers vouch for anybody, and nodes for whom the controllers let them.
use std::convert::Infallible;
use std::future::{self, Future};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use wire::accounts::vouched_gid;
use wire::bounded_body::{self, BodyBound, BodyHold};
use wire::channel::MAX_MESSAGE_BYTES;
use wire::connection_table::ConnectionTable;
use wire::guarded::{CallGuard, alive, http2_for_members, http2_for_others};
use wire::origin::{From, Origin};
use wire::peer::Peer;
use wire::proto::agent_server::AgentServer;
use wire::tls::listen::{Caller, incoming};
use wire::waiting_peers::WaitingPeers;

use crate::attach::Door;
use crate::audited::{AgentAudit, AuditedCaller};
use crate::neighbours::Remote;
use crate::relay::Relay;
use crate::sys;
use crate::vouchers::Vouchers;

/// A port that somebody else has may become free.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

pub fn served(door: Door) -> AgentServer<Door> {
    AgentServer::new(door).max_decoding_message_size(MAX_MESSAGE_BYTES).max_encoding_message_size(MAX_MESSAGE_BYTES)
}

/// Where this agent is heard, once it is.
#[derive(Clone, Default)]
pub struct Heard(Arc<(OnceLock<SocketAddr>, Notify)>);

impl Heard {
    /// Resolves when it is heard from now on.
    pub async fn is_new(&self) {
        self.0.1.notified().await;
    }

    /// As other machines are told; empty: nowhere.
    pub fn address(&self, remote: &Remote) -> String {
        let Some(bound) = self.0.0.get() else { return String::new() };
        if !remote.address.is_empty() {
            return remote.address.clone();
        }
        let ip = match bound.ip() {
            ip if !ip.is_unspecified() => Some(ip),
            _ => remote.controllers().iter().find_map(|controller| own_address(controller)),
        };
        ip.map(|ip| SocketAddr::new(ip, bound.port()).to_string()).unwrap_or_default()
    }
}

/// The address that this machine has on the way to another. Nothing is sent.
fn own_address(towards: &str) -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(towards).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Listens, or tries again until it can. The node is of use without it: only `srun` and its like are not, from elsewhere.
pub async fn open(remote: &Remote, heard: &Heard) -> TcpListener {
    loop {
        match TcpListener::bind(&remote.listen).await {
            Ok(listener) => {
                if let Ok(bound) = listener.local_addr() {
                    tracing::info!(%bound, "the agent answers other machines");
                    let _ = heard.0.0.set(bound);
                    heard.0.1.notify_waiters();
                }
                return listener;
            }
            Err(error) => tracing::error!(address = remote.listen, %error, "cannot listen; trying again"),
        }
        tokio::time::sleep(LISTEN_AGAIN).await;
    }
}

pub async fn serve(listener: TcpListener, table: ConnectionTable, remote: Remote, door: Door) -> Infallible {
    let vouchers = Vouchers::new(Relay::new(Some(remote.clone())));
    let audit = door.audit();
    let gate = CallGuard(Gate { inner: served(door), remote: remote.clone(), vouchers, audit });
    let waiting = WaitingPeers::new(table.limits().n_handshakes());
    waiting.expect_named(remote.controllers());
    let connections = incoming(listener, table, remote.keyring, waiting);
    let members = alive(http2_for_members()).add_service(gate.clone()).serve_with_incoming(connections.members);
    let others = alive(http2_for_others()).add_service(gate).serve_with_incoming(connections.others);
    let ended = tokio::select! {
        ended = members => ended,
        ended = others => ended,
    };
    if let Err(error) = ended {
        tracing::error!(%error, "other machines are not heard any more");
    }
    future::pending().await
}

/// With as much of a body as the call may have.
pub fn bounded(request: Request<Body>) -> (Request<Body>, BodyHold) {
    let bound = BodyBound::of_agent_call(request.uri().path());
    bounded_body::bound(request, bound)
}

#[derive(Clone)]
struct Gate {
    inner: AgentServer<Door>,
    remote: Remote,
    vouchers: Vouchers,
    audit: AgentAudit,
}

impl NamedService for Gate {
    const NAME: &'static str = "spur.v1.Agent";
}

impl Gate {
    /// Who calls, as far as the connection tells.
    fn known(&self, request: &Request<Body>) -> Result<Origin, Status> {
        let origin = Origin::of(request).ok_or_else(|| Status::unauthenticated("the caller's identity is unknown"))?;
        let caller = request.extensions().get::<Caller>();
        let believes = |caller: &Caller| self.remote.keyring.believes(caller.principal.as_ref(), &caller.fingerprint);
        if !caller.is_some_and(believes) {
            return Err(Status::permission_denied(
                "this certificate was taken back, or this cluster knows no such one",
            ));
        }
        judged(origin, self.remote.now().root_squash)
    }

    fn refused(&self, request: &Request<Body>, said: Option<Origin>, status: &Status) {
        let mut extensions = request.extensions().clone();
        let origin = said.or_else(|| Origin::of(request));
        let user = origin.as_ref().and_then(|origin| origin.user);
        origin.and_then(|origin| extensions.insert(origin));
        let caller = AuditedCaller::of(&extensions, user, request.uri().path());
        self.audit.refused(&caller, "", status.message());
    }

    /// The user, if the controllers let the node speak for it. Groups are this machine's to say.
    async fn vouched(&self, origin: Origin, shown: &str, for_data: bool) -> Result<Origin, Status> {
        let (From::Node(node), Some(said)) = (&origin.from, origin.user) else { return Ok(origin) };
        let denied =
            || Status::permission_denied(format!("Access/permission denied: {node} does not vouch for this user"));
        let gid = vouched_gid(said.uid, said.gid).ok_or_else(denied)?;
        match self.vouchers.is_believed(node, said.uid, shown, for_data).await? {
            true => Ok(Origin { user: Some(Peer { gid, ..said }), ..origin }),
            false => Err(denied()),
        }
    }
}

/// Only users have something to say to an agent, and nodes nothing in the name of who is mighty here.
fn judged(origin: Origin, root_squash: bool) -> Result<Origin, Status> {
    let denied = || Status::permission_denied("Access/permission denied");
    let user = origin.user.ok_or_else(denied)?;
    match &origin.from {
        From::Stranger | From::Controller(_) => Err(denied()),
        From::Node(_) if root_squash && [0, sys::own_uid()].contains(&user.uid) => Err(denied()),
        From::Local | From::Bearer | From::Node(_) => Ok(origin),
    }
}

impl Service<Request<Body>> for Gate {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let origin = match self.known(&request) {
            Ok(origin) => origin,
            Err(status) => {
                self.refused(&request, None, &status);
                return Box::pin(future::ready(Ok(status.into_http())));
            }
        };
        let (gate, mut inner) = (self.clone(), self.inner.clone());
        let for_data = request.uri().path().ends_with("/Mirror");
        let shown = request.extensions().get::<Caller>().map(|caller| caller.fingerprint.clone()).unwrap_or_default();
        Box::pin(async move {
            let said = origin.clone();
            match gate.vouched(origin, &shown, for_data).await {
                Ok(origin) => {
                    request.extensions_mut().insert(origin);
                    let (request, _hold) = bounded(request);
                    inner.call(request).await
                }
                Err(status) => {
                    gate.refused(&request, Some(said), &status);
                    Ok(status.into_http())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_vouch_for_users_and_nobody_for_root_of_another_node() {
        let peer = |uid| Some(Peer { uid, gid: uid, pid: None });
        let origin = |from: From, user| Origin { from, user };
        let uid =
            |from: From, user, squash| judged(origin(from, user), squash).map(|origin| origin.user.unwrap().uid).ok();
        assert_eq!(uid(From::Node("a".into()), peer(1234), true), Some(1234));
        assert_eq!(uid(From::Node("a".into()), peer(0), true), None);
        assert_eq!(uid(From::Node("a".into()), peer(0), false), Some(0));
        // Root of a controller's machine, by that controller's word.
        assert_eq!(uid(From::Local, peer(0), true), Some(0));
        assert_eq!(uid(From::Bearer, peer(1234), true), Some(1234));
        for (from, user) in [
            (From::Stranger, peer(1234)),
            (From::Stranger, None),
            (From::Node("a".into()), None),
            (From::Controller(1), None),
            (From::Local, None),
        ] {
            assert_eq!(uid(from.clone(), user, false), None, "{from:?}");
        }
    }
}
