//! Transfers that the user has written as commands: run after the copies, with the user's rights and in their own words.
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::order::Order;
use crate::progress::{Ending, Status};
use crate::{Files, Stop};

/// So much of what a command complains about is told.
const WORDS_MAX: usize = 200;
/// So much of the end is looked through for it; no more is kept of however much it says.
const ENOUGH_BYTES: usize = 64 << 10;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A signal to the whole group has reached the mover when its command has died of it; so long may it take to notice.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

pub fn run_after(order: &Order, files: Files, stop: &Stop) -> Status {
    let status_file = files.status.as_ref().and_then(|file| file.try_clone().ok());
    let mut status = crate::run(order, files, stop);
    let mut outcome = status.outcome.take().unwrap_or_default();
    if outcome.ending == Ending::Done {
        for text in &order.commands {
            let Err(why) = run(order, text, stop) else { continue };
            outcome.ending = if stop.is_set() { Ending::Cancelled } else { Ending::Failed };
            outcome.errors.push(why);
            outcome.n_errors += 1;
            break;
        }
    }
    status.outcome = Some(outcome);
    if let Some(file) = &status_file {
        crate::write_last(file, &status);
    }
    status
}

fn run(order: &Order, text: &str, stop: &Stop) -> Result<(), String> {
    let failed = |why: String| format!("command \"{text}\": {why}");
    let (mut complaints, said) = Complaints::new().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text).current_dir(&order.work_dir).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.envs(order.environment.iter().filter_map(|entry| entry.split_once('=')));
    command.stderr(said);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    // Only the command's own end of the pipe is left.
    drop(command);
    loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) if is_called_off(status) && stop.wait(NOTICED_WITHIN) => return Err("cancelled".into()),
            Some(status) => return Err(failed(format!("{status}{}", complaints.last_words()))),
            None if complaints.listen(stop) => {
                // Whatever it has started is in the mover's session, and ends with it.
                let _ = child.kill();
                let _ = child.wait();
                return Err("cancelled".into());
            }
            None => {}
        }
    }
}

/// Whether it died of what also calls the mover off.
fn is_called_off(status: ExitStatus) -> bool {
    status.signal().is_some_and(|signal| crate::process::CALL_OFF.contains(&signal))
}

/// The end of what a command complains about.
struct Complaints {
    pipe: Option<File>,
    heard: Vec<u8>,
}

impl Complaints {
    fn new() -> std::io::Result<(Self, OwnedFd)> {
        let (pipe, said) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // Only this end: a command that is told to come again later may not know what that means.
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK)?;
        Ok((Complaints { pipe: Some(pipe.into()), heard: Vec::new() }, said))
    }

    /// For a while. Says whether the errand is called off.
    fn listen(&mut self, stop: &Stop) -> bool {
        let Some(pipe) = &self.pipe else { return stop.wait(LOOK_EVERY) };
        let moment = Timespec::try_from(LOOK_EVERY).unwrap_or_default();
        let _ = poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&moment));
        self.hear();
        stop.is_set()
    }

    fn hear(&mut self) {
        /// Whoever it has left behind may never stop.
        const READS_MAX: u32 = 64;
        let mut buffer = [0; 16 << 10];
        for _ in 0..READS_MAX {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.heard.extend_from_slice(&buffer[..length]),
                Err(_) => break,
            }
            if self.heard.len() > 2 * ENOUGH_BYTES {
                self.heard.drain(..self.heard.len() - ENOUGH_BYTES);
            }
        }
    }

    fn last_words(mut self) -> String {
        self.hear();
        let text = String::from_utf8_lossy(&self.heard);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let last: String = last.chars().filter(|character| !character.is_control()).take(WORDS_MAX).collect();
        if last.is_empty() { last } else { format!(": {last}") }
    }
}
