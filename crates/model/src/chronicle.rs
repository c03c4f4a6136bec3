//! What administrators look up later: who changed which accounts, when nodes were out of service, which persistent buffers there were.
use crate::{NodeName, Reservation, Timestamp};

record! {
    pub struct Chronicle {
        pub transactions: Vec<Transaction>,
        pub events: Vec<NodeEvent>,
        /// Persistent buffers, also those that are gone.
        pub buffers: Vec<BufferEvent>,
        /// Times that reservations have had, up to when they ended; those that last are not among them.
        pub reservations: Vec<Reservation>,
        /// When the cluster was first heard of; none: longer ago than anybody remembers.
        pub began: Option<Timestamp>,
    }

    /// The life of a persistent buffer: in accounting it stands among the reservations.
    pub struct BufferEvent {
        pub name: String,
        pub pool: String,
        /// `native`, `datawarp`
        pub plugin: String,
        pub user: String,
        pub account: String,
        pub bytes: u64,
        pub from: Timestamp,
        /// None: it is there.
        pub until: Option<Timestamp>,
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
