//! Taking TLS connections: handshakes side by side, and the other end's certificate for whoever answers.
//!
//! ```text
//! accept ─▶ WaitingPeers: silent, then shaking hands ─▶ ConnectionTable: a controller, a node, a stranger ─▶ HTTP/2
//! ```
//! However many strangers connect and say nothing, a newcomer is heard at once: the longest silent make room.
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::server::Acceptor;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;

use super::handshake_turns::HandshakeTurns;
use super::identity::Keyring;
use super::tracked_stream::TrackedStream;
use super::{Principal, fingerprint};
use crate::connection_table::{ConnectionOwner, ConnectionTable};
use crate::guarded::{ConnectionPeer, GuardedConnections, GuardedStream, lengthen_queue, refuse_http2};
use crate::waiting_peers::WaitingPeers;

const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
/// Connections that wait for HTTP/2 to take them.
const BACKLOG: usize = 128;
/// Out of descriptors, or the other end has gone: the next one may be better.
const LISTEN_AGAIN: Duration = Duration::from_millis(20);

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Caller {
    /// None: it has shown no certificate.
    pub principal: Option<Principal>,
    pub fingerprint: String,
    pub address: SocketAddr,
}

impl Caller {
    fn owner(&self) -> ConnectionOwner {
        match &self.principal {
            Some(Principal::Controller(_)) => ConnectionOwner::Own,
            Some(Principal::Node(name)) => ConnectionOwner::Node(name.clone()),
            None => ConnectionOwner::of_stranger(self.address.ip()),
        }
    }
}

/// Connections whose handshake is done. Peers at addresses that `waiting` knows need not queue up with strangers.
pub fn incoming(
    listener: TcpListener,
    table: ConnectionTable,
    keyring: Arc<Keyring>,
    waiting: WaitingPeers,
) -> GuardedConnections<TrackedStream<TlsStream<TcpStream>>> {
    lengthen_queue(&listener);
    let (to_members, members) = mpsc::channel(BACKLOG);
    let (to_others, others) = mpsc::channel(BACKLOG);
    tokio::spawn(async move {
        let turns = HandshakeTurns::new();
        loop {
            let (stream, address) = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(_) => {
                        tokio::time::sleep(LISTEN_AGAIN).await;
                        continue;
                    }
                },
                () = to_members.closed() => return,
            };
            let peer = waiting.enter(address.ip());
            let (waiting, table, turns) = (waiting.clone(), table.clone(), turns.clone());
            let (to_members, to_others) = (to_members.clone(), to_others.clone());
            let keyring = keyring.clone();
            tokio::spawn(async move {
                let shaking = async {
                    stream.set_nodelay(true)?;
                    // Until its hello is whole, a peer costs a descriptor and nothing else.
                    let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
                    let mut shaking = pin!(hello.into_stream(keyring.now().server.clone()));
                    let begun = match waiting.is_known(address.ip()) {
                        true => turns.begin_known(address.ip(), shaking.as_mut()).await,
                        false => turns.begin_stranger(address.ip(), shaking.as_mut()).await,
                    };
                    match begun {
                        Some(done) => done,
                        None => shaking.await,
                    }
                };
                let mut stream = tokio::select! {
                    shaken = tokio::time::timeout(HANDSHAKE_PATIENCE, shaking) => match shaken {
                        Ok(Ok(stream)) => stream,
                        Ok(Err(error)) => return tracing::debug!(%address, %error, "a handshake failed"),
                        Err(_) => return tracing::debug!(%address, "a handshake took too long"),
                    },
                    () = peer.must_go() => return tracing::debug!(%address, "others wait to shake hands"),
                };
                let caller = caller(&stream, address);
                let place = keyring.track(shown(&stream), stream.get_ref().0);
                // Whoever was removed is a stranger.
                let owner = match keyring.believes(caller.principal.as_ref(), &caller.fingerprint) {
                    true => caller.owner(),
                    false => ConnectionOwner::of_stranger(address.ip()),
                };
                if owner.is_member() {
                    waiting.is_member(address.ip());
                }
                let others = if owner.is_member() { to_members } else { to_others };
                match table.admit(owner, stream.get_ref().0) {
                    Ok(slot) => {
                        drop(peer);
                        let stream = TrackedStream::new(place, stream);
                        let guarded = GuardedStream::new(slot, ConnectionPeer::Remote(caller), stream);
                        let _ = others.send(Ok(guarded)).await;
                    }
                    Err(refusal) => {
                        let why = refusal.to_string();
                        tokio::select! {
                            () = refuse_http2(&mut stream, &why) => {}
                            () = peer.must_go() => {}
                        }
                    }
                }
            });
        }
    });
    GuardedConnections { members: ReceiverStream::new(members), others: ReceiverStream::new(others) }
}

fn caller(stream: &TlsStream<TcpStream>, address: SocketAddr) -> Caller {
    let certificate = shown(stream);
    Caller {
        principal: certificate.and_then(Principal::of),
        fingerprint: certificate.map(fingerprint).unwrap_or_default(),
        address,
    }
}

fn shown(stream: &TlsStream<TcpStream>) -> Option<&CertificateDer<'static>> {
    stream.get_ref().1.peer_certificates().and_then(|chain| chain.first())
}
