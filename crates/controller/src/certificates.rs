//! Which certificates are believed: those that stand in the state. That the authority has signed one is not enough.
use model::trust::{CertificateStanding, controller_label, node_label};
use state::Cluster;
use tonic::Status;
use wire::origin::From;
use wire::tls::Principal;

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

/// Of a connection's certificate. `members` are the controllers by the log, which a leader's new certificate may come before.
pub fn of_connection(cluster: &Cluster, members: &[u64], principal: &Principal, fingerprint: &str) -> Belief {
    match principal {
        Principal::Node(name) => of_label(cluster, &node_label(name), fingerprint),
        Principal::Controller(member) => match of_label(cluster, &controller_label(*member), fingerprint) {
            Belief::Unknown if members.contains(member) || has_no_state(cluster) => Belief::Believed,
            belief => belief,
        },
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
