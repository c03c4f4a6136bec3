//! Connections to a daemon's Unix socket.
use std::path::{Path, PathBuf};

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use crate::refusal::CallError;

/// Answers and messages may be large: a page of jobs, a script.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024 * 1024;

/// Connects now; fails at once when nobody listens.
pub async fn connect(socket: &Path) -> Result<Channel, CallError> {
    let path: PathBuf = socket.into();
    // The name is never resolved: the connector always opens the socket.
    let endpoint = Endpoint::from_static("http://spur.local")
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20);
    let connector = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    endpoint
        .connect_with_connector(connector)
        .await
        .map_err(|error| CallError::Unreachable { socket: socket.into(), why: root_cause(&error) })
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
