//! Going into the background: the caller gets its prompt back when the daemon answers, or hears that it does not.
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use wire::long_path::SocketPath;

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A predecessor that was killed may take connections until its last write has come back from the disk.
const PREDECESSOR_LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// Returns in the daemon, which has let go of the caller's terminal and directory. In the process that was called it does not
/// return: that ends as soon as somebody answers at `socket`.
pub fn detach(socket: &Path, log: &Path) -> Result<(), String> {
    let cannot = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    if !falls_silent(socket) {
        return Err(format!("somebody answers at {} already", socket.display()));
    }
    let shown = log.display();
    let file = File::options().create(true).append(true).open(log).map_err(|error| format!("{shown}: {error}"))?;
    let nothing = File::open("/dev/null").map_err(|error| format!("/dev/null: {error}"))?;
    // SAFETY: there is only this thread.
    match unsafe { libc::fork() } {
        -1 => Err(cannot("cannot fork")),
        0 => {
            rustix::process::setsid().map_err(|error| format!("cannot begin a session: {error}"))?;
            let _ = std::env::set_current_dir("/");
            for (from, to) in
                [(&nothing, libc::STDIN_FILENO), (&file, libc::STDOUT_FILENO), (&file, libc::STDERR_FILENO)]
            {
                // SAFETY: both are open, and nobody else runs yet.
                if unsafe { libc::dup2(from.as_raw_fd(), to) } < 0 {
                    return Err(cannot("cannot redirect"));
                }
            }
            Ok(())
        }
        child => std::process::exit(wait_for(child, socket, log)),
    }
}

fn wait_for(child: libc::pid_t, socket: &Path, log: &Path) -> i32 {
    let give_up = Instant::now() + PATIENCE;
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        if unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == child {
            eprintln!("the daemon has ended; {} says why", log.display());
            return 1;
        }
        if answers(socket) {
            return 0;
        }
        if Instant::now() > give_up {
            eprintln!("the daemon does not answer yet; see {}", log.display());
            return 0;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Nobody answers at `socket`, or soon nobody does.
fn falls_silent(socket: &Path) -> bool {
    let end = Instant::now() + PREDECESSOR_LEAVES_WITHIN;
    while answers(socket) {
        if end < Instant::now() {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    true
}

fn answers(socket: &Path) -> bool {
    SocketPath::of(socket).is_ok_and(|path| UnixStream::connect(path).is_ok())
}
