//! Writes headings and rows: pads, cuts, and appends to one buffer without an allocation a cell.
use super::{Cell, Cut, Format, View};

impl<V: View> Format<V> {
    /// The titles, as a line.
    pub fn heading(&self, out: &mut String) {
        out.push_str(&self.prefix);
        for cell in &self.cells {
            if let Some(column) = cell.column {
                let keeps = matches!(column.cut, Cut::Nothing | Cut::Values | Cut::Reasons);
                place(cell, column.title, keeps, false, out);
            }
            out.push_str(&cell.suffix);
        }
        out.push('\n');
    }

    /// One row, as a line. `scratch` is overwritten; hand the same one in again.
    pub fn row(&self, row: &V::Row<'_>, scratch: &mut String, out: &mut String) {
        out.push_str(&self.prefix);
        for cell in &self.cells {
            if let Some(column) = cell.column {
                if cell.width == 0 {
                    V::fill(column.fill, row, out);
                } else {
                    scratch.clear();
                    V::fill(column.fill, row, scratch);
                    let keeps = match column.cut {
                        Cut::Nothing | Cut::Titles => true,
                        Cut::Reasons => !scratch.starts_with('('),
                        Cut::Everything | Cut::Values | Cut::BeforeLast => false,
                    };
                    place(cell, scratch, keeps, column.cut == Cut::BeforeLast, out);
                }
            }
            out.push_str(&cell.suffix);
        }
        out.push('\n');
    }

    /// Whether any cell shows the column with this name.
    pub fn shows(&self, name: &str) -> bool {
        self.cells.iter().any(|cell| cell.column.is_some_and(|column| column.name == name))
    }
}

fn place<V: View>(cell: &Cell<V>, text: &str, keeps: bool, keeps_last: bool, out: &mut String) {
    let width = cell.width;
    if width == 0 {
        out.push_str(text);
        return;
    }
    // The C library prints nothing at all where a missing string does not fit.
    let text = if text == "(null)" && !cell.right && width < 6 { "" } else { text };
    let length = if text.is_ascii() { text.len() } else { text.chars().count() };
    if length > width && !(cell.right && keeps) {
        match text.chars().next_back() {
            Some(last) if keeps_last && last == '*' => {
                push_first(text, width - 1, out);
                out.push(last);
            }
            _ => push_first(text, width, out),
        }
        return;
    }
    let blanks = width.saturating_sub(length);
    if cell.right {
        push_blanks(blanks, out);
    }
    out.push_str(text);
    if !cell.right {
        push_blanks(blanks, out);
    }
}

fn push_first(text: &str, count: usize, out: &mut String) {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    out.push_str(&text[..end]);
}

fn push_blanks(count: usize, out: &mut String) {
    const BLANKS: &str = "                                                                ";
    let mut left = count;
    while left > 0 {
        let now = left.min(BLANKS.len());
        out.push_str(&BLANKS[..now]);
        left -= now;
    }
}
