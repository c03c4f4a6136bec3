//! Transfers that the user has written as commands: run after the copies, with the user's rights and in their own words.
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::order::Order;
use crate::progress::{Ending, Status};
use crate::{Files, Stop};

/// So much of what a command complains about is told.
const WORDS_MAX: usize = 200;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A signal to the whole group has reached the mover when its command has died of it; so long may it take to notice.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

pub fn run_after(order: &Order, files: Files, stop: &Stop) -> Status {
    let status_file = files.status.as_ref().and_then(|file| file.try_clone().ok());
    let scratch = files.scratch.try_clone();
    let mut status = crate::run(order, files, stop);
    let mut outcome = status.outcome.take().unwrap_or_default();
    if outcome.ending == Ending::Done {
        for text in &order.commands {
            let Err(why) = run(order, text, scratch.as_ref().ok(), stop) else { continue };
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

fn run(order: &Order, text: &str, scratch: Option<&File>, stop: &Stop) -> Result<(), String> {
    let words = scratch.and_then(|file| {
        file.set_len(0).ok()?;
        let mut file = file.try_clone().ok()?;
        file.rewind().ok()?;
        Some(file)
    });
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text).current_dir(&order.work_dir).stdin(Stdio::null()).stdout(Stdio::null());
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.envs(order.environment.iter().filter_map(|entry| entry.split_once('=')));
    command.stderr(words.as_ref().and_then(|file| file.try_clone().ok()).map_or(Stdio::null(), Stdio::from));
    let failed = |why: String| format!("command \"{text}\": {why}");
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    loop {
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) if is_called_off(status) && stop.wait(NOTICED_WITHIN) => return Err("cancelled".into()),
            Some(status) => return Err(failed(format!("{status}{}", last_words(words)))),
            None if stop.wait(LOOK_EVERY) => {
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

fn last_words(file: Option<File>) -> String {
    let Some(mut file) = file else { return String::new() };
    let mut text = Vec::new();
    let _ = file.rewind();
    let _ = file.take(64 << 10).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last: String = last.chars().filter(|character| !character.is_control()).take(WORDS_MAX).collect();
    if last.is_empty() { last } else { format!(": {last}") }
}
