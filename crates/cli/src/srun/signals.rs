//! The signals that srun hears while its step runs.
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
}

impl Signals {
    pub fn new() -> Self {
        let listen = |heard: Heard| {
            let number = match heard {
                Heard::Interrupt => libc::SIGINT,
                Heard::End(number) | Heard::Forward(number) => number,
                Heard::Resized => libc::SIGWINCH,
            };
            Some((heard, signal(SignalKind::from_raw(number)).ok()?))
        };
        Signals { signals: HEARD.into_iter().filter_map(listen).collect() }
    }

    pub async fn next(&mut self) -> Heard {
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
