//! Which agents are connected, when they were last heard, and how to reach them.
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use model::NodeName;
use model::agent::Order;
use tokio::sync::mpsc;

/// The orders on their way to one agent.
pub type Orders = mpsc::UnboundedSender<Order>;

#[derive(Default)]
pub struct Agents {
    connected: Mutex<Connected>,
}

#[derive(Default)]
struct Connected {
    streams: HashMap<NodeName, (u64, Orders)>,
    heard: HashMap<NodeName, Instant>,
    n_connections: u64,
}

impl Agents {
    /// A new stream replaces an older one of the same node. Returns its number.
    pub fn connect(&self, node: &NodeName, orders: Orders) -> u64 {
        let mut connected = self.lock();
        connected.n_connections += 1;
        let number = connected.n_connections;
        connected.streams.insert(node.clone(), (number, orders));
        connected.heard.insert(node.clone(), Instant::now());
        number
    }

    /// Forgets the stream unless a newer one has taken its place.
    pub fn disconnect(&self, node: &NodeName, number: u64) {
        let mut connected = self.lock();
        if connected.streams.get(node).is_some_and(|(current, _)| *current == number) {
            connected.streams.remove(node);
        }
    }

    pub fn heard(&self, node: &NodeName) {
        self.lock().heard.insert(node.clone(), Instant::now());
    }

    pub fn last_heard(&self, node: &NodeName) -> Option<Instant> {
        self.lock().heard.get(node).copied()
    }

    /// Says whether the agent is connected; an order to one that is not is sent again when it comes.
    pub fn send(&self, node: &NodeName, order: Order) -> bool {
        self.lock().streams.get(node).is_some_and(|(_, orders)| orders.send(order).is_ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Connected> {
        self.connected.lock().expect("nobody panics while holding this lock")
    }
}
