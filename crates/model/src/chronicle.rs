//! What administrators look up later: who changed which accounts, and when nodes were out of service.
use crate::{NodeName, Timestamp};

record! {
    pub struct Chronicle {
        pub transactions: Vec<Transaction>,
        pub events: Vec<NodeEvent>,
    }

    /// One line of `sacctmgr list transactions`.
    pub struct Transaction {
        pub id: u64,
        pub at: Timestamp,
        /// `Add Users`, `Modify Associations`, …
        pub action: String,
        pub actor: String,
        /// Whom it concerns.
        pub whom: String,
        pub info: String,
        /// The accounts and users that it is about.
        pub accounts: Vec<String>,
        pub users: Vec<String>,
        /// Empty: this cluster, or none in particular.
        pub cluster: String,
    }

    /// A time in which a node took no new jobs.
    pub struct NodeEvent {
        pub node: NodeName,
        pub from: Timestamp,
        /// None: it lasts.
        pub until: Option<Timestamp>,
        /// As `sinfo` has it: DOWN, DRAIN, FAIL.
        pub state: String,
        pub reason: String,
        pub by_uid: u32,
        pub n_cpus: u32,
    }
}
