//! The network of a slurm.conf: the topology.yaml or topology.conf beside it, and the rules.
use std::path::Path;

use model::Config;
use model::time::Span;
use model::topology::{Topology, TopologyKind};

use super::lines::Pair;
use super::values::{Notes, Values};
use crate::beside;
use crate::problem::Problems;
use crate::topology::{self, Severity};

pub(crate) fn read(values: &Values, config: &mut Config, folder: Option<&Path>, notes: &Notes) {
    if let Some(pair) = values.get("TopologyParam") {
        topology::apply_params(&pair.value, &mut config.topology, |problem| notes.warn(&pair.at, problem));
    }
    if let Some(pair) = values.get("SchedulerParameters") {
        max_switch_wait(pair, config, notes);
    }
    let mut warnings = Problems::default();
    let has_yaml = folder.map(|folder| beside::read_yaml(folder, config, &mut warnings)).unwrap_or(Ok(false));
    notes.warnings.borrow_mut().extend(warnings.list);
    match has_yaml {
        Ok(true) => {}
        Ok(false) => plugin(values, config, folder, notes),
        Err(problems) => notes.problems.borrow_mut().extend(problems.list),
    }
    for partition in config.partitions.iter().filter(|partition| !partition.topology.is_empty()) {
        if !config.topologies.iter().any(|topology| topology.name == partition.topology) {
            let text = format!("partition {}: there is no topology {}", partition.name, partition.topology);
            notes.problems.borrow_mut().extend(Problems::of_file("slurm.conf", text).list);
        }
    }
}

fn plugin(values: &Values, config: &mut Config, folder: Option<&Path>, notes: &Notes) {
    let Some(pair) = values.get("TopologyPlugin") else { return idle(folder, notes) };
    let kind = match pair.value.to_lowercase().trim_start_matches("topology/") {
        "tree" => TopologyKind::Tree,
        "block" => TopologyKind::Block,
        "flat" | "none" | "default" => return idle(folder, notes),
        _ => {
            let expected = "topology/tree, topology/block or topology/flat";
            return notes.wrong(&pair.at, format!("`TopologyPlugin` must be {expected}, not {:?}", pair.value));
        }
    };
    config.topologies = from_conf(pair, kind, config, folder, notes);
}

fn idle(folder: Option<&Path>, notes: &Notes) {
    if let Some(file) = folder.map(|folder| folder.join("topology.conf")).filter(|file| file.exists()) {
        let text = "without effect: TopologyPlugin does not ask for it".to_string();
        notes.warnings.borrow_mut().extend(Problems::of_file(&file.display().to_string(), text).list);
    }
}

fn from_conf(asked: &Pair, kind: TopologyKind, config: &Config, folder: Option<&Path>, notes: &Notes) -> Vec<Topology> {
    let Some(folder) = folder else { return Vec::new() };
    let file = folder.join("topology.conf");
    let name = file.display().to_string();
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            notes.wrong(&asked.at, format!("cannot read {name}: {error}"));
            return Vec::new();
        }
    };
    let raw = topology::conf::read(&text, &name, Some(folder), kind, notes);
    topology::check(vec![raw], &config.nodes, &mut |severity, at, text| match severity {
        Severity::Fatal => notes.wrong(at, text),
        Severity::Warning => notes.warn(at, text),
    })
}

fn max_switch_wait(pair: &Pair, config: &mut Config, notes: &Notes) {
    let value = pair.value.split(',').find_map(|word| word.trim().strip_prefix("max_switch_wait="));
    match value.map(|text| text.parse::<u64>()) {
        None => {}
        Some(Ok(secs)) => config.topology.max_switch_wait = Some(Span::from_secs(secs)),
        Some(Err(_)) => notes.warn(&pair.at, "Invalid max_switch_wait: the default of 300 seconds holds"),
    }
}
