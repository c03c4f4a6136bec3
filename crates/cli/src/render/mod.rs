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
pub use order::{Sort, known_sort, parse_sort, sort_rows};

/// What a command shows: the type of its rows, and of the functions that look at one. Declared with [`view!`].
pub trait View: Sized + 'static {
    type Row<'a>;
    type Fill: Copy + Send + Sync;
    type KeyOf: Copy + Send + Sync;

    fn fill(fill: Self::Fill, row: &Self::Row<'_>, out: &mut String);
    fn key<'r>(key: Self::KeyOf, row: &'r Self::Row<'_>) -> Key<'r>;
}

/// Declares a view of rows of the type named, and `column`, which makes its columns.
macro_rules! view {
    ($(#[$meta:meta])* $view:ident of $row:ident) => {
        $(#[$meta])*
        pub struct $view;

        impl $crate::render::View for $view {
            type Row<'a> = $row<'a>;
            type Fill = for<'r, 'a, 's> fn(&'r $row<'a>, &'s mut String);
            type KeyOf = for<'r, 'a> fn(&'r $row<'a>) -> $crate::render::Key<'r>;

            fn fill(fill: Self::Fill, row: &$row<'_>, out: &mut String) {
                fill(row, out);
            }

            fn key<'r>(key: Self::KeyOf, row: &'r $row<'_>) -> $crate::render::Key<'r> {
                key(row)
            }
        }

        const fn column(
            letter: char,
            name: &'static str,
            title: &'static str,
            fill: for<'r, 'a, 's> fn(&'r $row<'a>, &'s mut String),
        ) -> $crate::render::Column<$view> {
            $crate::render::Column { letter, name, title, fill, key: None, cut: $crate::render::Cut::Everything, merge: $crate::render::Merge::Never }
        }
    };
}
pub(crate) use view;

/// One column: how users name it, its title, what it holds and how it sorts.
pub struct Column<V: View> {
    /// As in `-o %i`; a NUL where there is none.
    pub letter: char,
    /// As in `-O jobid`, in lower case.
    pub name: &'static str,
    pub title: &'static str,
    pub fill: V::Fill,
    /// None: by its text.
    pub key: Option<V::KeyOf>,
    pub cut: Cut,
    pub merge: Merge,
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
    /// As `Nothing`, but for values in parentheses: a reason is cut where a list of nodes is not.
    Reasons,
    /// The last character is kept: the `*` of the default partition.
    BeforeLast,
}

/// Whether rows that differ in a column may be shown as one, for views that gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    Never,
    /// The column tells of something larger than the row: the row's partition, not its nodes.
    NeverAcross,
    /// Differences become a range, unless exact rows are asked for.
    UnlessExact,
    /// A sum or a list.
    Always,
}

/// A sort key; numbers of one column never meet texts of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key<'a> {
    Number(i64),
    Text(Cow<'a, str>),
    /// More than any other; as Slurm's comparison has it, those that are alike in this are turned round unless the order is.
    Missing,
    /// Comes last, whichever way round; those that are alike in this are turned round.
    Absent,
}

impl<V: View> Column<V> {
    pub const fn sorted_by(mut self, key: V::KeyOf) -> Self {
        self.key = Some(key);
        self
    }

    pub const fn merging(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    pub const fn cutting(mut self, cut: Cut) -> Self {
        self.cut = cut;
        self
    }
}

/// A name with a number behind it, in natural order: n9 before n10.
pub fn natural(name: &str) -> Key<'static> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    Key::Text(Cow::Owned(format!("{prefix}{number:0>20}")))
}

/// Appends `(null)` for what is not there, as Slurm's users know it.
pub fn or_null(text: &str, out: &mut String) {
    out.push_str(if text.is_empty() { "(null)" } else { text });
}
