//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.
pub mod context;
pub mod getopt;
pub mod job_ids;
pub mod operate;
pub mod sbatch;
pub mod scancel;
pub mod submit;
pub mod watch;
