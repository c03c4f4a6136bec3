//! Runs a site's own code without trusting it: a Lua function or a program, each in a process of its own that can be killed.
//!
//! ```text
//! daemon                                  worker: this executable, called `spurhook`, in its own session
//!   run(call, limit, stop) ── stdin ──▶  one line: the call; then nothing. Its end is the daemon's end: all die at once
//!                          ◀─ stdout ──  the message, as far as it came
//!                          ◀─ stderr ──  lines for the daemon's log
//!                          ◀─ status ──  0: it succeeded
//! ```
//! Whatever a hook does (loops, crashes, leaks, prints without end) costs one process and its time limit.
mod call;
#[doc(hidden)]
pub mod foreign_bytes;
mod group;
mod lua;
mod restraint;
mod run;
mod worker;

pub use call::{Call, Edit, Edited, FUNCTIONS, SUBMIT_FUNCTIONS, Surroundings};
pub use restraint::is_program;
pub use run::{Answer, Stop, check, check_in_time, run};
pub use worker::work;

/// What the executable must be called to be a worker.
pub const WORKER_NAME: &str = "spurhook";
