//! The user's terminal while a task owns it (`--pty`): raw, and as it was again afterwards.
use std::io;
use std::os::fd::AsFd;

use model::step::TerminalSize;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

use crate::output;

/// Raw mode until dropped.
pub struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// None where standard input is no terminal.
    pub fn enter() -> Option<RawTerminal> {
        let stdin = io::stdin();
        if !isatty(stdin.as_fd()) {
            return None;
        }
        let before = tcgetattr(stdin.as_fd()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &raw).ok()?;
        Some(RawTerminal { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Drain, &self.before);
    }
}

/// The size of the user's terminal, or what terminals have had for ever.
pub fn size() -> TerminalSize {
    let known = [tcgetwinsize(io::stdin().as_fd()).ok(), output::window_size()];
    match known.into_iter().flatten().find(|size| size.ws_row > 0) {
        Some(size) => TerminalSize { rows: size.ws_row, columns: size.ws_col },
        None => TerminalSize { rows: 24, columns: 80 },
    }
}
