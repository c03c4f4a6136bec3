//! How many calls a user may make: `call_limit` and its like in spur.conf, `SlurmctldParameters=rl_…` in slurm.conf.
use model::call_limit::CallLimit;
use model::time::Span;

use crate::section::Section;
use crate::slurm::values::{Notes, Values};

pub(crate) fn read(section: &mut Section, limit: &mut CallLimit) {
    section.flag("call_limit", &mut limit.is_on);
    section.number("call_bucket_size", 1..=1_000_000, &mut limit.bucket_size);
    section.number("call_refill_rate", 1..=1_000_000, &mut limit.refill_rate);
    let period = section.read("call_refill_period", "a number of seconds from 1 to 86400", |item| {
        u32::try_from(item.as_integer()?).ok().and_then(period)
    });
    limit.refill_period = period.unwrap_or(limit.refill_period);
    section.number("call_table_size", 1..=1_000_000, &mut limit.table_size);
    let every = section.read("call_log_every", "a number of seconds, 0 for each time, or -1 for never", |item| {
        i32::try_from(item.as_integer()?).ok().and_then(log_every)
    });
    limit.log_every = every.unwrap_or(limit.log_every);
    section.number("submissions_per_minute", 0..=u32::MAX, &mut limit.submissions_per_minute);
}

/// The words that are known here; true: this is one of them.
pub(crate) fn is_slurm_word(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default().to_lowercase();
    ["rl_enable", "rl_bucket_size", "rl_refill_rate", "rl_refill_period", "rl_table_size", "rl_log_freq"]
        .contains(&name.as_str())
}

pub(crate) fn read_slurm(values: &Values, limit: &mut CallLimit, notes: &Notes) {
    let Some(pair) = values.get("SlurmctldParameters") else { return };
    for word in pair.value.split(',').map(str::trim).filter(|word| is_slurm_word(word)) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let count = || value.parse::<u32>().ok().filter(|number| (1..=1_000_000).contains(number));
        let is_right = match name.to_lowercase().as_str() {
            "rl_enable" => {
                limit.is_on = true;
                value.is_empty()
            }
            "rl_bucket_size" => count().map(|number| limit.bucket_size = number).is_some(),
            "rl_refill_rate" => count().map(|number| limit.refill_rate = number).is_some(),
            "rl_refill_period" => count().and_then(period).map(|span| limit.refill_period = span).is_some(),
            "rl_table_size" => count().map(|number| limit.table_size = number).is_some(),
            _ => value.parse().ok().and_then(log_every).map(|every| limit.log_every = every).is_some(),
        };
        if !is_right {
            notes.wrong(&pair.at, format!("`SlurmctldParameters`: {word} makes no sense"));
        }
    }
}

fn period(secs: u32) -> Option<Span> {
    (1..=86_400).contains(&secs).then(|| Span::from_secs(secs.into()))
}

fn log_every(secs: i32) -> Option<Option<Span>> {
    match secs {
        -1 => Some(None),
        0.. => Some(Some(Span::from_secs(secs.unsigned_abs().into()))),
        _ => None,
    }
}

/// The keys that differ from the usual.
pub(crate) fn rendered(limit: &CallLimit) -> Vec<(&'static str, String)> {
    let usual = CallLimit::default();
    let mut keys = Vec::new();
    let mut add = |is_usual: bool, key, value: String| {
        if !is_usual {
            keys.push((key, value));
        }
    };
    add(!limit.is_on, "call_limit", "true".into());
    add(limit.bucket_size == usual.bucket_size, "call_bucket_size", limit.bucket_size.to_string());
    add(limit.refill_rate == usual.refill_rate, "call_refill_rate", limit.refill_rate.to_string());
    add(limit.refill_period == usual.refill_period, "call_refill_period", limit.refill_period.secs().to_string());
    add(limit.table_size == usual.table_size, "call_table_size", limit.table_size.to_string());
    let every = limit.log_every.map_or(-1, |every| every.secs() as i64);
    add(limit.log_every == usual.log_every, "call_log_every", every.to_string());
    let submissions = limit.submissions_per_minute;
    add(submissions == 0, "submissions_per_minute", submissions.to_string());
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "NodeName=n1 CPUs=1\nPartitionName=p Nodes=n1\nClusterName=c\n";

    #[test]
    fn words_of_slurm_and_keys_of_ours_say_the_same() {
        let words = "rl_enable,rl_bucket_size=50,rl_refill_rate=10,rl_refill_period=3,rl_table_size=16,rl_log_freq=-1";
        let (slurm, warnings) =
            crate::parse_slurm(&format!("{NODE}SlurmctldParameters={words}\n"), "slurm.conf").unwrap();
        assert!(!warnings.to_string().contains("rl_"), "{warnings}");
        let limit = &slurm.controller.call_limit;
        let expected = CallLimit {
            is_on: true,
            bucket_size: 50,
            refill_rate: 10,
            refill_period: Span::from_secs(3),
            table_size: 16,
            log_every: None,
            submissions_per_minute: 0,
        };
        assert_eq!(*limit, expected);
        let ours = crate::parse(&crate::render(&slurm), "spur.conf").unwrap();
        assert_eq!(ours.controller.call_limit, expected);
        for wrong in ["rl_bucket_size=0", "rl_refill_rate=x", "rl_enable=2", "rl_log_freq=-7"] {
            let text = format!("{NODE}SlurmctldParameters={wrong}\n");
            let problems = crate::parse_slurm(&text, "slurm.conf").unwrap_err().to_string();
            assert!(problems.contains(wrong), "{problems}");
        }
    }
}
