//! What would have happened: a workload of the past, or a made one, run through the real state and the real scheduler on a
//! simulated clock.
//!
//! ```text
//! swf, rows, model ──▶ Workload ──▶ run (state::apply + scheduler::look) ──▶ Outcome ──▶ Summary, picture
//!                                   easy (the textbook's rule)          ──▶ Outcome ──┘
//! ```
//! Nothing here reads a file or a clock.
mod cluster;
pub mod easy;
pub mod made;
mod outcome;
pub mod picture;
mod rows;
mod run;
mod swf;
mod workload;

pub use cluster::{Machine, machine};
pub use outcome::{Outcome, Summary, UserSummary};
pub use run::{Refusal, run, run_with};
pub use workload::{Problem, Request, Workload, parse};
