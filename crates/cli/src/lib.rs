//! Every command: parse, ask, render. Parsing and rendering are pure functions; only the asking touches sockets.
pub mod context;
pub mod getopt;
pub mod job_ids;
pub mod job_view;
pub mod json;
pub mod node_view;
pub mod output;
pub mod render;
pub mod sinfo;
pub mod squeue;
pub mod users;
pub mod version;
pub mod zone;
