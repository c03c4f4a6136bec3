//! Sizes as sacct writes them: exact multiples get the larger unit, `--units` forces one, `--noconvert` keeps the base.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    #[default]
    Exact,
    /// As stored.
    Unconverted,
    /// Index into `LETTERS`.
    Always(usize),
}

const LETTERS: &[&str] = &["", "K", "M", "G", "T", "P", "E"];

/// The unit that `--units` names.
pub fn parse(text: &str) -> Option<Units> {
    let place = LETTERS[1..6].iter().position(|letter| text.eq_ignore_ascii_case(letter))?;
    Some(Units::Always(place + 1))
}

/// `count` of the unit at place `unit` (0: single ones, 1: K, 2: M).
pub fn show(count: u64, unit: usize, units: Units) -> String {
    if count == 0 {
        return "0".into();
    }
    match units {
        Units::Unconverted => format!("{count}{}", LETTERS[unit]),
        Units::Exact => {
            let (mut count, mut unit) = (count, unit);
            while count >= 1024 && count % 1024 == 0 && unit + 1 < LETTERS.len() {
                count /= 1024;
                unit += 1;
            }
            format!("{count}{}", LETTERS[unit])
        }
        Units::Always(wanted) => {
            let value = count as f64 * 1024_f64.powi(unit as i32 - wanted as i32);
            let text = if value == value.trunc() { format!("{value:.0}") } else { format!("{value:.2}") };
            format!("{text}{}", LETTERS[wanted])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_converted_only_as_asked() {
        let check = |count, unit, units, expected: &str| assert_eq!(show(count, unit, units), expected);
        check(1024, 2, Units::Exact, "1G");
        check(1500, 2, Units::Exact, "1500M");
        check(1_052_672, 0, Units::Exact, "1028K");
        check(100, 2, parse("K").unwrap(), "102400K");
        check(100, 2, parse("g").unwrap(), "0.10G");
        check(2048, 2, Units::Unconverted, "2048M");
        check(0, 2, Units::Exact, "0");
        assert_eq!(parse("Q"), None);
    }
}
