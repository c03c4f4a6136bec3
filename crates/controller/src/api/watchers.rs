//! How many streams that follow something a user has open: each costs the controller memory and work at every change.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::Caller;
use tonic::Status;

/// Every waiting `srun` and `sbatch --wait` is one.
const WATCHERS_MAX: usize = 4096;
/// Those who watch more than a few jobs: each new picture of all costs as much as a full `squeue`.
const WIDE_WATCHERS_MAX: usize = 8;

/// What a watcher follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchKind {
    /// A few jobs that it names.
    Named,
    /// All, or many.
    Wide,
}

/// Who watches.
#[derive(Clone, Default)]
pub struct WatcherPlaces(Arc<Mutex<BTreeMap<(u32, WatchKind), usize>>>);

/// Held while the stream is open.
pub struct WatcherPlace {
    places: WatcherPlaces,
    whose: (u32, WatchKind),
}

impl WatcherPlaces {
    /// Administrators have as many as they like.
    pub fn take(&self, by: Caller, kind: WatchKind) -> Result<WatcherPlace, Status> {
        let max = match kind {
            WatchKind::Named => WATCHERS_MAX,
            WatchKind::Wide => WIDE_WATCHERS_MAX,
        };
        let whose = (by.uid, kind);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(whose).or_default();
        if *count >= max && !by.is_admin {
            let what = if kind == WatchKind::Wide { "streams that watch all jobs" } else { "streams that watch jobs" };
            return Err(Status::resource_exhausted(format!("a user may have {max} {what} open: close one of them")));
        }
        *count += 1;
        Ok(WatcherPlace { places: self.clone(), whose })
    }
}

/// Ties a place, or what else an answer needs, to the stream that maps its messages through this.
pub fn held<H, T>(_: &H, message: T) -> T {
    message
}

impl Drop for WatcherPlace {
    fn drop(&mut self) {
        let mut counts = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_user_are_bounded_and_come_back() {
        let places = WatcherPlaces::default();
        let user = |uid, is_admin| Caller { uid, gid: uid, is_admin };
        let mut held: Vec<_> =
            (0..WIDE_WATCHERS_MAX).map(|_| places.take(user(1, false), WatchKind::Wide).unwrap()).collect();
        assert!(places.take(user(1, false), WatchKind::Wide).is_err());
        assert!(places.take(user(1, false), WatchKind::Named).is_ok());
        assert!(places.take(user(2, false), WatchKind::Wide).is_ok());
        assert!(places.take(user(1, true), WatchKind::Wide).is_ok());
        held.pop();
        assert!(places.take(user(1, false), WatchKind::Wide).is_ok());
        held.clear();
        assert!(places.0.lock().unwrap().is_empty());
    }
}
