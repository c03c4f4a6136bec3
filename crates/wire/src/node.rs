//! A node's agent as commands see it, on this machine or on another.
use std::path::PathBuf;

use model::ask::{Answer, Question};
use model::codec;
use model::config::Sockets;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Status};

use crate::bearer;
use crate::brief::Brief;
use crate::channel::{MAX_MESSAGE_BYTES, connect_to};
use crate::proto::AskRequest;
use crate::proto::agent_client::AgentClient;
use crate::reach::Reach;
use crate::refusal::CallError;

/// Whose agent a call is for, where it is not the one that takes the call.
pub const NODE_HEADER: &str = "spur-node";

/// How an agent is reached: at its own socket if it is on this machine, else through a daemon that is.
#[derive(Clone, Debug)]
pub struct Way {
    pub node: String,
    pub socket: PathBuf,
    pub through: Sockets,
}

pub type AgentChannel = InterceptedService<Reach, Addressed>;

impl Way {
    pub async fn open(&self) -> Result<AgentClient<AgentChannel>, CallError> {
        // Agents take only the kernel's word; whoever has a token instead asks the controllers to vouch.
        let direct = match bearer::own() {
            None => Brief::open(&self.socket, self.through.owner),
            Some(_) => Err(CallError::Other(format!("the agent of {} cannot be reached", self.node))),
        };
        let channel = match direct {
            Ok(brief) => InterceptedService::new(Reach::Brief(brief), Addressed { node: None }),
            Err(error) => self.around().await.ok_or(error)?,
        };
        Ok(AgentClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES))
    }

    async fn around(&self) -> Option<AgentChannel> {
        let node = self.node.parse().ok()?;
        for socket in self.through.all() {
            if let Ok(channel) = connect_to(socket, &self.through).await {
                return Some(InterceptedService::new(Reach::Direct(channel), Addressed { node: Some(node) }));
            }
        }
        None
    }
}

/// Writes on every call whom it is for.
#[derive(Clone)]
pub struct Addressed {
    node: Option<MetadataValue<Ascii>>,
}

impl Interceptor for Addressed {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(node) = &self.node {
            request.metadata_mut().insert(NODE_HEADER, node.clone());
        }
        Ok(request)
    }
}

/// A connection to an agent.
#[derive(Clone)]
pub struct NodeAgent {
    client: AgentClient<AgentChannel>,
}

impl NodeAgent {
    pub async fn connect(way: &Way) -> Result<Self, CallError> {
        Ok(NodeAgent { client: way.open().await? })
    }

    pub async fn ask(&mut self, question: &Question) -> Result<Answer, CallError> {
        let request = AskRequest { question: codec::encode(question).into() };
        let reply = self.client.ask(request).await?.into_inner();
        crate::client::read(&reply.answer)
    }
}
