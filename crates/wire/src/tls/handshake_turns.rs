//! Whose handshake is next: each costs some of a processor's time, and each neighbourhood has one turn at a time.
//!
//! A turn lasts as long as this end computes. A peer that goes silent after its hello holds nobody up.
use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Semaphore;

use crate::connection_table::neighbourhood;

/// Handshakes that are computed side by side for peers that nobody knows. Members need not wait for them.
const STRANGERS_AT_ONCE: usize = 2;

#[derive(Clone)]
pub struct HandshakeTurns {
    strangers: Arc<Semaphore>,
    neighbourhoods: Arc<Mutex<HashMap<IpAddr, Arc<Semaphore>>>>,
}

impl HandshakeTurns {
    pub fn new() -> HandshakeTurns {
        HandshakeTurns { strangers: Arc::new(Semaphore::new(STRANGERS_AT_ONCE)), neighbourhoods: Arc::default() }
    }

    /// Polls the handshake for the first time when it is this peer's turn; then it goes on by itself.
    pub async fn begin_stranger<T>(&self, address: IpAddr, handshake: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        self.begin(address, handshake, Some(&self.strangers)).await
    }

    /// As [`HandshakeTurns::begin_stranger`], where members were seen: their neighbours alone are waited for.
    pub async fn begin_known<T>(&self, address: IpAddr, handshake: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        self.begin(address, handshake, None).await
    }

    async fn begin<T>(
        &self,
        address: IpAddr,
        mut handshake: Pin<&mut impl Future<Output = T>>,
        among: Option<&Semaphore>,
    ) -> Option<T> {
        let address = neighbourhood(address);
        let own = self.lock().entry(address).or_insert_with(|| Arc::new(Semaphore::new(1))).clone();
        let _waiting = WaitingTurn { turns: self, address, own: Some(own.clone()) };
        let _of_neighbourhood = own.acquire_owned().await;
        let _of_all = match among {
            Some(strangers) => strangers.acquire().await.ok(),
            None => None,
        };
        let first = std::future::poll_fn(|context| {
            Poll::Ready(match handshake.as_mut().poll(context) {
                Poll::Ready(done) => Some(done),
                Poll::Pending => None,
            })
        });
        first.await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Semaphore>>> {
        self.neighbourhoods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A neighbourhood is forgotten with its last peer, whether that was served or went away.
struct WaitingTurn<'a> {
    turns: &'a HandshakeTurns,
    address: IpAddr,
    /// None: about to go.
    own: Option<Arc<Semaphore>>,
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        let mut neighbourhoods = self.turns.lock();
        self.own = None;
        // More are made under this lock alone.
        if neighbourhoods.get(&self.address).is_some_and(|one| Arc::strong_count(one) == 1) {
            neighbourhoods.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[tokio::test]
    async fn silent_peers_hold_no_turn() {
        let turns = HandshakeTurns::new();
        for last in 0..200 {
            let silent = pin!(std::future::pending::<()>());
            assert!(turns.begin_stranger(address(last % 50), silent).await.is_none());
        }
        assert_eq!(turns.begin_stranger(address(1), pin!(async { 7 })).await, Some(7));
        assert!(turns.lock().is_empty());
    }

    #[tokio::test]
    async fn newcomer_waits_for_one_of_each_neighbourhood_and_no_more() {
        let turns = HandshakeTurns::new();
        let all = turns.strangers.clone().acquire_many_owned(STRANGERS_AT_ONCE as u32).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut peers = tokio::task::JoinSet::new();
        let wait = |peers: &mut tokio::task::JoinSet<()>, last: u8| {
            let (turns, order) = (turns.clone(), order.clone());
            peers.spawn(async move {
                let shake = pin!(async { order.lock().unwrap().push(last) });
                turns.begin_stranger(address(last), shake).await;
            });
        };
        (0..100).for_each(|_| wait(&mut peers, 1));
        tokio::task::yield_now().await;
        wait(&mut peers, 2);
        tokio::task::yield_now().await;
        drop(all);
        while peers.join_next().await.is_some() {}
        let order = order.lock().unwrap();
        assert!(order.len() == 101 && order[..3].contains(&2), "{order:?}");
        assert!(turns.lock().is_empty());
    }
}
