//! Agents of other machines are told where the controllers are, by which certificates they are known, and whose were taken
//! back, whenever that changes.
use std::sync::Arc;

use model::agent::{Neighbours, Order, StandingCertificate};
use model::trust::controller_label;
use state::Cluster;
use tokio::sync::Notify;

use crate::agents::Agents;
use crate::machine::Published;
use crate::members::{ClusterJournal, Connections};

/// None: this cluster is one machine.
pub fn of(cluster: &Cluster, journal: &ClusterJournal, connections: &Connections) -> Option<Neighbours> {
    let trust = cluster.trust();
    if trust.ca_key.is_empty() {
        return None;
    }
    Some(Neighbours {
        controllers: addresses(cluster, journal),
        revoked: trust.revoked.keys().cloned().collect(),
        root_squash: cluster.config().controller.root_squash,
        standing: standing(cluster, journal, &connections.shown()),
        recovery: trust.recovery.fingerprint.clone(),
    })
}

/// None while controllers may show certificates that the state does not know, as those of earlier releases may. `shown` is
/// this controller's own.
pub fn standing(cluster: &Cluster, journal: &ClusterJournal, shown: &str) -> Vec<StandingCertificate> {
    let trust = cluster.trust();
    let is_known = |member: u64| trust.has_member(&controller_label(member));
    if cluster.rules() < 3 || !trust.certificates.contains_key(shown) {
        return Vec::new();
    }
    if !journal.standing().members.iter().all(|member| is_known(member.id)) {
        return Vec::new();
    }
    let standing = trust.of_controllers(cluster.config().controller.certificate_lifetime).into_iter();
    standing.map(|(fingerprint, until)| StandingCertificate { fingerprint: fingerprint.to_owned(), until }).collect()
}

/// Where other machines reach controllers.
pub fn addresses(cluster: &Cluster, journal: &ClusterJournal) -> Vec<String> {
    let is_remote = |address: &String| !address.is_empty() && !address.starts_with("unix:");
    let members = journal.standing().members;
    let mut known: Vec<String> = members.into_iter().map(|member| member.address).filter(is_remote).collect();
    let own = &cluster.config().controller.address;
    if known.is_empty() && !own.is_empty() {
        known.push(own.clone());
    }
    known
}

/// `members` is told when controllers were added or removed.
pub async fn run(
    (published, journal): (Published, ClusterJournal),
    connections: Arc<Connections>,
    agents: Arc<Agents>,
    members: Arc<Notify>,
) {
    let mut changes = published.changes();
    let mut told = None;
    loop {
        let cluster = changes.borrow_and_update().clone();
        let now = of(&cluster, &journal, &connections);
        if let Some(neighbours) = now.clone().filter(|_| now != told) {
            for node in agents.connected() {
                agents.send(&node, Order::Neighbours(Box::new(neighbours.clone())));
            }
        }
        told = now;
        // Most of what happens has nothing to do with it.
        let is_other = |newer: &Arc<Cluster>| {
            !Arc::ptr_eq(newer.trust(), cluster.trust()) || !Arc::ptr_eq(newer.config(), cluster.config())
        };
        tokio::select! {
            changed = changes.wait_for(is_other) => if changed.is_err() { return },
            () = members.notified() => {}
        }
    }
}
