//! What a slurm.conf says about the cluster as a whole.
use model::config::{Config, Enforce, PartitionLimits};
use model::data_parser::DataParser;
use model::hand_out::HandOut;
use model::license;
use model::loudness::{DebugFlag, Known, LogLevel};
use model::private::PrivateData;
use model::spec::TimeLimit;
use model::time::Span;

use super::places;
use super::values::{Notes, Values, is_unlimited};
use crate::settings::DATA_PARSERS;

/// Fills `config`, whose nodes are known already. What the file leaves open is as in Slurm.
pub(crate) fn read(values: &Values, config: &mut Config, notes: &Notes) {
    names(values, config, notes);
    files(values, config, notes);
    limits(values, config, notes);
    scheduling(values, config, notes);
    super::hooks::read(values, config, notes);
    crate::job_rules::read_slurm(values, &mut config.jobs, notes);
    crate::call_limit::read_slurm(values, &mut config.controller.call_limit, notes);
    loudness(values, config, notes);
    accounting(values, config, notes);
    config.as_given = values.told();
}

/// The controller itself keeps what Slurm would send to slurmdbd. Only an explicit "none" turns that off.
fn accounting(values: &Values, config: &mut Config, notes: &Notes) {
    let expected = "accounting_storage/slurmdbd or accounting_storage/none";
    let kind = values.read("AccountingStorageType", expected, notes, |text| {
        let name = text.to_lowercase();
        let name = name.strip_prefix("accounting_storage/").unwrap_or(&name).to_string();
        ["slurmdbd", "mysql", "none", "ctld_relay"].contains(&name.as_str()).then_some(name)
    });
    let accounting = &mut config.accounting;
    accounting.records = kind.as_deref() != Some("none");
    let expected = "words such as associations,limits,qos,safe";
    let enforce = values.read("AccountingStorageEnforce", expected, notes, Enforce::parse);
    accounting.enforce = enforce.map_or(Enforce::NOTHING, Enforce::with_implied);
    accounting.records &= !accounting.enforce.no_jobs;
    let expected = "words of accounts, events, jobs, nodes, partitions, reservations, usage, users, or none";
    let private = values.read("PrivateData", expected, notes, PrivateData::parse);
    accounting.private = private.unwrap_or_default();
    let words = |key: &str| -> Vec<String> {
        values.text(key).unwrap_or_default().split(',').map(|word| word.trim().to_lowercase()).collect()
    };
    let flags = words("AccountingStoreFlags");
    accounting.keeps_scripts = flags.iter().any(|flag| flag == "job_script");
    accounting.keeps_environments = flags.iter().any(|flag| flag == "job_env");
    accounting.has_extern = config.hooks.flags.contain;
}

fn loudness(values: &Values, config: &mut Config, notes: &Notes) {
    let expected = "quiet, fatal, error, info, verbose, debug … debug5, or 0 to 9";
    config.controller.loudness.level = values.read("SlurmctldDebug", expected, notes, LogLevel::parse);
    let Some(pair) = values.get("DebugFlags") else { return };
    for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match DebugFlag::parse(word) {
            Known::Flag(flag) => config.controller.loudness.flags.push(flag),
            Known::Silent(name) => notes.warn(&pair.at, format!("DebugFlags={name}: the log says nothing about it")),
            Known::No => notes.wrong(&pair.at, format!("`DebugFlags` does not know {word:?}")),
        }
    }
}

fn names(values: &Values, config: &mut Config, notes: &Notes) {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let name = values.read("ClusterName", "a name of letters, digits, `_`, `-` and `.`", notes, |text| {
        is_word(text).then(|| text.to_lowercase())
    });
    config.cluster_name = name.unwrap_or_else(|| "cluster".into());
    let host = values.read("SlurmctldHost", "a host, or host(address)", notes, |text| {
        let (host, address) = text.split_once('(').unwrap_or((text, ")"));
        (is_word(host) && address.ends_with(')')).then(|| host.to_string())
    });
    if let Some(host) = host {
        config.controller.host = host;
    }
    // Whom Slurm lets do everything.
    let user = values.text("SlurmUser").map(|user| user.split('(').next().unwrap_or(user));
    config.controller.admins =
        user.filter(|user| *user != "root" && *user != "0").map(String::from).into_iter().collect();
}

fn files(values: &Values, config: &mut Config, notes: &Notes) {
    let path = |key: &str| {
        values.read(key, "a path from the root", notes, |text| text.starts_with('/').then(|| text.to_string()))
    };
    if let Some(dir) = path("StateSaveLocation") {
        config.controller.socket = places::controller_socket(&dir);
        config.controller.state_dir = dir;
    }
    if let Some(dir) = path("SlurmdSpoolDir") {
        config.agent.spool_dir = places::spool_dir(&dir);
        config.agent.socket = places::agent_socket(&config.agent.spool_dir);
    }
    config.controller.pid_file = path("SlurmctldPidFile").unwrap_or_default();
    config.controller.log_file = path("SlurmctldLogFile").unwrap_or_default();
    config.controller.mail_program = path("MailProg").unwrap_or(config.controller.mail_program.clone());
    let parser = values.read("DataParserParameters", DATA_PARSERS, notes, DataParser::parse);
    config.controller.data_parser = parser.unwrap_or_default();
    let pid_file = path("SlurmdPidFile").unwrap_or_default();
    if !pid_file.is_empty() {
        config.agent.pid_file = places::one_a_node(&pid_file, config.nodes.len());
    }
    config.agent.log_file = places::for_nodes(&path("SlurmdLogFile").unwrap_or_default());
}

fn limits(values: &Values, config: &mut Config, notes: &Notes) {
    let (controller, agent) = (&mut config.controller, &mut config.agent);
    agent.kill_wait = values.seconds("KillWait", notes).unwrap_or(Span::from_secs(30));
    if let Some(pair) = values.get("LaunchParameters") {
        for word in pair.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word
                .strip_prefix("setuid_helpers=")
                .map(|paths| paths.split(':').map(str::to_string).collect::<Vec<_>>())
            {
                Some(paths) if paths.iter().all(|path| path.starts_with('/')) => agent.setuid_helpers = paths,
                Some(_) => {
                    notes.wrong(&pair.at, format!("`{word}`: absolute paths are expected, with colons between them"))
                }
                None => notes.warn(&pair.at, format!("`LaunchParameters={word}` has no effect here")),
            }
        }
    }
    agent.unkillable_timeout = values.seconds("UnkillableStepTimeout", notes).unwrap_or(Span::from_secs(60));
    controller.min_job_age = values.seconds_or_ever("MinJobAge", notes).unwrap_or(Span::from_secs(300));
    controller.node_timeout = values.seconds_or_ever("SlurmdTimeout", notes).unwrap_or(Span::from_secs(300));
    controller.max_array_size = values.number("MaxArraySize", 0..=4_000_001, notes).unwrap_or(1001);
    controller.max_job_count = values.number("MaxJobCount", 1..=u32::MAX, notes).unwrap_or(10_000);
    controller.first_job_id = values.number("FirstJobId", 1..=0x03ff_0000, notes).unwrap_or(1);
    controller.max_job_id = values.number("MaxJobId", 1..=0x03ff_0000, notes).unwrap_or(0x03ff_0000);
    if let Some(pair) = values.get("FirstJobId").or(values.get("MaxJobId"))
        && controller.first_job_id > controller.max_job_id
    {
        notes.wrong(&pair.at, "`FirstJobId` is larger than `MaxJobId`");
    }
    let returns = values.number("ReturnToService", 0..=2, notes).unwrap_or(0);
    (controller.return_to_service, controller.returns_from_down) = (returns > 0, returns == 2);
    crate::health::read_slurm(values, config, notes);
}

fn scheduling(values: &Values, config: &mut Config, notes: &Notes) {
    let scheduler = &mut config.scheduler;
    scheduler.default_memory_per_cpu_mb = values.megabytes_limit("DefMemPerCPU", notes);
    scheduler.default_memory_per_node_mb = values.megabytes_limit("DefMemPerNode", notes);
    if let Some(pair) = values.get("DefMemPerNode")
        && scheduler.default_memory_per_cpu_mb.is_some()
        && scheduler.default_memory_per_node_mb.is_some()
    {
        notes.wrong(&pair.at, "give `DefMemPerCPU` or `DefMemPerNode`, not both");
    }
    scheduler.default_memory_per_gpu_mb = values.megabytes_limit("DefMemPerGPU", notes);
    scheduler.default_cpus_per_gpu = values.number("DefCpuPerGPU", 0..=u32::MAX, notes).filter(|count| *count > 0);
    scheduler.requeues = values.number("JobRequeue", 0..=1, notes).unwrap_or(1) == 1;
    if let Some(pair) = values.get("DependencyParameters") {
        for word in pair.value.split(',').filter(|word| !word.is_empty()) {
            match word.to_lowercase().as_str() {
                "kill_invalid_depend" => scheduler.kill_on_invalid_dependency = true,
                _ => notes.warn(&pair.at, format!("{word} has no effect here")),
            }
        }
    }
    let suspend_cpus = values.read("SuspendCPUs", "RETAIN or RELEASE", notes, crate::settings::suspend_cpus);
    scheduler.suspend_cpus = suspend_cpus.unwrap_or_default();
    scheduler.max_memory_per_cpu_mb = values.megabytes_limit("MaxMemPerCPU", notes);
    scheduler.max_memory_per_node_mb = values.megabytes_limit("MaxMemPerNode", notes);
    scheduler.disable_root_jobs = values.flag("DisableRootJobs", notes).unwrap_or(false);
    let limits = values.read("EnforcePartLimits", "ALL, ANY or NO", notes, |text| {
        Some(match text.to_uppercase().as_str() {
            "YES" | "UP" | "TRUE" | "1" | "ALL" => PartitionLimits::All,
            "ANY" => PartitionLimits::Any,
            "NO" | "DOWN" | "FALSE" | "0" => PartitionLimits::Wait,
            _ => return None,
        })
    });
    scheduler.partition_limits = limits.unwrap_or_default();
    let minutes = values.read("ResvOverRun", "a number of minutes, or UNLIMITED", notes, |text| match text {
        _ if is_unlimited(text) => Some(u32::from(u16::MAX)),
        _ => text.parse().ok().filter(|minutes| *minutes <= 65_533),
    });
    scheduler.reservation_over_run = Span::from_secs(u64::from(minutes.unwrap_or(0)) * 60);
    scheduler.over_time_limit =
        values.read("OverTimeLimit", "a number of minutes, or UNLIMITED", notes, |text| match text {
            _ if is_unlimited(text) => Some(TimeLimit::Unlimited),
            _ => text
                .parse::<u64>()
                .ok()
                .filter(|minutes| *minutes <= 65_533)
                .map(|minutes| TimeLimit::Secs(minutes * 60)),
        });
    scheduler.over_time_limit = scheduler.over_time_limit.filter(|limit| *limit != TimeLimit::Secs(0));
    let licenses = values.read("Licenses", "names with counts, like matlab:4,ansys", notes, license::parse_list);
    config.licenses = licenses.unwrap_or_default();
    super::preemption::read(values, config, notes);
    super::scheduling::read(values, config, notes);
    selection(values, config, notes);
}

/// Whether whole nodes are handed out, or sockets, cores or CPUs; and whether memory is.
fn selection(values: &Values, config: &mut Config, notes: &Notes) {
    let kinds = ["cons_tres", "cons_res", "linear", "cray_aries"];
    let expected = "select/cons_tres, select/cons_res or select/linear";
    let kind = values.read("SelectType", expected, notes, |text| {
        let name = text.to_lowercase();
        let name = name.strip_prefix("select/").unwrap_or(&name).to_string();
        kinds.into_iter().find(|kind| *kind == name)
    });
    // What Slurm takes when nothing is said; a wrong word has been reported.
    let is_linear = kind.unwrap_or("linear") == "linear";
    if is_linear {
        config.partitions.iter_mut().for_each(|partition| partition.exclusive_nodes = true);
    }
    let words: Vec<String> =
        values.text("SelectTypeParameters").unwrap_or_default().split(',').map(str::to_uppercase).collect();
    let mut tracks_memory = !is_linear;
    for word in words.iter().filter(|word| !word.is_empty()) {
        let pair = values.get("SelectTypeParameters").expect("its words were just read");
        match word.as_str() {
            "CR_CPU" | "CR_CORE" | "CR_SOCKET" => tracks_memory = false,
            "CR_CPU_MEMORY" | "CR_CORE_MEMORY" | "CR_SOCKET_MEMORY" | "CR_MEMORY" => tracks_memory = true,
            "NONE" | "OTHER_CONS_RES" | "OTHER_CONS_TRES" => {}
            "CR_ONE_TASK_PER_CORE" => config.scheduler.one_task_per_core = true,
            "CR_CORE_DEFAULT_DIST_BLOCK" => config.scheduler.fills_sockets = true,
            "CR_LLN" => config.partitions.iter_mut().for_each(|partition| partition.least_loaded = true),
            "CR_PACK_NODES" => config.scheduler.fills_nodes = true,
            "CR_OTHER_CONS_RES"
            | "CR_OTHER_CONS_TRES"
            | "LL_SHARED_GRES"
            | "MULTIPLE_SHARING_GRES_PJ"
            | "ENFORCE_BINDING_GRES"
            | "ONE_TASK_PER_SHARING_GRES" => notes.warn(&pair.at, format!("{word} has no effect here")),
            _ => notes.wrong(&pair.at, format!("`SelectTypeParameters` does not know {word:?}")),
        }
        match word.as_str() {
            _ if is_linear => {}
            "CR_CORE" | "CR_CORE_MEMORY" => config.scheduler.hand_out = HandOut::Cores,
            "CR_SOCKET" | "CR_SOCKET_MEMORY" => config.scheduler.hand_out = HandOut::Sockets,
            _ => {}
        }
    }
    config.scheduler.tracks_memory = tracks_memory;
}
