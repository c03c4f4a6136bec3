pub mod cpuset;
pub mod duration;
pub mod exit;
pub mod hostlist;
pub mod pattern;
pub mod ranges;
pub mod signal;
pub mod size;
