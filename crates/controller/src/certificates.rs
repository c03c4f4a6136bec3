//! Which certificates are believed: those that stand in the state. That the authority has signed one is not enough.
use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;
use model::trust::{CertificateStanding, controller_label, node_label};
use state::Cluster;
use tonic::Status;
use wire::origin::From;
use wire::tls::Principal;

use crate::members::ClusterJournal;

/// What is known of a certificate by this controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belief {
    Believed,
    TakenBack,
    /// This controller's state may be behind: whoever leads knows.
    Unknown,
}

impl Belief {
    pub fn refusal(self, leads: bool) -> Option<Status> {
        match self {
            Belief::Believed => None,
            Belief::TakenBack => Some(Status::permission_denied("this certificate was taken back")),
            Belief::Unknown if leads => Some(Status::permission_denied("this cluster knows no such certificate")),
            Belief::Unknown => Some(Status::unavailable("this controller does not know the certificate yet")),
        }
    }
}

/// The controllers, as far as this one's log goes.
struct KnownMembers {
    ids: Vec<u64>,
    /// Its own vote counts. Before that it hears from the others what has happened, in the order in which it did.
    has_caught_up: bool,
}

impl KnownMembers {
    fn of(journal: &ClusterJournal) -> KnownMembers {
        let standing = journal.standing();
        let has_caught_up = standing.members.iter().any(|member| member.id == standing.id && member.is_voter);
        KnownMembers { ids: standing.members.into_iter().map(|member| member.id).collect(), has_caught_up }
    }
}

/// Of a connection's certificate.
///
/// A controller shows a new certificate long after all have heard of it. One that was away until those it knew had ended
/// believes a member's next one, which it could not have heard of.
pub fn of_connection(cluster: &Cluster, journal: &ClusterJournal, principal: &Principal, fingerprint: &str) -> Belief {
    match principal {
        Principal::Node(name) => of_label(cluster, &node_label(name), fingerprint),
        Principal::Controller(member) => match of_label(cluster, &controller_label(*member), fingerprint) {
            Belief::Unknown if has_no_state(cluster) => Belief::Believed,
            Belief::Unknown => match KnownMembers::of(journal) {
                known if !known.has_caught_up => Belief::Believed,
                known if known.ids.contains(member) && have_ended(cluster, *member) => Belief::Believed,
                _ => Belief::Unknown,
            },
            belief => belief,
        },
    }
}

fn have_ended(cluster: &Cluster, member: u64) -> bool {
    // By this machine's clock: the state's stands still while it hears nothing.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let known = cluster.trust().fingerprints(&controller_label(member), Timestamp(u64::MAX));
    let shown = cluster.trust().of_controllers(cluster.config().controller.certificate_lifetime);
    !shown.iter().any(|(fingerprint, until)| until.secs() > now && known.iter().any(|one| one == fingerprint))
}

/// By which a node is known to others.
pub fn of_node(cluster: &Cluster, name: &str) -> Vec<String> {
    match cluster.rules() < 3 {
        true => Vec::new(),
        false => cluster.trust().fingerprints(&node_label(name), cluster.now()),
    }
}

/// Of the certificate that another controller was shown.
pub fn of_passed_on(cluster: &Cluster, from: &From, fingerprint: &str) -> Belief {
    match from {
        From::Node(name) => of_label(cluster, &node_label(name), fingerprint),
        From::Local | From::Controller(_) | From::Bearer | From::Stranger => Belief::Believed,
    }
}

fn of_label(cluster: &Cluster, label: &str, fingerprint: &str) -> Belief {
    match cluster.trust().standing(label, fingerprint, cluster.now()) {
        CertificateStanding::Stands => Belief::Believed,
        CertificateStanding::TakenBack => Belief::TakenBack,
        // Earlier releases believed all that were not taken back, and some may still be with us.
        CertificateStanding::Unknown if cluster.rules() < 3 && !has_no_state(cluster) => Belief::Believed,
        CertificateStanding::Unknown => Belief::Unknown,
    }
}

/// It has just been added, and has heard nothing from the others yet.
fn has_no_state(cluster: &Cluster) -> bool {
    cluster.trust().ca_key.is_empty()
}
