//! The process that runs the programs, one after the other, and writes how they ended.
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::inheritance::reset_inherited;
use crate::record::Record;
use crate::{Ending, Order, expand, record};

/// What it is called.
pub const NAME: &str = "spurprolog";
/// The record, its lock included.
const RECORD_FD: RawFd = 3;
/// How much of what a program that failed has printed is kept.
const KEPT_BYTES: usize = 1000;

/// Starts the process and leaves it alone: who waits for it waits for the lock of its record.
pub fn start(executable: &Path, record: &Record) -> io::Result<()> {
    let fd = record.file.as_raw_fd();
    let mut command = Command::new(executable);
    command.arg0(NAME).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            // Twice born, so that nobody has to wait for it.
            match libc::fork() {
                0 => {}
                pid if pid < 0 => return Err(io::Error::last_os_error()),
                _ => libc::_exit(0),
            }
            if fd == RECORD_FD {
                libc::fcntl(fd, libc::F_SETFD, 0);
            } else if libc::dup2(fd, RECORD_FD) < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command.spawn()?.wait()?;
    Ok(())
}

/// Gives the status to exit with.
pub fn serve() -> i32 {
    // SAFETY: whoever starts this process gives it this descriptor; plain calls besides.
    let file = unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"spurprolog".as_ptr());
        libc::close_range(RECORD_FD as u32 + 1, u32::MAX, 0);
        libc::fcntl(RECORD_FD, libc::F_SETFD, libc::FD_CLOEXEC);
        File::from(OwnedFd::from_raw_fd(RECORD_FD))
    };
    let path = format!("/proc/self/fd/{RECORD_FD}");
    let told = record::read(Path::new(&path));
    let mut record = Record { file };
    let ending = match told {
        Ok(Some(told)) => match record.note_process(std::process::id()) {
            Ok(()) => run_all(&told.order),
            Err(error) => Err(format!("cannot write the record: {error}")),
        },
        Ok(None) => Err("the record is empty".into()),
        Err(error) => Err(format!("cannot read the record: {error}")),
    };
    i32::from(record.note_end(&ending).is_err())
}

fn run_all(order: &Order) -> Ending {
    let until = order.timeout.map(|timeout| Instant::now() + timeout);
    for program in order.programs.iter().flat_map(|pattern| expand(pattern)) {
        run(&program, order, until).map_err(|why| format!("{}: {why}", program.display()))?;
    }
    Ok(())
}

fn run(program: &Path, order: &Order, until: Option<Instant>) -> Ending {
    let failed = |error: io::Error| error.to_string();
    let (output, far) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    rustix::io::ioctl_fionbio(&output, true).map_err(|errno| failed(errno.into()))?;
    let mut command = Command::new(program);
    command.env_clear().process_group(0).stdin(Stdio::null());
    reset_inherited(&mut command);
    command.stdout(far.try_clone().map_err(failed)?).stderr(far);
    command.envs(order.environment.iter().filter_map(|entry| entry.split_once('=')));
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(|| {
            // Nothing of it goes on unobserved.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let mut child = command.spawn().map_err(failed)?;
    drop(command);
    let mut output = File::from(output);
    let mut said = Vec::new();
    let pid = Pid::from_child(&child);
    let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| failed(errno.into()))?;
    let (mut is_late, mut is_too_long, mut has_ended, mut is_silent) = (false, false, false, false);
    // As Slurm has it, what it leaves behind is part of it for as long as that holds its output.
    while !(has_ended && (is_silent || is_late)) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) && !is_late {
            (is_late, is_too_long) = (true, !has_ended);
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let left = left.filter(|_| !is_late).and_then(|left| Timespec::try_from(left).ok());
        // Of the two, what is over is not waited for.
        let mut waits = Vec::with_capacity(2);
        waits.extend((!has_ended).then(|| PollFd::new(&ended, PollFlags::IN)));
        waits.extend((!is_silent).then(|| PollFd::new(&output, PollFlags::IN)));
        let _ = poll(&mut waits, left.as_ref());
        let mut events = waits.iter().map(|wait| wait.revents());
        let end = if has_ended { PollFlags::empty() } else { events.next().unwrap_or(PollFlags::empty()) };
        let said_now = if is_silent { PollFlags::empty() } else { events.next().unwrap_or(PollFlags::empty()) };
        drop(waits);
        // What was printed is kept only as far as it is worth.
        drain(&mut output, &mut said);
        has_ended |= !end.is_empty();
        is_silent |= said_now.contains(PollFlags::HUP) && !said_now.contains(PollFlags::IN);
    }
    let status = child.wait().map_err(failed)?;
    match (is_too_long, status.success()) {
        (true, _) => Err("it ran too long and was ended".into()),
        (false, true) => Ok(()),
        (false, false) => Err(describe(status, &said)),
    }
}

/// Keeps the last of it.
fn drain(output: &mut File, said: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = output.read(&mut buffer) {
        said.extend(&buffer[..length]);
        let excess = said.len().saturating_sub(KEPT_BYTES);
        said.drain(..excess);
    }
}

fn describe(status: ExitStatus, said: &[u8]) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".into(),
    };
    match String::from_utf8_lossy(said).trim() {
        "" => how,
        said => format!("{how}: {said}"),
    }
}
