//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.
pub mod context;
pub mod getopt;
pub mod operate;
pub mod sbatch;
pub mod submit;
pub mod watch;
