//! When the leader plans anew though nothing has happened: a moment that a plan named becomes a deadline of the state.
use model::Timestamp;

use crate::Cluster;

impl Cluster {
    /// Time alone may give another plan then.
    pub fn plan_due(&self) -> Option<Timestamp> {
        self.plan_due
    }
}

/// The earliest moment counts. A moment that has passed needs no deadline: this entry itself gives the leader another state.
pub(crate) fn note(cluster: &mut Cluster, look_again: Option<Timestamp>) {
    let Some(at) = look_again.filter(|at| *at > cluster.now) else { return };
    cluster.plan_due = Some(cluster.plan_due.map_or(at, |due| due.min(at)));
}

/// The state that this tick publishes is planned anew.
pub(crate) fn tick(cluster: &mut Cluster) {
    cluster.plan_due = cluster.plan_due.filter(|due| *due > cluster.now);
}
