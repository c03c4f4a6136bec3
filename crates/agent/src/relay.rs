//! Commands on this machine reach the controllers through its agent, which says who they are.
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::Mutex;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic::transport::Channel;
use tonic::{Code, Status};
use wire::bearer;
use wire::bounded_body::BodyBound;
use wire::node::NODE_HEADER;
use wire::origin::{From, Origin};
use wire::passing::{again, pass_on};
use wire::proto::agent_server::AgentServer;
use wire::proto::controller_client::ControllerClient;
use wire::proto::{LocateReply, LocateRequest, VouchRequest};
use wire::tls::connect::{Expected, connect};
use wire::tls::nodes::{Agents, NodeConnection, NodePlace};

use crate::attach::Door;
use crate::gate;
use crate::neighbours::Remote;

#[derive(Clone)]
pub struct Relay {
    remote: Option<Remote>,
    /// With the certificate that it shows: when there is a newer one, that is shown.
    open: Arc<Mutex<Option<(String, Channel)>>>,
    turn: Arc<AtomicUsize>,
}

impl Relay {
    pub fn new(remote: Option<Remote>) -> Relay {
        Relay { remote, open: Default::default(), turn: Default::default() }
    }

    async fn channel(&self, remote: &Remote) -> Option<Channel> {
        let mut open = self.open.lock().await;
        let own = remote.keyring.now().fingerprint.clone();
        if let Some((_, channel)) = open.as_ref().filter(|(shown, _)| *shown == own) {
            return Some(channel.clone());
        }
        let addresses = remote.controllers();
        for _ in 0..addresses.len() {
            let turn = self.turn.load(Ordering::Relaxed);
            let address = &addresses[turn % addresses.len()];
            match connect(address, remote.keyring.clone(), Expected::AnyController).await {
                Ok(channel) => {
                    *open = Some((own, channel.clone()));
                    return Some(channel);
                }
                Err(_) => self.turn.store(turn + 1, Ordering::Relaxed),
            }
        }
        None
    }

    /// The next call tries another controller.
    async fn turn_away(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
        *self.open.lock().await = None;
    }

    /// What the controllers make of a node's word about one of its users.
    pub async fn vouch(&self, asked: &VouchRequest) -> Result<bool, Status> {
        let nobody = || Status::unavailable("no controller can be reached");
        let remote = self.remote.as_ref().ok_or_else(nobody)?;
        for _ in 0..=remote.controllers().len() {
            let channel = self.channel(remote).await.ok_or_else(nobody)?;
            match ControllerClient::new(channel).vouch(asked.clone()).await {
                Ok(reply) => return Ok(reply.into_inner().is_believed),
                Err(status) if status.code() == Code::Unavailable => self.turn_away().await,
                Err(status) => return Err(status),
            }
        }
        Err(nobody())
    }

    async fn pass(self, request: Request<Body>) -> Response<Body> {
        let Some(remote) = &self.remote else {
            return Status::unimplemented("the controllers of this agent are on its own machine").into_http();
        };
        // A user's word about somebody else is nothing to us: only what the kernel says counts.
        let Some(origin) = Origin::of_local(&request).filter(|origin| origin.from == From::Local) else {
            return Status::unauthenticated("the caller's identity is unknown").into_http();
        };
        let Some(channel) = self.channel(remote).await else { return again("no controller can be reached") };
        let bound = BodyBound::of_relayed_call(request.uri().path());
        match pass_on(channel, request, &origin, bound).await {
            Ok(answer) => answer,
            Err(error) => {
                self.turn_away().await;
                again(&format!("the controller is gone: {error}"))
            }
        }
    }
}

impl NamedService for Relay {
    const NAME: &'static str = "spur.v1.Controller";
}

impl Service<Request<Body>> for Relay {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let relay = self.clone();
        Box::pin(async move { Ok(relay.pass(request).await) })
    }
}

/// Calls for agents: this one answers its own, and passes on those for others.
#[derive(Clone)]
pub struct Exchange {
    node: String,
    own: AgentServer<Door>,
    relay: Relay,
    agents: Option<Arc<Agents>>,
    /// Where others are heard, as the controllers said last.
    places: Arc<Mutex<HashMap<String, NodePlace>>>,
}

impl Exchange {
    pub fn new(node: String, own: AgentServer<Door>, relay: Relay) -> Exchange {
        let agents = relay.remote.as_ref().map(|remote| Arc::new(Agents::new(remote.keyring.clone())));
        Exchange { node, own, relay, agents, places: Arc::default() }
    }

    async fn pass(self, node: String, request: Request<Body>) -> Response<Body> {
        // Whom a token names only controllers can tell.
        let Some(agents) = self.agents.as_ref().filter(|_| bearer::sent(request.headers()).is_none()) else {
            return self.relay.pass(request).await;
        };
        let Some(origin) = Origin::of_local(&request).filter(|origin| origin.from == From::Local) else {
            return Status::unauthenticated("the caller's identity is unknown").into_http();
        };
        let to = match self.reach(agents, &node).await {
            Ok(to) => to,
            Err(status) => return status.into_http(),
        };
        let answer = agents.pass(to, request, &origin).await;
        if Status::from_header_map(answer.headers()).is_some_and(|status| status.code() == Code::Unavailable) {
            self.places.lock().await.remove(&node);
        }
        answer
    }

    /// Where it was last, or else where the controllers say that it is now, by what they say that it shows.
    async fn reach(&self, agents: &Agents, node: &str) -> Result<NodeConnection, Status> {
        let known = self.places.lock().await.get(node).cloned();
        let tried = match &known {
            Some(place) => agents.reach(node, place).await,
            None => Err(Status::unavailable("it was never asked")),
        };
        let Err(failed) = tried else { return tried };
        self.places.lock().await.remove(node);
        let place = self.locate(node).await?;
        if known.as_ref() == Some(&place) {
            return Err(failed);
        }
        let connection = agents.reach(node, &place).await?;
        self.places.lock().await.insert(node.to_owned(), place);
        Ok(connection)
    }

    async fn locate(&self, node: &str) -> Result<NodePlace, Status> {
        let nobody = || Status::unavailable("no controller can be reached");
        let remote = self.relay.remote.as_ref().ok_or_else(nobody)?;
        let channel = self.relay.channel(remote).await.ok_or_else(nobody)?;
        let asked = ControllerClient::new(channel).locate(LocateRequest { node: node.to_owned() }).await;
        let place = match asked.map(|reply| reply.into_inner()) {
            Ok(LocateReply { address, certificates }) => NodePlace { address, certificates },
            Err(status) => {
                if status.code() == Code::Unavailable {
                    self.relay.turn_away().await;
                }
                return Err(status);
            }
        };
        if place.address.is_empty() {
            return Err(Status::unavailable(format!("the agent of {node} is not heard by other machines")));
        }
        Ok(place)
    }
}

impl NamedService for Exchange {
    const NAME: &'static str = "spur.v1.Agent";
}

impl Service<Request<Body>> for Exchange {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let named = request.headers().get(NODE_HEADER).and_then(|name| name.to_str().ok());
        match named.filter(|name| *name != self.node).map(str::to_owned) {
            Some(node) => {
                let exchange = self.clone();
                Box::pin(async move { Ok(exchange.pass(node, request).await) })
            }
            None => {
                let mut own = self.own.clone();
                Box::pin(async move {
                    let (request, _hold) = gate::bounded(request);
                    own.call(request).await
                })
            }
        }
    }
}
