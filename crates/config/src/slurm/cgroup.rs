//! `cgroup.conf`: what jobs are held to where `TaskPlugin` has `task/cgroup`; whom signals reach where `ProctrackType` is `proctrack/cgroup`.
use std::path::Path;

use model::config::AgentConfig;

use super::keys;
use super::values::{Notes, Values};
use super::{read_lines, values_of};
use crate::problem::Problems;

/// Without the file, memory and CPUs; with it, what it says (Slurm's defaults are no).
pub(super) fn read(top: &Values, agent: &mut AgentConfig, folder: Option<&Path>, notes: &Notes) {
    let has_cgroup = top.text("TaskPlugin").is_some_and(|text| text.to_ascii_lowercase().contains("cgroup"));
    (agent.constrain_memory, agent.constrain_cores, agent.constrain_devices) = (has_cgroup, has_cgroup, false);
    agent.signal_tasks_only =
        top.text("ProctrackType").is_some_and(|text| text.to_ascii_lowercase().contains("cgroup"));
    let Some(file) = folder.map(|folder| folder.join("cgroup.conf")).filter(|file| file.exists()) else { return };
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => return notes.problems.borrow_mut().extend(Problems::of_file(&name, error.to_string()).list),
    };
    let mut said = [false; 3];
    read_lines(&text, &name, folder, notes, &mut |line| match line.pairs() {
        Ok(pairs) => {
            let values = values_of(&pairs, keys::CGROUP, "in cgroup.conf", notes);
            let wanted = ["ConstrainRAMSpace", "ConstrainCores", "ConstrainDevices"];
            for (key, said) in wanted.into_iter().zip(&mut said) {
                if let Some(yes) = values.read(key, "yes or no", notes, yes) {
                    *said = yes;
                }
            }
        }
        Err(problem) => notes.problems.borrow_mut().push(problem),
    });
    let [memory, cores, devices] = said.map(|wanted| wanted && has_cgroup);
    (agent.constrain_memory, agent.constrain_cores, agent.constrain_devices) = (memory, cores, devices);
}

fn yes(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" => Some(true),
        "no" | "false" | "0" => Some(false),
        _ => None,
    }
}
