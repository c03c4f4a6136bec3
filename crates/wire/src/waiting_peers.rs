//! Peers that have connected and not yet said who they are: so many in all and from one address, and the newest stay.
//!
//! A newcomer is never turned away. The peer that has waited longest goes, of the address with most of them; and those of
//! addresses where a member was seen only when there are no others.
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::connection_table::neighbourhood;

/// Addresses of members that are remembered.
const KNOWN_MAX: usize = 1 << 16;

const LOOK_UP_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct WaitingPeers(Arc<Mutex<Peers>>);

struct Peers {
    n_max: usize,
    next: u64,
    n_waiting: usize,
    by_address: HashMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
    known: HashMap<IpAddr, u64>,
}

/// One peer that waits. It is to go when [`WaitingPeer::must_go`] resolves.
pub struct WaitingPeer {
    peers: WaitingPeers,
    number: u64,
    address: IpAddr,
    go: Arc<Notify>,
}

impl WaitingPeers {
    pub fn new(n_max: usize) -> WaitingPeers {
        let (by_address, known) = Default::default();
        WaitingPeers(Arc::new(Mutex::new(Peers { n_max: n_max.max(4), next: 0, n_waiting: 0, by_address, known })))
    }

    pub fn enter(&self, address: IpAddr) -> WaitingPeer {
        let address = neighbourhood(address);
        let mut peers = self.lock();
        // Many nodes may come from one address: through a gateway, or after a cut.
        let most = if peers.known.contains_key(&address) { peers.n_max / 2 } else { peers.n_max / 4 };
        if peers.by_address.get(&address).is_some_and(|waiting| waiting.len() >= most) {
            peers.send_away(address);
        }
        if peers.n_waiting >= peers.n_max
            && let Some(victim) = peers.greediest()
        {
            peers.send_away(victim);
        }
        let (number, go) = (peers.next, Arc::new(Notify::new()));
        peers.next += 1;
        peers.n_waiting += 1;
        peers.by_address.entry(address).or_default().insert(number, go.clone());
        WaitingPeer { peers: self.clone(), number, address, go }
    }

    /// Members are expected from there.
    pub fn expect(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        addresses.into_iter().for_each(|address| self.is_member(address));
    }

    /// As [`WaitingPeers::expect`], of addresses as they are configured: with a port, and perhaps by name.
    pub fn expect_named(&self, addresses: Vec<String>) {
        let (numbers, names): (Vec<String>, Vec<String>) =
            addresses.into_iter().partition(|address| address.parse::<SocketAddr>().is_ok());
        self.expect(numbers.iter().filter_map(|address| address.parse::<SocketAddr>().ok()).map(|one| one.ip()));
        let peers = self.clone();
        // Names are looked up at their server's pace.
        tokio::spawn(async move {
            for name in names {
                if let Ok(Ok(found)) = tokio::time::timeout(LOOK_UP_PATIENCE, tokio::net::lookup_host(name)).await {
                    peers.expect(found.map(|one| one.ip()));
                }
            }
        });
    }

    /// A member has shown its certificate from there.
    pub fn is_member(&self, address: IpAddr) {
        let mut peers = self.lock();
        let turn = peers.next;
        if peers.known.len() >= KNOWN_MAX
            && let Some(oldest) = peers.known.iter().min_by_key(|(_, turn)| **turn).map(|(address, _)| *address)
        {
            peers.known.remove(&oldest);
        }
        peers.known.insert(neighbourhood(address), turn);
    }

    pub fn is_known(&self, address: IpAddr) -> bool {
        self.lock().known.contains_key(&neighbourhood(address))
    }

    fn lock(&self) -> MutexGuard<'_, Peers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers {
    fn greediest(&self) -> Option<IpAddr> {
        let rank = |(address, waiting): &(&IpAddr, &BTreeMap<u64, Arc<Notify>>)| {
            let oldest = waiting.keys().next().copied().unwrap_or(u64::MAX);
            (!self.known.contains_key(*address), waiting.len(), std::cmp::Reverse(oldest))
        };
        self.by_address.iter().max_by_key(rank).map(|(address, _)| *address)
    }

    fn send_away(&mut self, address: IpAddr) {
        if let Some(waiting) = self.by_address.get_mut(&address)
            && let Some((number, go)) = waiting.pop_first()
        {
            go.notify_one();
            self.forget(address, number);
            self.n_waiting -= 1;
        }
    }

    /// True if it was still waiting.
    fn forget(&mut self, address: IpAddr, number: u64) -> bool {
        let Some(waiting) = self.by_address.get_mut(&address) else { return false };
        let was_waiting = waiting.remove(&number).is_some();
        if waiting.is_empty() {
            self.by_address.remove(&address);
        }
        was_waiting
    }
}

impl WaitingPeer {
    pub async fn must_go(&self) {
        self.go.notified().await;
    }
}

impl Drop for WaitingPeer {
    fn drop(&mut self) {
        let mut peers = self.peers.lock();
        if peers.forget(self.address, self.number) {
            peers.n_waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_now::is_ready;

    mod futures_now {
        use std::task::{Context, Poll, Waker};

        pub fn is_ready(future: impl Future<Output = ()>) -> bool {
            let mut future = std::pin::pin!(future);
            future.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
        }
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn newcomer_takes_the_place_of_the_longest_silent() {
        let peers = WaitingPeers::new(16);
        let flood: Vec<_> = (0..4000).map(|_| peers.enter(address(1))).collect();
        let gone = |flood: &[WaitingPeer]| flood.iter().filter(|peer| is_ready(peer.must_go())).count();
        assert_eq!(gone(&flood), 3996);
        assert_eq!(peers.lock().n_waiting, 4);
        let node = peers.enter(address(2));
        drop(flood);
        assert!(!is_ready(node.must_go()));
        drop(node);
        assert!(peers.lock().by_address.is_empty() && peers.lock().n_waiting == 0);
    }

    #[test]
    fn members_stay_while_strangers_wait() {
        let peers = WaitingPeers::new(16);
        peers.is_member(address(1));
        let members: Vec<_> = (0..4).map(|_| peers.enter(address(1))).collect();
        let strangers: Vec<_> = (10..200).map(|last| peers.enter(address(last))).collect();
        assert!(members.iter().all(|peer| !is_ready(peer.must_go())));
        let n_left = strangers.iter().filter(|peer| !is_ready(peer.must_go())).count();
        assert_eq!(n_left, 12);
        // The newest of them.
        assert!(strangers[..178].iter().all(|peer| peer.number < strangers[178].number));
        assert!(!is_ready(strangers[189].must_go()));
    }

    #[test]
    fn network_of_ipv6_is_one_address() {
        let peers = WaitingPeers::new(16);
        let flood: Vec<_> =
            (0..20u128).map(|host| peers.enter(IpAddr::V6((0x2001_0db8_u128 << 96 | host).into()))).collect();
        assert_eq!(peers.lock().n_waiting, 4);
        drop(flood);
    }
}
