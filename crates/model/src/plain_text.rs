//! Texts that others chose, made harmless for a terminal, a log and the lines of a table.
//!
//! Control characters (also those of C1), marks that turn the direction of writing, and separators of lines and paragraphs are
//! written as JSON writes them: `\n`, `\u001b`. What is JSON already stays valid JSON.
use std::borrow::Cow;
use std::fmt::Write;

/// Texts of these fields have lines, as users wrote them.
const FIELDS_WITH_LINES: [&str; 4] = ["burst_buffer", "burst_buffer_file", "text", "expected_nodes"];

/// A terminal obeys it, or shows what follows in another order.
pub fn is_hostile(letter: char) -> bool {
    matches!(letter,
        '\0'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// For one line: nothing in it begins another.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// For what has lines and columns of its own: line ends and tabs stay.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| matches!(letter, '\n' | '\t'))
}

fn escaped(text: &str, stays: fn(char) -> bool) -> Cow<'_, str> {
    let is_suspect = |byte: u8| byte < 0x20 || byte == 0x7f || matches!(byte, 0xc2 | 0xd8 | 0xe2);
    // Most texts are looked at and left.
    if !text.bytes().any(|byte| is_suspect(byte) && !stays(char::from(byte))) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if !is_hostile(letter) || stays(letter) => out.push(letter),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            other => write!(out, "\\u{:04x}", u32::from(other)).expect("a String takes everything"),
        }
    }
    out.into()
}

/// An encoded value with all its texts made harmless; none if they are already. Whoever only shows what it reads decodes this.
pub fn cleaned(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut walk = Walk { bytes: encoded, at: 0, open: Vec::new() };
    // Up to `copied`, the value stands in `out`.
    let (mut out, mut copied) = (Vec::new(), 0);
    while let Some(piece) = walk.next()? {
        let clean = if piece.keeps_lines { shown_lines(piece.text) } else { shown(piece.text) };
        if let Cow::Owned(clean) = clean {
            out.extend_from_slice(&encoded[copied..piece.begins]);
            out.push(0xdb);
            out.extend_from_slice(&(clean.len() as u32).to_be_bytes());
            out.extend_from_slice(clean.as_bytes());
            copied = walk.at;
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&encoded[copied..]);
    Some(out)
}

/// Goes from text to text through MessagePack.
struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
    open: Vec<OpenList>,
}

/// A list or map that the walk is in.
struct OpenList {
    n_left: u64,
    is_map: bool,
    /// Of the key that was read last.
    keeps_lines: bool,
}

struct TextPiece<'b> {
    begins: usize,
    text: &'b str,
    keeps_lines: bool,
}

impl<'b> Walk<'b> {
    /// Some(None) at the end; None where the bytes are no value.
    #[allow(clippy::option_option)]
    fn next(&mut self) -> Option<Option<TextPiece<'b>>> {
        while self.at < self.bytes.len() {
            let begins = self.at;
            let marker = self.number(1)? as u8;
            let is_key = self.begin_value();
            let n_bytes = match marker {
                0x00..=0x7f | 0xe0..=0xff | 0xc0..=0xc3 => 0,
                0xcc | 0xd0 => 1,
                0xcd | 0xd1 => 2,
                0xce | 0xd2 | 0xca => 4,
                0xcf | 0xd3 | 0xcb => 8,
                0xd4..=0xd8 => 1 + (1 << (marker - 0xd4)),
                0xc4..=0xc6 => self.number(1 << (marker - 0xc4))?,
                0xc7..=0xc9 => 1 + self.number(1 << (marker - 0xc7))?,
                0x80..=0x8f => self.open(u64::from(marker & 0xf) * 2, true),
                0xde | 0xdf => {
                    let n_pairs = self.number(2 << (marker - 0xde))?;
                    self.open(n_pairs.saturating_mul(2), true)
                }
                0x90..=0x9f => self.open(u64::from(marker & 0xf), false),
                0xdc | 0xdd => {
                    let n_items = self.number(2 << (marker - 0xdc))?;
                    self.open(n_items, false)
                }
                0xa0..=0xbf | 0xd9..=0xdb => {
                    let length = match marker {
                        0xa0..=0xbf => usize::from(marker & 0x1f),
                        _ => self.number(1 << (marker - 0xd9))? as usize,
                    };
                    let text = std::str::from_utf8(self.bytes.get(self.at..self.at.checked_add(length)?)?).ok()?;
                    self.at += length;
                    let keeps_lines = self.note_text(text, is_key);
                    return Some(Some(TextPiece { begins, text, keeps_lines }));
                }
            };
            self.at = self.at.checked_add(usize::try_from(n_bytes).ok()?)?;
        }
        Some(None)
    }

    /// One value less is left of the list; says whether it is the key of a map.
    fn begin_value(&mut self) -> bool {
        while self.open.last().is_some_and(|list| list.n_left == 0) {
            self.open.pop();
        }
        let Some(list) = self.open.last_mut() else { return false };
        list.n_left -= 1;
        // Keys and values take turns, and the last is a value.
        list.is_map && list.n_left % 2 == 1
    }

    fn open(&mut self, n_left: u64, is_map: bool) -> u64 {
        self.open.push(OpenList { n_left, is_map, keeps_lines: false });
        0
    }

    /// Says whether lines stay in the text.
    fn note_text(&mut self, text: &str, is_key: bool) -> bool {
        let Some(list) = self.open.last_mut() else { return false };
        if is_key {
            list.keeps_lines = FIELDS_WITH_LINES.contains(&text);
        }
        list.keeps_lines && !is_key
    }

    /// The big-endian number in so many bytes.
    fn number(&mut self, n_bytes: usize) -> Option<u64> {
        let bytes = self.bytes.get(self.at..self.at + n_bytes)?;
        self.at += n_bytes;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobSpec, codec};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn terminal_obeys_nothing_that_is_shown() {
        assert_eq!(shown("plain – ünïcode 作业"), "plain – ünïcode 作业");
        assert_eq!(shown("a\u{1b}[2Jb\nc\td\r\u{7f}\u{9b}1m"), "a\\u001b[2Jb\\nc\\td\\r\\u007f\\u009b1m");
        assert_eq!(shown("\u{202e}gnp.exe\u{2028}\u{2066}\u{61c}"), "\\u202egnp.exe\\u2028\\u2066\\u061c");
        assert_eq!(shown_lines("a\tb\nc\u{1b}"), "a\tb\nc\\u001b");
    }

    #[test]
    fn decoded_names_hold_no_line_ends_and_directives_do() {
        let spec = JobSpec {
            name: "x\n12345 root".into(),
            comment: "fine".into(),
            burst_buffer: "#BB a\n#BB b\u{1b}".into(),
            arguments: vec!["\u{85}".into(), "b".into()],
            ..JobSpec::default()
        };
        let clean: JobSpec = codec::decode(&cleaned(&codec::encode(&spec)).unwrap()).unwrap();
        assert_eq!(clean.name, "x\\n12345 root");
        assert_eq!(clean.burst_buffer, "#BB a\n#BB b\\u001b");
        assert_eq!(clean.arguments, ["\\u0085", "b"]);
        assert_eq!(
            JobSpec { name: spec.name, burst_buffer: spec.burst_buffer, arguments: spec.arguments, ..clean.clone() }
                .comment,
            "fine"
        );
        assert_eq!(cleaned(&codec::encode(&JobSpec::default())), None);
    }

    proptest! {
        #[test]
        fn only_texts_change(
            map in prop::collection::btree_map("\\PC{0,40}", (any::<i64>(), any::<f64>(), prop::collection::vec(any::<Option<u16>>(), 0..20)), 0..20),
            name in any::<String>(),
        ) {
            let value = (map, name);
            let bytes = codec::encode(&value);
            type Value = (BTreeMap<String, (i64, f64, Vec<Option<u16>>)>, String);
            let wanted: Value = (
                value.0.iter().map(|(key, rest)| (shown(key).into_owned(), rest.clone())).collect(),
                shown(&value.1).into_owned(),
            );
            let clean: Value = codec::decode(&cleaned(&bytes).unwrap_or(bytes)).unwrap();
            prop_assert_eq!(codec::encode(&clean), codec::encode(&wanted));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            cleaned(&bytes);
        }
    }
}
