//! Burst buffer directives: `#DW` and `#BB` lines of a script, `--bb` and `--bbf`, read into a request.
//! What is wrong is told with the line and the offending word marked in it; nothing is guessed or passed over.
use std::fmt;
use std::ops::Range;

use crate::buffer::{BufferRequest, Space};
use crate::pool::{BurstBufferConfig, Plugin};

mod collect;
mod component;
mod datawarp;
mod lua;
mod paths;
mod read;
mod short;
mod symbols;

pub use component::component;
pub use paths::{Inside, Room, inside, root_above};
pub use symbols::{Facts, replace};

/// Longest text of all directives together.
const MAX_TEXT: usize = 8192;

/// Most letters of a line that are shown with a complaint.
const MAX_SHOWN: usize = 200;

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
        // As much of it as can be looked at, and some of what is before the word.
        let skipped = if before + marks > MAX_SHOWN { before.saturating_sub(MAX_SHOWN / 4) } else { 0 };
        let shown: String = line.chars().skip(skipped).take(MAX_SHOWN).collect();
        let before = before - skipped;
        let marks = marks.min(MAX_SHOWN - before);
        write!(out, "\n  {shown}\n  {}{}", " ".repeat(before), "^".repeat(marks))
    }
}

/// Is this the name of a node?
pub type IsNode<'a> = &'a dyn Fn(&str) -> bool;

/// What the sources together ask for; none if they ask for nothing.
pub fn request(
    config: &BurstBufferConfig,
    sources: Sources,
    is_node: IsNode,
) -> Result<Option<BufferRequest>, Problem> {
    let lines = lines(config, sources)?;
    if lines.is_empty() {
        return Ok(None);
    }
    if let Some(line) = lines.get(config.max_directives as usize) {
        return Err(whole(line, &format!("more than {} directives", config.max_directives)));
    }
    let text = lines.join("\n");
    if text.len() > MAX_TEXT {
        let mut length = 0;
        let goes_beyond = |line: &&String| {
            length += line.len() + 1;
            length > MAX_TEXT + 1
        };
        let line = lines.iter().find(goes_beyond).map_or("", String::as_str);
        return Err(whole(line, &format!("with this the directives are longer than {MAX_TEXT} characters")));
    }
    let request = match config.plugin {
        Plugin::Native => read::request(config, &lines, is_node)?,
        Plugin::Lua => lua::request(config, &lines)?,
        Plugin::DataWarp => datawarp::request(config, &lines)?,
    };
    Ok(Some(BufferRequest { text, plugin: config.plugin, ..request }))
}

/// What `--bb` in one of its short forms says twice, and so leaves to be guessed.
pub fn said_twice(config: &BurstBufferConfig, option: &str) -> Option<Problem> {
    match config.plugin {
        Plugin::Native | Plugin::DataWarp => short::said_twice(option),
        Plugin::Lua => None,
    }
}

/// The directives of all sources, in full and without continuations.
fn lines(config: &BurstBufferConfig, sources: Sources) -> Result<Vec<String>, Problem> {
    let keywords = keywords(config);
    let mut lines = collect::from_script(sources.script, &keywords)?;
    let from_file = collect::from_text(sources.file, &keywords)?;
    let from_option = match config.plugin {
        Plugin::Native => short::lines(config, sources.option)?,
        Plugin::Lua => lua::option(sources.option, &keywords)?,
        Plugin::DataWarp => datawarp::option(sources.option, &keywords)?,
    };
    // Persistent buffers are made and destroyed by a script or a file, not by an option.
    if let Some(line) = from_option.iter().find(|line| is_persistent_work(line)) {
        return Err(whole(line, "persistent buffers are created and destroyed in a script or with --bbf"));
    }
    lines.extend(from_file);
    lines.extend(from_option);
    Ok(lines)
}

fn keywords(config: &BurstBufferConfig) -> Vec<String> {
    match config.plugin {
        Plugin::Native | Plugin::DataWarp => vec!["#DW".into(), "#BB".into()],
        Plugin::Lua => vec![format!("#{}", config.directive)],
    }
}

/// What `--bb` comes to as directive lines; Slurm puts them into the script.
pub fn option_lines(config: &BurstBufferConfig, option: &str) -> Vec<String> {
    let sources = Sources { option, ..Default::default() };
    lines(config, sources).unwrap_or_default()
}

/// Adds room to what the job has in the same pool already; none if that is more than can be counted.
fn charge(spaces: &mut Vec<Space>, more: Space) -> Option<()> {
    match spaces.iter_mut().find(|space| space.pool == more.pool) {
        Some(space) => space.bytes = space.bytes.checked_add(more.bytes)?,
        None => spaces.push(more),
    }
    Some(())
}

fn is_persistent_work(line: &str) -> bool {
    matches!(line.split_whitespace().nth(1), Some("create_persistent" | "destroy_persistent"))
}

/// A complaint about all of a line.
fn whole(line: &str, why: &str) -> Problem {
    Problem { kind: ProblemKind::Invalid, why: why.into(), line: line.into(), word: 0..line.len() }
}

/// A complaint about the first directive whose name is such a one, or else about the first of all.
pub fn about(text: &str, why: &str, is_such: impl Fn(&str) -> bool) -> Problem {
    let named = text.lines().find_map(|text| {
        let line = read::Line::new(text);
        let name = *line.words.get(1)?;
        is_such(name.text).then(|| line.about(&name, why))
    });
    named.unwrap_or_else(|| whole(text.lines().next().unwrap_or_default(), why))
}

#[cfg(test)]
mod tests;
