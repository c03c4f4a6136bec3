//! A partition in Slurm's JSON.
use model::Partition;
use model::config::Config;
use model::hostlist;
use model::partition::OverSubscribe;
use model::request::NodeView;
use model::spec::TimeLimit;

use crate::node_view::{named, partition_tres};

use super::Json;

/// Writes the fields of one partition; `nodes` are all the cluster's.
pub fn write(partition: &Partition, nodes: &[NodeView], config: &Config, json: &mut Json) {
    let n_cpus: u32 = named(nodes, &partition.nodes).iter().map(|node| node.node.config.cpus).sum();
    let minutes = |limit: Option<TimeLimit>| match limit {
        Some(TimeLimit::Secs(secs)) => Some(secs / 60),
        Some(TimeLimit::Unlimited) | None => None,
    };
    json.list_field("flags", |json| {
        for (is, flag) in
            [(partition.is_default, "default"), (partition.is_hidden, "hidden"), (partition.root_only, "root_only")]
        {
            if is {
                json.item(flag);
            }
        }
    });
    let mode = partition.preempt_mode.filter(|mode| *mode != model::partition::PreemptMode::Off);
    let mode = mode.map_or("disabled".into(), |mode| mode.word().to_lowercase());
    json.list_field("preemption_mode", |json| mode.split(',').for_each(|word| json.item(word)));
    json.field("allowed_allocation_nodes", &hostlist::compress(&partition.alloc_nodes));
    json.field("allowed_accounts", &partition.allow_accounts.join(","));
    json.field("allowed_groups", &partition.allow_groups.join(","));
    json.field("allowed_qos", &partition.allow_qos.join(","));
    json.field("alternative", &partition.alternate);
    json.field("billing_weights", &partition.billing_weights);
    json.field("default_memory_per_cpu", partition.default_memory_per_cpu_mb);
    json.field("default_memory_per_node", partition.default_memory_per_node_mb);
    json.field("default_time_limit", minutes(partition.default_time));
    json.field("denied_accounts", &partition.deny_accounts.join(","));
    json.field("denied_qos", &partition.deny_qos.join(","));
    json.field("preemption_grace_time", partition.grace_time.secs());
    json.field("maximum_cpus_per_node", partition.max_cpus_per_node);
    json.field("maximum_memory_per_node", partition.max_memory_per_node_mb);
    json.field("maximum_nodes_per_job", partition.max_nodes);
    json.field("max_time_limit", minutes(partition.max_time));
    json.field("min nodes per job", partition.min_nodes);
    json.field("name", &partition.name);
    json.field("nodes", &hostlist::compress(&partition.nodes));
    json.field("over_time_limit", minutes(partition.over_time_limit));
    json.field("priority_job_factor", partition.priority_job_factor);
    json.field("priority_tier", partition.priority_tier);
    json.field("qos", &partition.qos);
    json.field("state", partition.state.word());
    json.field("total_cpus", n_cpus);
    json.field("total_nodes", partition.nodes.len() as u32);
    json.field("tres", &partition_tres(partition, config));
}

/// As parsers after 22.05's have it.
pub fn write_newer(partition: &Partition, nodes: &[NodeView], config: &Config, json: &mut Json) {
    let n_cpus: u32 = named(nodes, &partition.nodes).iter().map(|node| node.node.config.cpus).sum();
    let n_nodes = partition.nodes.len() as u32;
    json.object_field("nodes", |json| {
        json.field("allowed_allocation", &hostlist::compress(&partition.alloc_nodes));
        json.field("configured", &hostlist::compress(&partition.nodes));
        json.field("total", n_nodes);
    });
    json.object_field("accounts", |json| {
        json.field("allowed", &partition.allow_accounts.join(","));
        json.field("deny", &partition.deny_accounts.join(","));
    });
    json.object_field("groups", |json| json.field("allowed", &partition.allow_groups.join(",")));
    json.object_field("qos", |json| {
        json.field("allowed", &partition.allow_qos.join(","));
        json.field("deny", &partition.deny_qos.join(","));
        json.field("assigned", &partition.qos);
    });
    json.field("alternate", &partition.alternate);
    json.object_field("tres", |json| {
        json.field("billing_weights", &partition.billing_weights);
        json.field("configured", &partition_tres(partition, config));
    });
    json.field("cluster", &config.cluster_name);
    json.list_field("select_type", |_| {});
    json.object_field("cpus", |json| {
        json.field("task_binding", 0_u32);
        json.field("total", n_cpus);
    });
    json.object_field("defaults", |json| {
        json.number("partition_memory_per_cpu", partition.default_memory_per_cpu_mb.map(|size| size as i64));
        json.number("partition_memory_per_node", partition.default_memory_per_node_mb.map(|size| size as i64));
        json.limit("time", minutes(partition.default_time), false);
        json.field(
            "job",
            &crate::scontrol::job_defaults(partition.default_cpus_per_gpu, partition.default_memory_per_gpu_mb),
        );
    });
    json.field("grace_time", partition.grace_time.secs());
    json.object_field("maximums", |json| {
        json.limit("cpus_per_node", partition.max_cpus_per_node.map(i64::from), true);
        json.limit("cpus_per_socket", None, true);
        json.number("partition_memory_per_cpu", partition.max_memory_per_cpu_mb.map(|size| size as i64));
        json.number("partition_memory_per_node", partition.max_memory_per_node_mb.map(|size| size as i64));
        json.limit("nodes", partition.max_nodes.map(i64::from), true);
        json.field("shares", shares(partition));
        json.limit("time", minutes(partition.max_time), true);
        json.limit("over_time_limit", minutes(partition.over_time_limit), false);
    });
    json.object_field("minimums", |json| json.field("nodes", partition.min_nodes));
    json.field("name", &partition.name);
    json.field("node_sets", "");
    json.object_field("priority", |json| {
        json.field("job_factor", partition.priority_job_factor);
        json.field("tier", partition.priority_tier);
    });
    json.object_field("timeouts", |json| {
        json.number("resume", None);
        json.number("suspend", None);
    });
    json.object_field("partition", |json| json.list_field("state", |json| json.item(partition.state.word())));
    json.number("suspend_time", None);
}

/// How many jobs may have the same CPUs.
fn shares(partition: &Partition) -> u32 {
    match partition.oversubscribe {
        OverSubscribe::No | OverSubscribe::Exclusive => 1,
        OverSubscribe::Yes(count) | OverSubscribe::Force(count) => count.max(1),
    }
}

fn minutes(limit: Option<TimeLimit>) -> Option<i64> {
    match limit {
        Some(TimeLimit::Secs(secs)) => Some((secs / 60) as i64),
        Some(TimeLimit::Unlimited) | None => None,
    }
}
