//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.
pub mod allocation;
pub mod context;
#[cfg(test)]
mod fixture;
pub mod getopt;
pub mod job_ids;
pub mod job_view;
pub mod json;
pub mod manual;
pub mod node_view;
pub mod operate;
pub mod output;
pub mod render;
pub mod salloc;
pub mod sbatch;
pub mod scancel;
pub mod scontrol;
pub mod sinfo;
pub mod squeue;
pub mod srun;
pub mod submit;
pub mod trouble;
pub mod users;
pub mod version;
pub mod viewer;
pub mod watch;
pub mod zone;
