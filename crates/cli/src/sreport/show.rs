//! How a report looks: its heading, its units, its columns.
use super::options::{Options, Unit};
use super::usage::Period;
use crate::table::{Column, Style, Table};
use crate::zone::Clock;

const RULE: &str = "--------------------------------------------------------------------------------";

/// What one cell shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    /// Seconds of a resource, and of how many that is a part.
    Secs(u64, u64),
    Count(u64),
}

/// A column that the report knows.
pub struct Field {
    pub name: &'static str,
    pub title: String,
    pub width: i32,
    /// The width when a percentage stands beside the number; 0: the same.
    pub wide: i32,
    /// Shown whatever is asked for, behind it.
    pub is_always: bool,
}

pub const fn wide(width: i32) -> i32 {
    match width {
        8 => 17,
        13 => 20,
        20 => 29,
        other => other,
    }
}

impl Options {
    /// The lines above the table.
    pub fn heading(&self, title: &str, period: Period, with_secs: bool, unit: &str, clock: &Clock) -> String {
        if self.no_heading {
            return String::new();
        }
        let last = model::Timestamp(period.end.0.saturating_sub(1_000_000));
        let secs = if with_secs { format!(" ({} secs)", period.secs()) } else { String::new() };
        format!("{RULE}\n{title} {} - {}{secs}\n{unit}\n{RULE}\n", clock.show(period.start), clock.show(last))
    }

    /// `Usage reported in CPU Minutes`
    pub fn usage_unit(&self, kind: &str) -> String {
        match self.unit {
            Unit::Percent => "Usage reported in Percentage of Total".into(),
            _ => format!("Usage reported in {kind} {}", self.unit.words()),
        }
    }

    /// The table of these rows, with the fields that were asked for.
    pub fn table(
        &self,
        fields: &[Field],
        usual: &[&str],
        rows: &[Vec<(&'static str, Cell)>],
    ) -> Result<String, String> {
        let asked: Vec<(String, Option<i32>)> = match &self.format {
            None => usual.iter().map(|name| (name.to_string(), None)).collect(),
            Some(format) => words(format),
        };
        let mut complaint = None;
        let mut chosen: Vec<(&Field, i32)> = Vec::new();
        for (name, width) in &asked {
            let begins = |field: &&Field| {
                field.name.len() >= name.len()
                    && field.name[..name.len()].eq_ignore_ascii_case(name)
                    && !name.is_empty()
            };
            let is_it = |field: &&Field| field.name.eq_ignore_ascii_case(name);
            // `accounts` is the column `account`.
            let is_several = |field: &&Field| {
                name.len() == field.name.len() + 1 && {
                    let (one, end) = name.split_at(name.len() - 1);
                    field.name.eq_ignore_ascii_case(one) && end.eq_ignore_ascii_case("s")
                }
            };
            let by_beginning = || fields.iter().find(begins).or_else(|| fields.iter().find(is_several));
            match fields.iter().find(is_it).or_else(by_beginning) {
                Some(field) => {
                    let is_wide = self.unit.has_both() && field.wide > 0;
                    chosen.push((field, width.unwrap_or(if is_wide { field.wide } else { field.width })));
                }
                None => complaint = Some(format!(" Unknown field '{name}'")),
            }
        }
        if self.format.is_some() {
            let always = fields.iter().filter(|field| field.is_always);
            chosen.extend(
                always.map(|field| {
                    (field, if self.unit.has_both() && field.wide > 0 { field.wide } else { field.width })
                }),
            );
        }
        let columns = chosen.iter().map(|(field, width)| Column::new(&field.title, *width)).collect();
        let style = match (self.parsable, self.parsable2) {
            (_, true) => Style::Between("|".into()),
            (true, false) => Style::After("|".into()),
            (false, false) => Style::Aligned,
        };
        let table = Table { columns, style };
        let mut text = String::new();
        if !self.no_heading {
            table.heading(&mut text);
        }
        for row in rows {
            let cell = |name: &str| row.iter().find(|(known, _)| *known == name).map(|(_, cell)| self.text(cell));
            let texts: Vec<String> = chosen.iter().map(|(field, _)| cell(field.name).unwrap_or_default()).collect();
            table.row(texts.iter().map(String::as_str), &mut text);
        }
        match complaint {
            // What could be shown is shown all the same.
            Some(complaint) => Err(format!("{text}\0{complaint}")),
            None => Ok(text),
        }
    }

    fn text(&self, cell: &Cell) -> String {
        match cell {
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Secs(secs, of) => self.unit.text(*secs, *of),
        }
    }
}

impl Unit {
    pub fn words(self) -> &'static str {
        match self {
            Unit::Seconds => "Seconds",
            Unit::Minutes => "Minutes",
            Unit::Hours => "Hours",
            Unit::Percent => "Percentage of Total",
            Unit::SecondsAndPercent => "Seconds/Percentage of Total",
            Unit::MinutesAndPercent => "Minutes/Percentage of Total",
            Unit::HoursAndPercent => "Hours/Percentage of Total",
        }
    }

    pub fn has_both(self) -> bool {
        matches!(self, Unit::SecondsAndPercent | Unit::MinutesAndPercent | Unit::HoursAndPercent)
    }

    fn text(self, secs: u64, of: u64) -> String {
        let percent = if of == 0 { 0.0 } else { secs as f64 * 100.0 / of as f64 };
        let scaled = |divisor: f64| format!("{:.0}", secs as f64 / divisor);
        match self {
            Unit::Seconds => secs.to_string(),
            Unit::Minutes => scaled(60.0),
            Unit::Hours => scaled(3600.0),
            Unit::Percent => format!("{percent:.2}%"),
            Unit::SecondsAndPercent => format!("{secs}({percent:.2}%)"),
            Unit::MinutesAndPercent => format!("{}({percent:.2}%)", scaled(60.0)),
            Unit::HoursAndPercent => format!("{}({percent:.2}%)", scaled(3600.0)),
        }
    }
}

/// `a,b%20`
fn words(format: &str) -> Vec<(String, Option<i32>)> {
    let words = format.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| match word.split_once('%') {
            Some((name, width)) => (name.to_string(), width.parse().ok().filter(|width| *width != 0)),
            None => (word.to_string(), None),
        })
        .collect()
}
