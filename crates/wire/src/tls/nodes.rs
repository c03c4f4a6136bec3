//! Connections to the agents of other machines, kept while they are in use.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::Channel;

use super::connect::{Expected, connect};
use super::identity::Keyring;
use crate::bounded_body::BodyBound;
use crate::origin::Origin;
use crate::passing::pass_on;

/// A connection that nobody has asked for so long is let go; what still runs over it goes on.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Where a node's agent is heard, and the certificates by which it is known; none: an earlier release does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePlace {
    pub address: String,
    pub certificates: Vec<String>,
}

pub struct NodeConnection {
    node: String,
    name: String,
    channel: Channel,
}

pub struct Agents {
    keyring: Arc<Keyring>,
    /// By node, address and the certificate that the connection shows: a newer one is shown to all.
    open: Mutex<HashMap<String, (Channel, Instant)>>,
}

impl Agents {
    pub fn new(keyring: Arc<Keyring>) -> Agents {
        Agents { keyring, open: Mutex::default() }
    }

    /// A connection to the agent of `node`, which must prove that it is.
    pub async fn reach(&self, node: &str, place: &NodePlace) -> Result<NodeConnection, Status> {
        let name = format!("{node}@{} {}", place.address, self.keyring.now().fingerprint);
        let known = self.lock().get_mut(&name).map(|(channel, used)| {
            *used = Instant::now();
            channel.clone()
        });
        if let Some(channel) = known {
            return Ok(NodeConnection { node: node.to_owned(), name, channel });
        }
        let expected = Expected::NodeShowing(node.to_owned(), place.certificates.clone());
        let connected = connect(&place.address, self.keyring.clone(), expected).await;
        let channel = connected.map_err(|error| Status::unavailable(format!("{node} does not answer: {error}")))?;
        let mut open = self.lock();
        open.retain(|_, (_, used)| used.elapsed() < IDLE_MAX);
        open.insert(name.clone(), (channel.clone(), Instant::now()));
        Ok(NodeConnection { node: node.to_owned(), name, channel })
    }

    /// Passes the call on.
    pub async fn pass(&self, to: NodeConnection, request: Request<Body>, origin: &Origin) -> Response<Body> {
        let bound = BodyBound::of_agent_call(request.uri().path());
        match pass_on(to.channel, request, origin, bound).await {
            Ok(answer) => answer,
            Err(error) => {
                self.lock().remove(&to.name);
                Status::unavailable(format!("{} is gone: {error}", to.node)).into_http()
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Channel, Instant)>> {
        self.open.lock().expect("nobody panics with it")
    }
}
