//! Text of a record, cut at its bound.
use std::fmt::{self, Write};

/// What a record says of one thing takes no more of its line than this.
const TEXT_MAX_BYTES: usize = 400;

/// Text that takes no more than its bound as JSON; what is formatted into it stops there.
#[derive(Default)]
pub struct Shortened {
    pub text: String,
    /// As JSON writes it: a control character takes six bytes.
    n_bytes: usize,
}

impl Write for Shortened {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            let n_bytes = match letter {
                '"' | '\\' => 2,
                letter if letter.is_ascii_control() => 6,
                letter => letter.len_utf8(),
            };
            if self.n_bytes + n_bytes > TEXT_MAX_BYTES {
                self.text.push('…');
                self.n_bytes = TEXT_MAX_BYTES;
                return Err(fmt::Error);
            }
            self.n_bytes += n_bytes;
            self.text.push(letter);
        }
        Ok(())
    }
}

pub fn shortened(text: &str) -> String {
    let mut short = Shortened::default();
    let _ = short.write_str(text);
    short.text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_is_cut_at_its_bound_however_long_the_value() {
        let mut short = Shortened::default();
        let long = vec!["ä".repeat(1000); 1000];
        let _ = write!(short, "{long:?}");
        assert!(short.text.len() <= TEXT_MAX_BYTES + '…'.len_utf8(), "{}", short.text.len());
        assert!(short.text.ends_with('…'));
        let bells = serde_json::to_string(&shortened(&"\u{7}".repeat(1000))).unwrap();
        assert!(bells.len() <= TEXT_MAX_BYTES + '…'.len_utf8() + 2, "{}", bells.len());
    }
}
