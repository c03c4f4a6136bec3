//! A configuration as a complete, readable `spur.conf`: what `spur up` writes.
use std::fmt::{Display, Write};

use model::config::{PartitionLimits, SuspendCpus};
use model::duration;
use model::gres::Gres;
use model::hostlist;
use model::node::{NodeConfig, NodeStart};
use model::partition::{OverSubscribe, PreemptMode};
use model::pool::PoolKind;
use model::preemption::PreemptionConfig;
use model::priority::PriorityKind;
use model::spec::TimeLimit;
use model::time::Span;
use model::{Config, Partition, size};

use crate::burst_buffer::verify_word;

use crate::settings::NO_DATABASE;

/// Reading the text again gives the same configuration.
pub fn render(config: &Config) -> String {
    let mut text = Text::default();
    text.string("cluster_name", &config.cluster_name);
    text.string("srun_prolog", &config.hooks.srun_prolog);
    text.string("srun_epilog", &config.hooks.srun_epilog);
    text.string("mpi_default", &config.mpi_default);
    text.string("mpi_ports", &config.mpi_ports.map(|ports| ports.to_string()).unwrap_or_default());
    job_rules::render_top(&mut text, &config.jobs);
    controller(&mut text, config);
    agent(&mut text, config);
    scheduler(&mut text, config);
    accounting(&mut text, config);
    hooks::render(&mut text, config);
    health(&mut text, config);
    job_rules::render(&mut text, &config.jobs);
    licenses(&mut text, config);
    as_given(&mut text, config);
    nodes(&mut text, config);
    burst_buffer(&mut text, config);
    config.partitions.iter().for_each(|one| partition(&mut text, one));
    network::render(&mut text, config);
    text.0
}

mod hooks;
mod job_rules;
mod network;

/// Where there is anything in it.
fn health(text: &mut Text, config: &Config) {
    let health = &config.health;
    if *health == Default::default() {
        return;
    }
    text.header("[health]");
    text.string("check", &health.check);
    text.value("check_interval", seconds(health.check_interval));
    text.string("check_states", &health.states_text());
    text.string("reboot_program", &health.reboot_program);
    text.value("resume_timeout", seconds(health.resume_timeout));
}

fn controller(text: &mut Text, config: &Config) {
    let controller = &config.controller;
    text.header("[controller]");
    text.string("host", &controller.host);
    text.string("socket", &controller.socket);
    text.string("state_dir", &controller.state_dir);
    text.string("pid_file", &controller.pid_file);
    text.string("log_file", &controller.log_file);
    text.string("mail_program", &controller.mail_program);
    text.string("data_parser", &controller.data_parser.to_string());
    text.string("metrics_address", &controller.metrics_address);
    text.value("min_job_age", seconds(controller.min_job_age));
    text.value("node_timeout", seconds(controller.node_timeout));
    text.value("first_job_id", controller.first_job_id);
    text.value("max_job_id", controller.max_job_id);
    text.value("max_array_size", controller.max_array_size);
    text.value("max_job_count", controller.max_job_count);
    text.value("max_jobs_per_user", controller.max_jobs_per_user);
    text.strings("admins", &controller.admins);
    let returns = if controller.returns_from_down { 2 } else { u8::from(controller.return_to_service) };
    text.value("return_to_service", returns);
    text.string("listen", &controller.listen);
    text.string("address", &controller.address);
    text.value("root_squash", controller.root_squash);
    text.string("login_nodes", &hostlist::compress_in_order(controller.login_nodes.iter().map(|name| name.as_str())));
    text.value("certificate_lifetime", seconds(controller.certificate_lifetime));
    text.value("local_members", controller.local_members);
    text.value("patience", controller.patience_secs);
    text.value("token_lifespan_max", seconds(controller.token_lifespan_max));
    crate::call_limit::rendered(&controller.call_limit).iter().for_each(|(key, value)| text.value(key, value));
    text.string("log_level", controller.loudness.level.map_or("", |level| level.word()));
    let flags: Vec<String> = controller.loudness.flags.iter().map(|flag| flag.word().to_string()).collect();
    text.strings("debug_flags", &flags);
}

/// What was said in a slurm.conf and is only shown.
fn as_given(text: &mut Text, config: &Config) {
    if !config.as_given.is_empty() {
        text.header("[slurm_conf]");
        let public = model::secret::given_keys::public(&config.as_given);
        public.iter().for_each(|(name, value)| text.string(name, value));
    }
}

fn agent(text: &mut Text, config: &Config) {
    let agent = &config.agent;
    text.header("[agent]");
    text.string("socket", &agent.socket);
    text.string("spool_dir", &agent.spool_dir);
    text.string("pid_file", &agent.pid_file);
    text.string("log_file", &agent.log_file);
    text.value("kill_wait", seconds(agent.kill_wait));
    text.value("unkillable_timeout", seconds(agent.unkillable_timeout));
    text.value("heartbeat", seconds(agent.heartbeat));
    text.value("constrain_memory", agent.constrain_memory);
    text.value("constrain_cores", agent.constrain_cores);
    text.value("constrain_devices", agent.constrain_devices);
    text.value("signal_tasks_only", agent.signal_tasks_only);
    text.strings("setuid_helpers", &agent.setuid_helpers);
    text.value("suspend_grace", seconds(agent.suspend_grace));
    text.strings("controllers", &agent.controllers);
    text.string("tls_dir", &agent.tls_dir);
    text.string("listen", &agent.listen);
    text.string("address", &agent.address);
}

fn preemption(text: &mut Text, rules: &PreemptionConfig) {
    text.string("preempt_type", rules.kind.word());
    text.string("preempt_mode", &rules.mode_text());
    text.value("time_slice", seconds(rules.time_slice));
    text.value("preempt_exempt_time", seconds(rules.exempt_time));
    text.optional("preempt_min_exempt_priority", rules.min_exempt_priority);
    text.value("preempt_youngest_first", rules.youngest_first);
    text.value("preempt_strict_order", rules.strict_order);
    text.value("preempt_sends_user_signal", rules.sends_user_signal);
}

fn scheduler(text: &mut Text, config: &Config) {
    let scheduler = &config.scheduler;
    text.header("[scheduler]");
    text.value("depth", scheduler.depth);
    text.value("tracks_memory", scheduler.tracks_memory);
    text.string("hand_out", scheduler.hand_out.word());
    text.value("one_task_per_core", scheduler.one_task_per_core);
    text.value("fills_sockets", scheduler.fills_sockets);
    text.value("fills_nodes", scheduler.fills_nodes);
    text.optional("default_memory_per_node_mb", scheduler.default_memory_per_node_mb);
    text.optional("default_memory_per_cpu_mb", scheduler.default_memory_per_cpu_mb);
    text.optional("default_memory_per_gpu_mb", scheduler.default_memory_per_gpu_mb);
    text.optional("default_cpus_per_gpu", scheduler.default_cpus_per_gpu);
    text.value("requeues", scheduler.requeues);
    text.value("kill_on_invalid_dependency", scheduler.kill_on_invalid_dependency);
    text.value("allow_owner_suspend", scheduler.allow_owner_suspend);
    let backfill = &scheduler.backfill;
    text.value("backfill", backfill.is_on);
    text.value("backfill_reservations", backfill.n_reservations);
    text.value("backfill_window", seconds(backfill.window));
    text.value("backfill_resolution", seconds(backfill.resolution));
    text.value("backfill_patience", seconds(backfill.patience));
    text.optional("backfill_jobs_per_user", backfill.max_jobs_per_user);
    text.optional("backfill_jobs_per_partition", backfill.max_jobs_per_partition);
    let priority = &scheduler.priority;
    let kind = match priority.kind {
        PriorityKind::Basic => "basic",
        PriorityKind::Multifactor => "multifactor",
    };
    text.string("priority", kind);
    text.value("weight_age", priority.weight_age);
    text.value("weight_association", priority.weight_association);
    text.value("weight_fair_share", priority.weight_fair_share);
    text.value("weight_job_size", priority.weight_job_size);
    text.value("weight_partition", priority.weight_partition);
    text.value("weight_qos", priority.weight_qos);
    text.string("weight_tres", &priority.weight_tres);
    text.string("priority_flags", &priority.flags());
    text.value("priority_max_age", seconds(priority.max_age));
    text.value("priority_favors_small", priority.favors_small);
    text.value("priority_half_life", seconds(priority.half_life));
    text.value("priority_calc_period", seconds(priority.calc_period));
    text.string("priority_usage_reset", priority.usage_reset.word());
    text.value("fair_share_dampening", priority.dampening);
    text.value("priority_always_accrues", priority.always_accrues);
    preemption(text, &scheduler.preemption);
    let suspend_cpus = match scheduler.suspend_cpus {
        SuspendCpus::Retain => "retain",
        SuspendCpus::Release => "release",
    };
    text.string("suspend_cpus", suspend_cpus);
    let limits = match scheduler.partition_limits {
        PartitionLimits::Wait => "wait",
        PartitionLimits::Any => "any",
        PartitionLimits::All => "all",
    };
    text.string("partition_limits", limits);
    text.optional("max_memory_per_node_mb", scheduler.max_memory_per_node_mb);
    text.optional("max_memory_per_cpu_mb", scheduler.max_memory_per_cpu_mb);
    text.flag("disable_root_jobs", scheduler.disable_root_jobs);
    text.value("reservation_over_run", seconds(scheduler.reservation_over_run));
    text.limit("over_time_limit", scheduler.over_time_limit);
}

fn licenses(text: &mut Text, config: &Config) {
    if config.licenses.is_empty() {
        return;
    }
    text.header("[licenses]");
    for license in &config.licenses {
        text.value(&quoted(&license.name), license.count);
    }
}

fn accounting(text: &mut Text, config: &Config) {
    let accounting = &config.accounting;
    text.header("[accounting]");
    text.string("database", if accounting.records { &accounting.database } else { NO_DATABASE });
    text.string("database_password_file", &accounting.database_password_file);
    text.value("keep_scripts", accounting.keeps_scripts);
    text.value("keep_environments", accounting.keeps_environments);
    text.value("extern_steps", accounting.has_extern);
    for (key, age) in
        [("purge_jobs_after", accounting.purge_jobs_after), ("purge_steps_after", accounting.purge_steps_after)]
    {
        if let Some(age) = age {
            text.string(key, &format!("{}hours", age.secs() / 3600));
        }
    }
    text.string("enforce", &accounting.enforce.words());
    text.string("private_data", &accounting.private.words());
}

fn burst_buffer(text: &mut Text, config: &Config) {
    let Some(burst) = &config.burst_buffer else { return };
    text.header("[burst_buffer]");
    text.string("type", burst.plugin.word());
    text.string("default_pool", &burst.default_pool);
    let flags = [
        ("EnablePersistent", burst.enables_persistent),
        ("EmulateCray", burst.emulates_cray),
        ("PrivateData", burst.is_private),
        ("TeardownFailure", burst.tears_down_after_failure),
    ];
    let flags: Vec<String> = flags.iter().filter(|(_, is_set)| *is_set).map(|(word, _)| word.to_string()).collect();
    text.strings("flags", &flags);
    text.strings("allow_users", &burst.allow_users);
    text.strings("deny_users", &burst.deny_users);
    text.value("stage_in_timeout", seconds(burst.stage_in_timeout));
    text.value("stage_out_timeout", seconds(burst.stage_out_timeout));
    text.value("validate_timeout", seconds(burst.validate_timeout));
    text.value("other_timeout", seconds(burst.other_timeout));
    text.value("poll_interval", seconds(burst.poll_interval));
    text.value("stage_ahead", seconds(burst.stage_ahead));
    text.value("preempt_staged", burst.preempts);
    text.value("hold_nodes", burst.holds_nodes);
    text.value("end_over_limit", burst.ends_over_limit);
    text.value("measure_interval", seconds(burst.measure_interval));
    text.string("verify_in", verify_word(burst.verify_in));
    text.string("verify_out", verify_word(burst.verify_out));
    text.value("workers", burst.n_workers);
    text.optional("bandwidth", (burst.bandwidth_bytes > 0).then_some(burst.bandwidth_bytes));
    text.value("fanout", burst.fanout);
    text.value("max_directives", burst.max_directives);
    if burst.plugin.is_external() {
        text.string("directive", &burst.directive);
        text.string("script", &burst.script);
        text.string("get_sys_state", &burst.get_sys_state);
        text.string("get_sys_status", &burst.get_sys_status);
        text.value("allow_root", burst.allows_root);
        text.value("pools_interval", seconds(burst.pools_interval));
        text.value("teardown_interval", seconds(burst.teardown_interval));
        text.value("restart_delay", seconds(burst.restart_delay));
        text.value("hooks", burst.n_hooks);
    }
    text.value("array_tasks", burst.n_array_tasks);
    text.value("tres", burst.counts);
    // A plugin's pools are its own to tell.
    for pool in burst.pools.iter().filter(|_| !burst.plugin.is_external()) {
        text.header("[[burst_buffer.pools]]");
        text.string("name", &pool.name);
        text.string("kind", if pool.kind == PoolKind::Node { "node" } else { "shared" });
        text.string("root", &pool.root);
        text.value("granularity", pool.granularity_bytes.max(1));
        match pool.total_bytes {
            Some(bytes) => text.string("total", &size::show_bytes(bytes)),
            None => text.string("total", "auto"),
        }
        text.string("reserve", &format!("{}%", pool.reserve_percent));
        if !pool.movers.is_empty() {
            text.string("movers", &hostlist::compress_in_order(pool.movers.iter().map(|name| name.as_str())));
        }
    }
}

/// Neighbours of the same kind share a table.
fn nodes(text: &mut Text, config: &Config) {
    for alike in config.nodes.chunk_by(|one, next| one.config == next.config) {
        let NodeConfig { tmp_disk_mb, weight, .. } = alike[0].config;
        let (cpus, memory_mb) = (alike[0].config.all_cpus(), alike[0].config.all_memory_mb());
        let node = &alike[0].config;
        text.header("[[nodes]]");
        text.string("names", &hostlist::compress_in_order(alike.iter().map(|one| one.name.as_str())));
        text.optional("cpus", (cpus > 0).then_some(cpus));
        text.optional("memory_mb", (memory_mb > 0).then_some(memory_mb));
        text.optional("tmp_disk_mb", (tmp_disk_mb > 0).then_some(tmp_disk_mb));
        text.optional("sockets", (node.sockets > 0).then_some(node.sockets));
        text.optional("cores_per_socket", (node.cores_per_socket > 0).then_some(node.cores_per_socket));
        text.optional("threads_per_core", (node.threads_per_core > 0).then_some(node.threads_per_core));
        text.optional("kept_cores", (node.kept_cores > 0).then_some(node.kept_cores));
        if node.kept_cores == 0 && !node.kept_cpus.is_empty() {
            text.string("kept_cpus", &node.kept_cpus.to_string());
        }
        text.optional("kept_memory_mb", (node.kept_memory_mb > 0).then_some(node.kept_memory_mb));
        let gres: Vec<String> = node.gres.iter().map(|gres| gres.to_string()).collect();
        text.strings("gres", &gres);
        let mut names: Vec<&str> = node.gres.iter().map(|gres| gres.name.as_str()).collect();
        names.dedup();
        let files_of = |name: &str| -> Vec<&str> {
            let named = node.gres.iter().filter(|gres| gres.name == name);
            named.flat_map(|gres| gres.files.iter().map(String::as_str)).collect()
        };
        let files: Vec<String> = names
            .into_iter()
            .map(|name| (name, files_of(name)))
            .filter(|(_, files)| !files.is_empty())
            .map(|(name, files)| format!("{name}={}", files.join(",")))
            .collect();
        text.strings("gres_files", &files);
        let divided = node.gres.iter().filter(|gres| !gres.parts.is_empty());
        let counts = |gres: &Gres| gres.parts.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let parts: Vec<String> = divided.map(|gres| format!("{}={}", gres.name, counts(gres))).collect();
        text.strings("gpu_parts", &parts);
        let explicit = node.gres.iter().filter(|gres| gres.is_explicit).map(|gres| gres.name.clone());
        let mut explicit: Vec<String> = explicit.collect();
        explicit.dedup();
        text.strings("explicit_gres", &explicit);
        text.strings("features", &node.features);
        text.value("weight", weight);
        text.string("address", &node.address);
        text.string("hostname", &node.hostname);
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
    text.string("billing_weights", &partition.billing_weights);
    text.limit("over_time_limit", partition.over_time_limit);
    text.limit("default_time", partition.default_time);
    text.value("min_nodes", partition.min_nodes);
    text.optional("max_nodes", partition.max_nodes);
    text.value("priority_tier", partition.priority_tier);
    text.optional("default_memory_per_node_mb", partition.default_memory_per_node_mb);
    text.optional("default_memory_per_cpu_mb", partition.default_memory_per_cpu_mb);
    text.value("hidden", partition.is_hidden);
    text.value("root_only", partition.root_only);
    text.value("exclusive_nodes", partition.exclusive_nodes);
    text.strings("allow_groups", &partition.allow_groups);
    text.strings("allow_accounts", &partition.allow_accounts);
    text.strings("deny_accounts", &partition.deny_accounts);
    text.strings("allow_qos", &partition.allow_qos);
    text.strings("deny_qos", &partition.deny_qos);
    text.string("qos", &partition.qos);
    text.strings("alloc_nodes", &partition.alloc_nodes);
    text.flag("disable_root_jobs", partition.disable_root_jobs);
    text.flag("requires_reservation", partition.requires_reservation);
    text.string("alternate", &partition.alternate);
    text.flag("exclusive_user", partition.exclusive_user);
    text.flag("least_loaded", partition.least_loaded);
    if partition.oversubscribe != OverSubscribe::No {
        text.string("oversubscribe", &partition.oversubscribe.word());
    }
    text.optional("max_cpus_per_node", partition.max_cpus_per_node);
    text.optional("default_cpus_per_gpu", partition.default_cpus_per_gpu);
    text.optional("default_memory_per_gpu_mb", partition.default_memory_per_gpu_mb);
    text.optional("max_memory_per_node_mb", partition.max_memory_per_node_mb);
    text.optional("max_memory_per_cpu_mb", partition.max_memory_per_cpu_mb);
    text.value("priority_job_factor", partition.priority_job_factor);
    text.value("grace_time", seconds(partition.grace_time));
    text.string("preempt_mode", partition.preempt_mode.map_or("", PreemptMode::word));
    text.string("topology", &partition.topology);
    text.optional("topology_wait", partition.topology_wait.map(seconds));
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

    /// Left out when it is not set.
    fn flag(&mut self, key: &str, is_set: bool) {
        if is_set {
            self.value(key, true);
        }
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
