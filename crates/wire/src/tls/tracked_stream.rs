//! Connections that end when their other end's certificate is taken back, whatever runs over them.
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Principal;

/// The open connections of one keyring, by what their other ends have shown.
#[derive(Clone, Default)]
pub(crate) struct TrackedConnections(Arc<Mutex<Tracked>>);

#[derive(Default)]
struct Tracked {
    next: u64,
    open: HashMap<u64, TrackedPeer>,
}

struct TrackedPeer {
    principal: Option<Principal>,
    fingerprint: String,
    fd: RawFd,
}

/// A connection's place. It goes before the socket does, so that nobody else's is ever closed.
pub struct TrackedPlace {
    connections: TrackedConnections,
    number: u64,
}

impl TrackedConnections {
    pub fn enter(&self, principal: Option<Principal>, fingerprint: String, socket: &impl AsRawFd) -> TrackedPlace {
        let mut tracked = self.lock();
        let number = tracked.next;
        tracked.next += 1;
        tracked.open.insert(number, TrackedPeer { principal, fingerprint, fd: socket.as_raw_fd() });
        TrackedPlace { connections: self.clone(), number }
    }

    /// Ends those whose certificates are of this kind.
    pub fn close_all(&self, is_taken_back: impl Fn(&str) -> bool) {
        for peer in self.lock().open.values() {
            if is_taken_back(&peer.fingerprint) {
                tracing::info!(principal = ?peer.principal, "a connection ends: its certificate was taken back");
                // SAFETY: its place has not gone yet, so the descriptor is still this connection's.
                unsafe { libc::shutdown(peer.fd, libc::SHUT_RDWR) };
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tracked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for TrackedPlace {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.number);
    }
}

/// A stream with its place, if its other end has shown a certificate.
pub struct TrackedStream<S> {
    _place: Option<TrackedPlace>,
    stream: S,
}

impl<S> TrackedStream<S> {
    pub fn new(place: Option<TrackedPlace>, stream: S) -> TrackedStream<S> {
        TrackedStream { _place: place, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn connections_end_when_their_certificates_are_taken_back() {
        let connections = TrackedConnections::default();
        let is_closed = |far: &mut UnixStream| {
            far.set_nonblocking(true).unwrap();
            matches!(far.read(&mut [0]), Ok(0))
        };
        let mut held: Vec<_> = ["kept", "removed"]
            .into_iter()
            .map(|fingerprint| {
                let (near, far) = UnixStream::pair().unwrap();
                (connections.enter(Some(Principal::Node("n1".into())), fingerprint.into(), &near), near, far)
            })
            .collect();
        connections.close_all(|fingerprint| fingerprint == "removed");
        assert!(!is_closed(&mut held[0].2) && is_closed(&mut held[1].2));
        drop(held);
        assert!(connections.lock().open.is_empty());
    }
}
