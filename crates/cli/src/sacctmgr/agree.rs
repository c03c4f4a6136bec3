//! Changes are made once the user agrees to them.
use std::io::IsTerminal;

use model::accounts::Change;
use wire::{CallError, Controller};

use super::Options;
use crate::output::print;
use crate::trouble::Trouble;

/// Tells what would be changed, asks, and has it changed.
pub async fn commit(
    controller: &mut Controller,
    change: Change,
    text: &str,
    options: &Options,
) -> Result<i32, Trouble> {
    // What is added is told before; what is changed or deleted when it is, unless somebody is to agree to it first.
    let problem = problem_adding(&change);
    let (first, rest) = match (options.is_immediate, problem) {
        (true, None) => ("", text),
        (true, Some(_)) | (false, _) => (text, ""),
    };
    let tell = |text: &str| {
        if !options.is_quiet && !text.is_empty() {
            print(text);
        }
    };
    tell(first);
    if !options.is_immediate && !agrees("Would you like to commit changes?") {
        print(" Changes Discarded\n");
        return Ok(0);
    }
    match controller.change_accounts(&change).await {
        Ok(()) => {
            tell(rest);
            Ok(0)
        }
        Err(CallError::Refused(reject)) => {
            eprintln!(" {}: {reject}", problem.unwrap_or("Error with request"));
            Ok(1)
        }
        Err(other) => Err(other.into()),
    }
}

/// How it is said that what was to be added is not.
fn problem_adding(change: &Change) -> Option<&'static str> {
    match change.each().next()? {
        Change::AddAccounts { .. } => Some("Problem adding accounts"),
        Change::AddUsers { .. } => Some("Problem adding users"),
        Change::AddQos { .. } => Some("Problem adding QOS"),
        Change::AddClusters { .. } => Some("Problem adding clusters"),
        Change::AddWckeys { .. } => Some("Problem adding WCKeys"),
        Change::AddCoordinators { .. } => Some("Problem adding coordinator"),
        Change::AddResources { .. } => Some("Problem adding system resource"),
        Change::ModifyAccounts { .. }
        | Change::ModifyUsers { .. }
        | Change::ModifyQos { .. }
        | Change::ModifyCluster { .. }
        | Change::DeleteAccounts { .. }
        | Change::DeleteUsers { .. }
        | Change::DeleteQos { .. }
        | Change::DeleteClusters { .. }
        | Change::DeleteWckeys { .. }
        | Change::DeleteCoordinators { .. }
        | Change::ModifyResources { .. }
        | Change::DeleteResources { .. }
        | Change::Several(_) => None,
    }
}

pub fn agrees(question: &str) -> bool {
    print(&format!("{question} (You have 30 seconds to decide)\n(N/y): "));
    let is_terminal = std::io::stdin().is_terminal();
    let answer = if is_terminal { key() } else { line() };
    print("\n");
    answer.trim_start().to_lowercase().starts_with('y')
}

fn line() -> String {
    let mut answer = String::new();
    if answer_is_there() {
        // What cannot be read is no agreement.
        let _ = std::io::stdin().read_line(&mut answer);
    }
    answer
}

/// One key, without waiting for the end of the line. The terminal is left as it was.
fn key() -> String {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let input = std::io::stdin();
    let Ok(before) = tcgetattr(&input) else { return line() };
    let mut at_once = before.clone();
    at_once.local_modes.remove(LocalModes::ICANON);
    if tcsetattr(&input, OptionalActions::Now, &at_once).is_err() {
        return line();
    }
    let mut key = [0u8; 1];
    let n_read = if answer_is_there() { rustix::io::read(&input, &mut key).unwrap_or(0) } else { 0 };
    // A terminal that is gone needs nothing put back.
    let _ = tcsetattr(&input, OptionalActions::Now, &before);
    String::from_utf8_lossy(&key[..n_read]).into_owned()
}

/// Waits for a line, or the end of the input, as long as was promised.
fn answer_is_there() -> bool {
    let mut wait = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&mut wait, 1, 30_000) == 1 }
}
