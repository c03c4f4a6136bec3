//! Sizes as users write and read them: memory in megabytes, burst buffers in bytes.

const KIB: u64 = 1 << 10;

/// What a burst buffer request asks for: the meaning of a bare number depends on the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Bare(u64),
    Bytes(u64),
    Nodes(u64),
}

/// Megabytes of a `--mem` value: `100`, `100M`, `1G`, `2TB`; kilobytes are rounded up.
pub fn parse_megabytes(text: &str) -> Option<u64> {
    let (number, unit) = split_number(text.trim_start())?;
    match unit.to_ascii_uppercase().as_str() {
        "K" | "KB" => Some(number.div_ceil(KIB)),
        "" | "M" | "MB" => Some(number),
        "G" | "GB" => number.checked_mul(KIB),
        "T" | "TB" => number.checked_mul(KIB * KIB),
        _ => None,
    }
}

/// Megabytes as scontrol and squeue print them: `1500M`, `1G`, `1.50G`; only halves of a unit get decimals.
pub fn show_megabytes(megabytes: u64) -> String {
    if megabytes == 0 {
        return "0".to_owned();
    }
    if !megabytes.is_multiple_of(KIB / 2) {
        return format!("{megabytes}M");
    }
    let mut divisor = 1;
    let mut units = "MGTPE".chars();
    let mut unit = units.next().expect("not empty");
    while let Some(larger) = units.next()
        && megabytes / divisor >= KIB
    {
        divisor *= KIB;
        unit = larger;
    }
    if megabytes.is_multiple_of(divisor) {
        format!("{}{unit}", megabytes / divisor)
    } else {
        format!("{:.2}{unit}", megabytes as f64 / divisor as f64)
    }
}

/// A burst buffer size: `100GB` counts in thousands, `100G` and `100GiB` in 1024s. Zero is no size.
pub fn parse_amount(text: &str) -> Option<Amount> {
    let (number, unit) = split_number(text)?;
    if number == 0 {
        return None;
    }
    let unit = unit.to_ascii_uppercase();
    match unit.as_str() {
        "" => return Some(Amount::Bare(number)),
        "N" | "NODE" | "NODES" => return Some(Amount::Nodes(number)),
        _ => {}
    }
    let power = "KMGTP".find(unit.get(..1)?)? as u32 + 1;
    let base = match &unit[1..] {
        "" | "IB" => KIB,
        "B" => 1000,
        _ => return None,
    };
    number.checked_mul(base.pow(power)).map(Amount::Bytes)
}

/// `0`, `0GiB`: a number that is none.
pub fn is_zero(text: &str) -> bool {
    split_number(text).is_some_and(|(number, _)| number == 0)
}

/// Bytes of a burst buffer size, where a bare number counts in `bare_bytes`.
pub fn parse_bytes(text: &str, bare_bytes: u64) -> Option<u64> {
    match parse_amount(text)? {
        Amount::Bare(number) => number.checked_mul(bare_bytes),
        Amount::Bytes(bytes) => Some(bytes),
        Amount::Nodes(_) => None,
    }
}

/// Bytes in the largest unit that divides them: `200GiB`, `25KB`, `10`.
pub fn show_bytes(bytes: u64) -> String {
    if bytes == 0 {
        return "0".to_owned();
    }
    for (power, prefix) in [(5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "K")] {
        for (base, suffix) in [(KIB, "iB"), (1000, "B")] {
            let unit = base.pow(power);
            if bytes.is_multiple_of(unit) {
                return format!("{}{prefix}{suffix}", bytes / unit);
            }
        }
    }
    bytes.to_string()
}

/// Bytes for a glance: `3.2GiB`, `120MiB`, `17B`.
pub fn show_rounded_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = units.next().expect("not empty");
    while value >= 1024.0
        && let Some(larger) = units.next()
    {
        value /= 1024.0;
        unit = larger;
    }
    match value.fract() == 0.0 || value >= 100.0 {
        true => format!("{value:.0}{unit}"),
        false => format!("{value:.1}{unit}"),
    }
}

/// The digits in front and what follows them; a number that does not fit is none.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_is_in_megabytes_unless_it_says_otherwise() {
        for (text, megabytes) in [
            ("100", 100),
            ("100M", 100),
            ("100mb", 100),
            ("102400K", 100),
            ("1K", 1),
            ("1025k", 2),
            ("1G", 1024),
            ("1GB", 1024),
            (" 5", 5),
            ("2T", 2 * 1024 * 1024),
            ("0", 0),
        ] {
            assert_eq!(parse_megabytes(text), Some(megabytes), "{text}");
        }
        for text in ["", "G", "-1", "1.5G", "1X", "1Gx", "100B", "1GiB", "1 G", "1P", "18446744073709551615G", "1é"] {
            assert_eq!(parse_megabytes(text), None, "{text}");
        }
    }

    #[test]
    fn memory_is_shown_in_the_largest_unit_that_keeps_it_exact() {
        for (megabytes, text) in [
            (0, "0"),
            (100, "100M"),
            (512, "512M"),
            (1000, "1000M"),
            (1024, "1G"),
            (1500, "1500M"),
            (1536, "1.50G"),
            (64_000, "62.50G"),
            (1_000_000, "1000000M"),
            (1024 * 1000, "1000G"),
            (1024 * 1024, "1T"),
        ] {
            assert_eq!(show_megabytes(megabytes), text);
        }
    }

    #[test]
    fn buffer_sizes_know_both_kinds_of_units() {
        assert_eq!(parse_amount("100GB"), Some(Amount::Bytes(100_000_000_000)));
        assert_eq!(parse_amount("100GiB"), Some(Amount::Bytes(100 << 30)));
        assert_eq!(parse_amount("100g"), Some(Amount::Bytes(100 << 30)));
        assert_eq!(parse_amount("7"), Some(Amount::Bare(7)));
        assert_eq!(parse_amount("2nodes"), Some(Amount::Nodes(2)));
        assert_eq!(parse_bytes("7", 1 << 30), Some(7 << 30));
        assert_eq!(parse_bytes("7N", 1), None);
        for text in ["0", "0G", "", "GB", "3.5TB", "1G,x", "1Q", "99999P", "1é", "1kibb"] {
            assert_eq!(parse_amount(text), None, "{text}");
        }
    }

    #[test]
    fn buffer_sizes_are_shown_exactly() {
        for (bytes, text) in [
            (0, "0"),
            (10, "10"),
            (1_024_000, "1000KiB"),
            (25_000, "25KB"),
            (250 * 1024 + 1_000_000_000, "1000256KB"),
            (214_748_364_800, "200GiB"),
        ] {
            assert_eq!(show_bytes(bytes), text);
        }
    }

    proptest! {
        #[test]
        fn shown_bytes_are_read_back(bytes in 1u64.., unit in prop::sample::select(vec![1u64, 1000, 1024, 1 << 20, 1_000_000_000])) {
            let bytes = bytes.saturating_mul(unit);
            prop_assert_eq!(parse_bytes(&show_bytes(bytes), 1), Some(bytes));
        }

        #[test]
        fn whole_memory_sizes_are_read_back(megabytes in any::<u64>()) {
            let shown = show_megabytes(megabytes);
            if !shown.contains('.') && !shown.ends_with(['P', 'E']) {
                prop_assert_eq!(parse_megabytes(&shown), Some(megabytes));
            }
        }

        #[test]
        fn no_text_panics(text in any::<String>(), near in "[0-9]{0,21}[a-zA-Zé.]{0,4}") {
            for text in [text, near] {
                parse_megabytes(&text);
                parse_amount(&text);
            }
        }
    }
}
