//! `[health]`: the check of nodes, and how they are started anew; in both files' words.
use model::config::Config;
use model::health::HealthConfig;
use model::time::Span;

use crate::section::Section;
use crate::slurm::values::{Notes, Values};

pub(crate) fn read(mut section: Section, health: &mut HealthConfig) {
    for (key, program) in [("check", &mut health.check), ("reboot_program", &mut health.reboot_program)] {
        let read = section
            .read(key, "an absolute path", |item| item.as_str().filter(|path| path.starts_with('/')).map(String::from));
        *program = read.unwrap_or_default();
    }
    section.seconds("check_interval", &mut health.check_interval);
    section.seconds("resume_timeout", &mut health.resume_timeout);
    let expected = "words such as \"ANY\", \"IDLE,MIXED\", \"ANY,CYCLE\" or \"START_ONLY\"";
    let states = section.read("check_states", expected, |item| {
        let mut read = HealthConfig::default();
        read.read_states(item.as_str()?).map(|()| read)
    });
    take_states(health, states);
    section.finish();
}

pub(crate) fn read_slurm(values: &Values, config: &mut Config, notes: &Notes) {
    let path = |key: &str| {
        values.read(key, "a path from the root", notes, |text| text.starts_with('/').then(|| text.to_string()))
    };
    let health = &mut config.health;
    health.check = path("HealthCheckProgram").unwrap_or_default();
    health.reboot_program = path("RebootProgram").unwrap_or_default();
    let seconds = |key: &str| values.number(key, 0..=65_534, notes).map(|secs| Span::from_secs(secs.into()));
    health.check_interval = seconds("HealthCheckInterval").unwrap_or_default();
    health.resume_timeout = seconds("ResumeTimeout").unwrap_or(health.resume_timeout);
    let expected = "words such as ANY, IDLE, MIXED, ALLOC, NONDRAINED_IDLE, CYCLE, START_ONLY";
    let states = values.read("HealthCheckNodeState", expected, notes, |text| {
        let mut read = HealthConfig::default();
        read.read_states(text).map(|()| read)
    });
    take_states(health, states);
}

fn take_states(health: &mut HealthConfig, states: Option<HealthConfig>) {
    if let Some(states) = states {
        health.check_states = states.check_states;
        health.spreads_checks = states.spreads_checks;
        health.checks_at_start_only = states.checks_at_start_only;
    }
}
