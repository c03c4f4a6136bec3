//! Data on its way into and out of burst buffers, seen live: `spur stage watch JOB`.
pub mod bar;
pub mod watch;
