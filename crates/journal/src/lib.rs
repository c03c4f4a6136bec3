//! The durable log: bytes go in, and come out committed, in order, applied to a [`Machine`].
//!
//! ```text
//!  propose ─▶ gather ─▶ openraft ─▶ log store ─▶ writer thread ─▶ segment file, one fdatasync a batch
//!     ▲                     │ committed
//!     └──── replies ◀── applier ─▶ Machine::apply        freeze ─▶ snapshot file ─▶ old segments deleted
//! ```
//! One member is a Raft of one; three are three, over a [`Transport`] of the caller's. The crate knows nothing of
//! what the bytes mean.

mod applier;
mod batch;
mod error;
pub mod files;
mod frame;
mod front;
mod gather;
mod hard_state;
mod index;
mod log_store;
mod machine;
mod members;
mod network;
mod offline;
mod options;
mod recovery;
mod room;
mod segment;
mod segments;
mod snapshots;
mod writer;

#[cfg(test)]
extern crate self as journal;
#[cfg(test)]
mod log_store_test;
#[cfg(test)]
mod segments_test;
#[cfg(test)]
#[path = "../tests/support/disk.rs"]
#[allow(dead_code, reason = "the tests outside use all of it")]
mod test_disk;

pub use error::{Damage, OpenError, ProposeError};
pub use front::{Journal, Leadership};
pub use machine::Machine;
pub use members::{Member, MembersError, Standing};
pub use network::{Answer, Transport};
pub use offline::read_offline;
pub use options::Options;
pub use room::DiskRoom;
