//! The sections that hold plain settings: `[controller]`, `[agent]`, `[scheduler]`, `[accounting]`, `[licenses]`.
use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::accounts::tres::is_counted;
use model::billing::Weights;
use model::config::{
    AccountingConfig, AgentConfig, BackfillConfig, ControllerConfig, Enforce, PartitionLimits, SchedulerConfig,
    SuspendCpus,
};
use model::data_parser::DataParser;
use model::hand_out::HandOut;
use model::hostlist;
use model::license::LicenseCount;
use model::loudness::{DebugFlag, Known, LogLevel};
use model::priority::{PriorityConfig, PriorityKind, UsageReset};
use model::secret::{SecretText, without_password};

use crate::section::{Section, set};

/// What names one.
pub(crate) const DATA_PARSERS: &str = "a data parser from v0.0.38 to v0.0.43";

pub(crate) fn controller(mut section: Section, controller: &mut ControllerConfig) {
    section.word("host", &mut controller.host);
    section.text("socket", &mut controller.socket);
    section.text("state_dir", &mut controller.state_dir);
    section.text("pid_file", &mut controller.pid_file);
    section.text("log_file", &mut controller.log_file);
    section.seconds("min_job_age", &mut controller.min_job_age);
    section.number("first_job_id", 1..=0x03ff_0000, &mut controller.first_job_id);
    section.number("max_job_id", 1..=0x03ff_0000, &mut controller.max_job_id);
    section.number("max_array_size", 1..=4_000_001, &mut controller.max_array_size);
    section.number("max_job_count", 1..=u32::MAX, &mut controller.max_job_count);
    section.number("max_jobs_per_user", 0..=u32::MAX, &mut controller.max_jobs_per_user);
    section.seconds("node_timeout", &mut controller.node_timeout);
    section.words("admins", &mut controller.admins);
    let returns = section.read("return_to_service", "0, 1, 2, true or false", |item| {
        item.as_integer().or_else(|| item.as_bool().map(i64::from)).filter(|number| (0..=2).contains(number))
    });
    if let Some(returns) = returns {
        (controller.return_to_service, controller.returns_from_down) = (returns > 0, returns == 2);
    }
    section.text("mail_program", &mut controller.mail_program);
    let parser = section.read("data_parser", DATA_PARSERS, |item| item.as_str().and_then(DataParser::parse));
    controller.data_parser = parser.unwrap_or_default();
    let address = section.read("metrics_address", "an address of this machine, like \"127.0.0.1:9341\"", |item| {
        let address: SocketAddr = item.as_str()?.parse().ok()?;
        address.ip().is_loopback().then(|| address.to_string())
    });
    controller.metrics_address = address.unwrap_or_default();
    section.text("listen", &mut controller.listen);
    section.text("address", &mut controller.address);
    section.flag("root_squash", &mut controller.root_squash);
    let login_nodes = section.read("login_nodes", "a hostlist such as \"login[1-2]\"", |item| {
        hostlist::expand(item.as_str()?).ok().map(|names| names.iter().map(|name| name.as_str().into()).collect())
    });
    controller.login_nodes = login_nodes.unwrap_or_default();
    section.seconds("certificate_lifetime", &mut controller.certificate_lifetime);
    section.number("local_members", 1..=9, &mut controller.local_members);
    section.number("patience", 0..=3600, &mut controller.patience_secs);
    section.seconds("token_lifespan_max", &mut controller.token_lifespan_max);
    crate::call_limit::read(&mut section, &mut controller.call_limit);
    let level = section.read("log_level", "quiet, fatal, error, info, verbose, debug … debug5", |item| {
        item.as_str().and_then(LogLevel::parse)
    });
    controller.loudness.level = level;
    let flags = section.read("debug_flags", "a list of subjects such as [\"TraceJobs\", \"Backfill\"]", |item| {
        let flag = |word: &str| match DebugFlag::parse(word) {
            Known::Flag(flag) => Some(flag),
            Known::Silent(_) | Known::No => None,
        };
        item.as_array()?.iter().map(|word| word.as_str().and_then(flag)).collect::<Option<Vec<_>>>()
    });
    controller.loudness.flags = flags.unwrap_or_default();
    if controller.first_job_id > controller.max_job_id {
        section.notes.add(section.at, "`first_job_id` is larger than `max_job_id`");
    }
    section.finish();
}

/// Gives back what is wrong as soon as there is more than one agent.
pub(crate) fn agent(mut section: Section, agent: &mut AgentConfig) -> Vec<(usize, String)> {
    let mut shared = Vec::new();
    section.text("socket", &mut agent.socket);
    section.text("spool_dir", &mut agent.spool_dir);
    section.text("pid_file", &mut agent.pid_file);
    section.text("log_file", &mut agent.log_file);
    section.seconds("kill_wait", &mut agent.kill_wait);
    section.seconds("unkillable_timeout", &mut agent.unkillable_timeout);
    section.seconds("heartbeat", &mut agent.heartbeat);
    section.flag("constrain_memory", &mut agent.constrain_memory);
    section.flag("constrain_cores", &mut agent.constrain_cores);
    section.flag("constrain_devices", &mut agent.constrain_devices);
    section.flag("signal_tasks_only", &mut agent.signal_tasks_only);
    let helpers = section.read("setuid_helpers", "a list of absolute paths, like [\"/usr/bin/sudo\"]", |item| {
        let path = |value: &str| value.starts_with('/').then(|| value.to_string());
        item.as_array()?.iter().map(|value| value.as_str().and_then(path)).collect::<Option<Vec<_>>>()
    });
    set(&mut agent.setuid_helpers, helpers);
    section.seconds("suspend_grace", &mut agent.suspend_grace);
    let controllers = section.read("controllers", "a list of addresses, like [\"head:6817\"]", |item| {
        item.as_array()?.iter().map(|value| value.as_str().map(str::to_string)).collect::<Option<Vec<_>>>()
    });
    set(&mut agent.controllers, controllers);
    section.text("tls_dir", &mut agent.tls_dir);
    section.text("listen", &mut agent.listen);
    section.text("address", &mut agent.address);
    for (key, path) in [("socket", &agent.socket), ("spool_dir", &agent.spool_dir), ("pid_file", &agent.pid_file)] {
        if !path.is_empty() && !path.contains("%n") {
            let at = section.take(key).map_or(section.at, |found| found.at);
            shared.push((at, format!("`{key}` must contain %n, the node's name: every agent needs its own")));
        }
    }
    section.finish();
    shared
}

pub(crate) fn suspend_cpus(word: &str) -> Option<SuspendCpus> {
    match word.to_lowercase().as_str() {
        "retain" => Some(SuspendCpus::Retain),
        "release" => Some(SuspendCpus::Release),
        _ => None,
    }
}

pub(crate) fn scheduler(mut section: Section, scheduler: &mut SchedulerConfig) {
    section.number("depth", 1..=u32::MAX, &mut scheduler.depth);
    section.flag("tracks_memory", &mut scheduler.tracks_memory);
    let hand_out = section.read("hand_out", "\"cpus\", \"cores\" or \"sockets\"", |item| {
        let word = item.as_str()?;
        HandOut::ALL.into_iter().find(|what| what.word() == word)
    });
    set(&mut scheduler.hand_out, hand_out);
    section.flag("one_task_per_core", &mut scheduler.one_task_per_core);
    section.flag("fills_sockets", &mut scheduler.fills_sockets);
    section.flag("fills_nodes", &mut scheduler.fills_nodes);
    scheduler.default_memory_per_node_mb = section.megabytes("default_memory_per_node_mb");
    scheduler.default_memory_per_cpu_mb = section.megabytes("default_memory_per_cpu_mb");
    if scheduler.default_memory_per_node_mb.is_some() && scheduler.default_memory_per_cpu_mb.is_some() {
        let at = section.take("default_memory_per_cpu_mb").map_or(section.at, |found| found.key_at);
        section.notes.add(at, "give `default_memory_per_node_mb` or `default_memory_per_cpu_mb`, not both");
    }
    scheduler.default_memory_per_gpu_mb = section.megabytes("default_memory_per_gpu_mb");
    scheduler.default_cpus_per_gpu = crate::partition::count(&mut section, "default_cpus_per_gpu");
    section.flag("requeues", &mut scheduler.requeues);
    section.flag("kill_on_invalid_dependency", &mut scheduler.kill_on_invalid_dependency);
    let suspend_cpus = section.read("suspend_cpus", "\"retain\" or \"release\"", |item| suspend_cpus(item.as_str()?));
    set(&mut scheduler.suspend_cpus, suspend_cpus);
    section.flag("allow_owner_suspend", &mut scheduler.allow_owner_suspend);
    backfill(&mut section, &mut scheduler.backfill);
    priority(&mut section, &mut scheduler.priority);
    crate::preemption::read(&mut section, &mut scheduler.preemption);
    let limits = section.read("partition_limits", "\"wait\", \"any\" or \"all\"", |item| match item.as_str()? {
        "wait" => Some(PartitionLimits::Wait),
        "any" => Some(PartitionLimits::Any),
        "all" => Some(PartitionLimits::All),
        _ => None,
    });
    scheduler.partition_limits = limits.unwrap_or_default();
    scheduler.max_memory_per_node_mb = section.megabytes("max_memory_per_node_mb");
    scheduler.max_memory_per_cpu_mb = section.megabytes("max_memory_per_cpu_mb");
    section.flag("disable_root_jobs", &mut scheduler.disable_root_jobs);
    scheduler.over_time_limit = section.time_limit("over_time_limit");
    section.seconds("reservation_over_run", &mut scheduler.reservation_over_run);
    section.finish();
}

/// `[licenses]`: a count for each name.
pub(crate) fn licenses(section: Section, licenses: &mut Vec<LicenseCount>) {
    for (name, count, at) in section.all_numbers() {
        match (count, model::license::parse_list(&name)) {
            (Some(count), Some(list)) if list.len() == 1 && list[0].name == name => {
                licenses.push(LicenseCount { name, count });
            }
            (Some(_), _) => section.notes.add(at, format!("{name:?} cannot be a licence's name")),
            (None, _) => section.notes.add(at, format!("`{name}` must be a whole number of licences")),
        }
    }
}

/// `[slurm_conf]`: keys of the slurm.conf this file was made from. They are shown and decide nothing.
pub(crate) fn as_given(section: Section, given: &mut BTreeMap<String, String>) {
    for (name, value, at) in section.all_texts() {
        match value {
            Some(value) => drop(given.insert(name, value)),
            None => section.notes.add(at, format!("`{name}` must be a text, as it stands in slurm.conf")),
        }
    }
}

/// The value of `database` that turns history off.
pub(crate) const NO_DATABASE: &str = "none";

/// History is kept unless the file says otherwise.
pub fn usual_accounting() -> AccountingConfig {
    AccountingConfig { records: true, has_extern: true, ..Default::default() }
}

pub(crate) fn accounting(mut section: Section, accounting: &mut AccountingConfig) {
    section.text("database", &mut accounting.database);
    let public = without_password(&accounting.database).into_owned();
    if public != accounting.database {
        accounting.database_address = SecretText::new(std::mem::replace(&mut accounting.database, public));
    }
    section.text("database_password_file", &mut accounting.database_password_file);
    section.flag("keep_scripts", &mut accounting.keeps_scripts);
    section.flag("keep_environments", &mut accounting.keeps_environments);
    section.flag("extern_steps", &mut accounting.has_extern);
    accounting.purge_jobs_after = section.age("purge_jobs_after");
    accounting.purge_steps_after = section.age("purge_steps_after");
    let expected = "words such as \"associations,limits,qos,safe\", or \"none\"";
    let enforce = |item: &toml_edit::Item| Enforce::parse(item.as_str()?);
    set(&mut accounting.enforce, section.read("enforce", expected, enforce));
    let expected = "words of accounts, events, jobs, nodes, partitions, reservations, usage, users, or \"none\"";
    let private = |item: &toml_edit::Item| model::private::PrivateData::parse(item.as_str()?);
    set(&mut accounting.private, section.read("private_data", expected, private));
    if accounting.database == NO_DATABASE {
        accounting.records = false;
        accounting.database.clear();
    }
    accounting.records &= !accounting.enforce.no_jobs;
    if accounting.database.contains("://") && !is_postgres(&accounting.database) {
        let at = section.take("database").map_or(section.at, |found| found.at);
        section.notes.add(at, "`database` must be a file, \"postgres://…\", or \"none\"");
    }
    if !accounting.database_password_file.is_empty() && !is_postgres(&accounting.database) {
        let at = section.take("database_password_file").map_or(section.at, |found| found.at);
        section.notes.add(at, "`database_password_file` needs a `database` of \"postgres://…\"");
    }
    section.finish();
}

/// The database, if it is a file of its own.
pub(crate) fn database_file(accounting: &mut AccountingConfig) -> Option<&mut String> {
    let is_file = !accounting.database.is_empty() && !is_postgres(&accounting.database);
    is_file.then_some(&mut accounting.database)
}

fn is_postgres(database: &str) -> bool {
    database.starts_with("postgres://") || database.starts_with("postgresql://")
}

fn backfill(section: &mut Section, backfill: &mut BackfillConfig) {
    section.flag("backfill", &mut backfill.is_on);
    section.number("backfill_reservations", 0..=u32::MAX, &mut backfill.n_reservations);
    section.seconds("backfill_window", &mut backfill.window);
    section.seconds("backfill_resolution", &mut backfill.resolution);
    section.seconds("backfill_patience", &mut backfill.patience);
    let count = |item: &toml_edit::Item| u32::try_from(item.as_integer()?).ok();
    let expected = "a whole number";
    backfill.max_jobs_per_user = section.read("backfill_jobs_per_user", expected, count);
    backfill.max_jobs_per_partition = section.read("backfill_jobs_per_partition", expected, count);
}

/// `gres/gpu=3000`: jobs are counted with such a resource, and it is known how much of it a partition has.
pub(crate) fn weight_counts(word: &str) -> bool {
    let weighed = |weights: Weights| weights.iter().all(|(name, _)| is_counted(name) && !name.starts_with("bb/"));
    Weights::parse(word).is_ok_and(weighed)
}

fn priority(section: &mut Section, priority: &mut PriorityConfig) {
    let kind = section.read("priority", "\"basic\" or \"multifactor\"", |item| match item.as_str()? {
        "basic" => Some(PriorityKind::Basic),
        "multifactor" => Some(PriorityKind::Multifactor),
        _ => None,
    });
    priority.kind = kind.unwrap_or_default();
    section.number("weight_age", 0..=u32::MAX, &mut priority.weight_age);
    section.number("weight_association", 0..=u32::MAX, &mut priority.weight_association);
    section.number("weight_fair_share", 0..=u32::MAX, &mut priority.weight_fair_share);
    section.number("weight_job_size", 0..=u32::MAX, &mut priority.weight_job_size);
    section.number("weight_partition", 0..=u32::MAX, &mut priority.weight_partition);
    section.number("weight_qos", 0..=u32::MAX, &mut priority.weight_qos);
    let expected = "weights of resources that are counted, like \"cpu=1000,gres/gpu=3000\"";
    let weights = section.read("weight_tres", expected, |item| {
        let text = item.as_str()?;
        weight_counts(text).then(|| text.to_string())
    });
    set(&mut priority.weight_tres, weights);
    let expected = "words such as \"NO_NORMAL_TRES,INCR_ONLY\"";
    let flags = section.read("priority_flags", expected, |item| {
        let mut words = item.as_str()?.split(',').map(str::trim).filter(|word| !word.is_empty());
        let mut with = priority.clone();
        words.all(|word| with.set_flag(word)).then_some(with)
    });
    set(priority, flags);
    section.seconds("priority_max_age", &mut priority.max_age);
    section.flag("priority_favors_small", &mut priority.favors_small);
    section.seconds("priority_half_life", &mut priority.half_life);
    section.seconds("priority_calc_period", &mut priority.calc_period);
    let expected = "\"NONE\", \"DAILY\", \"WEEKLY\", \"MONTHLY\", \"QUARTERLY\" or \"YEARLY\"";
    let reset = section.read("priority_usage_reset", expected, |item| UsageReset::parse(item.as_str()?));
    set(&mut priority.usage_reset, reset);
    section.number("fair_share_dampening", 1..=65_535, &mut priority.dampening);
    section.flag("priority_always_accrues", &mut priority.always_accrues);
}
