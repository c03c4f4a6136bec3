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

pub struct Agents {
    keyring: Arc<Keyring>,
    /// By node, address and the certificate that the connection shows: a newer one is shown to all.
    open: Mutex<HashMap<String, (Channel, Instant)>>,
}

impl Agents {
    pub fn new(keyring: Arc<Keyring>) -> Agents {
        Agents { keyring, open: Mutex::default() }
    }

    /// Passes the call on to the agent of `node`, which must prove that it is.
    pub async fn pass(&self, node: &str, address: &str, request: Request<Body>, origin: &Origin) -> Response<Body> {
        let name = format!("{node}@{address} {}", self.keyring.now().fingerprint);
        let known = self.lock().get_mut(&name).map(|(channel, used)| {
            *used = Instant::now();
            channel.clone()
        });
        let channel = match known {
            Some(channel) => channel,
            None => match connect(address, self.keyring.clone(), Expected::Node(node.to_owned())).await {
                Ok(channel) => {
                    let mut open = self.lock();
                    open.retain(|_, (_, used)| used.elapsed() < IDLE_MAX);
                    open.insert(name.clone(), (channel.clone(), Instant::now()));
                    channel
                }
                Err(error) => return Status::unavailable(format!("{node} does not answer: {error}")).into_http(),
            },
        };
        let bound = BodyBound::of_agent_call(request.uri().path());
        match pass_on(channel, request, origin, bound).await {
            Ok(answer) => answer,
            Err(error) => {
                self.lock().remove(&name);
                Status::unavailable(format!("{node} is gone: {error}")).into_http()
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Channel, Instant)>> {
        self.open.lock().expect("nobody panics with it")
    }
}
