//! What the state does, driven through `apply`; every entry is followed by the invariants.
mod arrays;
mod dependencies;
mod het;
mod jobs;
mod lab;
mod nodes;
mod priority;
mod suspend;
mod walk;
