//! `PartitionName` lines.
use model::partition::PartitionState;
use model::spec::TimeLimit;
use model::{NodeName, Partition};

use super::node::Nodes;
use super::values::{Notes, Values, is_unlimited};

/// The partitions of the file, as its lines are read; nodes may be named below them.
#[derive(Default)]
pub(crate) struct Partitions {
    defaults: Values,
    lines: Vec<Values>,
}

impl Partitions {
    pub fn line(&mut self, values: Values, notes: &Notes) {
        let Some(name) = values.get("PartitionName").cloned() else { return };
        if name.value.eq_ignore_ascii_case("DEFAULT") {
            self.defaults = values.or(&self.defaults);
            return;
        }
        if self.lines.iter().any(|line| line.text("PartitionName") == Some(&name.value)) {
            notes.wrong(&name.at, format!("partition {} is given twice", name.value));
        }
        self.lines.push(values.or(&self.defaults));
    }

    pub fn finish(self, nodes: &Nodes, notes: &Notes) -> Vec<Partition> {
        let mut list: Vec<Partition> = Vec::new();
        for values in &self.lines {
            // One line may name several partitions of the same kind.
            let names = values.text("PartitionName").unwrap_or_default().split(',');
            let partition = read(values, nodes, notes);
            for name in names {
                let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.@+".contains(c));
                if !is_word {
                    let at = &values.get("PartitionName").expect("every line has its name").at;
                    notes.wrong(at, format!("{name:?} cannot be a partition's name"));
                }
                if partition.is_default {
                    list.iter_mut().for_each(|earlier| earlier.is_default = false);
                }
                list.push(Partition { name: name.into(), ..partition.clone() });
            }
        }
        list
    }
}

fn read(values: &Values, nodes: &Nodes, notes: &Notes) -> Partition {
    let mut partition = crate::partition::blank();
    if let Some(pair) = values.get("Nodes") {
        partition.nodes_text = pair.value.clone();
        if pair.value.eq_ignore_ascii_case("ALL") {
            partition.nodes_text = "ALL".into();
        }
        partition.nodes = nodes.named(pair, notes).into_iter().map(NodeName::from).collect();
        // Shown, and written to spur.conf, as nodes: sets are known to this file alone.
        if partition.nodes_text != "ALL" {
            partition.nodes_text = model::hostlist::compress(partition.nodes.iter().map(NodeName::as_str));
        }
    }
    partition.is_default = values.flag("Default", notes).unwrap_or(false);
    let states = [PartitionState::Up, PartitionState::Down, PartitionState::Drain, PartitionState::Inactive];
    let state = values.read("State", "UP, DOWN, DRAIN or INACTIVE", notes, |text| {
        states.into_iter().find(|state| state.word().eq_ignore_ascii_case(text))
    });
    partition.state = state.unwrap_or_default();
    times(values, &mut partition, notes);
    sizes(values, &mut partition, notes);
    partition.priority_tier = values.number("PriorityTier", 0..=65_533, notes).unwrap_or(1);
    partition.is_hidden = values.flag("Hidden", notes).unwrap_or(false);
    partition.root_only = values.flag("RootOnly", notes).unwrap_or(false);
    sharing(values, &mut partition, notes);
    partition.topology = values.text("Topology").unwrap_or_default().to_string();
    partition.exclusive_topology = values.flag("ExclusiveTopo", notes).unwrap_or(false);
    partition
}

fn times(values: &Values, partition: &mut Partition, notes: &Notes) {
    partition.max_time = values.time_limit("MaxTime", notes);
    partition.default_time = values.time_limit("DefaultTime", notes);
    let secs = |limit: Option<TimeLimit>| match limit {
        Some(TimeLimit::Secs(secs)) => secs,
        Some(TimeLimit::Unlimited) | None => u64::MAX,
    };
    if let Some(pair) = values.get("DefaultTime")
        && partition.default_time.is_some()
        && secs(partition.default_time) > secs(partition.max_time)
    {
        notes.wrong(&pair.at, "`DefaultTime` is longer than `MaxTime`");
    }
}

fn sizes(values: &Values, partition: &mut Partition, notes: &Notes) {
    partition.min_nodes = values.number("MinNodes", 0..=u32::MAX, notes).unwrap_or(0);
    let expected = "a whole number from 1, or UNLIMITED";
    let max_nodes = values.read("MaxNodes", expected, notes, |text| match is_unlimited(text) {
        true => Some(None),
        false => text.parse::<u32>().ok().filter(|n_nodes| *n_nodes > 0).map(Some),
    });
    partition.max_nodes = max_nodes.flatten();
    if let Some(pair) = values.get("MaxNodes")
        && partition.max_nodes.is_some_and(|max| max < partition.min_nodes)
    {
        notes.wrong(&pair.at, "`MaxNodes` is smaller than `MinNodes`");
    }
    partition.default_memory_per_cpu_mb = values.megabytes_limit("DefMemPerCPU", notes);
    partition.default_memory_per_node_mb = values.megabytes_limit("DefMemPerNode", notes);
}

fn sharing(values: &Values, partition: &mut Partition, notes: &Notes) {
    let Some(pair) = values.get("OverSubscribe") else { return };
    let (word, times) = match pair.value.split_once(':') {
        Some((word, times)) => (word, Some(times)),
        None => (pair.value.as_str(), None),
    };
    let word = word.to_uppercase();
    let is_known = match times {
        None => matches!(word.as_str(), "NO" | "EXCLUSIVE" | "YES" | "FORCE"),
        Some(times) => matches!(word.as_str(), "YES" | "FORCE") && times.parse::<u16>().is_ok(),
    };
    if !is_known {
        let expected = "EXCLUSIVE, FORCE[:COUNT], YES[:COUNT] or NO";
        return notes.wrong(&pair.at, format!("`OverSubscribe` must be {expected}, not {:?}", pair.value));
    }
    partition.exclusive_nodes = word == "EXCLUSIVE";
    if matches!(word.as_str(), "YES" | "FORCE") && times != Some("1") {
        notes.warn(&pair.at, format!("OverSubscribe={} has no effect here: CPUs are not shared", pair.value));
    }
}
