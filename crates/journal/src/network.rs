//! Members talking to each other: openraft's requests as bytes over whatever the caller brings.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use openraft::error::{InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse, VoteRequest,
    VoteResponse,
};
use openraft::{BasicNode, RaftNetwork, RaftNetworkFactory};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::batch::{Raft, Types};

/// The bytes that `Journal::answer` gave on the other member.
pub type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;

/// Carries a request to another member and its answer back. May fail, may be slow, may deliver twice.
pub trait Transport: Send + Sync + 'static {
    fn call(&self, member: u64, address: &str, request: Vec<u8>) -> Answer;
}

#[derive(Serialize, Deserialize)]
enum Request {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
}

type Reply<T, E = openraft::error::Infallible> = Result<T, RaftError<u64, E>>;

/// What a member does with a request that came over the transport.
pub(crate) async fn answer(raft: &Raft, request: &[u8]) -> io::Result<Vec<u8>> {
    match decode(request)? {
        Request::Append(request) => encode(&raft.append_entries(request).await),
        Request::Vote(request) => encode(&raft.vote(request).await),
        Request::Snapshot(request) => encode(&raft.install_snapshot(request).await),
    }
}

/// Makes the connections that openraft asks for.
pub(crate) struct Network {
    pub transport: Option<Arc<dyn Transport>>,
}

pub(crate) struct Peer {
    transport: Option<Arc<dyn Transport>>,
    member: u64,
    address: String,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, member: u64, node: &BasicNode) -> Peer {
        Peer { transport: self.transport.clone(), member, address: node.addr.clone() }
    }
}

type CallError<E> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Peer {
    async fn call<T, E>(&self, request: &Request) -> Result<T, CallError<E>>
    where
        T: DeserializeOwned,
        E: DeserializeOwned + std::error::Error,
    {
        let Some(transport) = &self.transport else {
            let error = io::Error::other("this journal was opened without a transport");
            return Err(Unreachable::new(&error).into());
        };
        let request = encode(request).map_err(|error| NetworkError::new(&error))?;
        let answer = transport.call(self.member, &self.address, request).await;
        let bytes = answer.map_err(|error| Unreachable::new(&error))?;
        let reply: Reply<T, E> = decode(&bytes).map_err(|error| NetworkError::new(&error))?;
        reply.map_err(|error| RemoteError::new(self.member, error).into())
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, CallError<openraft::error::Infallible>> {
        self.call(&Request::Append(request)).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, CallError<InstallSnapshotError>> {
        self.call(&Request::Snapshot(request)).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, CallError<openraft::error::Infallible>> {
        self.call(&Request::Vote(request)).await
    }
}

fn encode<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    msgpack::encode_bytes_whole(value).map_err(io::Error::other)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    msgpack::decode(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
