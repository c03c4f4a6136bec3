//! Reads what users ask for: `-o "%.18i %9P|"` and `-O "jobid:10,name:.5x"`.
use super::{Column, View};

/// What each line consists of.
pub struct Format<V: View> {
    /// Literal text before the first field.
    pub prefix: String,
    pub cells: Vec<Cell<V>>,
}

/// One field with its place, or literal text only.
pub struct Cell<V: View> {
    pub column: Option<&'static Column<V>>,
    /// 0: as wide as needed.
    pub width: usize,
    pub right: bool,
    pub suffix: String,
}

/// The width of a field of `-O` that names none.
const NAMED_WIDTH: usize = 20;

/// Reads `%[.][width]letter`. Unknown letters stay literal; the second value names them.
/// Percent signs in a row count as one, so `%%i` is the field `%i`.
pub fn parse_letters<V: View>(columns: &'static [Column<V>], text: &str) -> (Format<V>, Vec<String>) {
    let mut unknown = Vec::new();
    let mut cells = Vec::new();
    let (prefix, rest) = match text.split_once('%') {
        Some((prefix, rest)) => (prefix, rest),
        None => (text, ""),
    };
    for token in rest.split('%').filter(|token| !token.is_empty()) {
        let (right, body) = match token.strip_prefix('.') {
            Some(body) => (true, body),
            None => (false, token),
        };
        let (width, body) = leading_number(body);
        let letter = body.chars().next();
        let found = letter.and_then(|letter| columns.iter().find(|column| column.letter == letter));
        match (found, letter) {
            (Some(column), Some(letter)) => {
                let suffix = body[letter.len_utf8()..].to_string();
                cells.push(Cell { column: Some(column), width: width.unwrap_or(0), right, suffix });
            }
            (_, letter) => {
                unknown.push(letter.map(String::from).unwrap_or_default());
                cells.push(literal(format!("%{token}")));
            }
        }
    }
    (Format { prefix: prefix.to_string(), cells }, unknown)
}

/// Reads `name[:[.][width][suffix]]`, comma separated; a name without a colon is 20 wide. Unknown names are left out.
pub fn parse_names<V: View>(columns: &'static [Column<V>], text: &str) -> (Format<V>, Vec<String>) {
    let mut unknown = Vec::new();
    let mut cells = Vec::new();
    for token in text.split(',').filter(|token| !token.is_empty()) {
        let (name, place) = match token.split_once(':') {
            Some((name, place)) => (name, Some(place)),
            None => (token, None),
        };
        let Some(column) = columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)) else {
            unknown.push(name.to_string());
            continue;
        };
        let (right, place) = match place.and_then(|place| place.strip_prefix('.')) {
            Some(place) => (true, Some(place)),
            None => (false, place),
        };
        let (width, suffix) = match place {
            Some(place) => {
                let (width, suffix) = leading_number(place);
                (width.unwrap_or(0), suffix)
            }
            None => (NAMED_WIDTH, ""),
        };
        cells.push(Cell { column: Some(column), width, right, suffix: suffix.to_string() });
    }
    (Format { prefix: String::new(), cells }, unknown)
}

/// Every column that has a letter, with bars between them: what `%all` means.
pub fn all_letters<V: View>(columns: &'static [Column<V>], letters: &str) -> Format<V> {
    let found = letters.chars().filter_map(|letter| columns.iter().find(|column| column.letter == letter));
    let mut cells: Vec<Cell<V>> =
        found.map(|column| Cell { column: Some(column), width: 0, right: false, suffix: "|".into() }).collect();
    if let Some(last) = cells.last_mut() {
        last.suffix.clear();
    }
    Format { prefix: String::new(), cells }
}

fn literal<V: View>(suffix: String) -> Cell<V> {
    Cell { column: None, width: 0, right: false, suffix }
}

/// The digits in front, and what follows them. Absurd widths are capped rather than honoured.
fn leading_number(text: &str) -> (Option<usize>, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = (!digits.is_empty()).then(|| digits.parse().unwrap_or(usize::MAX).min(1 << 16));
    (number, rest)
}
