//! Preemption in `[scheduler]`.
use model::preemption::{PreemptKind, PreemptionConfig};

use crate::section::{Section, set};

pub(crate) fn read(section: &mut Section, rules: &mut PreemptionConfig) {
    let kind = section
        .read("preempt_type", "\"none\", \"partition_prio\" or \"qos\"", |item| PreemptKind::parse(item.as_str()?));
    set(&mut rules.kind, kind);
    let mut mode = String::new();
    section.text("preempt_mode", &mut mode);
    let at = section.take("preempt_mode").map_or(section.at, |found| found.at);
    match rules.set_mode(&mode) {
        Err(why) => section.notes.add(at, format!("`preempt_mode`: {why}")),
        Ok(()) => {
            if let Err(why) = rules.check() {
                section.notes.add(at, why);
            }
        }
    }
    section.seconds("time_slice", &mut rules.time_slice);
    section.seconds("preempt_exempt_time", &mut rules.exempt_time);
    let count = |item: &toml_edit::Item| u32::try_from(item.as_integer()?).ok();
    rules.min_exempt_priority = section.read("preempt_min_exempt_priority", "a whole number", count);
    section.flag("preempt_youngest_first", &mut rules.youngest_first);
    section.flag("preempt_strict_order", &mut rules.strict_order);
    section.flag("preempt_sends_user_signal", &mut rules.sends_user_signal);
}
