//! Spans of time as Slurm writes them: `30`, `1:30:00`, `2-12`, `UNLIMITED`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How long something may take. Ordered: unlimited is longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Limit {
    Seconds(u64),
    #[default]
    Unlimited,
}

impl Limit {
    pub fn seconds(self) -> Option<u64> {
        match self {
            Limit::Seconds(seconds) => Some(seconds),
            Limit::Unlimited => None,
        }
    }

    /// Slurm keeps time limits in whole minutes, rounded up.
    pub fn in_whole_minutes(self) -> Limit {
        match self {
            Limit::Seconds(seconds) => Limit::Seconds(seconds.div_ceil(MINUTE).saturating_mul(MINUTE)),
            Limit::Unlimited => Limit::Unlimited,
        }
    }

    /// As scontrol prints it: `00:30:00`, `1-00:00:00`, `UNLIMITED`.
    pub fn show(self) -> String {
        match self {
            Limit::Seconds(seconds) => show(seconds),
            Limit::Unlimited => "UNLIMITED".to_owned(),
        }
    }

    /// As squeue prints it: `30:00`, `1-00:00:00`, `UNLIMITED`.
    pub fn show_short(self) -> String {
        match self {
            Limit::Seconds(seconds) => show_short(seconds),
            Limit::Unlimited => "UNLIMITED".to_owned(),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.show())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTime(pub String);

impl fmt::Display for InvalidTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Invalid time specification \"{}\"", self.0)
    }
}

impl std::error::Error for InvalidTime {}

impl FromStr for Limit {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        parse(text).ok_or_else(|| InvalidTime(text.to_owned()))
    }
}

/// A span of time; a number alone is minutes.
pub fn parse(text: &str) -> Option<Limit> {
    if text == "-1" || text.eq_ignore_ascii_case("UNLIMITED") || text.eq_ignore_ascii_case("INFINITE") {
        return Some(Limit::Unlimited);
    }
    let (days, clock) = match text.split_once('-') {
        Some((days, "")) => (Some(number(days)?), "0"),
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let fields = clock.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let units: &[u64] = match (days, fields.len()) {
        (None, 1) => &[MINUTE],
        (None, 2) => &[MINUTE, 1],
        (None, 3) | (Some(_), 1..=3) => &[HOUR, MINUTE, 1],
        _ => return None,
    };
    let mut seconds = days.unwrap_or(0).checked_mul(DAY)?;
    for (field, unit) in fields.iter().zip(units) {
        seconds = seconds.checked_add(field.checked_mul(*unit)?)?;
    }
    Some(Limit::Seconds(seconds))
}

/// A job's time limit, where 0 asks for none at all.
pub fn parse_limit(text: &str) -> Option<Limit> {
    match parse(text)? {
        Limit::Seconds(0) => Some(Limit::Unlimited),
        limit => Some(limit.in_whole_minutes()),
    }
}

/// Seconds as `[D-]HH:MM:SS`.
pub fn show(seconds: u64) -> String {
    let (days, hours, minutes, seconds) = parts(seconds);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Seconds with as few fields as they need, at least `M:SS`.
pub fn show_short(seconds: u64) -> String {
    match parts(seconds) {
        (0, 0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (0, hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (days, hours, minutes, seconds) => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// As `show_short`, for a difference of clocks that may have gone backwards.
pub fn show_elapsed(seconds: i64) -> String {
    u64::try_from(seconds).map_or_else(|_| "INVALID".to_owned(), show_short)
}

fn parts(seconds: u64) -> (u64, u64, u64, u64) {
    (seconds / DAY, seconds / HOUR % 24, seconds / MINUTE % 60, seconds % 60)
}

fn number(digits: &str) -> Option<u64> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_is_read() {
        for (text, seconds) in [
            ("2", 120),
            ("0:300", 300),
            ("1:30", 90),
            ("00:02:00", 120),
            ("1:00:00", 3600),
            ("1-0", 86_400),
            ("1-", 86_400),
            ("1-12", 129_600),
            ("1-12:30", 131_400),
            ("1-00:00:01", 86_401),
            ("90:00", 5400),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Some(Limit::Seconds(seconds)), "{text}");
        }
        for text in ["UNLIMITED", "infinite", "-1"] {
            assert_eq!(parse(text), Some(Limit::Unlimited));
        }
        for text in ["", ":", "1:", "-2", "-", "1:2:3:4", "1-2:3:4:5", "1-2-3", "+1", "1h", "1.5", " 1"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("999999999999999999-0"), None);
        assert_eq!("x".parse::<Limit>(), Err(InvalidTime("x".into())));
    }

    #[test]
    fn a_job_limit_is_in_whole_minutes_and_zero_is_none() {
        assert_eq!(parse_limit("0"), Some(Limit::Unlimited));
        assert_eq!(parse_limit("0:61"), Some(Limit::Seconds(120)));
        assert!(Limit::Seconds(u64::MAX) < Limit::Unlimited);
    }

    #[test]
    fn scontrol_and_squeue_print_differently() {
        for (seconds, long, short) in [
            (3, "00:00:03", "0:03"),
            (60, "00:01:00", "1:00"),
            (3600, "01:00:00", "1:00:00"),
            (86_400, "1-00:00:00", "1-00:00:00"),
            (36_000, "10:00:00", "10:00:00"),
        ] {
            assert_eq!(show(seconds), long);
            assert_eq!(show_short(seconds), short);
        }
        assert_eq!(show_elapsed(-1), "INVALID");
        assert_eq!(Limit::Unlimited.to_string(), "UNLIMITED");
    }

    proptest! {
        #[test]
        fn shown_spans_are_read_back(seconds in any::<u64>()) {
            prop_assert_eq!(parse(&show(seconds)), Some(Limit::Seconds(seconds)));
            prop_assert_eq!(parse(&show_short(seconds)), Some(Limit::Seconds(seconds)));
        }

        #[test]
        fn no_text_panics(text in any::<String>(), near in "[0-9:-]{0,24}") {
            for text in [text, near] {
                if let Some(limit) = parse(&text) {
                    limit.in_whole_minutes().show();
                }
            }
        }
    }
}
