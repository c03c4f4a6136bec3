//! Files to `model::Config`, with every problem and its line. Reads files, decides nothing.
pub mod client;

pub use client::Client;
