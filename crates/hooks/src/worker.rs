//! The worker's side: one call, one message, one status.
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use prolog::inheritance::reset_own;

use crate::call::Call;
use crate::lua;
use crate::restraint::restrain;

/// `main()` of a worker.
pub fn work() -> i32 {
    reset_own();
    let mut line = String::new();
    let mut input = BufReader::new(std::io::stdin());
    if input.read_line(&mut line).unwrap_or(0) == 0 {
        return 1;
    }
    let Ok(call) = serde_json::from_str::<Call>(&line) else {
        eprintln!("error: the call is not understood");
        return 1;
    };
    let Some(mut answer) = take_standard_output() else { return 1 };
    if let Err(error) = restrain(&call) {
        let _ = write!(answer, "the worker cannot be confined: {error}");
        eprintln!("error: the worker cannot be confined: {error}");
        return 1;
    }
    std::thread::spawn(move || die_with_daemon(&mut input));
    let (is_success, message) = match call {
        Call::Check { script, functions } => match lua::check(&script, &functions) {
            Ok(()) => (true, String::new()),
            Err(why) => (false, why),
        },
        Call::Lua { script, function, arguments, job_info, around } => {
            lua::call(&script, &function, &arguments, job_info.as_ref(), &around)
        }
        Call::Edit(edit) => {
            let edited = lua::edit(&edit);
            (true, serde_json::to_string(&edited).unwrap_or_default())
        }
        Call::Program { path, name, arguments } => return program(&path, &name, &arguments, answer),
    };
    let is_told = answer.write_all(message.as_bytes()).is_ok();
    i32::from(!(is_success && is_told))
}

/// The other end of the pipe is open as long as the daemon is there, and wants us.
fn die_with_daemon(input: &mut impl Read) {
    let mut rest = [0; 64];
    while matches!(input.read(&mut rest), Ok(1..)) {}
    // SAFETY: a plain system call; 0 is our own group, which the daemon began for us alone.
    unsafe { libc::kill(0, libc::SIGKILL) };
}

/// What hooks print goes to the log; only we answer.
fn take_standard_output() -> Option<std::fs::File> {
    // SAFETY: both descriptors are open, and nobody else uses them yet. The new one is ours alone.
    unsafe {
        let own = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3);
        if own < 0 || libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) < 0 {
            return None;
        }
        Some(std::fs::File::from(OwnedFd::from_raw_fd(own)))
    }
}

/// What the program prints is the message, wherever it prints it.
fn program(path: &str, name: &str, arguments: &[String], answer: std::fs::File) -> i32 {
    let output = |file: &std::fs::File| file.try_clone().map(Stdio::from).unwrap_or_else(|_| Stdio::null());
    let mut command = Command::new(path);
    command.arg0(name).args(arguments).stdin(Stdio::null()).stdout(output(&answer)).stderr(output(&answer));
    debug_assert!(answer.as_raw_fd() > 2);
    match command.status() {
        Ok(status) => i32::from(!status.success()),
        Err(error) => {
            let mut answer = answer;
            let _ = write!(answer, "{path}: {error}");
            1
        }
    }
}
