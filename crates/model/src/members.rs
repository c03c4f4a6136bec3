//! The controllers of a cluster, as they show themselves.
use serde::{Deserialize, Serialize};

use crate::Timestamp;

record! {
    pub struct Members {
        pub term: u64,
        pub members: Vec<MemberView>,
    }

    pub struct MemberView {
        pub id: u64,
        pub address: String,
        pub is_voter: bool,
        pub is_leader: bool,
        /// Of its log; none: nobody knows.
        pub last_log: Option<u64>,
        /// How many entries of the leader's log it does not have yet.
        pub n_behind: Option<u64>,
        /// It answered when it was asked.
        pub answers: bool,
        pub host: String,
        pub started: Option<Timestamp>,
        /// The newest edition of the state's rules that it knows.
        pub rules: u32,
    }
}

/// What is to become of the controllers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// First it follows, then it has a vote.
    Add {
        id: u64,
        address: String,
    },
    Remove {
        id: u64,
    },
    /// This one is to lead; none: any other than the one that does.
    Lead {
        id: Option<u64>,
    },
}
