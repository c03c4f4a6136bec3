//! `PartitionName` lines.
use model::partition_field::{self, Mistake};
use model::spec::TimeLimit;
use model::{NodeName, Partition};

use super::node::Nodes;
use super::values::{Notes, Values};
use crate::units;

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
    let mut partition = Partition::blank();
    if let Some(pair) = values.get("Nodes") {
        partition.nodes_text = pair.value.clone();
        if pair.value.eq_ignore_ascii_case("ALL") {
            partition.nodes_text = "ALL".into();
        }
        let waits = units::names_units(&pair.value);
        if !waits {
            partition.nodes = nodes.named(pair, notes).into_iter().map(NodeName::from).collect();
        }
        // Shown, and written to spur.conf, as nodes: sets are known to this file alone.
        if partition.nodes_text != "ALL" && !waits {
            partition.nodes_text = model::hostlist::compress(partition.nodes.iter().map(NodeName::as_str));
        }
    }
    // An old name for both of its parts, of which each may be said too.
    let old = ["Priority"].into_iter();
    for key in old.chain(FIELDS.iter().copied()) {
        let Some(pair) = values.get(key) else { continue };
        match partition_field::parse(key, &pair.value) {
            Ok(field) => partition.set(field, &mut std::iter::empty()),
            Err(Mistake::Expected(what)) => {
                notes.wrong(&pair.at, format!("`{key}` must be {what}, not {:?}", pair.value));
            }
            Err(Mistake::UnknownKey) => unreachable!("the table names rules only"),
        }
    }
    check(values, &mut partition, notes);
    partition.topology = values.text("Topology").unwrap_or_default().to_string();
    partition.exclusive_topology = values.flag("ExclusiveTopo", notes).unwrap_or(false);
    if let Some(pair) = values.get("Exclusive") {
        match pair.value.to_lowercase().as_str() {
            "no" => (),
            "topo" => partition.exclusive_topology = true,
            "user" => partition.exclusive_user = true,
            other => notes.wrong(&pair.at, format!("`Exclusive` must be NO, TOPO or USER, not {other:?}")),
        }
        if partition.exclusive_topology && partition.exclusive_user {
            notes.warn(&pair.at, "TOPO counts before USER");
            partition.exclusive_user = false;
        }
    }
    partition
}

/// The keys that are rules, as `partition_field` reads them.
const FIELDS: &[&str] = &[
    "AllocNodes",
    "AllowAccounts",
    "AllowGroups",
    "AllowQos",
    "Alternate",
    "Default",
    "DefaultTime",
    "DefCpuPerGPU",
    "DefMemPerCPU",
    "DefMemPerGPU",
    "DefMemPerNode",
    "DenyAccounts",
    "DenyQos",
    "DisableRootJobs",
    "ExclusiveUser",
    "GraceTime",
    "Hidden",
    "LLN",
    "MaxCPUsPerNode",
    "MaxMemPerCPU",
    "MaxMemPerNode",
    "MaxNodes",
    "MaxTime",
    "OverTimeLimit",
    "MinNodes",
    "OverSubscribe",
    "PreemptMode",
    "PriorityJobFactor",
    "PriorityTier",
    "QOS",
    "ReqResv",
    "RootOnly",
    "State",
    "TRESBillingWeights",
];

fn check(values: &Values, partition: &mut Partition, notes: &Notes) {
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
    if let Some(pair) = values.get("MaxNodes")
        && partition.max_nodes.is_some_and(|max| max < partition.min_nodes)
    {
        notes.wrong(&pair.at, "`MaxNodes` is smaller than `MinNodes`");
    }
}
