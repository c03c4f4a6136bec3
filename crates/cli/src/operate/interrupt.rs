//! Being told to stop while a cluster is half started: noted, so that the work can be undone before we go.
use std::sync::atomic::{AtomicI32, Ordering};

static REQUESTED: AtomicI32 = AtomicI32::new(0);

/// From now on SIGINT, SIGTERM and SIGHUP do not end this process; they are asked for with [`requested`].
pub fn note_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe {
            libc::signal(signal, note as *const () as libc::sighandler_t);
        }
    }
}

/// The signal that came, if one did.
pub fn requested() -> Option<i32> {
    Some(REQUESTED.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

extern "C" fn note(signal: libc::c_int) {
    REQUESTED.store(signal, Ordering::Relaxed);
}
