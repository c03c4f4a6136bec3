//! What crosses a socket: the generated messages, channels over Unix sockets, and the kernel's word on who is calling.
//! No decisions are made here.

/// Generated from `proto/spur.proto`.
pub mod proto {
    #![allow(clippy::all)]
    tonic::include_proto!("spur.v1");
}

pub mod accounts;
pub mod bearer;
pub mod bounded_body;
pub mod brief;
pub mod channel;
pub mod client;
pub mod connection_table;
#[doc(hidden)]
pub mod foreign_bytes;
pub mod guarded;
pub mod history;
pub mod host;
pub mod listener_guard;
pub mod log_lines;
pub mod long_path;
pub mod node;
pub mod open_files;
pub mod origin;
pub mod pages;
pub mod passing;
pub mod peer;
pub mod random;
pub mod reach;
pub mod refusal;
pub mod retry;
pub mod tls;
pub mod unread_answers;
pub mod waiting_peers;

pub use client::Controller;
pub use node::{NodeAgent, Way};
pub use refusal::CallError;
