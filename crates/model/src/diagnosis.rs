//! What `sdiag` shows: what the controller has done and how long it took.
use crate::Timestamp;

record! {
    pub struct Diagnosis {
        pub now: Timestamp,
        /// Since when is counted.
        pub since: Timestamp,
        /// Agents that are connected.
        pub n_agents: u32,
        /// Entries of the log.
        pub n_entries: u64,
        pub jobs: JobCounts,
        pub n_pending: u64,
        pub n_running: u64,
        pub n_suspended: u64,
        pub cycles: Cycles,
        pub placements: Placements,
        pub by_call: Vec<Calls>,
        pub by_user: Vec<Calls>,
        pub mails: MailCounts,
        /// Calls that were put off because their users made too many.
        pub n_limited: u64,
    }

    pub struct MailCounts {
        pub n_sent: u64,
        /// The mail program failed, or took too long.
        pub n_failed: u64,
        /// Too many waited.
        pub n_dropped: u64,
        pub n_waiting: u64,
    }

    pub struct JobCounts {
        pub submitted: u64,
        pub started: u64,
        pub completed: u64,
        pub canceled: u64,
        pub failed: u64,
    }

    /// The scheduler's looks at the queue.
    pub struct Cycles {
        pub n_cycles: u64,
        pub last_micros: u64,
        pub max_micros: u64,
        pub total_micros: u64,
        pub last_at: Option<Timestamp>,
        pub last_queue_length: u64,
        pub total_queue_length: u64,
        /// Jobs that started while more important ones waited.
        pub n_backfilled: u64,
        pub n_backfilled_ever: u64,
    }

    /// Starts of jobs that were placed by the network.
    pub struct Placements {
        /// `topology/tree` or `topology/block`; empty: there is no network.
        pub plugin: String,
        pub n_placed: u64,
        /// Leaf switches or base blocks that they use, and the fewest that could have held them.
        pub n_units: u64,
        pub n_units_fewest: u64,
        /// Nodes of all units that are not wholly free, and busy nodes.
        pub fragmentation: u64,
    }

    pub struct Calls {
        pub name: String,
        pub id: u32,
        pub count: u64,
        pub total_micros: u64,
    }
}
