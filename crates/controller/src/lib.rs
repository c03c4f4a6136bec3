//! The controller daemon: the door to the journal, the APIs, the leader's loops.
//!
//! ```text
//! commands ─▶ api ─▶ door ─▶ journal ─▶ machine (state::apply) ─▶ snapshot ─▶ api (reads), watch
//!                     ▲                                              │
//!                     └── planner · ticker · runner · liveness ◀─────┘
//!                                            │ orders   ▲ reports
//!                                            ▼          │
//!                                           agents (one stream each)
//! ```
mod agents;
mod api;
mod audit;
pub mod backup;
mod buffer_metrics;
mod call_limiter;
mod certificates;
mod clock;
mod counted;
mod door;
mod fair_turns;
mod foreign;
#[doc(hidden)]
pub mod foreign_bytes;
mod history;
mod job_quota;
mod job_submit;
mod leader;
mod leading;
pub mod loudness;
mod machine;
mod members;
mod metrics;
mod names;
#[cfg(test)]
mod old_journals;
mod options;
mod plugin;
mod progress;
mod router;
mod rules;
mod serve;
mod statistics;
mod text_quota;
pub mod tls;
mod to_agents;
mod vouching;

pub use members::{Place, on_this_machine};
pub use options::Options;
pub use rules::changing_calls;
pub use serve::run;
