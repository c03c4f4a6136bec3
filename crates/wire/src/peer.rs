//! Who is calling: the kernel's word about the other end of a Unix socket.
use tokio::net::UnixStream;
use tonic::transport::server::{Connected, UdsConnectInfo};

use crate::origin::Origin;

/// The uid, gid and pid of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub gid: u32,
    pub pid: Option<i32>,
}

/// The user that whoever took the call in has found out, or that tonic noted when the connection was accepted.
pub fn of<T>(request: &tonic::Request<T>) -> Option<Peer> {
    if let Some(origin) = request.extensions().get::<Origin>() {
        return origin.user;
    }
    let info = request.extensions().get::<UdsConnectInfo>()?;
    let credentials = info.peer_cred?;
    Some(Peer { uid: credentials.uid(), gid: credentials.gid(), pid: credentials.pid() })
}

/// As [`of`], for a connection that is not (yet) in tonic's hands.
pub fn of_stream(stream: &UnixStream) -> Option<Peer> {
    let credentials = stream.connect_info().peer_cred?;
    Some(Peer { uid: credentials.uid(), gid: credentials.gid(), pid: credentials.pid() })
}
