//! Data on its way into and out of burst buffers, seen live.
pub mod bar;
