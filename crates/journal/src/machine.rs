//! What the log drives: the one trait a user of the journal implements.

use std::fmt::Debug;

/// A deterministic state machine. All calls come from one task, in order.
pub trait Machine: Send + 'static {
    /// What the proposer of an entry is told; it never crosses the network or touches the disk.
    type Reply: Send + Clone + Debug + 'static;

    /// Applies one committed entry. Must be deterministic.
    ///
    /// `index` counts entries: 1, 2, 3 … without gaps, the same on every member and after every restart.
    /// An error says that this machine does not understand what others do: the member stops, rather than go on with another state.
    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Self::Reply, String>;

    /// Called after each batch of applied entries and before their proposers get their replies: publish what
    /// readers shall see here, and every proposer can read its own write.
    fn batch_applied(&mut self) {}

    /// A cheap copy of the state as of now; the closure serialises it later, on a blocking thread.
    fn freeze(&self) -> Box<dyn FnOnce() -> Vec<u8> + Send>;

    /// Replaces the whole state by one that `freeze` wrote.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), String>;
}
