pub mod duration;
pub mod hostlist;
pub mod size;
