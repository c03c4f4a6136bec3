//! Burst buffers on this node: the directories of jobs, and the movers that fill and empty them.
//!
//! ```text
//!  Order::Stage ──▶ table (one slot a home) ──▶ work: record, mover process, its end ──▶ Report::Staged
//!  Order::Remove ─▶ ends the mover ──▶ ground: the directory goes ──▶ Report::Staged
//!                          watch: once a second how far, every ten minutes what there is ──▶ Report::{Progress, Inventory}
//! ```
//! Where a work names peers, its mover copies from one of them: fetch (here) ◀──▶ serve (there, a sender of the same user).
//! A mover outlives the agent. The next agent needs no list of them: the controller orders again what it wants, and a mover
//! whose journal is locked is joined instead of started.
mod errand;
mod fetch;
pub mod ground;
mod group;
mod pools;
mod quota;
mod record;
mod removal;
mod serve;
mod survey;
mod table;
mod tell;
mod watch;
mod work;

pub use serve::serve;
pub use survey::send as send_inventory;
pub use table::{Staging, remove, stage, stop_mover};
pub use tell::{errors, moved};
pub use watch::{pool_reports, watch};
pub use work::end_all;
