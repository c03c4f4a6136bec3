//! Taking TLS connections: handshakes side by side, and the other end's certificate for whoever answers.
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::identity::Keyring;
use super::{Principal, fingerprint};

const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// So many strangers may keep us waiting at once.
const HANDSHAKES_MAX: usize = 512;

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Caller {
    /// None: it has shown no certificate.
    pub principal: Option<Principal>,
    pub fingerprint: String,
    pub address: SocketAddr,
}

pub struct Secured {
    stream: TlsStream<TcpStream>,
    caller: Caller,
}

/// Connections whose handshake is done.
pub fn incoming(listener: TcpListener, keyring: Arc<Keyring>) -> ReceiverStream<io::Result<Secured>> {
    let (give, taken) = mpsc::channel(16);
    tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let (stream, address) = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    // Out of descriptors, or the other end has gone: the next one may be better.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        continue;
                    }
                },
                () = give.closed() => return,
            };
            let (give, acceptor) = (give.clone(), TlsAcceptor::from(keyring.now().server.clone()));
            tokio::spawn(async move {
                let _permit = permit;
                let _ = stream.set_nodelay(true);
                match tokio::time::timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let caller = caller(&stream, address);
                        let _ = give.send(Ok(Secured { stream, caller })).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%address, %error, "a handshake failed"),
                    Err(_) => tracing::debug!(%address, "a handshake took too long"),
                }
            });
        }
    });
    ReceiverStream::new(taken)
}

fn caller(stream: &TlsStream<TcpStream>, address: SocketAddr) -> Caller {
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    Caller {
        principal: certificate.and_then(Principal::of),
        fingerprint: certificate.map(fingerprint).unwrap_or_default(),
        address,
    }
}

impl Connected for Secured {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
