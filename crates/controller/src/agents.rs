//! Which agents are connected, when they were last heard, and how to reach them.
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use model::NodeName;
use model::agent::{Load, Order};
use tokio::sync::{Notify, mpsc};

const AGENT: &str = model::loudness::DebugFlag::Agent.target();

/// The orders on their way to one agent.
pub type Orders = mpsc::UnboundedSender<Order>;

#[derive(Default)]
pub struct Agents {
    connected: Mutex<Connected>,
}

/// One time of leading: streams that were begun in it are of no use in another.
pub type Lead = u64;

#[derive(Default)]
struct Connected {
    /// None while this controller does not lead.
    lead: Option<Lead>,
    n_leads: u64,
    streams: HashMap<NodeName, Stream>,
    heard: HashMap<NodeName, Instant>,
    loads: HashMap<NodeName, Load>,
    n_connections: u64,
}

struct Stream {
    number: u64,
    orders: Orders,
    close: Arc<Notify>,
}

impl Agents {
    /// From now on agents may connect, for this lead.
    pub fn open(&self) -> Lead {
        let mut connected = self.lock();
        connected.n_leads += 1;
        connected.lead = Some(connected.n_leads);
        connected.n_leads
    }

    /// A new stream replaces an older one of the same node. Returns its number, and what tells its listener to end; none if the
    /// lead was lost in the meantime, since nobody would give that agent orders or hear its answers.
    pub fn connect(&self, lead: Lead, node: &NodeName, orders: Orders) -> Option<(u64, Arc<Notify>)> {
        let mut connected = self.lock();
        if connected.lead != Some(lead) {
            return None;
        }
        connected.n_connections += 1;
        let number = connected.n_connections;
        let close = Arc::new(Notify::new());
        let stream = Stream { number, orders, close: close.clone() };
        if let Some(older) = connected.streams.insert(node.clone(), stream) {
            older.close.notify_one();
        }
        connected.heard.insert(node.clone(), Instant::now());
        Some((number, close))
    }

    /// Ends the node's stream, so that its agent comes again and registers.
    pub fn close(&self, node: &NodeName) {
        if let Some(stream) = self.lock().streams.remove(node) {
            stream.close.notify_one();
        }
    }

    /// Ends all streams, and the lead they were for: their agents come again, to whoever leads.
    pub fn close_all(&self) {
        let mut connected = self.lock();
        connected.lead = None;
        connected.streams.drain().for_each(|(_, stream)| stream.close.notify_one());
        connected.heard.clear();
    }

    pub fn connected(&self) -> Vec<NodeName> {
        self.lock().streams.keys().cloned().collect()
    }

    pub fn n_connected(&self) -> usize {
        self.lock().streams.len()
    }

    /// Forgets the stream unless a newer one has taken its place.
    pub fn disconnect(&self, node: &NodeName, number: u64) {
        let mut connected = self.lock();
        if connected.streams.get(node).is_some_and(|stream| stream.number == number) {
            connected.streams.remove(node);
        }
    }

    pub fn heard(&self, node: &NodeName) {
        self.lock().heard.insert(node.clone(), Instant::now());
    }

    pub fn is_loaded(&self, node: &NodeName, load: Load) {
        self.lock().loads.insert(node.clone(), load);
    }

    /// How busy the machines are, as far as they have said.
    pub fn load(&self, node: &NodeName) -> Option<Load> {
        self.lock().loads.get(node).cloned()
    }

    pub fn last_heard(&self, node: &NodeName) -> Option<Instant> {
        self.lock().heard.get(node).copied()
    }

    /// Says whether the agent is connected; an order to one that is not is sent again when it comes.
    pub fn send(&self, node: &NodeName, order: Order) -> bool {
        tracing::debug!(target: AGENT, %node, order = kind(&order));
        self.lock().streams.get(node).is_some_and(|stream| stream.orders.send(order).is_ok())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Connected> {
        self.connected.lock().expect("nobody panics while holding this lock")
    }
}

/// Its name alone: orders hold what is their users' business.
fn kind(order: &Order) -> String {
    let text = format!("{order:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_registered_with_a_lead_that_is_over_is_not_kept() {
        let (agents, node) = (Agents::default(), NodeName::from("n1"));
        let connect = |lead| agents.connect(lead, &node, mpsc::unbounded_channel().0).is_some();
        let first = agents.open();
        assert!(connect(first));
        agents.close_all();
        assert!(!connect(first) && agents.connected().is_empty());
        let second = agents.open();
        assert!(!connect(first) && connect(second));
    }
}
