//! What the state does, driven through `apply`; every entry is followed by the invariants.
mod accounts;
mod arrays;
mod buffers;
mod clock;
mod dependencies;
mod het;
mod history;
mod hooks;
mod jobs;
mod lab;
mod nodes;
mod plugins;
mod priority;
mod reboots;
mod resize;
mod suspend;
mod walk;
