pub mod duration;
pub mod exit;
pub mod hostlist;
pub mod pattern;
pub mod signal;
pub mod size;
