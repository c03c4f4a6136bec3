//! One way to make text of rows, for every command: columns are declared once, formats choose among them.
//!
//! ```text
//! table of columns ──┐
//! -o / -O / default ─┴─> Format ──> heading, then one line a row
//! ```
use std::borrow::Cow;

mod format;
mod line;
mod order;

pub use format::{Cell, Format, all_letters, parse_letters, parse_names};
pub use order::{Sort, parse_sort, sort_rows};

/// What a command shows: the type of its rows.
pub trait View: Sized + 'static {
    type Row<'a>;
}

/// How a row fills one column.
pub type Fill<V> = for<'a> fn(&<V as View>::Row<'a>, &mut String);
/// What rows are ordered by.
pub type KeyOf<V> = for<'r, 'a> fn(&'r <V as View>::Row<'a>) -> Key<'r>;

/// One column: how users name it, its title, what it holds and how it sorts.
pub struct Column<V: View> {
    /// As in `-o %i`; a NUL where there is none.
    pub letter: char,
    /// As in `-O jobid`, in lower case.
    pub name: &'static str,
    pub title: &'static str,
    pub fill: Fill<V>,
    /// None: by its text.
    pub key: Option<KeyOf<V>>,
    pub cut: Cut,
}

/// What may be cut to the width asked for. Values on the left are always cut, as Slurm does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Everything,
    /// Right-aligned values stay whole.
    Titles,
    /// Right-aligned titles stay whole.
    Values,
    /// Right-aligned titles and values stay whole.
    Nothing,
    /// The last character is kept: the `*` of the default partition.
    BeforeLast,
}

/// A sort key; numbers of one column never meet texts of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key<'a> {
    Number(i64),
    Text(Cow<'a, str>),
    /// Comes last, whichever way round.
    Absent,
}

pub const fn column<V: View>(letter: char, name: &'static str, title: &'static str, fill: Fill<V>) -> Column<V> {
    Column { letter, name, title, fill, key: None, cut: Cut::Everything }
}

impl<V: View> Column<V> {
    pub const fn sorted_by(mut self, key: KeyOf<V>) -> Self {
        self.key = Some(key);
        self
    }

    pub const fn cutting(mut self, cut: Cut) -> Self {
        self.cut = cut;
        self
    }
}

/// Appends `(null)` for what is not there, as Slurm's users know it.
pub fn or_null(text: &str, out: &mut String) {
    out.push_str(if text.is_empty() { "(null)" } else { text });
}
