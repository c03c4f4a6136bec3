//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.
pub mod context;
pub mod getopt;
pub mod job_ids;
pub mod job_view;
pub mod json;
pub mod operate;
pub mod render;
pub mod sbatch;
pub mod scancel;
pub mod squeue;
pub mod submit;
pub mod users;
pub mod version;
pub mod watch;
pub mod zone;
