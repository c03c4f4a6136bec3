//! A configuration as a complete, readable `spur.conf`: what `spur up` writes.
use std::fmt::{Display, Write};

use model::config::SuspendCpus;
use model::duration;
use model::hostlist;
use model::node::{NodeConfig, NodeStart};
use model::spec::TimeLimit;
use model::time::Span;
use model::{Config, Partition};

/// Reading the text again gives the same configuration.
pub fn render(config: &Config) -> String {
    let mut text = Text::default();
    text.string("cluster_name", &config.cluster_name);
    controller(&mut text, config);
    agent(&mut text, config);
    scheduler(&mut text, config);
    nodes(&mut text, config);
    config.partitions.iter().for_each(|one| partition(&mut text, one));
    network::render(&mut text, config);
    text.0
}

mod network;

fn controller(text: &mut Text, config: &Config) {
    let controller = &config.controller;
    text.header("[controller]");
    text.string("host", &controller.host);
    text.string("socket", &controller.socket);
    text.string("state_dir", &controller.state_dir);
    text.string("pid_file", &controller.pid_file);
    text.string("log_file", &controller.log_file);
    text.string("mail_program", &controller.mail_program);
    text.value("min_job_age", seconds(controller.min_job_age));
    text.value("node_timeout", seconds(controller.node_timeout));
    text.value("first_job_id", controller.first_job_id);
    text.value("max_job_id", controller.max_job_id);
    text.value("max_array_size", controller.max_array_size);
    text.value("max_job_count", controller.max_job_count);
    text.strings("admins", &controller.admins);
    text.value("return_to_service", controller.return_to_service);
}

fn agent(text: &mut Text, config: &Config) {
    let agent = &config.agent;
    text.header("[agent]");
    text.string("socket", &agent.socket);
    text.string("spool_dir", &agent.spool_dir);
    text.string("pid_file", &agent.pid_file);
    text.string("log_file", &agent.log_file);
    text.value("kill_wait", seconds(agent.kill_wait));
    text.value("heartbeat", seconds(agent.heartbeat));
    text.value("suspend_grace", seconds(agent.suspend_grace));
}

fn scheduler(text: &mut Text, config: &Config) {
    let scheduler = &config.scheduler;
    text.header("[scheduler]");
    text.value("depth", scheduler.depth);
    text.value("tracks_memory", scheduler.tracks_memory);
    text.optional("default_memory_per_node_mb", scheduler.default_memory_per_node_mb);
    text.optional("default_memory_per_cpu_mb", scheduler.default_memory_per_cpu_mb);
    text.value("requeues", scheduler.requeues);
    text.value("kill_on_invalid_dependency", scheduler.kill_on_invalid_dependency);
    text.value("allow_owner_suspend", scheduler.allow_owner_suspend);
    let suspend_cpus = match scheduler.suspend_cpus {
        SuspendCpus::Retain => "retain",
        SuspendCpus::Release => "release",
    };
    text.string("suspend_cpus", suspend_cpus);
}

/// Neighbours of the same kind share a table.
fn nodes(text: &mut Text, config: &Config) {
    for alike in config.nodes.chunk_by(|one, next| one.config == next.config) {
        let NodeConfig { cpus, memory_mb, tmp_disk_mb, weight, .. } = alike[0].config;
        let node = &alike[0].config;
        text.header("[[nodes]]");
        text.string("names", &hostlist::compress_in_order(alike.iter().map(|one| one.name.as_str())));
        text.optional("cpus", (cpus > 0).then_some(cpus));
        text.optional("memory_mb", (memory_mb > 0).then_some(memory_mb));
        text.optional("tmp_disk_mb", (tmp_disk_mb > 0).then_some(tmp_disk_mb));
        text.optional("sockets", (node.sockets > 0).then_some(node.sockets));
        text.optional("cores_per_socket", (node.cores_per_socket > 0).then_some(node.cores_per_socket));
        text.optional("threads_per_core", (node.threads_per_core > 0).then_some(node.threads_per_core));
        let gres: Vec<String> = node.gres.iter().map(|gres| gres.to_string()).collect();
        text.strings("gres", &gres);
        text.strings("features", &node.features);
        text.value("weight", weight);
        text.string("address", &node.address);
        if node.starts_as != NodeStart::Usable {
            text.string("state", node.starts_as.word());
        }
        text.string("reason", &node.start_reason);
        if let Some(place) = &node.topology {
            text.value("topology", quoted(place));
        }
    }
}

fn partition(text: &mut Text, partition: &Partition) {
    text.header("[[partitions]]");
    text.string("name", &partition.name);
    text.string("nodes", &partition.nodes_text);
    text.value("default", partition.is_default);
    text.string("state", partition.state.word());
    text.limit("max_time", partition.max_time);
    text.limit("default_time", partition.default_time);
    text.value("min_nodes", partition.min_nodes);
    text.optional("max_nodes", partition.max_nodes);
    text.value("priority_tier", partition.priority_tier);
    text.optional("default_memory_per_node_mb", partition.default_memory_per_node_mb);
    text.optional("default_memory_per_cpu_mb", partition.default_memory_per_cpu_mb);
    text.value("hidden", partition.is_hidden);
    text.value("root_only", partition.root_only);
    text.value("exclusive_nodes", partition.exclusive_nodes);
    text.string("topology", &partition.topology);
    if partition.exclusive_topology {
        text.value("exclusive_topology", true);
    }
}

fn seconds(span: Span) -> String {
    match span.0 % 1_000_000 {
        0 => span.secs().to_string(),
        _ => format!("{:.6}", span.0 as f64 / 1e6),
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn header(&mut self, header: &str) {
        writeln!(self.0, "\n{header}").expect("a string takes any text");
    }

    fn value(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} = {value}").expect("a string takes any text");
    }

    fn optional(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.value(key, value);
        }
    }

    /// Left out when empty: empty means "not said".
    fn string(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.value(key, quoted(value));
        }
    }

    fn strings(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            let list: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            self.value(key, format!("[{}]", list.join(", ")));
        }
    }

    fn limit(&mut self, key: &str, limit: Option<TimeLimit>) {
        match limit {
            Some(TimeLimit::Secs(secs)) => self.string(key, &duration::show(secs)),
            Some(TimeLimit::Unlimited) => self.string(key, "UNLIMITED"),
            None => {}
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => write!(out, "\\u{:04X}", c as u32).expect("a string takes any text"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
