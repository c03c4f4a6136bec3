//! The pairs of one line, or of the whole file: hands out values, checked.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use model::secret::{HIDDEN, given_keys, names_secret, public_value};
use model::size;
use model::time::Span;

use super::keys::{self, Key, Kind};
use super::lines::{At, Pair};
use crate::nearest::nearest;
use crate::problem::Problem;

/// What is found wrong or without effect, as it is found.
#[derive(Default)]
pub(crate) struct Notes {
    pub problems: RefCell<Vec<Problem>>,
    pub warnings: RefCell<Vec<Problem>>,
    /// Keys without effect, each where it stands first.
    pub idle: RefCell<Vec<(String, At)>>,
}

impl Notes {
    pub fn wrong(&self, at: &At, text: impl Into<String>) {
        self.problems.borrow_mut().push(at.problem(text));
    }

    pub fn warn(&self, at: &At, text: impl Into<String>) {
        self.warnings.borrow_mut().push(at.problem(text));
    }

    fn idle(&self, name: &str, at: &At) {
        let mut idle = self.idle.borrow_mut();
        if !idle.iter().any(|(known, _)| known == name) {
            idle.push((name.to_string(), at.clone()));
        }
    }
}

/// Values by the names of their keys as the tables spell them.
#[derive(Clone, Default)]
pub(crate) struct Values(BTreeMap<&'static str, Pair>);

/// What becomes of a key that is given again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Warned,
    Replaces,
}

impl Values {
    /// Takes a pair in. One that is unknown is a problem; one that is known and idle is checked and noted.
    pub fn add(&mut self, table: &'static [Key], title: &str, pair: &Pair, again: Again, notes: &Notes) {
        let Some(key) = keys::find(table, &pair.key) else {
            let hint = match nearest(&pair.key, table.iter().map(|key| key.name)) {
                Some(name) => format!("; did you mean `{name}`?"),
                None => String::new(),
            };
            return notes.wrong(&pair.at, format!("unknown key `{}` {title}{hint}", pair.key));
        };
        let has_sense = match key.kind {
            Kind::Honoured | Kind::Text => true,
            Kind::Number => is_number(&pair.value),
            Kind::Flag => flag(&pair.value).is_some(),
        };
        if !has_sense {
            let expected = if key.kind == Kind::Flag { "YES or NO" } else { "a whole number" };
            return notes.wrong(&pair.at, wrong(key.name, expected, &pair.value));
        }
        let is_usual = key.usual.iter().any(|usual| usual.eq_ignore_ascii_case(&pair.value));
        if key.kind != Kind::Honoured && !is_usual {
            notes.idle(key.name, &pair.at);
        }
        let old = self.0.insert(key.name, pair.clone());
        if let Some(old) = old.filter(|old| again == Again::Warned && old.value != pair.value) {
            let name = key.name;
            let was = if names_secret(name) { HIDDEN.into() } else { public_value(&old.value) };
            notes.warn(&pair.at, format!("`{name}` was {was} in line {}: this one holds", old.at.line));
        }
    }

    /// These values where `self` has none of its own.
    pub fn or(mut self, defaults: &Values) -> Values {
        for (key, pair) in &defaults.0 {
            self.0.entry(key).or_insert_with(|| pair.clone());
        }
        self
    }

    /// Everything as it stands in the file, but for passwords.
    pub fn told(&self) -> BTreeMap<String, String> {
        let given = self.0.iter().map(|(name, pair)| ((*name).to_string(), pair.value.clone())).collect();
        given_keys::public(&given)
    }

    pub fn get(&self, key: &str) -> Option<&Pair> {
        self.0.get(key)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).map(|pair| pair.value.as_str())
    }

    pub fn read<T>(
        &self,
        key: &str,
        expected: &str,
        notes: &Notes,
        convert: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let pair = self.get(key)?;
        let value = convert(&pair.value);
        if value.is_none() {
            notes.wrong(&pair.at, wrong(key, expected, &pair.value));
        }
        value
    }

    pub fn number(&self, key: &str, range: RangeInclusive<u32>, notes: &Notes) -> Option<u32> {
        let expected = match *range.end() {
            u32::MAX => format!("a whole number from {}", range.start()),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        self.read(key, &expected, notes, |text| text.parse().ok().filter(|number| range.contains(number)))
    }

    pub fn flag(&self, key: &str, notes: &Notes) -> Option<bool> {
        self.read(key, "YES or NO", notes, flag)
    }

    pub fn seconds(&self, key: &str, notes: &Notes) -> Option<Span> {
        let secs = |text: &str| text.parse::<u32>().ok().filter(|secs| *secs < 1_000_000_000);
        self.read(key, "a number of seconds", notes, secs).map(|secs| Span::from_secs(secs.into()))
    }

    /// As Slurm has it, seconds of which 0 are for ever.
    pub fn seconds_or_ever(&self, key: &str, notes: &Notes) -> Option<Span> {
        let ever = Span::from_secs(999_999_999);
        self.seconds(key, notes).map(|span| if span.0 == 0 { ever } else { span })
    }

    pub fn megabytes(&self, key: &str, notes: &Notes) -> Option<u64> {
        self.read(key, "a number of megabytes", notes, size::parse_megabytes)
    }

    /// A time as of a job's limit; None where it is not said, or without end.
    pub fn time(&self, key: &str, notes: &Notes) -> Option<Span> {
        let expected = "minutes, a time like 1-12:00:00, or UNLIMITED";
        let limit = self.read(key, expected, notes, model::duration::parse_limit)?;
        limit.seconds().map(Span::from_secs)
    }

    /// Megabytes of which 0, and UNLIMITED, are no limit.
    pub fn megabytes_limit(&self, key: &str, notes: &Notes) -> Option<u64> {
        let read = |text: &str| if is_unlimited(text) { Some(0) } else { size::parse_megabytes(text) };
        self.read(key, "a number of megabytes, or UNLIMITED", notes, read).filter(|megabytes| *megabytes > 0)
    }
}

pub(crate) fn is_unlimited(text: &str) -> bool {
    text.eq_ignore_ascii_case("unlimited") || text.eq_ignore_ascii_case("infinite")
}

fn is_number(text: &str) -> bool {
    text == "-1" || is_unlimited(text) || text.parse::<u64>().is_ok()
}

pub(crate) fn flag(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "yes" | "up" | "true" | "1" => Some(true),
        "no" | "down" | "false" | "0" => Some(false),
        _ => None,
    }
}

fn wrong(key: &str, expected: &str, value: &str) -> String {
    format!("`{key}` must be {expected}, not {value:?}")
}
