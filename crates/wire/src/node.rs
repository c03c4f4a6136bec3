//! A node's agent as commands see it.
use std::path::Path;

use model::ask::{Answer, Question};
use model::codec;
use tonic::transport::Channel;

use crate::channel::{MAX_MESSAGE_BYTES, connect};
use crate::proto::AskRequest;
use crate::proto::agent_client::AgentClient;
use crate::refusal::CallError;

/// A connection to an agent.
#[derive(Clone)]
pub struct NodeAgent {
    client: AgentClient<Channel>,
}

impl NodeAgent {
    pub async fn connect(socket: &Path) -> Result<Self, CallError> {
        let client = AgentClient::new(connect(socket).await?)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        Ok(NodeAgent { client })
    }

    pub async fn ask(&mut self, question: &Question) -> Result<Answer, CallError> {
        let request = AskRequest { question: codec::encode(question).into() };
        let reply = self.client.ask(request).await?.into_inner();
        codec::decode(&reply.answer).map_err(|error| CallError::Other(error.to_string()))
    }
}
