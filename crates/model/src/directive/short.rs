//! `--bb`: directives as they are, or one of the short forms, translated into directives.
//!
//! - `capacity=1G access=striped pool=flash type=scratch`: words in any order;
//! - `capacity=100;stage_in:COMMAND;stage_out:COMMAND;stage_in=TYPE:SOURCE:DESTINATION`: items between semicolons.
use super::{Problem, ProblemKind, collect, whole};
use crate::pool::BurstBufferConfig;
use crate::size;

pub(super) fn lines(config: &BurstBufferConfig, text: &str) -> Result<Vec<String>, Problem> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.starts_with('#') {
        let lines = collect::from_text(text, &super::keywords(config))?;
        return if lines.is_empty() { Err(whole(text, "no burst buffer directive")) } else { Ok(lines) };
    }
    let parts: Vec<&str> = if has_items(text) { text.split(';').map(str::trim).collect() } else { words(text) };
    let mut buffer = Buffer::default();
    let mut transfers = Vec::new();
    for part in parts {
        if transfer(text, part, &mut transfers)? {
            continue;
        }
        for word in words(part) {
            buffer.heed(text, word)?;
        }
    }
    let mut lines: Vec<String> = buffer.line().into_iter().collect();
    if lines.is_empty() && transfers.is_empty() {
        return Err(whole(text, "no capacity is asked for"));
    }
    lines.extend(transfers);
    Ok(lines)
}

fn has_items(text: &str) -> bool {
    text.contains(';') || ["stage_in", "stage_out"].iter().any(|word| text.starts_with(word))
}

/// The first word that says again what one before it has said. Only capacity may stand in several items: it adds up.
pub(super) fn said_twice(text: &str) -> Option<Problem> {
    let text = text.trim();
    if text.starts_with('#') {
        return None;
    }
    let items: Vec<&str> = if has_items(text) { text.split(';').map(str::trim).collect() } else { vec![text] };
    let is_transfer = |part: &str| part.starts_with("stage_in") || part.starts_with("stage_out");
    let mut said: Vec<String> = Vec::new();
    for item in items.into_iter().filter(|item| !is_transfer(item)) {
        for word in words(item).into_iter().filter(|word| !is_transfer(word)) {
            let key = word.split('=').next().unwrap_or_default().to_ascii_lowercase();
            let key = if key == "access_mode" { "access".into() } else { key };
            if said.contains(&key) {
                return Some(marked(text, word, &format!("{key}= is said twice")));
            }
            said.push(key);
        }
        said.retain(|key| key != "capacity");
    }
    None
}

/// Between blanks or commas; `access=striped,private` is one word.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for mut rest in text.split([' ', '\t']) {
        while !rest.is_empty() {
            let comma = |from: usize| rest[from..].find(',').map_or(rest.len(), |at| from + at);
            let mut end = comma(0);
            while rest.starts_with("access") && end < rest.len() && !rest[end + 1..comma(end + 1)].contains('=') {
                end = comma(end + 1);
            }
            found.extend(Some(&rest[..end]).filter(|word| !word.is_empty()));
            rest = rest[end..].strip_prefix(',').unwrap_or_default();
        }
    }
    found
}

/// Reads `stage_in:…`, `stage_out:…` and the typed forms; says whether it was one.
fn transfer(text: &str, item: &str, lines: &mut Vec<String>) -> Result<bool, Problem> {
    for word in ["stage_in", "stage_out"] {
        if let Some(command) = item.strip_prefix(word).and_then(|rest| rest.strip_prefix(':')) {
            if command.trim().is_empty() {
                return Err(marked(text, item, "no command"));
            }
            lines.push(format!("#DW {word} type=command command={}", command.trim()));
            return Ok(true);
        }
        if let Some(typed) = item.strip_prefix(word).and_then(|rest| rest.strip_prefix('=')) {
            let parts: Vec<&str> = typed.split(':').collect();
            let [kind, source, destination] = parts[..] else {
                return Err(marked(text, item, &format!("expected {word}=TYPE:SOURCE:DESTINATION")));
            };
            lines.push(format!("#DW {word} type={kind} source={source} destination={destination}"));
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Default)]
struct Buffer<'a> {
    capacity_bytes: u64,
    access: Option<&'a str>,
    pool: Option<&'a str>,
    kind: Option<&'a str>,
}

impl<'a> Buffer<'a> {
    fn heed(&mut self, text: &str, item: &'a str) -> Result<(), Problem> {
        let complain = |why: &str| Err(marked(text, item, why));
        let Some((key, value)) = item.split_once('=') else { return complain("unknown word") };
        match key.to_ascii_lowercase().as_str() {
            "capacity" => {
                let Some(bytes) = size::parse_bytes(value, super::read::BARE_BYTES) else {
                    return complain(super::read::BAD_SIZE);
                };
                let Some(sum) = self.capacity_bytes.checked_add(bytes) else {
                    return complain(super::read::BAD_SIZE);
                };
                self.capacity_bytes = sum;
            }
            "access" | "access_mode" => self.access = Some(value),
            "pool" => self.pool = Some(value),
            "type" => self.kind = Some(value),
            "swap" => return complain(super::read::NO_SWAP),
            _ => return complain("unknown word"),
        }
        Ok(())
    }

    fn line(&self) -> Option<String> {
        if self.capacity_bytes == 0 {
            return None;
        }
        let mut line = format!("#DW jobdw capacity={}", size::show_bytes(self.capacity_bytes));
        for (key, value) in [("access_mode", self.access), ("pool", self.pool), ("type", self.kind)] {
            if let Some(value) = value {
                line.push_str(&format!(" {key}={value}"));
            }
        }
        Some(line)
    }
}

fn marked(text: &str, item: &str, why: &str) -> Problem {
    let start = item.as_ptr() as usize - text.as_ptr() as usize;
    let word = start..start + item.len();
    Problem { kind: ProblemKind::Invalid, why: why.into(), line: text.into(), word }
}
