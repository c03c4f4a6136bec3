//! The way to another node that has the data: a socket for the mover, whose other end goes over the peer's agent to a sender there.
use std::os::unix::net::UnixStream as Socket;
use std::time::Duration;

use model::codec;
use model::staging::{Home, MirrorRequest, StageWork, StagedPeer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use wire::channel::MAX_MESSAGE_BYTES;
use wire::origin::{self, From, Origin};
use wire::peer::Peer;
use wire::proto::Piece;
use wire::proto::agent_client::AgentClient;
use wire::tls::connect::{Expected, connect};

use crate::table::Agent;

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
pub const PIECE_BYTES: usize = 256 << 10;
/// Pieces on their way.
pub const PIECES: usize = 8;

/// What the mover is born with. An error only means that somebody else, or the source, is asked.
pub async fn open(agent: &Agent, home: &Home, work: &StageWork, peer: &StagedPeer) -> Result<Socket, String> {
    let asked = tokio::time::timeout(CONNECT_PATIENCE, ask(agent, home, work, peer)).await;
    let (outgoing, answers) = asked.map_err(|_| "no answer".to_owned())??;
    let (theirs, ours) = Socket::pair().map_err(|error| error.to_string())?;
    ours.set_nonblocking(true).map_err(|error| error.to_string())?;
    tracing::info!(?home, node = %peer.node, "the data comes from another node");
    let (reading, writing) = UnixStream::from_std(ours).map_err(|error| error.to_string())?.into_split();
    tokio::spawn(async move {
        // Either direction's end is the other's: half a conversation is of no use.
        tokio::select! {
            () = send(reading, outgoing, |data| Piece { data }) => {}
            () = receive(writing, answers) => {}
        }
    });
    Ok(theirs)
}

type Asked = (mpsc::Sender<Piece>, Streaming<Piece>);

async fn ask(agent: &Agent, home: &Home, work: &StageWork, peer: &StagedPeer) -> Result<Asked, String> {
    let channel = reach(agent, peer).await?;
    let mut client = AgentClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let (outgoing, pieces) = mpsc::channel(PIECES);
    let request = MirrorRequest { home: Some(home.clone()), root: peer.root.clone() };
    let _ = outgoing.send(Piece { data: codec::encode(&request).into() }).await;
    let mut request = Request::new(ReceiverStream::new(pieces));
    // We speak for the user whose data it is, and for nobody else.
    let user = Some(Peer { uid: work.uid, gid: work.gid, pid: None });
    let said = Origin { from: From::Local, user }.written();
    request.metadata_mut().insert(origin::HEADER, said.parse().map_err(|_| "an unusual user".to_owned())?);
    let answers = client.mirror(request).await.map_err(|status: Status| status.message().to_owned())?.into_inner();
    Ok((outgoing, answers))
}

async fn reach(agent: &Agent, peer: &StagedPeer) -> Result<Channel, String> {
    match &agent.options.remote {
        Some(remote) if !peer.address.is_empty() => {
            let expected = Expected::NodeShowing(peer.node.to_string(), peer.certificates.clone());
            connect(&peer.address, remote.keyring.clone(), expected).await.map_err(|error| error.to_string())
        }
        Some(_) => Err(format!("the agent of {} is not heard by other machines", peer.node)),
        None => wire::channel::connect(peer.socket.as_ref()).await.map_err(|error| error.to_string()),
    }
}

/// What a mover says, until it says no more or nobody listens.
pub async fn send<T>(mut from: OwnedReadHalf, to: mpsc::Sender<T>, made: impl Fn(bytes::Bytes) -> T) {
    loop {
        let mut piece = bytes::BytesMut::with_capacity(PIECE_BYTES);
        match from.read_buf(&mut piece).await {
            Ok(length) if length > 0 => {}
            _ => return,
        }
        if to.send(made(piece.freeze())).await.is_err() {
            return;
        }
    }
}

/// What a mover is told, until there is no more.
pub async fn receive(mut to: OwnedWriteHalf, mut from: Streaming<Piece>) {
    while let Ok(Some(piece)) = from.message().await {
        if to.write_all(&piece.data).await.is_err() {
            return;
        }
    }
}
