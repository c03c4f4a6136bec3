//! A PMIx server for one node of a step, through the system's libpmix.
//!
//! The library is looked for when it is needed (`dlopen`): building and running Spur does not need it. It has one server a
//! process, and threads of its own, so whoever starts a `Server` should be a process for nothing else. All that is unsafe
//! about it is in this crate: `layout` has its structures, `library` its functions, `server` what it calls back.
#![allow(
    clippy::type_complexity,
    clippy::too_many_arguments,
    reason = "functions are as the library's header has them"
)]
mod layout;
mod library;
mod server;

pub use library::{Version, find};
pub use server::{Event, Job, Node, Server};

/// No such thing (`PMIX_ERR_NOT_FOUND`).
pub const NOT_FOUND: i32 = -46;
pub const SUCCESS: i32 = 0;
