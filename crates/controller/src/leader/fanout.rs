//! Which nodes of a job read its sources, and which copy from a node that has the data (`fanout`): so that a thousand nodes do not all
//! ask the same file server. Nothing of it is state: it follows from who is done.
use model::agent::Order;
use model::buffer::{Place, Transfer, TransferKind};
use model::staging::{Access, Direction, StagedPeer};
use model::{Buffer, Job, NodeName};
use state::Cluster;

use crate::certificates;

use super::stage_orders::Errand;

/// So many copy from one node at a time: the number of those that have the data grows with each round.
const N_SERVED: usize = 3;
/// Whom a node may ask, one after the other.
const N_PEERS: usize = 3;

/// Keeps back whoever must wait for somebody to copy from, and tells the others whom to ask.
pub fn arrange(cluster: &Cluster, job: &Job, buffer: &Buffer, errands: Vec<Errand>) -> Vec<Errand> {
    let n_readers = cluster.config().burst_buffer.as_ref().map_or(0, |config| config.fanout as usize);
    if n_readers == 0 || !is_the_same_everywhere(job) {
        return errands;
    }
    let answers = |name: &NodeName| cluster.node(name.as_str()).is_some_and(|node| node.answers);
    let wanted = |place: &&Place| place.access == Access::Private && !place.is_unwanted && answers(&place.node);
    let places: Vec<&Place> = buffer.places.iter().filter(wanted).collect();
    let peers: Vec<StagedPeer> = places.iter().filter(|it| it.is_staged).filter_map(|it| peer(cluster, it)).collect();
    let reads = |node: &NodeName| places.iter().take(n_readers).any(|place| place.node == *node);
    let mut n_copying = 0;
    let mut given = Vec::with_capacity(errands.len());
    for mut errand in errands {
        let is_open = errand.access == Access::Private && !reads(&errand.node);
        if let (true, Order::Stage { work, .. }) = (is_open, &mut errand.order)
            && work.direction == Direction::In
        {
            if n_copying >= peers.len() * N_SERVED {
                continue;
            }
            work.peers = (0..N_PEERS.min(peers.len())).map(|n| peers[(n_copying + n) % peers.len()].clone()).collect();
            n_copying += 1;
        }
        given.push(errand);
    }
    given
}

fn is_the_same_everywhere(job: &Job) -> bool {
    let Some(request) = &job.spec.buffer else { return false };
    let is_its_own = |text: &String| text.contains("%n") || text.contains("%t");
    let is_same = |transfer: &Transfer| {
        transfer.kind != TransferKind::Command
            && ![&transfer.source, &transfer.destination, &transfer.manifest].into_iter().any(is_its_own)
    };
    let mut transfers = request.transfers(Access::Private, Direction::In).peekable();
    transfers.peek().is_some() && transfers.all(is_same)
}

fn peer(cluster: &Cluster, place: &Place) -> Option<StagedPeer> {
    let machine = &cluster.node(place.node.as_str())?.machine;
    let (address, socket) = (machine.address.clone(), machine.socket.clone());
    let certificates = certificates::of_node(cluster, place.node.as_str());
    Some(StagedPeer { node: place.node.clone(), address, socket, root: place.root.clone(), certificates })
}
