//! The tables of the accounting commands: fixed widths and a line of dashes, or fields between delimiters.

/// How fields are set apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Style {
    #[default]
    Aligned,
    /// A delimiter after every field but the last.
    Between(String),
    /// A delimiter after every field.
    After(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub title: String,
    pub width: usize,
    pub is_left: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub columns: Vec<Column>,
    pub style: Style,
}

impl Column {
    /// A negative width is to the left, as in `name%-20`.
    pub fn new(title: &str, width: i32) -> Column {
        Column { title: title.to_string(), width: width.unsigned_abs() as usize, is_left: width < 0 }
    }
}

impl Table {
    pub fn heading(&self, out: &mut String) {
        self.line(self.columns.iter().map(|column| column.title.as_str()), None, out);
        if self.style == Style::Aligned {
            for column in &self.columns {
                out.extend(std::iter::repeat_n('-', column.width));
                out.push(' ');
            }
            out.push('\n');
        }
    }

    /// What does not fit ends with a plus.
    pub fn row<'a>(&self, texts: impl Iterator<Item = &'a str>, out: &mut String) {
        self.line(texts, Some('+'), out);
    }

    fn line<'a>(&self, texts: impl Iterator<Item = &'a str>, mark: Option<char>, out: &mut String) {
        for (place, (column, text)) in self.columns.iter().zip(texts).enumerate() {
            match &self.style {
                Style::Aligned => {
                    pad(column, text, mark, out);
                    out.push(' ');
                }
                Style::Between(delimiter) => {
                    out.push_str(text);
                    if place + 1 < self.columns.len() {
                        out.push_str(delimiter);
                    }
                }
                Style::After(delimiter) => {
                    out.push_str(text);
                    out.push_str(delimiter);
                }
            }
        }
        out.push('\n');
    }
}

fn pad(column: &Column, text: &str, mark: Option<char>, out: &mut String) {
    let length = text.chars().count();
    let blanks = std::iter::repeat_n(' ', column.width.saturating_sub(length));
    if length > column.width {
        let n_kept = column.width - usize::from(mark.is_some()).min(column.width);
        out.extend(text.chars().take(n_kept).chain(mark.filter(|_| column.width > 0)));
    } else if column.is_left {
        out.push_str(text);
        out.extend(blanks);
    } else {
        out.extend(blanks);
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_cut_and_delimited() {
        let columns = vec![Column::new("User", 6), Column::new("Admin", -6)];
        let mut table = Table { columns, style: Style::Aligned };
        let mut text = String::new();
        table.heading(&mut text);
        table.row(["root", "Administrator"].into_iter(), &mut text);
        table.row(["bob", "None"].into_iter(), &mut text);
        assert_eq!(text, "  User Admin  \n------ ------ \n  root Admin+ \n   bob None   \n");
        for (style, line) in [(Style::Between("|".into()), "bob|None\n"), (Style::After("|".into()), "bob|None|\n")] {
            table.style = style;
            let mut text = String::new();
            table.row(["bob", "None"].into_iter(), &mut text);
            assert_eq!(text, line);
        }
    }
}
