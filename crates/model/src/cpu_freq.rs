//! `--cpu-freq`: how fast the CPUs of a step are to run, as it is asked for: `low-high:ondemand`, `2000000`, `performance`.

record! {
    /// Each in Slurm's words; empty: not asked for.
    pub struct CpuFrequency {
        pub min: String,
        pub max: String,
        pub governor: String,
    }
}

const GOVERNORS: [&str; 6] = ["Conservative", "OnDemand", "Performance", "PowerSave", "UserSpace", "SchedUtil"];
/// Those that Slurm allows where CpuFreqGovernors says nothing.
const ALLOWED: [&str; 3] = ["OnDemand", "Performance", "UserSpace"];
/// From slow to fast; they compare like numbers that no frequency in kilohertz reaches.
const SPEEDS: [&str; 4] = ["Low", "Medium", "Highm1", "High"];

impl CpuFrequency {
    pub fn is_asked(&self) -> bool {
        *self != CpuFrequency::default()
    }

    /// Reads the option's value; the error says what is not understood.
    pub fn parse(text: &str) -> Result<CpuFrequency, String> {
        let (range, governor) = match text.split_once(':') {
            Some((range, governor)) => (range, Some(governor)),
            None => (text, None),
        };
        // Slurm looks no further than the second of several.
        let mut bounds = range.split('-');
        let first = bounds.next().unwrap_or_default();
        let mut asked = CpuFrequency::default();
        match (bounds.next(), governor) {
            (Some(last), _) => {
                (asked.min, asked.max) = (speed(first)?, speed(last)?);
                if rank(&asked.max) < rank(&asked.min) {
                    return Err(format!("min cpu-frec ({first}) must be < max cpu-freq ({last})"));
                }
            }
            (None, Some(governor)) => return Err(format!("gov on cpu-frec ({governor}) illegal without max")),
            (None, None) => match governor_named(first.split(',').next().unwrap_or(first)) {
                Some(named) => asked.governor = allowed(named, first)?,
                None => asked.max = speed(first)?,
            },
        }
        if let Some(governor) = governor {
            let named =
                governor_named(governor).ok_or_else(|| format!("illegal governor: {governor} on --cpu-freq"))?;
            asked.governor = allowed(named, governor)?;
        }
        Ok(asked)
    }

    /// As the option would say it (SLURM_CPU_FREQ_REQ).
    pub fn words(&self) -> String {
        match (self.min.as_str(), self.max.as_str(), self.governor.as_str()) {
            ("", "", governor) => governor.to_string(),
            ("", max, _) => max.to_string(),
            (min, max, "") => format!("{min}-{max}"),
            (min, max, governor) => format!("{min}-{max}:{governor}"),
        }
    }
}

fn governor_named(word: &str) -> Option<&'static str> {
    GOVERNORS.into_iter().find(|name| name.eq_ignore_ascii_case(word))
}

fn allowed(named: &'static str, written: &str) -> Result<String, String> {
    match ALLOWED.contains(&named) {
        true => Ok(named.to_string()),
        false => Err(format!("governor of {written} is not allowed in slurm.conf")),
    }
}

fn speed(word: &str) -> Result<String, String> {
    if let Some(named) = SPEEDS.into_iter().find(|name| name.eq_ignore_ascii_case(word)) {
        return Ok(named.to_string());
    }
    let kilohertz: u32 =
        word.parse().ok().filter(|count| *count > 0).ok_or(format!("unrecognized --cpu-freq argument \"{word}\""))?;
    Ok(kilohertz.to_string())
}

fn rank(speed: &str) -> u64 {
    let named = SPEEDS.iter().position(|name| *name == speed).map(|place| (1 << 32) + place as u64);
    named.or_else(|| speed.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_read_as_slurm_reads_them() {
        let words = |text: &str| CpuFrequency::parse(text).map(|asked| asked.words());
        let good = [
            ("low", "Low"),
            ("HighM1", "Highm1"),
            ("2000000", "2000000"),
            ("1000-2000", "1000-2000"),
            ("1-2-3", "1-2"),
            ("500-low", "500-Low"),
            ("low-high:ondemand", "Low-High:OnDemand"),
            ("Performance", "Performance"),
            ("OnDemand,Performance", "OnDemand"),
        ];
        for (text, expected) in good {
            assert_eq!(words(text), Ok(expected.to_string()), "{text}");
        }
        let bad = [
            ("zzz", "unrecognized --cpu-freq argument \"zzz\""),
            ("0", "unrecognized --cpu-freq argument \"0\""),
            ("", "unrecognized --cpu-freq argument \"\""),
            ("-5", "unrecognized --cpu-freq argument \"\""),
            ("high-", "unrecognized --cpu-freq argument \"\""),
            ("high-2000", "min cpu-frec (high) must be < max cpu-freq (2000)"),
            ("1000-2000:", "illegal governor:  on --cpu-freq"),
            ("1000:ondemand", "gov on cpu-frec (ondemand) illegal without max"),
            ("powersave", "governor of powersave is not allowed in slurm.conf"),
        ];
        for (text, why) in bad {
            assert_eq!(words(text), Err(why.to_string()), "{text}");
        }
    }
}
