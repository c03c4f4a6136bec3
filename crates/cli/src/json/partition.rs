//! A partition in Slurm's JSON.
use model::Partition;
use model::hostlist;
use model::request::NodeView;
use model::spec::TimeLimit;

use super::Json;

/// Writes the fields of one partition; `nodes` are all the cluster's.
pub fn write(partition: &Partition, nodes: &[NodeView], json: &mut Json) {
    let own = || nodes.iter().filter(|node| partition.nodes.contains(&node.node.name));
    let n_cpus: u32 = own().map(|node| node.node.config.cpus).sum();
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
    json.field("allowed_allocation_nodes", "");
    json.field("allowed_accounts", "");
    json.field("allowed_groups", &partition.allow_groups.join(","));
    json.field("allowed_qos", "");
    json.field("alternative", "");
    json.field("billing_weights", "");
    json.field("default_memory_per_cpu", partition.default_memory_per_cpu_mb);
    json.field("default_memory_per_node", partition.default_memory_per_node_mb);
    json.field("default_time_limit", minutes(partition.default_time));
    json.field("denied_accounts", "");
    json.field("denied_qos", "");
    json.field("preemption_grace_time", partition.grace_time.secs());
    json.field("maximum_cpus_per_node", None::<u32>);
    json.field("maximum_memory_per_node", partition.max_memory_per_node_mb);
    json.field("maximum_nodes_per_job", partition.max_nodes);
    json.field("max_time_limit", minutes(partition.max_time));
    json.field("min nodes per job", partition.min_nodes);
    json.field("name", &partition.name);
    json.field("nodes", &hostlist::compress(&partition.nodes));
    json.field("over_time_limit", minutes(partition.over_time_limit));
    json.field("priority_job_factor", partition.priority_job_factor);
    json.field("priority_tier", partition.priority_tier);
    json.field("qos", "");
    json.field("state", partition.state.word());
    json.field("total_cpus", n_cpus);
    json.field("total_nodes", partition.nodes.len() as u32);
    json.field("tres", &format!("cpu={n_cpus},node={0},billing={n_cpus}", partition.nodes.len()));
}
