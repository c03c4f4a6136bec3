//! What judges the bytes of strangers before anything else sees them, opened to crate `fuzz_targets` and to nothing else.
use std::sync::Arc;

use rustls::{ClientConfig, ServerConfig};

pub use crate::brief::foreign_bytes::{answer_brief_caller, read_brief_answer};
use crate::origin::Origin;
use crate::tls::Principal;
use crate::tls::connect::pinned_client;
use crate::tls::identity::Identity;

/// The origin that a header names, if it names one.
pub fn origin_of_header(text: &str) -> Option<Origin> {
    Origin::read(text)
}

/// Whom a name in a certificate means.
pub fn principal_of_name(name: &str) -> Option<Principal> {
    Principal::read(name)
}

/// How a daemon with this identity shakes hands with those who connect.
pub fn server_of(identity: &Identity) -> Arc<ServerConfig> {
    identity.server.clone()
}

/// How a machine that joins shakes hands: it believes only the authority with this mark.
pub fn joining_client(pin: [u8; 32]) -> Option<ClientConfig> {
    pinned_client(pin).ok()
}
