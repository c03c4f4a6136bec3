//! Text records as `scontrol show` prints them: `Key=value` words on lines, or all on one.

/// How records are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// `-o`: each record on one line.
    pub one_line: bool,
    /// `-d`
    pub details: bool,
}

/// Joins the lines of one record and closes it.
pub fn close(style: Style, lines: &[String], out: &mut String) {
    let separator = if style.one_line { " " } else { "\n   " };
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(line);
    }
    out.push_str(if style.one_line { "\n" } else { "\n\n" });
}

/// `(null)` for what is not there.
pub fn or_null(text: &str) -> &str {
    if text.is_empty() { "(null)" } else { text }
}

pub fn yes(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}
