//! What a slurm.conf says about preemption and taking turns.
use model::config::Config;
use model::preemption::PreemptKind;
use model::time::Span;

use super::lines::Pair;
use super::values::{Notes, Values};

pub(crate) fn read(values: &Values, config: &mut Config, notes: &Notes) {
    let kind = values.read("PreemptType", "preempt/none, preempt/partition_prio or preempt/qos", notes, |text| {
        let name = text.to_lowercase();
        PreemptKind::parse(name.strip_prefix("preempt/").unwrap_or(&name))
    });
    let rules = &mut config.scheduler.preemption;
    rules.kind = kind.unwrap_or_default();
    if let Some(pair) = values.get("PreemptMode")
        && let Err(why) = rules.set_mode(&pair.value)
    {
        notes.wrong(&pair.at, why);
    } else if let (Err(why), Some(pair)) = (rules.check(), values.get("PreemptMode").or(values.get("PreemptType"))) {
        notes.wrong(&pair.at, why);
    }
    if let Some(secs) = values.number("SchedulerTimeSlice", 5..=65_533, notes) {
        rules.time_slice = Span::from_secs(secs.into());
    }
    if let Some(span) = values.time("PreemptExemptTime", notes) {
        rules.exempt_time = span;
    }
    for (key, prefix) in [("PreemptParameters", ""), ("SchedulerParameters", "preempt_")] {
        let Some(pair) = values.get(key) else { continue };
        let words = pair.value.split(',').map(str::trim).filter_map(|word| word.strip_prefix(prefix));
        words.filter(|word| !word.is_empty()).for_each(|word| parameter(word, pair, config, notes));
    }
}

fn parameter(word: &str, pair: &Pair, config: &mut Config, notes: &Notes) {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let number = || {
        let number = value.parse::<u32>().ok();
        if number.is_none() {
            notes.wrong(&pair.at, format!("`{word}`: a whole number is expected"));
        }
        number
    };
    let rules = &mut config.scheduler.preemption;
    match name.to_lowercase().as_str() {
        "youngest_first" => rules.youngest_first = true,
        "strict_order" => rules.strict_order = true,
        "send_user_signal" => rules.sends_user_signal = true,
        "min_exempt_priority" => rules.min_exempt_priority = number(),
        "suspend_grace_time" => match value.parse::<u16>() {
            Ok(secs) => config.agent.suspend_grace = Span::from_secs(secs.into()),
            Err(_) => notes.wrong(&pair.at, format!("`{word}`: a number of seconds is expected")),
        },
        // The fewest are always looked for.
        "reorder_count" => notes.warn(&pair.at, format!("{word} has no effect here: the fewest are looked for anyway")),
        _ => notes.warn(&pair.at, format!("{word} has no effect here")),
    }
}
