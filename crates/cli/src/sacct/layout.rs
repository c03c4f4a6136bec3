//! Rows of fixed widths, or fields between delimiters.
use super::fields::{FIELDS, Field, OTHER_NAMES};
use super::row::Row;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    pub columns: Vec<Column>,
    pub style: Style,
    pub heading: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub field: &'static Field,
    pub width: usize,
    pub left: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Style {
    #[default]
    Table,
    /// A delimiter after every field but the last.
    Between(String),
    /// A delimiter after every field.
    After(String),
}

/// Reads `jobid,state%20,name%-10`; the error is the field that means nothing. Names may be cut short.
pub fn columns(text: &str) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for word in text.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|word| !word.is_empty()) {
        let (name, width) = match word.split_once('%') {
            Some((name, width)) => (name, Some(width)),
            None => (word, None),
        };
        if name.eq_ignore_ascii_case("all") {
            columns.extend(FIELDS.iter().filter(|field| field.is_listed).map(|field| column(field, width)));
            continue;
        }
        let field = find(name).ok_or_else(|| name.to_string())?;
        columns.push(column(field, width));
    }
    Ok(columns)
}

fn find(name: &str) -> Option<&'static Field> {
    let renamed = OTHER_NAMES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    let name = renamed.map_or(name, |(_, name)| name);
    let begins = |field: &&Field| field.name.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let exact = FIELDS.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    exact.or_else(|| FIELDS.iter().find(begins))
}

fn column(field: &'static Field, width: Option<&str>) -> Column {
    let asked = width.and_then(|width| width.parse::<i32>().ok()).filter(|width| *width != 0).unwrap_or(field.width);
    Column { field, width: asked.unsigned_abs() as usize, left: asked < 0 }
}

pub fn heading(layout: &Layout, out: &mut String) {
    if !layout.heading {
        return;
    }
    write(layout, layout.columns.iter().map(|column| column.field.name.to_string()), Cut::Silently, out);
    if layout.style == Style::Table {
        for column in &layout.columns {
            out.extend(std::iter::repeat_n('-', column.width));
            out.push(' ');
        }
        out.push('\n');
    }
}

pub fn row(layout: &Layout, row: &Row, out: &mut String) {
    write(layout, layout.columns.iter().map(|column| (column.field.show)(row)), Cut::WithPlus, out);
}

#[derive(Clone, Copy)]
enum Cut {
    Silently,
    /// The last character tells that there is more.
    WithPlus,
}

fn write(layout: &Layout, texts: impl Iterator<Item = String>, cut: Cut, out: &mut String) {
    let n_columns = layout.columns.len();
    for (place, (column, text)) in layout.columns.iter().zip(texts).enumerate() {
        match &layout.style {
            Style::Table => {
                pad(column, &text, cut, out);
                out.push(' ');
            }
            Style::Between(delimiter) => {
                out.push_str(&text);
                if place + 1 < n_columns {
                    out.push_str(delimiter);
                }
            }
            Style::After(delimiter) => {
                out.push_str(&text);
                out.push_str(delimiter);
            }
        }
    }
    out.push('\n');
}

fn pad(column: &Column, text: &str, cut: Cut, out: &mut String) {
    let length = text.chars().count();
    let blanks = column.width.saturating_sub(length);
    if length > column.width {
        let kept = match cut {
            Cut::Silently => column.width,
            Cut::WithPlus => column.width - 1,
        };
        out.extend(text.chars().take(kept));
        if kept < column.width {
            out.push('+');
        }
        return;
    }
    if !column.left {
        out.extend(std::iter::repeat_n(' ', blanks));
    }
    out.push_str(text);
    if column.left {
        out.extend(std::iter::repeat_n(' ', blanks));
    }
}
