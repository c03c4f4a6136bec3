//! What a slurm.conf says about who goes first and how far the scheduler looks ahead.
use model::billing::Weights;
use model::config::{BackfillConfig, Config};
use model::priority::{PriorityKind, UsageReset};
use model::time::Span;

use super::lines::Pair;
use super::values::{Notes, Values};
use crate::settings::weight_counts;

pub(crate) fn read(values: &Values, config: &mut Config, notes: &Notes) {
    let expected = "sched/backfill or sched/builtin";
    let kind = values.read("SchedulerType", expected, notes, |text| {
        let name = text.to_lowercase();
        ["backfill", "builtin"].into_iter().find(|kind| *kind == name.strip_prefix("sched/").unwrap_or(&name))
    });
    config.scheduler.backfill.is_on = kind != Some("builtin");
    if let Some(pair) = values.get("SchedulerParameters") {
        for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            parameter(word, pair, &mut config.scheduler.backfill, notes);
        }
    }
    priority(values, config, notes);
}

fn parameter(word: &str, pair: &Pair, backfill: &mut BackfillConfig, notes: &Notes) {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let number = || match value.parse::<u32>() {
        Ok(number) => Some(number),
        Err(_) => {
            notes.wrong(&pair.at, format!("{name} must be a whole number, not {value:?}"));
            None
        }
    };
    let some = |limit: u32| (limit > 0).then_some(limit);
    match name.to_lowercase().as_str() {
        "bf_max_job_test" => backfill.n_reservations = number().unwrap_or(backfill.n_reservations),
        "bf_max_job_user" => backfill.max_jobs_per_user = number().and_then(some),
        "bf_max_job_part" => backfill.max_jobs_per_partition = number().and_then(some),
        "bf_window" => {
            let minutes = number().map_or(backfill.window.secs() / 60, u64::from);
            backfill.window = Span::from_secs(minutes.max(1) * 60);
        }
        "bf_resolution" => {
            backfill.resolution = Span::from_secs(number().map_or(backfill.resolution.secs(), u64::from).max(1));
        }
        // Every event is planned for at once and to any depth, so nothing is left to delay, repeat or continue.
        // Read with the rest of preemption.
        name if name.starts_with("preempt_") => (),
        "bf_interval"
        | "bf_continue"
        | "default_queue_depth"
        | "batch_sched_delay"
        | "sched_interval"
        | "sched_min_interval"
        | "sched_max_job_start"
        | "max_rpc_cnt"
        | "bf_yield_interval"
        | "bf_yield_sleep"
        | "bf_max_time"
        | "defer"
        | "bf_max_job_start"
        | "partition_job_depth"
        | "build_queue_timeout" => (),
        // Read with the burst buffers, with the network, with the prologs, with the rules for jobs.
        "bb_array_stage_cnt" | "max_switch_wait" | "nohold_on_prolog_fail" | "max_script_size" | "requeue_delay" => (),
        _ => notes.warn(&pair.at, format!("{word} has no effect here")),
    }
}

fn priority(values: &Values, config: &mut Config, notes: &Notes) {
    let priority = &mut config.scheduler.priority;
    let kind = values.read("PriorityType", "priority/basic or priority/multifactor", notes, |text| {
        let name = text.to_lowercase();
        match name.strip_prefix("priority/").unwrap_or(&name) {
            "basic" => Some(PriorityKind::Basic),
            "multifactor" => Some(PriorityKind::Multifactor),
            _ => None,
        }
    });
    priority.kind = kind.unwrap_or_default();
    let weight = |key: &str| values.number(key, 0..=u32::MAX, notes).unwrap_or(0);
    priority.weight_age = weight("PriorityWeightAge");
    priority.weight_association = weight("PriorityWeightAssoc");
    priority.weight_fair_share = weight("PriorityWeightFairshare");
    priority.weight_job_size = weight("PriorityWeightJobSize");
    priority.weight_partition = weight("PriorityWeightPartition");
    priority.weight_qos = weight("PriorityWeightQOS");
    priority.favors_small = values.flag("PriorityFavorSmall", notes).unwrap_or(false);
    if let Some(age) = values.time("PriorityMaxAge", notes) {
        priority.max_age = age;
    }
    if let Some(half_life) = values.time("PriorityDecayHalfLife", notes) {
        priority.half_life = half_life;
    }
    if let Some(period) = values.time("PriorityCalcPeriod", notes) {
        priority.calc_period = period.max(Span::from_secs(1));
    }
    if let Some(factor) = values.number("FairShareDampeningFactor", 1..=65_535, notes) {
        priority.dampening = factor;
    }
    let expected = "NONE, DAILY, WEEKLY, MONTHLY, QUARTERLY or YEARLY";
    let reset = values.read("PriorityUsageResetPeriod", expected, notes, UsageReset::parse);
    priority.usage_reset = reset.unwrap_or_default();
    if let Some(pair) = values.get("PriorityFlags") {
        for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if !priority.set_flag(word) {
                notes.warn(&pair.at, format!("{word} has no effect here"));
            }
        }
    }
    if let Some(pair) = values.get("PriorityWeightTRES") {
        match Weights::parse(&pair.value) {
            Ok(_) => {
                let has_effect = |word: &&str| weight_counts(word);
                let words = pair.value.split(',').map(str::trim).filter(|word| !word.is_empty());
                let (counted, idle): (Vec<&str>, Vec<&str>) = words.partition(has_effect);
                priority.weight_tres = counted.join(",");
                idle.iter().for_each(|word| notes.warn(&pair.at, format!("{word} has no effect here")));
            }
            Err(word) => notes.wrong(&pair.at, format!("PriorityWeightTRES: {word:?} is no weight of a resource")),
        }
    }
}
