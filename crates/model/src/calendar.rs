//! Dates and clock times of a place, without a zone database: whoever has one lends it as a `Zone`.

use std::fmt;

const DAY: i64 = 86_400;

/// A date and a time of day as a wall clock shows them. Ordered as they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime {
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
}

/// What the wall clocks of a place show when. Seconds are since 1970 in UTC.
pub trait Zone {
    fn to_local(&self, unix_secs: i64) -> LocalTime;
    /// For a time that the clocks skip or show twice, any near one.
    fn to_unix(&self, local: LocalTime) -> i64;
}

/// A place that is always the same number of seconds ahead of UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedOffset(pub i32);

pub const UTC: FixedOffset = FixedOffset(0);

impl Zone for FixedOffset {
    fn to_local(&self, unix_secs: i64) -> LocalTime {
        let local = unix_secs.saturating_add(i64::from(self.0));
        let second = local.rem_euclid(DAY);
        LocalTime {
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
            ..date(local.div_euclid(DAY))
        }
    }

    fn to_unix(&self, local: LocalTime) -> i64 {
        let second = i64::from(local.hour) * 3600 + i64::from(local.minute) * 60 + i64::from(local.second);
        local.days_since_1970().saturating_mul(DAY).saturating_add(second - i64::from(self.0))
    }
}

impl LocalTime {
    /// The date's distance from 1970-01-01; a day too many for its month counts into the next.
    pub fn days_since_1970(self) -> i64 {
        // Years start in March here, so that the odd month is the last.
        let (year, month) = match self.month {
            0..=2 => (self.year.saturating_sub(1), i64::from(self.month) + 9),
            later => (self.year, i64::from(later) - 3),
        };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        year.saturating_mul(365)
            .saturating_add(leap_days)
            .saturating_add((153 * month + 2) / 5 + i64::from(self.day) - 1)
            .saturating_sub(719_468)
    }

    /// The same time of day on a date so many days later; also turns February 30 into March.
    pub fn plus_days(self, days: i64) -> LocalTime {
        LocalTime {
            hour: self.hour,
            minute: self.minute,
            second: self.second,
            ..date(self.days_since_1970().saturating_add(days))
        }
    }
}

/// Midnight of the day so far from 1970-01-01.
fn date(days: i64) -> LocalTime {
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    LocalTime {
        year: era * 400 + year_of_era + next_year,
        month: month as u8,
        day: day as u8,
        hour: 0,
        minute: 0,
        second: 0,
    }
}

impl fmt::Display for LocalTime {
    /// `2027-01-20T12:34:56`
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LocalTime { year, month, day, hour, minute, second } = self;
        out.pad(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_moments_have_their_dates() {
        for (unix, text) in [
            (0, "1970-01-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_900_000_000, "2030-03-17T17:46:40"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(UTC.to_local(unix).to_string(), text);
        }
        assert_eq!(FixedOffset(3600).to_local(0).to_string(), "1970-01-01T01:00:00");
    }

    #[test]
    fn a_day_too_many_runs_into_the_next_month() {
        let february = LocalTime { year: 2027, month: 2, day: 30, hour: 1, minute: 2, second: 3 };
        assert_eq!(february.plus_days(0).to_string(), "2027-03-02T01:02:03");
        assert_eq!(february.plus_days(-30).to_string(), "2027-01-31T01:02:03");
    }

    proptest! {
        #[test]
        fn to_unix_undoes_to_local(unix in -100_000_000_000i64..300_000_000_000, offset in -50_000i32..50_000) {
            let zone = FixedOffset(offset);
            let local = zone.to_local(unix);
            prop_assert_eq!(zone.to_unix(local), unix);
            prop_assert!(zone.to_local(unix + 1) > local);
        }

        #[test]
        fn no_moment_panics(unix in any::<i64>(), days in any::<i64>()) {
            let local = UTC.to_local(unix);
            UTC.to_unix(local);
            let _ = local.plus_days(days).to_string();
        }
    }
}
