//! Trying again: which failures deserve it, how often, and after how long a pause.
use std::time::{Duration, Instant};

use super::Work;
use crate::progress::ERRORS_KEPT;
use crate::trouble::{Class, Trouble};

const PAUSE_MAX: Duration = Duration::from_secs(60);

impl Work<'_> {
    /// The result of `attempt`, made again as the policy says, after a first trouble.
    pub fn persist<T>(
        &self,
        mut trouble: Trouble,
        mut attempt: impl FnMut() -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut n_retries = 0;
        let mut pause = Duration::from_millis(self.order.retry_pause_millis.max(1));
        let started = Instant::now();
        loop {
            match trouble.class {
                Class::Full => {
                    if started.elapsed() >= Duration::from_secs(self.order.full_patience_secs) {
                        return Err(trouble);
                    }
                    let waiting = format!("{}; waiting for space", trouble.text);
                    *self.counters.waiting.lock().expect("no panic while held") = Some(waiting);
                    let is_stopped = self.stop.wait(Duration::from_secs(self.order.full_retry_secs.max(1)));
                    if is_stopped {
                        return Err(Trouble::cancelled());
                    }
                }
                class => {
                    // When so many files have failed for good, the rest deserves no patience.
                    let is_lost = self.counters.n_failed() >= ERRORS_KEPT as u64;
                    if n_retries >= class.retries() || is_lost {
                        return Err(trouble);
                    }
                    n_retries += 1;
                    if self.stop.wait(jittered(pause)) {
                        return Err(Trouble::cancelled());
                    }
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
            self.counters.retries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            match attempt() {
                Err(again) => trouble = again,
                done => {
                    *self.counters.waiting.lock().expect("no panic while held") = None;
                    return done;
                }
            }
        }
    }
}

/// Up to a quarter more, so that many workers do not come back together.
fn jittered(pause: Duration) -> Duration {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let random = RandomState::new().build_hasher().finish();
    pause + pause.mul_f64((random % 1000) as f64 / 4000.0)
}
