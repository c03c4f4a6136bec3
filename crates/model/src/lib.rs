//! The nouns of Spur: plain values and their Slurm spelling. No clock, no randomness, no I/O.
//!
//! Everything that is persisted or crosses a socket is declared here once, with [`record!`], and encoded by [`codec`].

#[macro_use]
mod record;

pub mod accounts;
pub mod agent;
pub mod array;
pub mod attach;
pub mod buffer;
pub mod bytes;
pub mod calendar;
pub mod codec;
pub mod command;
pub mod config;
pub mod cpuset;
pub mod dependency;
pub mod duration;
pub mod duty;
pub mod event;
pub mod exit;
pub mod features;
pub mod fit;
pub mod gres;
pub mod het;
pub mod hostlist;
pub mod ids;
pub mod job;
pub mod job_state;
pub mod node;
pub mod node_state;
pub mod outcome;
pub mod partition;
pub mod pattern;
pub mod plan;
pub mod pool;
pub mod ranges;
pub mod reason;
pub mod reject;
pub mod request;
pub mod resources;
pub mod signal;
pub mod size;
pub mod spec;
pub mod staging;
pub mod step;
pub mod time;
pub mod topology;
pub mod update;
pub mod usage;
pub mod when;

pub use array::Array;
pub use command::{Command, Entry, Reply};
pub use config::Config;
pub use cpuset::CpuSet;
pub use duty::{Duty, Owner, Task};
pub use event::Event;
pub use exit::ExitStatus;
pub use het::HetPlace;
pub use ids::{BlobId, Caller, JobId, JobRef, NodeName, StepId};
pub use job::{HeldBy, Job, Phase, Wake};
pub use node::Node;
pub use outcome::Outcome;
pub use partition::Partition;
pub use plan::{Plan, Start};
pub use ranges::TaskSet;
pub use reason::Reason;
pub use reject::Reject;
pub use resources::{Allocation, NodeShare};
pub use spec::{JobKind, JobSpec};
pub use step::{Step, StepPhase, StepSpec};
pub use time::Timestamp;
pub use usage::Usage;
