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

/// As `parse_sort`, without the letters that no column has.
pub fn known_sort<V: View>(columns: &'static [Column<V>], text: &str) -> Vec<Sort<V>> {
    let is_known = |sign: &char| ",#+-".contains(*sign) || columns.iter().any(|column| column.letter == *sign);
    parse_sort(columns, &text.chars().filter(is_known).collect::<String>()).unwrap_or_default()
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
    places.sort_by(|&left, &right| {
        let (left, right) = (&keys[left * n_keys..][..n_keys], &keys[right * n_keys..][..n_keys]);
        for ((left, right), sort) in left.iter().zip(right).zip(sorts) {
            match left.cmp(right) {
                Ordering::Equal => {}
                unequal if sort.descending && *left != Key::Absent && *right != Key::Absent => {
                    return unequal.reverse();
                }
                unequal => return unequal,
            }
        }
        Ordering::Equal
    });
    places
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
