//! The node daemon and the supervisors of its runs.
//!
//! ```text
//!  controller <── Attend stream ── agent ── one socket a run ──> supervisor ── owns ──> processes, cgroup, streams
//!                                   │  └── fork server (forks the supervisors)              │
//!       srun  ── Agent.Attach ──────┘                                                       └── result ──> spool
//! ```
//! The agent may die at any moment: supervisors go on, write their results to the spool and wait for the next agent.

mod adopt;
mod answers;
mod attach;
mod audited;
mod birth;
mod bounds;
mod care;
mod cgroup;
mod clear;
mod daemon;
mod devices;
#[doc(hidden)]
pub mod foreign_bytes;
mod frame;
mod gate;
mod hooks;
mod killed;
mod launcher;
mod leftovers;
mod link;
mod machine;
mod neighbours;
mod numbering;
mod options;
mod orders;
mod processes;
mod protocol;
mod relay;
mod run;
mod spool;
mod staging;
mod standby;
mod step_answers;
mod supervisor;
mod supervisor_words;
mod sys;
mod table;
mod unkillable;
mod vouchers;
mod writing;

pub use clear::clear;
pub use daemon::run;
pub use mover::process::{NAME as MOVER_NAME, serve as move_data};
pub use neighbours::Remote;
pub use options::Options;
pub use prolog::{NAME as PROLOG_NAME, serve as run_prolog};
pub use supervisor::{PMIX_NAME, serve as supervise, serve_pmix};
