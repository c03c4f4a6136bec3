//! Turns for work in proportion to the cluster: a few at once, of which each user has a share.
//!
//! Planner, snapshots and files have the other threads for such work to themselves: they never wait for callers.
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

#[derive(Clone)]
pub struct FairTurns {
    at_once: Arc<Semaphore>,
    n_of_user: usize,
    users: Arc<Mutex<BTreeMap<u32, Weak<Semaphore>>>>,
}

/// One of those that a user has.
pub struct OwnTurn {
    _turns: Arc<Semaphore>,
    _permit: OwnedSemaphorePermit,
}

/// Held while the work is done.
pub struct FairTurn {
    _own: Arc<OwnTurn>,
    _permit: OwnedSemaphorePermit,
}

impl FairTurns {
    /// So many in all, and of each user.
    pub fn new(n_at_once: usize, n_of_user: usize) -> FairTurns {
        FairTurns { at_once: Arc::new(Semaphore::new(n_at_once)), n_of_user, users: Arc::default() }
    }

    /// Half of the machine, one at a time for each user.
    pub fn of_machine() -> FairTurns {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        FairTurns::new((n_cores / 2).max(1), 1)
    }

    /// First come first served among those whose user has a turn left.
    pub async fn take(&self, uid: u32) -> FairTurn {
        let own = self.take_own(uid).await;
        self.take_with(&Arc::new(own)).await
    }

    /// Does the work where nobody else waits for it, once its user's turn has come and then `ready` has.
    pub async fn work<T: Send + 'static>(
        &self,
        uid: u32,
        ready: impl Future<Output = ()>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Status> {
        let own = Arc::new(self.take_own(uid).await);
        ready.await;
        let turn = self.take_with(&own).await;
        // A caller who hangs up does not end the work, nor its turn.
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(turn);
            done
        });
        let done = done.await.map_err(|error| Status::internal(error.to_string()));
        drop(own);
        done
    }

    async fn take_own(&self, uid: u32) -> OwnTurn {
        let turns = self.of_user(uid);
        let permit = turns.clone().acquire_owned().await.expect("it is never closed");
        OwnTurn { _turns: turns, _permit: permit }
    }

    async fn take_with(&self, own: &Arc<OwnTurn>) -> FairTurn {
        let permit = self.at_once.clone().acquire_owned().await.expect("it is never closed");
        FairTurn { _own: own.clone(), _permit: permit }
    }

    fn of_user(&self, uid: u32) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = users.get(&uid).and_then(Weak::upgrade) {
            return turns;
        }
        users.retain(|_, turns| turns.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(self.n_of_user));
        users.insert(uid, Arc::downgrade(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Counts those who are at work.
    #[derive(Default)]
    struct AtWork {
        n_now: AtomicUsize,
        n_most: AtomicUsize,
    }

    impl AtWork {
        fn work(&self) {
            let n_now = self.n_now.fetch_add(1, Ordering::SeqCst) + 1;
            self.n_most.fetch_max(n_now, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            self.n_now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn crowd_of_one_user_leaves_threads_and_turns_to_others() {
        let (turns, at_work) = (FairTurns::new(2, 1), Arc::new(AtWork::default()));
        let crowd: Vec<_> = (0..600)
            .map(|_| {
                let (turns, at_work) = (turns.clone(), at_work.clone());
                tokio::spawn(async move { turns.work(1, async {}, move || at_work.work()).await })
            })
            .collect();
        tokio::task::yield_now().await;
        // Nobody else's work waits for the crowd: neither that of the leader, nor that of another user.
        let own = tokio::time::timeout(Duration::from_secs(5), tokio::task::spawn_blocking(|| 7)).await;
        assert_eq!(own.unwrap().unwrap(), 7);
        let other = at_work.clone();
        turns.work(2, async {}, move || other.work()).await.unwrap();
        assert!(crowd.iter().filter(|one| one.is_finished()).count() < 300);
        // Of one user one at a time, of all two.
        assert!(at_work.n_most.load(Ordering::SeqCst) <= 2);
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
        for one in crowd {
            let _ = one.await;
        }
        tokio::time::timeout(Duration::from_secs(5), turns.take(1)).await.expect("turns come back");
    }

    #[tokio::test]
    async fn work_of_a_caller_who_hangs_up_keeps_its_turn() {
        let (turns, at_work) = (FairTurns::new(8, 1), Arc::new(AtWork::default()));
        for _ in 0..50 {
            let at_work = at_work.clone();
            let work = turns.work(1, async {}, move || at_work.work());
            let _ = tokio::time::timeout(Duration::from_micros(500), work).await;
        }
        drop(tokio::time::timeout(Duration::from_secs(5), turns.take(1)).await.expect("turns come back"));
        assert_eq!(at_work.n_most.load(Ordering::SeqCst), 1);
    }
}
