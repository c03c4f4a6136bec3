//! Connections to a daemon.
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use model::config::Sockets;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::listener_guard;
use crate::long_path::SocketPath;
use crate::refusal::CallError;

/// Answers and messages may be large: a page of jobs, a script.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 * 1024;

/// An answer that nobody reads takes this, of the connection's window, too: many of them fit in, so that those who pass calls
/// on for many users keep no other call waiting.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;

/// A daemon that is asked for a sign of life and gives none for this long is thought dead.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// Connects now; fails at once when nobody listens.
pub async fn connect(socket: &Path) -> Result<Channel, CallError> {
    connect_with(endpoint(), socket, None).await
}

/// As [`connect`]; the connection breaks when the other end stands still.
pub async fn connect_watchful(socket: &Path) -> Result<Channel, CallError> {
    connect_with(watchful(endpoint()), socket, None).await
}

/// One of the places where a controller may be asked.
pub(crate) async fn connect_to(place: &Path, sockets: &Sockets) -> Result<Channel, CallError> {
    match sockets.authority {
        None => connect_with(watchful(endpoint()), place, sockets.owner).await,
        Some(pin) => crate::tls::connect::connect_pinned(&place.to_string_lossy(), pin).await,
    }
}

pub(crate) fn watchful(endpoint: Endpoint) -> Endpoint {
    endpoint.http2_keep_alive_interval(SIGN_OF_LIFE).keep_alive_timeout(SIGN_OF_LIFE).keep_alive_while_idle(true)
}

pub(crate) fn endpoint() -> Endpoint {
    // The name is never resolved: the connector always opens the socket.
    Endpoint::from_static("http://spur.local")
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
}

async fn connect_with(endpoint: Endpoint, socket: &Path, owner: Option<u32>) -> Result<Channel, CallError> {
    let path: PathBuf = socket.into();
    let connector = service_fn(move |_| {
        let path = path.clone();
        async move {
            let stream = UnixStream::connect(SocketPath::of(&path)?).await?;
            listener_guard::check(stream.as_fd(), &path, owner)?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    endpoint
        .connect_with_connector(connector)
        .await
        .map_err(|error| listener_guard::error_of(socket, root_cause(&error)))
}

pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
