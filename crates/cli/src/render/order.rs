//! The order of rows: `--sort=P,-t` names columns by letter, a minus turns one round.
use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Column, Key, View};

/// One sort key of `--sort`.
pub struct Sort<V: View> {
    pub column: &'static Column<V>,
    pub descending: bool,
}

/// Reads `t,-i`; the error is the first letter that means nothing.
pub fn parse_sort<V: View>(columns: &'static [Column<V>], text: &str) -> Result<Vec<Sort<V>>, String> {
    let mut keys = Vec::new();
    let mut descending = false;
    for sign in text.chars() {
        match sign {
            ',' | '#' | '+' => {}
            '-' => descending = true,
            letter => {
                let column = columns.iter().find(|column| column.letter == letter).ok_or_else(|| letter.to_string())?;
                keys.push(Sort { column, descending });
                descending = false;
            }
        }
    }
    Ok(keys)
}

/// As `parse_sort`, without the letters that no column has, and the signs before them.
pub fn known_sort<V: View>(columns: &'static [Column<V>], text: &str) -> Vec<Sort<V>> {
    let ends = |sign: char| !",#+-".contains(sign);
    let known = |key: &&str| key.chars().next_back().is_some_and(|last| columns.iter().any(|one| one.letter == last));
    let text: String = text.split_inclusive(ends).filter(known).collect();
    parse_sort(columns, &text).unwrap_or_default()
}

/// Sorts by the keys, the first deciding; rows that tie stay as they were.
pub fn sort_rows<V: View>(sorts: &[Sort<V>], rows: &mut Vec<V::Row<'_>>) {
    if sorts.is_empty() || rows.len() < 2 {
        return;
    }
    let places = places(sorts, rows);
    let mut taken: Vec<Option<V::Row<'_>>> = rows.drain(..).map(Some).collect();
    rows.extend(places.into_iter().map(|place| taken[place].take().expect("each place is taken once")));
}

fn places<V: View>(sorts: &[Sort<V>], rows: &[V::Row<'_>]) -> Vec<usize> {
    let keys: Vec<Key> = rows.iter().flat_map(|row| sorts.iter().map(move |sort| key(sort.column, row))).collect();
    let mut places: Vec<usize> = (0..rows.len()).collect();
    let n_keys = sorts.len();
    let of = |place: usize| &keys[place * n_keys..][..n_keys];
    places.sort_unstable_by(|&left, &right| compare(sorts, of(left), of(right), left.cmp(&right)));
    places
}

/// `places` is their order where no key tells them apart.
fn compare<V: View>(sorts: &[Sort<V>], left: &[Key], right: &[Key], places: Ordering) -> Ordering {
    let ([sort, sorts @ ..], [one, left @ ..], [other, right @ ..]) = (sorts, left, right) else { return places };
    let rest = || compare(sorts, left, right, places);
    match (one, other) {
        (Key::Absent, Key::Absent) => rest().reverse(),
        (Key::Missing, Key::Missing) if !sort.descending => rest().reverse(),
        (Key::Absent, _) => Ordering::Greater,
        (_, Key::Absent) => Ordering::Less,
        (one, other) if sort.descending => other.cmp(one).then_with(rest),
        (one, other) => one.cmp(other).then_with(rest),
    }
}

fn key<'r, V: View>(column: &Column<V>, row: &'r V::Row<'_>) -> Key<'r> {
    match column.key {
        Some(key) => V::key(key, row),
        None => {
            let mut text = String::new();
            V::fill(column.fill, row, &mut text);
            Key::Text(Cow::Owned(text))
        }
    }
}
