//! Supervisors that have let go of their run: each takes the next run of its user, which saves a process, its birth and its end.
//!
//! They are kept for moments, so that only a stream of runs finds them; an agent that dies takes them along, because their lines
//! close.
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::sync::mpsc::Sender;

use crate::launcher::Order;
use crate::protocol::Birth;
use crate::sys::{self, SocketKind};

/// How long one may wait for its next run.
const IDLE_MAX: Duration = Duration::from_secs(2);
/// A user's groups are looked up at birth, and should not be much older than that.
const AGE_MAX: Duration = Duration::from_secs(60);
const N_MAX: usize = 128;

/// The agent's end of a supervisor's socket.
pub struct Line {
    pub stream: UnixStream,
    birth: Birth,
    born: Instant,
}

impl Line {
    pub fn to_newborn(birth: Birth, launcher: &Sender<Order>) -> io::Result<Line> {
        let (near, far) = sys::socket_pair(SocketKind::Stream)?;
        sys::set_nonblocking(near.as_fd())?;
        let stream = UnixStream::from_std(near.into())?;
        // The feeding task lives as long as the agent.
        let given = launcher.try_send(Order { birth: birth.clone(), control: far });
        given.map_err(|_| io::Error::other("too many processes wait to be started"))?;
        Ok(Line { stream, birth, born: Instant::now() })
    }
}

#[derive(Clone, Default)]
pub struct Standby {
    lines: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// The latest last: it is the warmest, and the others may go.
    lines: Vec<(Instant, Line)>,
    is_swept: bool,
}

impl Standby {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.lines.lock().expect("no panic while it is held")
    }

    /// One that was born for the same user not long ago.
    pub fn take(&self, birth: &Birth) -> Option<Line> {
        let mut waiting = self.waiting();
        let at = waiting.lines.iter().rposition(|(_, line)| line.birth == *birth && line.born.elapsed() < AGE_MAX)?;
        Some(waiting.lines.remove(at).1)
    }

    pub fn keep(&self, line: Line) {
        if line.born.elapsed() >= AGE_MAX {
            return;
        }
        let mut waiting = self.waiting();
        if waiting.lines.len() >= N_MAX {
            waiting.lines.remove(0);
        }
        waiting.lines.push((Instant::now(), line));
        if !waiting.is_swept {
            waiting.is_swept = true;
            tokio::spawn(sweep(self.clone()));
        }
    }
}

/// Lets those go for whom nothing has come; ends with the last.
async fn sweep(standby: Standby) {
    loop {
        tokio::time::sleep(IDLE_MAX / 2).await;
        let mut waiting = standby.waiting();
        waiting.lines.retain(|(since, _)| since.elapsed() < IDLE_MAX);
        if waiting.lines.is_empty() {
            waiting.is_swept = false;
            return;
        }
    }
}
