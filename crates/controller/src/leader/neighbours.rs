//! Agents of other machines are told where the controllers are and whose certificates were taken back, whenever that changes.
use std::sync::Arc;

use model::agent::{Neighbours, Order};
use state::Cluster;
use tokio::sync::Notify;

use crate::agents::Agents;
use crate::machine::Published;
use crate::members::ClusterJournal;

/// None: this cluster is one machine.
pub fn of(cluster: &Cluster, journal: &ClusterJournal) -> Option<Neighbours> {
    let trust = cluster.trust();
    if trust.ca_key.is_empty() {
        return None;
    }
    Some(Neighbours {
        controllers: addresses(cluster, journal),
        revoked: trust.revoked.keys().cloned().collect(),
        root_squash: cluster.config().controller.root_squash,
    })
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
pub async fn run(published: Published, journal: ClusterJournal, agents: Arc<Agents>, members: Arc<Notify>) {
    let mut changes = published.changes();
    let mut told = None;
    loop {
        let cluster = changes.borrow_and_update().clone();
        let now = of(&cluster, &journal);
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
