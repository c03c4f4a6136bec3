//! The signals that srun hears while its step runs.
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal to srun means for the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Ctrl-C: once for a status, twice to end.
    Interrupt,
    /// End the step at once.
    End(i32),
    /// The tasks' own business.
    Forward(i32),
    /// The terminal has another size.
    Resized,
}

const HEARD: [Heard; 7] = [
    Heard::Interrupt,
    Heard::End(libc::SIGTERM),
    Heard::End(libc::SIGHUP),
    Heard::End(libc::SIGQUIT),
    Heard::Forward(libc::SIGUSR1),
    Heard::Forward(libc::SIGUSR2),
    Heard::Resized,
];

pub struct Signals {
    signals: Vec<(Heard, Signal)>,
    /// Interrupts that came together with one that was told.
    n_more: u32,
}

/// Two that come at once are one to whoever only waits for them; whoever presses twice means twice.
static N_INTERRUPTS: AtomicU32 = AtomicU32::new(0);

fn count_interrupts() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: all that is done in the signal's handler is to count.
        let counted = unsafe {
            signal_hook_registry::register(libc::SIGINT, || {
                N_INTERRUPTS.fetch_add(1, Ordering::SeqCst);
            })
        };
        counted.expect("SIGINT may be heard by everybody");
    });
}

impl Signals {
    pub fn new() -> Self {
        // Before those who wait are woken, so that nobody wakes to find none.
        count_interrupts();
        let listen = |heard: Heard| {
            let number = match heard {
                Heard::Interrupt => libc::SIGINT,
                Heard::End(number) | Heard::Forward(number) => number,
                Heard::Resized => libc::SIGWINCH,
            };
            Some((heard, signal(SignalKind::from_raw(number)).ok()?))
        };
        Signals { signals: HEARD.into_iter().filter_map(listen).collect(), n_more: 0 }
    }

    pub async fn next(&mut self) -> Heard {
        loop {
            if self.n_more > 0 {
                self.n_more -= 1;
                return Heard::Interrupt;
            }
            match self.any().await {
                Heard::Interrupt => self.n_more = N_INTERRUPTS.swap(0, Ordering::SeqCst),
                other => return other,
            }
        }
    }

    async fn any(&mut self) -> Heard {
        let any = self.signals.iter_mut().map(|(heard, signal)| {
            Box::pin(async move {
                signal.recv().await;
                *heard
            })
        });
        futures::future::select_all(any).await.0
    }
}

impl Default for Signals {
    fn default() -> Self {
        Signals::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_interrupts_at_once_are_two() {
        let mut signals = Signals::new();
        for _ in 0..2 {
            // SAFETY: a plain system call; the signal has a handler.
            unsafe { libc::raise(libc::SIGINT) };
        }
        let bound = std::time::Duration::from_secs(10);
        for _ in 0..2 {
            assert_eq!(tokio::time::timeout(bound, signals.next()).await, Ok(Heard::Interrupt));
        }
    }
}
