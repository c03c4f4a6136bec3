//! Stdout, written in one go.
use std::io::Write;

/// Writes to stdout; false when nobody reads any more.
pub fn print(text: &str) -> bool {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}
