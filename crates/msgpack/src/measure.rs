//! A walk over MessagePack that judges its shape alone: how deep, how long, how many parts.
use std::fmt;

use crate::DecodeError;

/// How deep values are nested in the log and in snapshots at most.
pub const DEPTH_MAX: usize = 360;
/// How deep in a request: what was taken is kept inside something else, and must be readable there.
///
/// Honest values stay below 280. The deepest is a job's constraint with as many parentheses as its parser takes.
pub const SENT_DEPTH_MAX: usize = 300;
/// Lists and maps that a request may hold in all; a list of small values takes far more room than its bytes.
pub const SENT_PARTS_MAX: usize = 1 << 18;

/// Values that a request may hold in all, of whatever kind, names of fields included.
pub const SENT_VALUES_MAX: usize = 1 << 21;

/// What the bytes may be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeLimits {
    pub depth: usize,
    /// Lists and maps.
    pub n_parts: usize,
    pub n_values: usize,
}

impl ShapeLimits {
    pub const KEPT: ShapeLimits = ShapeLimits { depth: DEPTH_MAX, n_parts: usize::MAX, n_values: usize::MAX };
    pub const SENT: ShapeLimits =
        ShapeLimits { depth: SENT_DEPTH_MAX, n_parts: SENT_PARTS_MAX, n_values: SENT_VALUES_MAX };
}

/// What is wrong with the shape of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    TooDeep,
    TooManyParts,
    TooManyValues,
    /// A length claims more than there is, or the value is cut short.
    CutShort,
    /// No value begins with this byte.
    NoMarker(u8),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::TooDeep => f.write_str("values are nested too deep"),
            Malformed::TooManyParts => f.write_str("too many lists and maps"),
            Malformed::TooManyValues => f.write_str("too many values"),
            Malformed::CutShort => f.write_str("a length says more than there is"),
            Malformed::NoMarker(byte) => write!(f, "no value begins with {byte:#04x}"),
        }
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for DecodeError {
    fn from(malformed: Malformed) -> DecodeError {
        DecodeError::Syntax(malformed.to_string())
    }
}

/// How many bytes the first value takes.
pub fn measure(bytes: &[u8], limits: ShapeLimits) -> Result<usize, Malformed> {
    // How many values are still to come at each level.
    let mut open = [0u64; DEPTH_MAX];
    let (mut depth, mut at, mut n_parts, mut n_values) = (0, 0, 0, 0);
    loop {
        n_values += 1;
        if n_values > limits.n_values {
            return Err(Malformed::TooManyValues);
        }
        let (head, inside) = part(&bytes[at..])?;
        at += head;
        match inside {
            Some(n_inside) => {
                n_parts += 1;
                if n_parts > limits.n_parts {
                    return Err(Malformed::TooManyParts);
                }
                // Each value takes a byte at least.
                if n_inside > (bytes.len() - at) as u64 {
                    return Err(Malformed::CutShort);
                }
                if depth == limits.depth.min(DEPTH_MAX) {
                    return Err(Malformed::TooDeep);
                }
                open[depth] = n_inside;
                depth += 1;
            }
            None if at > bytes.len() => return Err(Malformed::CutShort),
            None => {}
        }
        while depth > 0 && open[depth - 1] == 0 {
            depth -= 1;
        }
        match depth.checked_sub(1) {
            None => return Ok(at),
            Some(level) => open[level] -= 1,
        }
    }
}

/// How long the value at the beginning is, or its head alone and how many values are inside.
fn part(bytes: &[u8]) -> Result<(usize, Option<u64>), Malformed> {
    let (&marker, rest) = bytes.split_first().ok_or(Malformed::CutShort)?;
    let number = |n_bytes: usize| {
        let digits = rest.get(..n_bytes).ok_or(Malformed::CutShort)?;
        Ok(digits.iter().fold(0u64, |number, digit| number << 8 | u64::from(*digit)))
    };
    let plain = |n_bytes: usize| Ok((1 + n_bytes, None));
    let text = |n_length: usize, n_more: usize| Ok((1 + n_length + n_more + number(n_length)? as usize, None));
    let list = |n_length: usize, times: u64| Ok((1 + n_length, Some(number(n_length)? * times)));
    match marker {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => plain(0),
        0x80..=0x8f => Ok((1, Some(u64::from(marker & 0x0f) * 2))),
        0x90..=0x9f => Ok((1, Some(u64::from(marker & 0x0f)))),
        0xa0..=0xbf => plain(usize::from(marker & 0x1f)),
        0xc1 => Err(Malformed::NoMarker(marker)),
        0xc4 | 0xd9 => text(1, 0),
        0xc5 | 0xda => text(2, 0),
        0xc6 | 0xdb => text(4, 0),
        0xc7 => text(1, 1),
        0xc8 => text(2, 1),
        0xc9 => text(4, 1),
        0xcc | 0xd0 => plain(1),
        0xcd | 0xd1 => plain(2),
        0xca | 0xce | 0xd2 => plain(4),
        0xcb | 0xcf | 0xd3 => plain(8),
        0xd4 => plain(2),
        0xd5 => plain(3),
        0xd6 => plain(5),
        0xd7 => plain(9),
        0xd8 => plain(17),
        0xdc => list(2, 1),
        0xdd => list(4, 1),
        0xde => list(2, 2),
        0xdf => list(4, 2),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Nested {
        Nothing,
        Not(Box<Nested>),
        All(Vec<Nested>),
        Named { inner: Box<Nested>, text: String, bytes: Vec<u8> },
        Numbers(Option<u64>, i32, f64, char),
    }

    fn any_nested() -> impl Strategy<Value = Nested> {
        let numbers = (any::<Option<u64>>(), any::<i32>(), -1e9..1e9, any::<char>());
        let leaf = prop_oneof![Just(Nested::Nothing), numbers.prop_map(|(a, b, c, d)| Nested::Numbers(a, b, c, d))];
        leaf.prop_recursive(6, 64, 8, |inner| {
            let text = ("[a-z]{0,300}", prop::collection::vec(any::<u8>(), 0..300));
            prop_oneof![
                inner.clone().prop_map(|inner| Nested::Not(inner.into())),
                prop::collection::vec(inner.clone(), 0..20).prop_map(Nested::All),
                (inner, text).prop_map(|(inner, (text, bytes))| Nested::Named { inner: inner.into(), text, bytes }),
            ]
        })
    }

    proptest! {
        #[test]
        fn measure_agrees_with_what_was_written(value in any_nested(), after in prop::collection::vec(any::<u8>(), 0..9)) {
            for bytes in [crate::encode(&value), crate::encode_compact(&value), crate::encode_bytes_whole(&value)] {
                let mut bytes = bytes.unwrap();
                let n_bytes = bytes.len();
                prop_assert_eq!(measure(&bytes, ShapeLimits::KEPT), Ok(n_bytes));
                for cut in 0..n_bytes {
                    prop_assert!(crate::decode::<Nested>(&bytes[..cut]).is_err());
                }
                bytes.extend(&after);
                let mut rest = bytes.as_slice();
                prop_assert_eq!(crate::decode_next::<Nested>(&mut rest).unwrap(), value.clone());
                prop_assert_eq!(rest, after.as_slice());
            }
        }

        #[test]
        fn noise_is_judged_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(length) = measure(&bytes, ShapeLimits::KEPT) {
                prop_assert!(length <= bytes.len());
            }
            let _ = crate::decode::<Nested>(&bytes);
        }
    }

    #[test]
    fn nesting_ends_where_the_limit_is() {
        // `{"Not": …}`: one map a level.
        let nested = |n_deep: usize| [b"\x81\xa3Not".repeat(n_deep), b"\xa7Nothing".to_vec()].concat();
        assert!(crate::decode::<Nested>(&nested(DEPTH_MAX)).is_ok());
        let refused = crate::decode::<Nested>(&nested(DEPTH_MAX + 1)).unwrap_err();
        assert_eq!(refused.to_string(), "values are nested too deep");
        assert!(crate::decode_sent::<Nested>(&nested(SENT_DEPTH_MAX)).is_ok());
        assert!(crate::decode_sent::<Nested>(&nested(SENT_DEPTH_MAX + 1)).is_err());
        assert!(crate::decode::<Nested>(&nested(1_000_000)).is_err());
        assert!(crate::decode::<Nested>(&[0x91u8].repeat(1_000_000)).is_err());
    }

    #[test]
    fn lengths_that_only_claim_are_refused() {
        for head in [
            &b"\xc6\xff\xff\xff\xff"[..],
            b"\xdb\xff\xff\xff\xff",
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\xc9\xff\xff\xff\xff\x01",
        ] {
            assert_eq!(
                measure(&[head, b"\x00\x00"].concat(), ShapeLimits::KEPT),
                Err(Malformed::CutShort),
                "{head:x?}"
            );
        }
    }

    #[test]
    fn parts_of_a_request_are_counted() {
        let maps = [&[0xdd, 0, 8, 0, 0][..], &[0x80; 1 << 19]].concat();
        assert_eq!(measure(&maps, ShapeLimits::SENT), Err(Malformed::TooManyParts));
        assert_eq!(measure(&maps, ShapeLimits::KEPT), Ok(maps.len()));
        // Bytes of a script are no parts.
        let bytes = crate::encode_bytes_whole(&vec![7u8; 1 << 20]).unwrap();
        assert!(measure(&bytes, ShapeLimits { n_parts: 1, n_values: 1, ..ShapeLimits::SENT }).is_ok());
    }

    #[test]
    fn values_of_a_request_are_counted() {
        let texts = [&[0xdd, 0, 0x40, 0, 0][..], &[0xa0; 1 << 22]].concat();
        assert_eq!(measure(&texts, ShapeLimits::SENT), Err(Malformed::TooManyValues));
        assert_eq!(measure(&texts, ShapeLimits::KEPT), Ok(texts.len()));
    }
}
