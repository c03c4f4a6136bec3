//! Where daemons log: one line for each event, whatever users put into names, paths and messages.
use std::io::{self, Write};

use model::plain_text;

/// Makes each event one plain line, and hands it on.
pub struct LogLines<W>(pub W);

impl<W: Write> Write for LogLines<W> {
    /// An event comes as a whole, with its line end.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        match text.strip_suffix('\n') {
            Some(line) => {
                let mut line = plain_text::shown(line).into_owned();
                line.push('\n');
                self.0.write_all(line.as_bytes())?;
            }
            None => self.0.write_all(plain_text::shown(&text).as_bytes())?,
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_is_one_line_whatever_it_tells() {
        let mut log = LogLines(Vec::new());
        log.write_all(b"INFO job forged\n2026 ERROR all is lost\x1b[2J\n").unwrap();
        assert_eq!(String::from_utf8(log.0).unwrap(), "INFO job forged\\n2026 ERROR all is lost\\u001b[2J\n");
    }
}
