//! Waiting: for bandwidth, for a better moment, always ready to be called off.
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Set once, by whoever calls the errand off.
#[derive(Default)]
pub struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
    seen: std::sync::atomic::AtomicBool,
}

impl Stop {
    pub fn set(&self) {
        *self.is_set.lock().expect("no panic while held") = true;
        self.seen.store(true, std::sync::atomic::Ordering::Relaxed);
        self.changed.notify_all();
    }

    pub fn is_set(&self) -> bool {
        self.seen.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Waits so long, or until it is set; says whether it is.
    pub fn wait(&self, pause: Duration) -> bool {
        let guard = self.is_set.lock().expect("no panic while held");
        *self.changed.wait_timeout_while(guard, pause, |is_set| !*is_set).expect("no panic while held").0
    }
}

/// A cap on the bytes per second of all workers together.
pub struct Bandwidth {
    bytes_per_sec: Option<u64>,
    free_at: Mutex<Option<Instant>>,
}

/// So much may be caught up after a pause.
const BURST: Duration = Duration::from_millis(50);

impl Bandwidth {
    pub fn new(bytes_per_sec: Option<u64>) -> Self {
        Bandwidth { bytes_per_sec: bytes_per_sec.filter(|rate| *rate > 0), free_at: Mutex::new(None) }
    }

    /// Waits for the turn of so many bytes.
    pub fn take(&self, n_bytes: u64, stop: &Stop) {
        let Some(rate) = self.bytes_per_sec else { return };
        let now = Instant::now();
        let turn = {
            let mut free_at = self.free_at.lock().expect("no panic while held");
            let turn = free_at.map_or(now, |at| at.max(now.checked_sub(BURST).unwrap_or(now)));
            *free_at = Some(turn + Duration::from_secs_f64(n_bytes as f64 / rate as f64));
            turn
        };
        if turn > now {
            stop.wait(turn - now);
        }
    }
}
