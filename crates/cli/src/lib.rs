//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.
pub mod context;
pub mod getopt;
pub mod render;
pub mod users;
pub mod zone;
pub mod job_ids;
pub mod job_view;
pub mod json;
pub mod squeue;
pub mod version;
