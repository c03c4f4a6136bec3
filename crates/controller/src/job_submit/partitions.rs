//! The table of partitions that a script gets: those that the caller may use.
use model::partition::{OverSubscribe, PartitionState};
use model::{Caller, Partition};
use serde_json::{Map, Value, json};
use state::Cluster;

use super::values::{INFINITE, NO_VALUE, minutes, or_nil};

pub fn table(cluster: &Cluster, by: Caller, groups: &[String]) -> Value {
    let is_open = |partition: &&Partition| {
        let is_member =
            partition.allow_groups.is_empty() || partition.allow_groups.iter().any(|one| groups.contains(one));
        by.is_admin || (!partition.root_only && is_member)
    };
    let open = cluster.config().partitions.iter().filter(is_open);
    Value::Object(open.map(|partition| (partition.name.clone(), of(cluster, partition))).collect())
}

fn of(cluster: &Cluster, partition: &Partition) -> Value {
    let mut table = Map::new();
    let mut set = |name: &str, value: Value| drop(table.insert(name.into(), value));
    let most = |count: Option<u32>| json!(count.map_or(INFINITE, u64::from));
    let joined = |list: &[String]| or_nil(&list.join(","));
    set("name", json!(partition.name));
    set("nodes", or_nil(&partition.nodes_text));
    set("allow_accounts", joined(&partition.allow_accounts));
    set("allow_alloc_nodes", joined(&partition.alloc_nodes));
    set("allow_groups", joined(&partition.allow_groups));
    set("allow_qos", joined(&partition.allow_qos));
    set("deny_accounts", joined(&partition.deny_accounts));
    set("deny_qos", joined(&partition.deny_qos));
    set("alternate", or_nil(&partition.alternate));
    set("billing_weights_str", or_nil(&partition.billing_weights));
    set("qos", or_nil(&partition.qos));
    set("default_time", json!(partition.default_time.map_or(NO_VALUE, minutes)));
    set("max_time", json!(partition.max_time.map_or(INFINITE, minutes)));
    set("min_nodes", json!(partition.min_nodes));
    set("min_nodes_orig", json!(partition.min_nodes));
    set("max_nodes", most(partition.max_nodes));
    set("max_nodes_orig", most(partition.max_nodes));
    set("max_cpus_per_node", most(partition.max_cpus_per_node));
    memory(&mut set, "def", partition.default_memory_per_cpu_mb, partition.default_memory_per_node_mb);
    memory(&mut set, "max", partition.max_memory_per_cpu_mb, partition.max_memory_per_node_mb);
    let shares = match partition.oversubscribe {
        OverSubscribe::No => 1,
        OverSubscribe::Exclusive => 0,
        OverSubscribe::Yes(count) => count,
        OverSubscribe::Force(count) => count | 0x8000,
    };
    set("max_share", json!(shares));
    set("max_oversubscribe", json!(shares));
    set("priority_job_factor", json!(partition.priority_job_factor));
    set("priority_tier", json!(partition.priority_tier));
    set("flag_default", json!(u8::from(partition.is_default)));
    set("flags", json!(flags(partition)));
    set(
        "state_up",
        json!(match partition.state {
            PartitionState::Up => 3,
            PartitionState::Down => 1,
            PartitionState::Drain => 2,
            PartitionState::Inactive => 0,
        }),
    );
    let nodes = partition.nodes.iter().filter_map(|name| cluster.node(name.as_str()));
    set("total_nodes", json!(partition.nodes.len()));
    set("total_cpus", json!(nodes.map(|node| node.config.cpus).sum::<u32>()));
    Value::Object(table)
}

/// Of each CPU or of each node, never both.
fn memory(set: &mut impl FnMut(&str, Value), what: &str, per_cpu: Option<u64>, per_node: Option<u64>) {
    match per_cpu {
        Some(megabytes) => set(&format!("{what}_mem_per_cpu"), json!(megabytes)),
        None => set(&format!("{what}_mem_per_node"), json!(per_node.unwrap_or(0))),
    }
}

fn flags(partition: &Partition) -> u32 {
    let flags = [
        (partition.is_default, 1),
        (partition.is_hidden, 2),
        (partition.disable_root_jobs, 4),
        (partition.root_only, 8),
        (partition.requires_reservation, 16),
        (partition.least_loaded, 32),
        (partition.exclusive_user, 64),
    ];
    flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum()
}
