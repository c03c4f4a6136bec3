//! Commands on this machine reach the controllers through its agent, which says who they are.
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;
use tonic::transport::Channel;
use wire::origin::{From, Origin};
use wire::passing::{again, pass_on};
use wire::tls::connect::{Expected, connect};

use crate::options::Remote;

#[derive(Clone)]
pub struct Relay {
    remote: Option<Remote>,
    open: Arc<tokio::sync::Mutex<Option<Channel>>>,
    turn: Arc<AtomicUsize>,
}

impl Relay {
    pub fn new(remote: Option<Remote>) -> Relay {
        Relay { remote, open: Default::default(), turn: Default::default() }
    }

    async fn channel(&self, remote: &Remote) -> Option<Channel> {
        let mut open = self.open.lock().await;
        if let Some(channel) = &*open {
            return Some(channel.clone());
        }
        for _ in 0..remote.addresses.len() {
            let turn = self.turn.load(Ordering::Relaxed);
            let address = &remote.addresses[turn % remote.addresses.len()];
            match connect(address, remote.keyring.clone(), Expected::AnyController).await {
                Ok(channel) => {
                    *open = Some(channel.clone());
                    return Some(channel);
                }
                Err(_) => self.turn.store(turn + 1, Ordering::Relaxed),
            }
        }
        None
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
        match pass_on(channel, request, &origin).await {
            Ok(answer) => answer,
            Err(error) => {
                self.turn.fetch_add(1, Ordering::Relaxed);
                *self.open.lock().await = None;
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
