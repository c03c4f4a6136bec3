//! Who belongs to the cluster: its authority, the certificates it has given, and the tokens that still open the door.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::NamedNode;
use crate::secret::HIDDEN;
use crate::time::Span;
use crate::{Config, NodeName, Timestamp};

record! {
    pub struct Trust hides(ca_key, jwt_key) {
        /// The authority's certificate and key, as PEM; empty: this cluster is one machine.
        pub ca_certificate: String,
        pub ca_key: String,
        /// Signs the tokens of users.
        #[serde(with = "crate::bytes")]
        pub jwt_key: Vec<u8>,
        /// Keys that sign no more; tokens that they signed hold until then.
        pub old_jwt_keys: Vec<OldJwtKey>,
        /// Of users who were given tokens, or whose tokens were revoked, by name.
        pub user_tokens: BTreeMap<String, UserTokens>,
        /// By the hash of their secret.
        pub tokens: BTreeMap<String, JoinToken>,
        /// Certificates that hold, by fingerprint.
        pub certificates: BTreeMap<String, Certificate>,
        /// Certificates that would hold, had they not been taken back.
        pub revoked: BTreeMap<String, Timestamp>,
        /// The highest number a controller was given.
        pub last_member: u64,
        /// Nodes that joined as login nodes: they vouch for every ordinary user, and run jobs only where a partition names them.
        pub logins: BTreeSet<String>,
        /// Certificates may be younger than the backup that the state came from: those of its nodes are believed until then.
        pub lenient_until: Timestamp,
        /// What a controller shows that is made from a backup of this state.
        pub recovery: RecoveryIdentity,
    }

    /// A certificate that agents know before anybody shows it, and its key, as PEM.
    pub struct RecoveryIdentity hides(key) {
        pub certificate: String,
        pub key: String,
        pub fingerprint: String,
    }

    pub struct JoinToken {
        pub until: Timestamp,
        pub role: Role,
    }

    pub struct OldJwtKey hides(key) {
        #[serde(with = "crate::bytes")]
        pub key: Vec<u8>,
        pub until: Timestamp,
    }

    /// What is known of the tokens of one user. The tokens themselves are kept nowhere.
    pub struct UserTokens {
        /// Tokens issued up to this second are not believed.
        pub revoked_secs: u64,
        /// Issued since the last revocation.
        pub n_issued: u32,
        pub last_issued_secs: u64,
        /// When the last of them ends.
        pub until_secs: u64,
    }

    /// What is told of tokens.
    pub struct TokensView {
        pub users: BTreeMap<String, UserTokens>,
        /// Keys that sign no more and are still believed, by their ends.
        pub old_keys_until: Vec<Timestamp>,
    }

    pub struct Certificate {
        /// `node NAME`, `controller NUMBER`.
        pub name: String,
        pub until: Timestamp,
    }

    /// What a machine that wants to join says.
    pub struct JoinRequest hides(secret) {
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
    /// A node where users log in. Whoever joins says `Node`: the token makes the difference.
    Login,
}

/// What may become of the trust.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
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
    /// Another key signs from now on; the one before is believed until `old_until`, or no more.
    RotateJwtKey {
        #[serde(with = "crate::bytes")]
        key: Vec<u8>,
        old_until: Option<Timestamp>,
    },
    /// A token is about to be given out.
    NoteUserToken {
        user: String,
        issued_secs: u64,
        until_secs: u64,
    },
    /// Tokens that the user has by now are worth nothing any more.
    RevokeUserTokens {
        user: String,
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
        /// The certificate that was shown; empty: a controller of an earlier release did not say.
        #[serde(default)]
        shown: String,
    },
    /// The controller that leads shows a certificate that this state does not know: it was made from a backup.
    Lead {
        member: u64,
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
    /// In the place of the one before, which is in use or was never made.
    KeepRecovery {
        recovery: Box<RecoveryIdentity>,
    },
}

impl fmt::Debug for TrustChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = |kind: &str, name: &str| write!(f, "{kind} {name}");
        match self {
            // Without the keys.
            TrustChange::Found { fingerprint, .. } => named("Found", fingerprint),
            TrustChange::KeepJwtKey { key: _ } => named("KeepJwtKey", HIDDEN),
            TrustChange::RotateJwtKey { key: _, old_until } => write!(f, "RotateJwtKey old until {old_until:?}"),
            TrustChange::NoteUserToken { user, .. } => named("NoteUserToken", user),
            TrustChange::RevokeUserTokens { user } => named("RevokeUserTokens", user),
            TrustChange::AddToken { token, .. } => write!(f, "AddToken {token:?}"),
            TrustChange::Enroll { role, member, node, fingerprint, .. } => {
                let node = node.as_ref().map(|node| &node.name);
                write!(f, "Enroll {role:?} {member} {node:?} {fingerprint}")
            }
            TrustChange::Renew { name, fingerprint, .. } => write!(f, "Renew {name} {fingerprint}"),
            TrustChange::Lead { member, fingerprint, .. } => write!(f, "Lead {member} {fingerprint}"),
            TrustChange::RemoveNode { node } => named("RemoveNode", node.as_str()),
            TrustChange::RemoveController { member } => write!(f, "RemoveController {member}"),
            TrustChange::KeepRecovery { recovery } => named("KeepRecovery", &recovery.fingerprint),
        }
    }
}

/// What is asked of the tokens of users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokensRequest {
    /// Whose tokens there are.
    #[default]
    List,
    Revoke {
        user: String,
    },
    /// Another key signs; those before are believed until their tokens have ended, or no more.
    Rotate {
        at_once: bool,
    },
}

/// What the state says of a certificate that the authority has signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateStanding {
    /// It was given out by an entry of the log, and not taken back.
    Stands,
    TakenBack,
    /// This state has not heard of it: it may be behind.
    Unknown,
}

impl Trust {
    pub fn is_revoked(&self, fingerprint: &str) -> bool {
        self.revoked.contains_key(fingerprint)
    }

    /// Whether a certificate in this name is believed. Only the authority's word is not enough.
    pub fn standing(&self, label: &str, fingerprint: &str, now: Timestamp) -> CertificateStanding {
        if self.is_revoked(fingerprint) {
            return CertificateStanding::TakenBack;
        }
        match self.certificates.get(fingerprint) {
            Some(known) if known.name == label => CertificateStanding::Stands,
            Some(_) => CertificateStanding::TakenBack,
            None if now < self.lenient_until && self.has_member(label) => CertificateStanding::Stands,
            None => CertificateStanding::Unknown,
        }
    }

    /// How many certificates in this name hold.
    pub fn n_standing(&self, label: &str, now: Timestamp) -> usize {
        self.certificates.values().filter(|certificate| certificate.name == label && certificate.until > now).count()
    }

    /// Fingerprints in this name. None while others are believed too.
    pub fn fingerprints(&self, label: &str, now: Timestamp) -> Vec<String> {
        let is_known = |(_, one): &(&String, &Certificate)| now >= self.lenient_until && one.name == label;
        self.certificates.iter().filter(is_known).map(|(fingerprint, _)| fingerprint.clone()).collect()
    }

    /// Of controllers: what agents believe, and until when it is shown. A certificate is replaced before its end.
    pub fn of_controllers(&self, lifetime: Span) -> Vec<(&str, Timestamp)> {
        let early = Span(lifetime.0 / 6);
        let controllers = self.certificates.iter().filter(|(_, one)| one.name.starts_with(CONTROLLER));
        controllers
            .map(|(fingerprint, one)| (fingerprint.as_str(), Timestamp(one.until.0.saturating_sub(early.0))))
            .collect()
    }

    /// A certificate in this name was given out, and not all of them were taken back.
    pub fn has_member(&self, label: &str) -> bool {
        self.certificates.values().any(|certificate| certificate.name == label)
    }
}

const CONTROLLER: &str = "controller ";

pub fn node_label(node: &str) -> String {
    format!("node {node}")
}

pub fn controller_label(member: u64) -> String {
    format!("{CONTROLLER}{member}")
}
