//! `[[partitions]]`: sets of nodes with rules.
use std::collections::BTreeMap;

use model::config::NamedNode;
use model::partition::{OverSubscribe, PartitionState, PreemptMode};
use model::partition_field::Field;
use model::spec::TimeLimit;
use model::{Config, NodeName, Partition, hostlist};

use crate::nearest::nearest;
use crate::section::Section;
use crate::units;

/// The partition of a cluster that names none.
pub(crate) fn of_all_nodes(nodes: &[NamedNode]) -> Partition {
    Partition {
        name: "main".into(),
        nodes_text: "ALL".into(),
        nodes: nodes.iter().map(|node| node.name.clone()).collect(),
        is_default: true,
        ..Partition::blank()
    }
}

/// Reads all partitions into `config`; `known` are the names of the nodes.
pub(crate) fn read_all(sections: Vec<Section>, known: &BTreeMap<String, usize>, config: &mut Config) {
    let is_only = sections.len() == 1;
    let mut default: Option<String> = None;
    for mut section in sections {
        let mut partition = read(&mut section, known, &config.nodes);
        let (at, notes) = (section.at, section.notes);
        let is_known = config.topologies.iter().any(|topology| topology.name == partition.topology);
        // Those of a topology.yaml beside this file are read later, and looked for then.
        if !partition.topology.is_empty() && !is_known && !config.topologies.is_empty() {
            let at = section.take("topology").map_or(at, |found| found.at);
            notes.add(at, format!("there is no topology {}", partition.topology));
        }
        if !partition.name.is_empty() && config.partition(&partition.name).is_some() {
            notes.add(at, format!("partition {} is given twice", partition.name));
        }
        if is_only && !section.has("default") {
            partition.is_default = true;
        }
        match &default {
            Some(first) if partition.is_default => {
                let at = section.take("default").map_or(at, |found| found.key_at);
                notes.add(at, format!("partition {first} is already the default"));
            }
            _ if partition.is_default => default = Some(partition.name.clone()),
            _ => {}
        }
        section.finish();
        config.partitions.push(partition);
    }
}

fn read(section: &mut Section, known: &BTreeMap<String, usize>, all: &[NamedNode]) -> Partition {
    let mut partition = Partition::blank();
    if !section.has("name") {
        section.notes.add(section.at, "[[partitions]] needs `name`");
    }
    section.word("name", &mut partition.name);
    nodes(section, known, all, &mut partition);
    section.flag("default", &mut partition.is_default);
    let state = section.read("state", "\"UP\", \"DOWN\", \"DRAIN\" or \"INACTIVE\"", |item| {
        let text = item.as_str()?.to_uppercase();
        [PartitionState::Up, PartitionState::Down, PartitionState::Drain, PartitionState::Inactive]
            .into_iter()
            .find(|state| state.word() == text)
    });
    partition.state = state.unwrap_or_default();
    times(section, &mut partition);
    sizes(section, &mut partition);
    section.number("priority_tier", 0..=65_535, &mut partition.priority_tier);
    section.flag("hidden", &mut partition.is_hidden);
    section.flag("root_only", &mut partition.root_only);
    section.flag("exclusive_nodes", &mut partition.exclusive_nodes);
    access(section, &mut partition);
    sharing(section, &mut partition);
    let expected = "weights such as \"CPU=1.0,Mem=0.25G,GRES/gpu=2\"";
    let weights = section.read("billing_weights", expected, |item| {
        let text = item.as_str()?;
        model::billing::Weights::parse(text).ok().map(|_| text.to_string())
    });
    partition.billing_weights = weights.unwrap_or_default();
    section.text("topology", &mut partition.topology);
    section.flag("exclusive_topology", &mut partition.exclusive_topology);
    if section.has("topology_wait") {
        section.seconds("topology_wait", partition.topology_wait.get_or_insert_default());
    }
    partition
}

fn nodes(section: &mut Section, known: &BTreeMap<String, usize>, all: &[NamedNode], partition: &mut Partition) {
    let Some(found) = section.take("nodes") else {
        section.notes.add(section.at, "[[partitions]] needs `nodes`: a hostlist, or \"ALL\"");
        return;
    };
    let Some(text) = found.item.as_str() else {
        section.notes.add(found.at, "`nodes` must be a hostlist in quotes, or \"ALL\"");
        return;
    };
    partition.nodes_text = text.to_string();
    if text.eq_ignore_ascii_case("all") {
        partition.nodes_text = "ALL".into();
        partition.nodes = all.iter().map(|node| node.name.clone()).collect();
        return;
    }
    // Those are known when the network is.
    if units::names_units(text) {
        return;
    }
    let names = match hostlist::expand(text) {
        Ok(names) => names,
        Err(error) => return section.notes.add(found.at, error.to_string()),
    };
    let unknown: Vec<&String> = names.iter().filter(|name| !known.contains_key(*name)).collect();
    if let Some(first) = unknown.first() {
        let hint = match nearest(first, known.keys().map(String::as_str)) {
            Some(name) if unknown.len() == 1 => format!("; did you mean `{name}`?"),
            _ => String::new(),
        };
        let list = hostlist::compress(&unknown);
        section.notes.add(found.at, format!("no [[nodes]] table names {list}{hint}"));
    }
    let mut nodes: Vec<NodeName> = names.into_iter().map(NodeName::from).collect();
    nodes.sort_by(|a, b| hostlist::natural_cmp(a.as_str(), b.as_str()));
    nodes.dedup();
    partition.nodes = nodes;
}

fn times(section: &mut Section, partition: &mut Partition) {
    partition.max_time = section.time_limit("max_time");
    partition.over_time_limit = section.time_limit("over_time_limit");
    partition.default_time = section.time_limit("default_time");
    let secs = |limit: Option<TimeLimit>| match limit {
        Some(TimeLimit::Secs(secs)) => secs,
        Some(TimeLimit::Unlimited) | None => u64::MAX,
    };
    if partition.default_time.is_some() && secs(partition.default_time) > secs(partition.max_time) {
        let at = section.take("default_time").map_or(section.at, |found| found.at);
        section.notes.add(at, "`default_time` is longer than `max_time`");
    }
}

fn sizes(section: &mut Section, partition: &mut Partition) {
    section.number("min_nodes", 0..=u32::MAX, &mut partition.min_nodes);
    partition.max_nodes = section
        .read("max_nodes", "a whole number from 1, or \"UNLIMITED\"", |item| match item.as_str() {
            Some(text) if text.eq_ignore_ascii_case("unlimited") => Some(None),
            Some(_) => None,
            None => u32::try_from(item.as_integer()?).ok().filter(|n_nodes| *n_nodes > 0).map(Some),
        })
        .flatten();
    if partition.max_nodes.is_some_and(|max| max < partition.min_nodes) {
        let at = section.take("max_nodes").map_or(section.at, |found| found.at);
        section.notes.add(at, "`max_nodes` is smaller than `min_nodes`");
    }
    partition.default_memory_per_node_mb = section.megabytes("default_memory_per_node_mb");
    partition.default_memory_per_cpu_mb = section.megabytes("default_memory_per_cpu_mb");
    partition.default_memory_per_gpu_mb = section.megabytes("default_memory_per_gpu_mb");
    partition.max_memory_per_node_mb = section.megabytes("max_memory_per_node_mb");
    partition.max_memory_per_cpu_mb = section.megabytes("max_memory_per_cpu_mb");
}

/// Who may use it.
fn access(section: &mut Section, partition: &mut Partition) {
    section.words("allow_groups", &mut partition.allow_groups);
    section.words("allow_accounts", &mut partition.allow_accounts);
    section.words("deny_accounts", &mut partition.deny_accounts);
    section.words("allow_qos", &mut partition.allow_qos);
    section.words("deny_qos", &mut partition.deny_qos);
    section.word("qos", &mut partition.qos);
    section.words("alloc_nodes", &mut partition.alloc_nodes);
    section.flag("disable_root_jobs", &mut partition.disable_root_jobs);
    section.flag("requires_reservation", &mut partition.requires_reservation);
    section.text("alternate", &mut partition.alternate);
}

/// How its nodes are shared, and what becomes of its jobs when others need them.
fn sharing(section: &mut Section, partition: &mut Partition) {
    section.flag("exclusive_user", &mut partition.exclusive_user);
    section.flag("least_loaded", &mut partition.least_loaded);
    let shares = section.read("oversubscribe", "\"NO\", \"EXCLUSIVE\", \"YES:4\" or \"FORCE:4\"", |item| {
        OverSubscribe::parse(item.as_str()?)
    });
    if let Some(shares) = shares {
        partition.set(Field::OverSubscribe(shares), &mut std::iter::empty());
    }
    partition.max_cpus_per_node = count(section, "max_cpus_per_node");
    partition.default_cpus_per_gpu = count(section, "default_cpus_per_gpu");
    section.number("priority_job_factor", 0..=65_533, &mut partition.priority_job_factor);
    section.seconds("grace_time", &mut partition.grace_time);
    partition.preempt_mode = section.read("preempt_mode", "\"OFF\", \"CANCEL\", \"REQUEUE\" or \"SUSPEND\"", |item| {
        PreemptMode::parse(item.as_str()?)
    });
}

pub(crate) fn count(section: &mut Section, key: &'static str) -> Option<u32> {
    section.read(key, "a whole number from 1", |item| u32::try_from(item.as_integer()?).ok().filter(|count| *count > 0))
}
