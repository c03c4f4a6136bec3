//! What commands print. Everything goes through here, so that no text of another user reaches a terminal as it is.
//!
//! Two walls: commands that only show read answers whose texts hold no control characters (`begin`), so that no name forges a
//! row or a field, on a terminal or in a script; and whatever is printed is looked at once more. What a program of the user's
//! has written (`srun`, `sattach`) is data and goes past the walls (`pass`), as do scripts that are not for a
//! terminal (`print_data`). Nothing else in this crate writes to stdout or stderr (`clippy.toml`).
#![allow(clippy::disallowed_methods)]
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

use model::plain_text;
use rustix::termios::{Winsize, tcgetwinsize};

/// These show what they read, or ask about it.
pub const SHOWING: [&str; 13] = [
    "scancel", "squeue", "sinfo", "sacct", "sacctmgr", "scontrol", "sdiag", "seff", "sprio", "sreport", "sshare",
    "sstat", "strigger",
];
/// So do these verbs of `spur`; others act, such as `join`, whose certificates have lines.
const SHOWING_VERBS: [&str; 6] = ["why", "stage", "status", "share", "topo", "audit"];
/// These act on what they read, so texts must be what they are.
pub const ACTING: [&str; 11] =
    ["sbatch", "srun", "salloc", "sattach", "sbcast", "sgather", "spur", "spurctld", "spurd", "slurmctld", "slurmd"];

/// Called before a command runs. JSON has escapes of its own, so it is made of the texts as they are.
pub fn begin(command: &str, arguments: &[String]) {
    debug_assert!(SHOWING.contains(&command) || ACTING.contains(&command), "{command} shows or acts: which?");
    let is_json = |argument: &String| argument.starts_with("--json") || argument.starts_with("--yaml");
    let is_verb = command == "spur" && arguments.first().is_some_and(|verb| SHOWING_VERBS.contains(&verb.as_str()));
    if (is_verb || SHOWING.contains(&command)) && !arguments.iter().any(is_json) {
        wire::client::read_texts_plainly();
    }
}

/// Writes to stdout, in one go; false when nobody reads any more.
pub fn print(text: &str) -> bool {
    draw(&plain_text::shown_lines(text))
}

/// As `print`, for pictures: the caller has made the words in it plain.
pub fn draw(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// As `print`, for a user's own words, which a file or a pipe gets as they are.
pub fn print_data(data: &[u8]) -> bool {
    let mut stdout = std::io::stdout().lock();
    let written = match stdout.is_terminal() {
        true => stdout.write_all(plain_text::shown_lines(&String::from_utf8_lossy(data)).as_bytes()),
        false => stdout.write_all(data),
    };
    written.and_then(|()| stdout.flush()).is_ok()
}

/// To stderr, in one go; it does not matter if nobody reads it.
pub fn tell(words: Arguments<'_>) {
    let text = words.to_string();
    let _ = std::io::stderr().lock().write_all(plain_text::shown_lines(&text).as_bytes());
}

/// As `tell`, for a line that is drawn over: the caller has made the words in it plain.
pub fn redraw(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TalkStream {
    Stdout,
    Stderr,
}

impl TalkStream {
    pub fn is_terminal(self) -> bool {
        match self {
            TalkStream::Stdout => io::stdout().is_terminal(),
            TalkStream::Stderr => io::stderr().is_terminal(),
        }
    }
}

/// What a program of the user's has written, as it is.
pub fn pass(stream: TalkStream, data: &[u8]) -> io::Result<()> {
    match stream {
        TalkStream::Stdout => {
            let mut out = io::stdout().lock();
            out.write_all(data).and_then(|()| out.flush())
        }
        TalkStream::Stderr => io::stderr().lock().write_all(data),
    }
}

/// Of the terminal that stdout is, if it is one.
pub fn window_size() -> Option<Winsize> {
    tcgetwinsize(io::stdout()).ok()
}
