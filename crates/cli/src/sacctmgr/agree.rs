//! Changes are made once the user agrees to them.
use std::io::{IsTerminal, Write};

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
    // Of users and of their places it is told one after the other, as they are changed; whoever is asked first sees both.
    let (first, rest) = if options.is_immediate { sections(text) } else { (text, "") };
    let tell = |text: &str| {
        if !options.is_quiet && !text.is_empty() {
            print(text);
        }
    };
    tell(first);
    if !options.is_immediate && !agrees() {
        print(" Changes Discarded\n");
        return Ok(0);
    }
    match controller.change_accounts(&change).await {
        Ok(()) => {
            tell(rest);
            Ok(0)
        }
        Err(CallError::Refused(reject)) => {
            eprintln!(" Error with request: {reject}");
            Ok(1)
        }
        Err(other) => Err(other.into()),
    }
}

/// What comes before the second heading, and the rest.
fn sections(text: &str) -> (&str, &str) {
    let second = text.match_indices("\n Modified ").map(|(at, _)| at + 1).next();
    text.split_at(second.unwrap_or(text.len()))
}

fn agrees() -> bool {
    print("Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): ");
    let _ = std::io::stdout().flush();
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

#[cfg(test)]
mod tests {
    use super::sections;

    #[test]
    fn a_second_heading_comes_by_itself() {
        let both = " Modified users...\n  ann\n Modified user associations...\n  C = c\n";
        assert_eq!(sections(both), (" Modified users...\n  ann\n", " Modified user associations...\n  C = c\n"));
        assert_eq!(sections(" Modified qos...\n  q\n"), (" Modified qos...\n  q\n", ""));
    }
}
