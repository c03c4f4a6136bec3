//! Reads what the user types or pipes in, on a thread of its own: a read that never returns must not keep srun alive.
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use tokio::sync::mpsc;

const READ_BYTES: usize = 64 * 1024;
/// Pieces that are read ahead of the tasks.
const QUEUE: usize = 4;
/// How often a job in the background looks whether it has the terminal again.
const BACKGROUND_LOOK: Duration = Duration::from_millis(200);

/// Where input comes from.
pub enum Source {
    Stdin,
    File(File),
    /// Ends at once.
    Nothing,
}

/// Pieces of input; the channel closes at its end.
pub fn start(source: Source) -> mpsc::Receiver<Vec<u8>> {
    let (pieces, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || match source {
        Source::Stdin => pump(io::stdin().lock(), true, &pieces),
        Source::File(file) => pump(file, false, &pieces),
        Source::Nothing => {}
    });
    receiver
}

fn pump(mut reader: impl Read, is_stdin: bool, pieces: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        if is_stdin && !await_foreground() {
            return;
        }
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                if pieces.blocking_send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A closed descriptor, or a terminal that has gone.
            Err(_) => return,
        }
    }
}

/// Waits until a read cannot stop us: reading a terminal from the background stops the whole process.
fn await_foreground() -> bool {
    let stdin = io::stdin();
    if !rustix::termios::isatty(stdin.as_fd()) {
        return true;
    }
    loop {
        let mut poll = libc::pollfd { fd: stdin.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        let answer = unsafe { libc::poll(&mut poll, 1, -1) };
        if answer < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
        match rustix::termios::tcgetpgrp(stdin.as_fd()) {
            Ok(group) if group != rustix::process::getpgrp() => std::thread::sleep(BACKGROUND_LOOK),
            Ok(_) | Err(_) => return true,
        }
    }
}
