//! Calls for agents of other machines: commands of this machine cannot reach them, this controller can.
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use wire::node::NODE_HEADER;
use wire::origin::{From, Origin};
use wire::tls::nodes::{Agents, NodePlace};

use crate::certificates;
use crate::router::Router;

/// Any controller will do: all know where agents are heard.
#[derive(Clone)]
pub struct ToAgents {
    pub router: Router,
    /// None: this cluster is one machine, and commands reach agents themselves.
    pub agents: Option<Arc<Agents>>,
}

impl NamedService for ToAgents {
    const NAME: &'static str = "spur.v1.Agent";
}

impl ToAgents {
    async fn pass(self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let known = self.router.known(&request);
        let origin = known.inspect_err(|status| self.router.audit.unheard(&request, status))?;
        if let Some(put_off) = self.router.put_off(&request, &origin) {
            return Ok(put_off);
        }
        let audited = self.router.audit.begin(&origin, &mut request);
        let node =
            request.headers().get(NODE_HEADER).and_then(|name| name.to_str().ok()).unwrap_or_default().to_owned();
        audited.about(&format!("node {node}"));
        let answered = self.passed(&node, request, origin).await;
        match &answered {
            Ok(response) => audited.end(response),
            Err(status) => audited.refuse(status),
        }
        answered
    }

    async fn passed(&self, node: &str, request: Request<Body>, origin: Origin) -> Result<Response<Body>, Status> {
        // What the node's word comes to is this controller's own word to the agent.
        let origin = match self.router.vouched(origin, request.uri().path())? {
            Origin { from: From::Node(_), user } => Origin { from: From::Local, user },
            origin => origin,
        };
        let address = self.router.published.now().node(node).map(|node| node.machine.address.clone());
        match (address, &self.agents) {
            (None, _) => Err(Status::not_found(format!("Invalid node name specified: {node}"))),
            (Some(address), Some(agents)) if !address.is_empty() => {
                let certificates = certificates::of_node(&self.router.published.now(), node);
                let to = agents.reach(node, &NodePlace { address, certificates }).await?;
                Ok(agents.pass(to, request, &origin).await)
            }
            (Some(_), _) => Err(Status::unavailable(format!("the agent of {node} cannot be reached"))),
        }
    }
}

impl Service<Request<Body>> for ToAgents {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().pass(request).map(|answer| Ok(answer.unwrap_or_else(Status::into_http))).boxed()
    }
}
