//! One table of the file: hands out its values, checked, and knows in the end which keys nobody asked for.
use std::cell::RefCell;
use std::ops::RangeInclusive;

use model::duration::{self, Limit};
use model::ports::PortRange;
use model::size;
use model::spec::TimeLimit;
use model::time::Span;
use toml_edit::{Item, TableLike};

use crate::nearest::nearest;
use crate::problem::{Problem, Problems, position};

/// Problems as they are found, each with the byte it is about.
#[derive(Default)]
pub(crate) struct Notes {
    wrong: RefCell<Vec<(usize, String)>>,
    warnings: RefCell<Vec<(usize, String)>>,
}

impl Notes {
    pub fn add(&self, at: usize, text: impl Into<String>) {
        self.wrong.borrow_mut().push((at, text.into()));
    }

    /// What is accepted, but hardly meant.
    pub fn warn(&self, at: usize, text: impl Into<String>) {
        self.warnings.borrow_mut().push((at, text.into()));
    }

    /// What is wrong, and what is only said in vain.
    pub fn into_problems(self, text: &str, file: &str) -> (Problems, Problems) {
        let locate = |(at, note): (usize, String)| {
            let (line, column) = position(text, at);
            Problem { file: String::new(), line, column, text: note }
        };
        let listed = |notes: RefCell<Vec<(usize, String)>>| {
            let mut list: Vec<Problem> = notes.into_inner().into_iter().map(locate).collect();
            list.sort();
            Problems { file: file.into(), list }
        };
        (listed(self.wrong), listed(self.warnings))
    }
}

pub(crate) struct Section<'a> {
    table: &'a dyn TableLike,
    /// As messages call it: `[controller]`.
    title: String,
    /// Where it begins.
    pub at: usize,
    pub notes: &'a Notes,
    known: Vec<&'static str>,
}

/// A value and where it and its key stand.
pub(crate) struct Found<'a> {
    pub item: &'a Item,
    pub at: usize,
    pub key_at: usize,
}

impl<'a> Section<'a> {
    pub fn new(table: &'a dyn TableLike, title: &str, at: usize, notes: &'a Notes) -> Self {
        Section { table, title: title.into(), at, notes, known: Vec::new() }
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub fn take(&mut self, key: &'static str) -> Option<Found<'a>> {
        self.known.push(key);
        let (name, item) = self.table.get_key_value(key)?;
        let start = |span: Option<std::ops::Range<usize>>| span.map(|span| span.start);
        let key_at = start(name.span()).or(start(item.span())).unwrap_or(self.at);
        Some(Found { item, at: start(item.span()).unwrap_or(key_at), key_at })
    }

    /// The table under `key`.
    pub fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let found = self.take(key)?;
        let Some(table) = found.item.as_table_like() else {
            self.notes.add(found.at, format!("`{key}` must be a table, [{key}], not {}", kind(found.item)));
            return None;
        };
        Some(Section::new(table, &format!("[{key}]"), found.key_at, self.notes))
    }

    /// The tables of the list under `key`.
    pub fn sections(&mut self, key: &'static str) -> Vec<Section<'a>> {
        let Some(found) = self.take(key) else { return Vec::new() };
        let title = format!("[[{key}]]");
        if let Some(tables) = found.item.as_array_of_tables() {
            let begin = |span: Option<std::ops::Range<usize>>| span.map_or(found.at, |span| span.start);
            return tables.iter().map(|table| Section::new(table, &title, begin(table.span()), self.notes)).collect();
        }
        let inline = found.item.as_array().map(|list| list.iter().map(|value| (value.as_inline_table(), value.span())));
        let mut sections = Vec::new();
        for (table, span) in inline.into_iter().flatten() {
            let at = span.map_or(found.at, |span| span.start);
            match table {
                Some(table) => sections.push(Section::new(table, &title, at, self.notes)),
                None => self.notes.add(at, format!("`{key}` must hold tables")),
            }
        }
        if !found.item.is_array() {
            self.notes.add(found.at, format!("`{key}` must be a list of tables, {title}, not {}", kind(found.item)));
        }
        sections
    }

    /// Every key with its number, where it is one, and its place: for tables whose keys are names.
    pub fn all_numbers(&self) -> Vec<(String, Option<u32>, usize)> {
        self.all(|item| item.as_integer().and_then(|number| u32::try_from(number).ok()))
    }

    /// The same of texts.
    pub fn all_texts(&self) -> Vec<(String, Option<String>, usize)> {
        self.all(|item| item.as_str().map(String::from))
    }

    fn all<T>(&self, value: impl Fn(&Item) -> Option<T>) -> Vec<(String, Option<T>, usize)> {
        let place = |key: &str, item: &Item| {
            let span = self.table.key(key).and_then(|key| key.span()).or(item.span());
            span.map_or(self.at, |span| span.start)
        };
        self.table.iter().map(|(key, item)| (key.to_string(), value(item), place(key, item))).collect()
    }

    /// Reports the keys that nobody asked for.
    pub fn finish(self) {
        for (key, item) in self.table.iter().filter(|(key, _)| !self.known.contains(key)) {
            let span = self.table.key(key).and_then(|key| key.span()).or(item.span());
            let at = span.map_or(self.at, |span| span.start);
            let hint = match nearest(key, self.known.iter().copied()) {
                Some(name) => format!("; did you mean `{name}`?"),
                None => String::new(),
            };
            self.notes.add(at, format!("unknown key `{key}` in {}{hint}", self.title));
        }
    }

    /// Converts the value of `key`, if it is there; `expected` says what would be right.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(&Item) -> Option<T>,
    ) -> Option<T> {
        let found = self.take(key)?;
        let value = convert(found.item);
        if value.is_none() {
            self.notes.add(found.at, format!("`{key}` must be {expected}, not {}", shown(found.item)));
        }
        value
    }

    pub fn text(&mut self, key: &'static str, target: &mut String) {
        let value = self.read(key, "a text in quotes", |item| item.as_str().map(str::to_string));
        set(target, value);
    }

    /// A name without blanks or separators.
    pub fn word(&mut self, key: &'static str, target: &mut String) {
        let value = self.read(key, "a name of letters, digits, `_`, `-` and `.`", |item| {
            item.as_str().filter(|text| is_word(text)).map(str::to_string)
        });
        set(target, value);
    }

    pub fn ports(&mut self, key: &'static str, target: &mut Option<PortRange>) {
        let value =
            self.read(key, "a range of ports such as \"12000-12999\"", |item| item.as_str().and_then(PortRange::parse));
        *target = value.or(*target);
    }

    /// One of these names; `expected` lists them.
    pub fn one_of(&mut self, key: &'static str, expected: &'static str, names: &[&str], target: &mut String) {
        let value =
            self.read(key, expected, |item| item.as_str().filter(|text| names.contains(text)).map(str::to_string));
        set(target, value);
    }

    pub fn flag(&mut self, key: &'static str, target: &mut bool) {
        let value = self.read(key, "true or false", Item::as_bool);
        set(target, value);
    }

    pub fn number(&mut self, key: &'static str, range: RangeInclusive<u32>, target: &mut u32) {
        let expected = match *range.end() {
            u32::MAX => format!("a whole number from {}", range.start()),
            end => format!("a whole number from {} to {end}", range.start()),
        };
        let number = |item: &Item| u32::try_from(item.as_integer()?).ok().filter(|number| range.contains(number));
        let value = self.read(key, &expected, number);
        set(target, value);
    }

    /// Megabytes as a number, or a text with a unit such as "64G".
    pub fn megabytes(&mut self, key: &'static str) -> Option<u64> {
        self.read(key, "megabytes as a whole number, or a size like \"64G\"", |item| match item.as_str() {
            Some(text) => size::parse_megabytes(text),
            None => u64::try_from(item.as_integer()?).ok(),
        })
    }

    pub fn seconds(&mut self, key: &'static str, target: &mut Span) {
        let value = self.read(key, "a number of seconds", |item| {
            let secs = item.as_float().or_else(|| item.as_integer().map(|secs| secs as f64))?;
            let is_sensible = (0.0..1e9).contains(&secs);
            is_sensible.then_some(Span((secs * 1e6) as u64))
        });
        set(target, value);
    }

    /// An age in Slurm's words: `12months`, `30days`, `6hours`; a month is 30 days.
    pub fn age(&mut self, key: &'static str) -> Option<Span> {
        self.read(key, "an age like \"12months\", \"30days\" or \"6hours\"", |item| {
            let text = item.as_str()?;
            let at = text.find(|c: char| !c.is_ascii_digit())?;
            let hours = match text[at..].trim().to_ascii_lowercase().as_str() {
                "hour" | "hours" => 1,
                "day" | "days" => 24,
                "month" | "months" => 24 * 30,
                _ => return None,
            };
            let count: u64 = text[..at].parse().ok().filter(|count| (1..=100_000).contains(count))?;
            Some(Span::from_secs(count * hours * 3600))
        })
    }

    /// A time limit: minutes as a number, or Slurm's forms.
    pub fn time_limit(&mut self, key: &'static str) -> Option<TimeLimit> {
        let expected = "minutes, a time like \"1-12:00:00\", or \"UNLIMITED\"";
        let limit = self.read(key, expected, |item| match item.as_str() {
            Some(text) => duration::parse_limit(text),
            None => duration::parse_limit(&u64::try_from(item.as_integer()?).ok()?.to_string()),
        })?;
        Some(match limit {
            Limit::Seconds(secs) => TimeLimit::Secs(secs),
            Limit::Unlimited => TimeLimit::Unlimited,
        })
    }

    /// Words in a list, or in a text with commas between them.
    pub fn words(&mut self, key: &'static str, target: &mut Vec<String>) {
        self.words_between(&[','], key, target);
    }

    /// Words in a list, or in a text with one of these between them.
    pub fn words_between(&mut self, separators: &[char], key: &'static str, target: &mut Vec<String>) {
        let value = self.read(key, "a list of names", |item| {
            let words: Vec<&str> = match item.as_str() {
                Some(text) => text.split(separators).map(str::trim).filter(|word| !word.is_empty()).collect(),
                None => item.as_array()?.iter().map(|value| value.as_str()).collect::<Option<_>>()?,
            };
            words.iter().all(|word| is_word(word)).then(|| words.iter().map(|word| word.to_string()).collect())
        });
        set(target, value);
    }
}

pub(crate) fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.@+".contains(c))
}

/// The wrong value as the message repeats it.
fn shown(item: &Item) -> String {
    match (item.as_str(), item.as_integer(), item.as_bool()) {
        (Some(text), ..) => format!("{text:?}"),
        (_, Some(number), _) => number.to_string(),
        (.., Some(flag)) => flag.to_string(),
        _ => kind(item).to_string(),
    }
}

fn kind(item: &Item) -> &'static str {
    match item.type_name() {
        "string" => "a text",
        "integer" | "float" => "a number",
        "boolean" => "true or false",
        "datetime" => "a date",
        "array" => "a list",
        "array of tables" => "a list of tables",
        _ => "a table",
    }
}
