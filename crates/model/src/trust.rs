//! Who belongs to the cluster: its authority, the certificates it has given, and the tokens that still open the door.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::NamedNode;
use crate::{Config, NodeName, Timestamp};

record! {
    pub struct Trust {
        /// The authority's certificate and key, as PEM; empty: this cluster is one machine.
        pub ca_certificate: String,
        pub ca_key: String,
        /// Signs the tokens of users.
        #[serde(with = "crate::bytes")]
        pub jwt_key: Vec<u8>,
        /// By the hash of their secret.
        pub tokens: BTreeMap<String, JoinToken>,
        /// Certificates that hold, by fingerprint.
        pub certificates: BTreeMap<String, Certificate>,
        /// Certificates that would hold, had they not been taken back.
        pub revoked: BTreeMap<String, Timestamp>,
        /// The highest number a controller was given.
        pub last_member: u64,
    }

    pub struct JoinToken {
        pub until: Timestamp,
        pub role: Role,
    }

    pub struct Certificate {
        /// `node NAME`, `controller NUMBER`.
        pub name: String,
        pub until: Timestamp,
    }

    /// What a machine that wants to join says.
    pub struct JoinRequest {
        #[serde(with = "crate::bytes")]
        pub secret: Vec<u8>,
        /// The public half of its key.
        #[serde(with = "crate::bytes")]
        pub public_key: Vec<u8>,
        pub role: Role,
        /// For a node: what it is.
        pub node: Option<NamedNode>,
        /// For a controller: where the others reach it.
        pub address: String,
    }

    /// What it is told.
    pub struct Joined {
        pub certificate: String,
        pub ca_certificate: String,
        pub from_secs: u64,
        pub until_secs: u64,
        /// Of a controller.
        pub member: u64,
        /// Where controllers are reached.
        pub controllers: Vec<String>,
        pub config: Config,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    #[default]
    Node,
    Controller,
}

/// What may become of the trust.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TrustChange {
    /// The first one stays.
    Found {
        ca_certificate: String,
        ca_key: String,
        fingerprint: String,
        until: Timestamp,
    },
    KeepJwtKey {
        #[serde(with = "crate::bytes")]
        key: Vec<u8>,
    },
    AddToken {
        hash: String,
        token: JoinToken,
    },
    /// Uses up the token.
    Enroll {
        hash: String,
        role: Role,
        member: u64,
        node: Option<Box<NamedNode>>,
        fingerprint: String,
        until: Timestamp,
    },
    Renew {
        name: String,
        fingerprint: String,
        until: Timestamp,
    },
    /// A node leaves for good, and its certificates with it.
    RemoveNode {
        node: NodeName,
    },
    RemoveController {
        member: u64,
    },
}

impl Trust {
    pub fn is_revoked(&self, fingerprint: &str) -> bool {
        self.revoked.contains_key(fingerprint)
    }
}

pub fn node_label(node: &str) -> String {
    format!("node {node}")
}

pub fn controller_label(member: u64) -> String {
    format!("controller {member}")
}
