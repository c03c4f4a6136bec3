//! Moments as users name them: `--begin=16:00`, `-S 2027-01-20T12:34`, `now+2hours`, `tomorrow noon`.

use crate::calendar::{LocalTime, Zone};

/// The last second of the year 9999; nothing can be later.
const LATEST: i64 = 253_402_300_799;
/// Smaller numbers after `uts` are taken for a mistake, as Slurm does.
const UTS_MIN: i64 = 1_000_000;

/// Which way to complete what was left open: the next `16:00`, or the one of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lean {
    /// For times at which something shall happen.
    Future,
    /// For times since which something happened.
    Past,
}

/// The moment meant, in seconds since 1970. `now` tells what day it is in `zone`.
pub fn parse(text: &str, now: i64, zone: &impl Zone, lean: Lean) -> Option<i64> {
    let mut reader = Reader { rest: text.trim() };
    if reader.skip_word("uts") {
        let unix: i64 = reader.digits(1, 12)?.parse().ok()?;
        return (reader.rest.is_empty() && (UTS_MIN..=LATEST).contains(&unix)).then_some(unix);
    }
    if reader.skip_word("now") {
        return Some(now.checked_add(offset(reader)?)?.min(LATEST));
    }
    let (date, clock) = date_and_clock(reader)?;
    let today = zone.to_local(now);
    Some(zone.to_unix(complete(date, clock, today, lean)?.plus_days(0)))
}

/// What was said of the day.
#[derive(Clone, Copy)]
enum Date {
    DaysAhead(i64),
    Day { month: u8, day: u8 },
    Full { year: i64, month: u8, day: u8 },
}

#[derive(Clone, Copy)]
struct Clock {
    hour: u8,
    minute: u8,
    second: u8,
}

const MIDNIGHT: Clock = Clock { hour: 0, minute: 0, second: 0 };
const HOURS: [(&str, u8); 5] = [("midnight", 0), ("noon", 12), ("elevenses", 11), ("fika", 15), ("teatime", 16)];

fn complete(date: Option<Date>, clock: Option<Clock>, now: LocalTime, lean: Lean) -> Option<LocalTime> {
    let Clock { hour, minute, second } = clock.unwrap_or(MIDNIGHT);
    let today = LocalTime { hour, minute, second, ..now };
    match (date, lean) {
        (None, _) if clock.is_none() => None,
        (None, Lean::Future) if today <= now => Some(today.plus_days(1)),
        (None, _) => Some(today),
        (Some(Date::DaysAhead(days)), _) => Some(today.plus_days(days)),
        (Some(Date::Full { year, month, day }), _) => Some(LocalTime { year, month, day, ..today }),
        (Some(Date::Day { month, day }), lean) => {
            let this_year = LocalTime { month, day, ..today };
            let years = match lean {
                Lean::Future => i64::from(this_year < now),
                Lean::Past => -i64::from(this_year > now),
            };
            Some(LocalTime { year: now.year + years, ..this_year })
        }
    }
}

/// What follows `now`: nothing, or a sign, a count and perhaps a unit.
fn offset(mut reader: Reader<'_>) -> Option<i64> {
    reader.skip_blanks();
    if reader.rest.is_empty() {
        return Some(0);
    }
    let sign = if reader.skip("+") { 1 } else { -i64::from(reader.skip("-")) };
    reader.skip_blanks();
    let count: i64 = reader.digits(1, 10)?.parse().ok()?;
    reader.skip_blanks();
    let unit = match reader.rest.to_ascii_lowercase().as_str() {
        "" | "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3600,
        "day" | "days" => 86_400,
        "week" | "weeks" => 7 * 86_400,
        _ => return None,
    };
    (sign != 0).then_some(sign * count * unit)
}

/// Dates and times in any order; of two of a kind the later one counts.
fn date_and_clock(mut reader: Reader<'_>) -> Option<(Option<Date>, Option<Clock>)> {
    let (mut date, mut clock) = (None, None);
    loop {
        reader.skip_blanks();
        reader.skip_t_of_date_time();
        if reader.rest.is_empty() {
            return Some((date, clock));
        }
        if let Some(said) = reader.attempt(Reader::clock) {
            clock = Some(said);
            // `noon-tomorrow`
            if reader.rest.starts_with('-') && reader.rest[1..].starts_with(|next: char| next.is_ascii_alphabetic()) {
                reader.skip("-");
                continue;
            }
        } else {
            date = Some(reader.attempt(Reader::date)?);
            if reader.rest.starts_with('-') && reader.rest[1..].starts_with(|next: char| next.is_ascii_digit()) {
                reader.skip("-");
                continue;
            }
        }
        if reader.rest.starts_with(|next: char| !next.is_whitespace() && !next.eq_ignore_ascii_case(&'t')) {
            return None;
        }
    }
}

/// The text not yet read.
#[derive(Clone, Copy)]
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Moves on only if the reading succeeds.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut copy = *self;
        let value = read(&mut copy)?;
        *self = copy;
        Some(value)
    }

    fn clock(&mut self) -> Option<Clock> {
        if let Some((_, hour)) = HOURS.iter().find(|(word, _)| self.skip_word(word)) {
            return Some(Clock { hour: *hour, ..MIDNIGHT });
        }
        let hour = self.number(1, 2, 0..=23)?;
        if !self.skip(":") {
            return None;
        }
        let minute = self.number(2, 2, 0..=59)?;
        let second = if self.skip(":") { self.number(2, 2, 0..=59)? } else { 0 };
        let mut after = *self;
        after.skip_blanks();
        let hour = match (after.skip_word("am"), after.skip_word("pm"), hour) {
            (false, false, hour) => return Some(Clock { hour, minute, second }),
            (true, _, 12) => 0,
            (_, true, 12) => 12,
            (true, _, hour @ 0..=11) => hour,
            (_, true, hour @ 0..=11) => hour + 12,
            _ => return None,
        };
        *self = after;
        Some(Clock { hour, minute, second })
    }

    fn date(&mut self) -> Option<Date> {
        if self.skip_word("today") {
            return Some(Date::DaysAhead(0));
        }
        if self.skip_word("tomorrow") {
            return Some(Date::DaysAhead(1));
        }
        self.attempt(Self::iso_date)
            .or_else(|| self.attempt(Self::split_date))
            .or_else(|| self.attempt(Self::bare_date))
    }

    /// `YYYY-MM-DD`
    fn iso_date(&mut self) -> Option<Date> {
        let year = self.digits(4, 4)?.parse().ok()?;
        let month = self.skip("-").then(|| self.number(2, 2, 1..=12))??;
        let day = self.skip("-").then(|| self.number(2, 2, 1..=31))??;
        Some(Date::Full { year, month, day })
    }

    /// `MM/DD[/YY]` or `MM.DD[.YY]`
    fn split_date(&mut self) -> Option<Date> {
        let month = self.number(1, 2, 1..=12)?;
        let separator = if self.rest.starts_with('/') { "/" } else { "." };
        let day = self.skip(separator).then(|| self.number(1, 2, 1..=31))??;
        if !self.skip(separator) {
            return Some(Date::Day { month, day });
        }
        Some(Date::Full { year: 2000 + i64::from(self.number(2, 2, 0..=99)?), month, day })
    }

    /// `MMDD[YY]`
    fn bare_date(&mut self) -> Option<Date> {
        let digits = self.digits(4, 6)?;
        let mut reader = Reader { rest: digits };
        let (month, day) = (reader.pair(1..=12)?, reader.pair(1..=31)?);
        if reader.rest.is_empty() {
            return Some(Date::Day { month, day });
        }
        Some(Date::Full { year: 2000 + i64::from(reader.pair(0..=99)?), month, day })
    }

    fn pair(&mut self, range: std::ops::RangeInclusive<u8>) -> Option<u8> {
        let (pair, rest) = self.rest.split_at_checked(2)?;
        self.rest = rest;
        pair.parse().ok().filter(|number| range.contains(number))
    }

    fn number(&mut self, min: usize, max: usize, range: std::ops::RangeInclusive<u8>) -> Option<u8> {
        self.digits(min, max)?.parse().ok().filter(|number| range.contains(number))
    }

    /// All the digits that stand here, if there are from `min` to `max`.
    fn digits(&mut self, min: usize, max: usize) -> Option<&'a str> {
        let count = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        (min..=max).contains(&count).then_some(digits)
    }

    fn skip(&mut self, text: &str) -> bool {
        let after = self.rest.strip_prefix(text);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn skip_word(&mut self, word: &str) -> bool {
        match self.rest.split_at_checked(word.len()) {
            Some((start, rest)) if start.eq_ignore_ascii_case(word) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// The `T` in front of a clock time.
    fn skip_t_of_date_time(&mut self) {
        if let Some(rest) = self.rest.strip_prefix(['T', 't'])
            && rest.chars().next().is_none_or(|next| next.is_ascii_digit())
        {
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{FixedOffset, UTC};
    use proptest::prelude::*;

    /// 2026-11-15T21:53:08 in UTC.
    const NOW: i64 = 1_794_779_588;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let moment = parse(text, NOW, &UTC, Lean::Future).expect(text);
        assert_eq!(UTC.to_local(moment).to_string(), expected, "{text}");
    }

    #[test]
    fn now_is_when_slurm_was_asked() {
        assert_eq!(UTC.to_local(NOW).to_string(), "2026-11-15T21:53:08");
    }

    #[test]
    fn clock_times_are_the_next_such() {
        check("16:00", "2026-11-16T16:00:00");
        check("23:59:59", "2026-11-15T23:59:59");
        check("21:54", "2026-11-15T21:54:00");
        check("21:53", "2026-11-16T21:53:00");
        check("0:30", "2026-11-16T00:30:00");
        check("T10:00", "2026-11-16T10:00:00");
        check("4:00PM", "2026-11-16T16:00:00");
        check("4:00 pm", "2026-11-16T16:00:00");
        check("12:00AM", "2026-11-16T00:00:00");
        check("12:30PM", "2026-11-16T12:30:00");
        check("10:00 11:00", "2026-11-16T11:00:00");
        check("12:00 noon", "2026-11-16T12:00:00");
    }

    #[test]
    fn words_name_days_and_hours() {
        check("today", "2026-11-15T00:00:00");
        check("today noon", "2026-11-15T12:00:00");
        check("today 23:00", "2026-11-15T23:00:00");
        check("tomorrow", "2026-11-16T00:00:00");
        check("midnight", "2026-11-16T00:00:00");
        check("Noon", "2026-11-16T12:00:00");
        check("elevenses", "2026-11-16T11:00:00");
        check("fika", "2026-11-16T15:00:00");
        check("teatime tomorrow", "2026-11-16T16:00:00");
        check("TOMORROW 16:00", "2026-11-16T16:00:00");
    }

    #[test]
    fn dates_come_in_four_forms() {
        for text in ["0120", "012027", "1/20", "1/20/27", "01/20", "1.20", "1.20.27", "2027-01-20", "2027-01-20T"] {
            check(text, "2027-01-20T00:00:00");
        }
        for text in
            ["16:00 1/20", "1/20 16:00", "1/20-16:00", "1/20/27-16:00", "1/20T16:00", "0120-16:00", "teatime 1/20"]
        {
            check(text, "2027-01-20T16:00:00");
        }
        check("2027-01-20T12:34", "2027-01-20T12:34:00");
        check("2027-01-20T12:34:56", "2027-01-20T12:34:56");
        check("2027-01-20 12:34", "2027-01-20T12:34:00");
        check("11/15", "2027-11-15T00:00:00");
        check("11/15 23:00", "2026-11-15T23:00:00");
        check("11/15 16:00", "2027-11-15T16:00:00");
        check("2027-02-30", "2027-03-02T00:00:00");
        check("02/29", "2027-03-01T00:00:00");
    }

    #[test]
    fn now_may_have_an_offset() {
        check("now", "2026-11-15T21:53:08");
        check("now+60", "2026-11-15T21:54:08");
        check("now-60", "2026-11-15T21:52:08");
        check("now+1hour", "2026-11-15T22:53:08");
        check("now+1 HOURS", "2026-11-15T22:53:08");
        check("NOW +1days ", "2026-11-16T21:53:08");
        check("now + 5", "2026-11-15T21:53:13");
        check("now+1week", "2026-11-22T21:53:08");
        check("now+3minutes", "2026-11-15T21:56:08");
        check("UTS1900000000", "2030-03-17T17:46:40");
    }

    #[test]
    fn what_slurm_refuses_is_refused() {
        for text in [
            "",
            " ",
            "junk",
            "13:00PM",
            "24:00",
            "9:5",
            "9:05:7",
            "00:60",
            "10:00:60",
            "10:00AMx",
            "10:00A",
            "4:00 P",
            "4PM",
            "now+5x",
            "now+1h",
            "now+2min",
            "now+1d",
            "now+",
            "now+-5",
            "now5",
            "now 10:00",
            "now+1month",
            "1/20/2027",
            "2027-01",
            "13/01",
            "2027-1-2",
            "1/32",
            "1/0",
            "1/20/5",
            "120",
            "12027",
            "2027-13-01",
            "2027/01/20",
            "20270120",
            "1-20",
            "today+1day",
            "tomorrow+1hour",
            "uts5",
            "uts",
            "2027-01-20T12:34:56Z",
            "now+99999999999",
        ] {
            assert_eq!(parse(text, NOW, &UTC, Lean::Future), None, "{text}");
        }
    }

    #[test]
    fn the_past_is_completed_backwards() {
        for (text, expected) in [
            ("16:00", "2026-11-15T16:00:00"),
            ("23:00", "2026-11-15T23:00:00"),
            ("midnight", "2026-11-15T00:00:00"),
            ("1/20", "2026-01-20T00:00:00"),
            ("12/20", "2025-12-20T00:00:00"),
            ("11/15", "2026-11-15T00:00:00"),
        ] {
            let moment = parse(text, NOW, &UTC, Lean::Past).expect(text);
            assert_eq!(UTC.to_local(moment).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn the_zone_decides_what_day_it_is() {
        let zone = FixedOffset(3 * 3600);
        let moment = parse("tomorrow", NOW, &zone, Lean::Future).expect("valid");
        assert_eq!(zone.to_local(moment).to_string(), "2026-11-17T00:00:00");
    }

    proptest! {
        #[test]
        fn shown_moments_are_read_back(unix in 0..LATEST, offset in -40_000i32..40_000) {
            let zone = FixedOffset(offset);
            let local = zone.to_local(unix);
            prop_assume!((1000..=9999).contains(&local.year));
            prop_assert_eq!(parse(&local.to_string(), NOW, &zone, Lean::Future), Some(unix));
        }

        #[test]
        fn a_time_alone_is_within_a_day(hour in 0..24, minute in 0..60, now in 0..LATEST) {
            let moment = parse(&format!("{hour}:{minute:02}"), now, &UTC, Lean::Future).unwrap();
            prop_assert!(now < moment && moment <= now + 86_400);
        }

        #[test]
        fn no_text_panics(
            text in any::<String>(),
            near in "((now|today|noon|uts|am|T|é)?[0-9]{0,4}[-+:/. ]?){0,5}",
            now in any::<i64>(),
        ) {
            for text in [text, near] {
                parse(&text, now, &UTC, Lean::Future);
                parse(&text, NOW, &UTC, Lean::Past);
            }
        }
    }
}
