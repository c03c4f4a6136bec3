//! Burst buffer directives: `#DW` and `#BB` lines of a script, `--bb` and `--bbf`, read into a request.
//! What is wrong is told with the line and the offending word marked in it; nothing is guessed or passed over.
use std::fmt;
use std::ops::Range;

use crate::buffer::BufferRequest;
use crate::pool::BurstBufferConfig;

mod collect;
mod paths;
mod read;
mod short;
mod symbols;

pub use paths::{Inside, Room, inside};
pub use symbols::{Facts, replace};

/// Longest text of all directives together.
const MAX_TEXT: usize = 8192;

/// Where directives may stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// The batch script.
    pub script: &'a str,
    /// `--bb`
    pub option: &'a str,
    /// What `--bbf` names.
    pub file: &'a str,
}

/// A directive that is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub kind: ProblemKind,
    pub why: String,
    pub line: String,
    /// The offending word in `line`, in bytes.
    pub word: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    Invalid,
    NotPermitted,
}

impl fmt::Display for Problem {
    /// The complaint, the line, and a mark under the word.
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}", self.why)?;
        if self.line.is_empty() {
            return Ok(());
        }
        let line = self.line.replace(char::is_control, " ");
        let width = |text: Option<&str>| text.map_or(0, |text| text.chars().count());
        let before = width(line.get(..self.word.start));
        let marks = width(line.get(self.word.clone())).max(1);
        write!(out, "\n  {line}\n  {}{}", " ".repeat(before), "^".repeat(marks))
    }
}

/// What the sources together ask for; none if they ask for nothing.
pub fn request(config: &BurstBufferConfig, sources: Sources) -> Result<Option<BufferRequest>, Problem> {
    let mut lines = collect::from_script(sources.script)?;
    let from_file = collect::from_text(sources.file)?;
    // Persistent buffers are made and destroyed by a script or a file, not by an option.
    let from_option = short::lines(config, sources.option)?;
    if let Some(line) = from_option.iter().find(|line| is_persistent_work(line)) {
        return Err(whole(line, "persistent buffers are created and destroyed in a script or with --bbf"));
    }
    lines.extend(from_file);
    lines.extend(from_option);
    if lines.is_empty() {
        return Ok(None);
    }
    let text = lines.join("\n");
    if text.len() > MAX_TEXT {
        return Err(whole("", &format!("the directives are longer than {MAX_TEXT} characters")));
    }
    if lines.len() > config.max_directives as usize {
        return Err(whole("", &format!("more than {} directives", config.max_directives)));
    }
    let request = read::request(config, &lines)?;
    Ok(Some(BufferRequest { text, ..request }))
}

fn is_persistent_work(line: &str) -> bool {
    matches!(line.split_whitespace().nth(1), Some("create_persistent" | "destroy_persistent"))
}

/// A complaint about all of a line.
fn whole(line: &str, why: &str) -> Problem {
    Problem { kind: ProblemKind::Invalid, why: why.into(), line: line.into(), word: 0..line.len() }
}

#[cfg(test)]
mod tests;
