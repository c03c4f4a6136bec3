//! What reads the bytes of users' processes, opened to crate `fuzz_targets` and to nothing else.
pub use crate::frame::{Incoming, encode};
pub use crate::protocol::{Birth, FromSupervisor, ToSupervisor};
pub use crate::supervisor::foreign_bytes::{
    FromServer, PmiMessage, PmiNews, PmiServer, PmiVersion, ToServer, take_pmi_message,
};
