//! Moments as users read them: local time, in the form SLURM_TIME_FORMAT asks for.
use std::fmt::Write;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Unit, Zoned};
use model::Timestamp;
use model::calendar::{LocalTime, Zone};

/// What is wrong with a value of SLURM_TIME_FORMAT.
pub fn complaint(format: Option<&str>) -> Option<String> {
    let format = format?;
    let known =
        format.contains('%') || ["standard", "relative", ""].iter().any(|word| format.eq_ignore_ascii_case(word));
    (!known).then(|| format!("invalid SLURM_TIME_FORMAT = '{format}'"))
}

/// This machine's zone, or the one that TZ names. The library would list all zones there are before it reads one.
fn here() -> TimeZone {
    let named = std::env::var("TZ").ok();
    let file = match named.as_deref().map(|name| name.trim_start_matches(':')) {
        None => PathBuf::from("/etc/localtime"),
        Some(name) => Path::new("/usr/share/zoneinfo").join(name),
    };
    let is_named = named.as_deref().is_none_or(|name| !name.is_empty() && !name.contains(".."));
    let read = || TimeZone::tzif("here", &std::fs::read(&file).ok()?).ok();
    read().filter(|_| is_named).unwrap_or_else(TimeZone::system)
}

/// A place's wall clock, and how to write what it shows.
#[derive(Clone, Debug)]
pub struct Clock {
    zone: TimeZone,
    style: Style,
    now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Style {
    /// `2026-11-15T21:52:13`
    Standard,
    /// Only what differs from now.
    Relative,
    /// strftime's language.
    Custom(String),
}

impl Clock {
    /// This machine's zone; `format` is the value of SLURM_TIME_FORMAT.
    pub fn local(format: Option<&str>, now: Timestamp) -> Clock {
        Clock::new(here(), format, now)
    }

    pub fn utc(now: Timestamp) -> Clock {
        Clock::new(TimeZone::UTC, None, now)
    }

    pub fn new(zone: TimeZone, format: Option<&str>, now: Timestamp) -> Clock {
        let style = match format {
            None => Style::Standard,
            Some(word) if word.eq_ignore_ascii_case("standard") => Style::Standard,
            Some(word) if word.eq_ignore_ascii_case("relative") => Style::Relative,
            Some(format) if format.contains('%') => Style::Custom(format.to_string()),
            Some(_) => Style::Standard,
        };
        Clock { zone, style, now }
    }

    pub fn at(&self, now: Timestamp) -> Clock {
        Clock { now, ..self.clone() }
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Appends the moment.
    pub fn write(&self, moment: Timestamp, out: &mut String) {
        let local = self.zoned(moment);
        match &self.style {
            Style::Standard => standard(local.datetime(), out),
            Style::Relative => relative(&local, &self.zoned(self.now), out),
            Style::Custom(format) => match jiff::fmt::strtime::format(format, &local) {
                Ok(text) => out.push_str(&text),
                Err(_) => standard(local.datetime(), out),
            },
        }
    }

    pub fn show(&self, moment: Timestamp) -> String {
        let mut text = String::new();
        self.write(moment, &mut text);
        text
    }

    /// The moment, or `word` if there is none.
    pub fn write_or(&self, moment: Option<Timestamp>, word: &str, out: &mut String) {
        match moment {
            Some(moment) => self.write(moment, out),
            None => out.push_str(word),
        }
    }

    pub fn show_or(&self, moment: Option<Timestamp>, word: &str) -> String {
        let mut text = String::new();
        self.write_or(moment, word, &mut text);
        text
    }

    /// `Sun Nov 15 21:55:11 2026`, the first line of long listings.
    pub fn banner(&self) -> String {
        self.zoned(self.now).strftime("%a %b %d %H:%M:%S %Y").to_string()
    }

    fn zoned(&self, moment: Timestamp) -> Zoned {
        let second = i64::try_from(moment.secs()).unwrap_or(i64::MAX);
        let moment = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
        moment.to_zoned(self.zone.clone())
    }
}

impl Zone for Clock {
    fn to_local(&self, unix_secs: i64) -> LocalTime {
        let at = self.zoned(Timestamp::from_secs(unix_secs.max(0) as u64)).datetime();
        LocalTime {
            year: i64::from(at.year()),
            month: at.month() as u8,
            day: at.day() as u8,
            hour: at.hour() as u8,
            minute: at.minute() as u8,
            second: at.second() as u8,
        }
    }

    fn to_unix(&self, local: LocalTime) -> i64 {
        let LocalTime { year, month, day, hour, minute, second } = local.plus_days(0);
        let at = DateTime::new(year as i16, month as i8, day as i8, hour as i8, minute as i8, second as i8, 0);
        match at.ok().and_then(|at| self.zone.to_zoned(at).ok()) {
            Some(zoned) => zoned.timestamp().as_second(),
            None => 0,
        }
    }
}

fn standard(at: DateTime, out: &mut String) {
    let (year, month, day) = (at.year(), at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}").expect("a String takes everything");
}

fn relative(at: &Zoned, now: &Zoned, out: &mut String) {
    let days = now.date().until((Unit::Day, at.date())).map_or(i32::MAX, |span| span.get_days());
    let format = match days {
        0 => "%H:%M:%S",
        1 => "Tomorr %H:%M",
        -1 => "Ystday %H:%M",
        2..=6 => "%a %H:%M",
        _ if at.year() == now.year() => "%-d %b %H:%M",
        _ => "%-d %b %Y",
    };
    write!(out, "{}", at.strftime(format)).expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_794_744_000; // 2026-11-15T12:00:00Z

    fn check(format: Option<&str>, secs: u64, expected: &str) {
        let clock = Clock::new(TimeZone::UTC, format, Timestamp::from_secs(NOON));
        assert_eq!(clock.show(Timestamp::from_secs(secs)), expected, "{format:?}");
    }

    #[test]
    fn moments_are_written_as_asked() {
        check(None, NOON, "2026-11-15T12:00:00");
        check(Some("standard"), NOON, "2026-11-15T12:00:00");
        check(Some("%H:%M"), NOON, "12:00");
        check(Some("%s"), NOON, "1794744000");
        check(Some("relative"), NOON + 61, "12:01:01");
        check(Some("relative"), NOON + 86_400, "Tomorr 12:00");
        check(Some("relative"), NOON - 86_400, "Ystday 12:00");
        check(Some("relative"), NOON + 3 * 86_400, "Wed 12:00");
        check(Some("relative"), NOON + 30 * 86_400, "15 Dec 12:00");
        check(Some("relative"), NOON + 100 * 86_400, "23 Feb 2027");
    }

    #[test]
    fn the_banner_is_the_c_librarys() {
        assert_eq!(Clock::utc(Timestamp::from_secs(NOON)).banner(), "Sun Nov 15 12:00:00 2026");
    }
}
