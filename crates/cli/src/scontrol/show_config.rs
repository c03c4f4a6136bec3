//! `scontrol show config`: what is configured, under the names Slurm's users look for and in Slurm's order.
use std::collections::BTreeSet;

use model::config::{Config, PartitionLimits, SchedulerConfig};
use model::duration;
use model::hand_out::HandOut;
use model::priority::PriorityKind;
use model::spec::TimeLimit;
use model::topology::TopologyKind;
use wire::client::Configuration;

use super::config_names::{NAMES, Shown};
use crate::version;
use crate::zone::Clock;

/// What the text says that the configuration does not.
pub struct Around<'a> {
    pub file: &'a str,
    /// Who may do everything: name and number.
    pub owner: String,
    pub clock: &'a Clock,
}

/// The whole text, without the ping that follows it.
pub fn text(configuration: &Configuration, around: &Around) -> String {
    let mut out = format!("Configuration data as of {}\n", around.clock.show(configuration.now));
    for (name, shown) in NAMES {
        let value = match shown {
            Shown::Fixed(value) => Some((*value).to_string()),
            Shown::Given(usual, unit) => Some(given(&configuration.config, name, usual, unit)),
            Shown::Effective => effective(name, configuration, around),
        };
        if let Some(value) = value {
            out.push_str(&format!("{name:<23} = {value}\n"));
        }
    }
    out.push('\n');
    out
}

fn given(config: &Config, name: &str, usual: &str, unit: &str) -> String {
    let value = config.as_given.get(name).map_or(usual, String::as_str);
    if value.bytes().all(|byte| byte.is_ascii_digit()) { format!("{value}{unit}") } else { value.into() }
}

/// None: Slurm has no such line in this configuration either.
fn effective(name: &str, configuration: &Configuration, around: &Around) -> Option<String> {
    let config: &Config = &configuration.config;
    let (controller, agent, scheduler) = (&config.controller, &config.agent, &config.scheduler);
    let secs = |secs: u64| format!("{secs} sec");
    let or_null = |text: &str| super::record::or_null(text).to_string();
    let word = |text: &str| text.to_string();
    let yes = |flag: bool| word(if flag { "Yes" } else { "No" });
    let limit = |megabytes: Option<u64>| megabytes.map_or(word("UNLIMITED"), |megabytes| megabytes.to_string());
    Some(match name {
        "AccountingStorageEnforce" => config.accounting.enforce.words(),
        "PrivateData" => config.accounting.private.words(),
        "AccountingStorageTRES" => tracked(config),
        "AccountingStorageType" => {
            word(if config.accounting.records { "accounting_storage/slurmdbd" } else { "accounting_storage/none" })
        }
        "AccountingStoreFlags" => {
            let flags =
                [(config.accounting.keeps_scripts, "job_script"), (config.accounting.keeps_environments, "job_env")];
            or_null(&joined(flags))
        }
        "AuthType" => word("auth/peercred"),
        "BOOT_TIME" => around.clock.show(configuration.started),
        "BurstBufferType" => word(config.burst_buffer.as_ref().map_or("(null)", |burst| match burst.plugin {
            model::Plugin::Native => "burst_buffer/native",
            model::Plugin::Lua => "burst_buffer/lua",
            model::Plugin::DataWarp => "burst_buffer/datawarp",
        })),
        "ClusterName" => config.cluster_name.clone(),
        "CredType" => word("cred/none"),
        "DefMemPerCPU" => scheduler.default_memory_per_cpu_mb?.to_string(),
        "DefMemPerNode" if scheduler.default_memory_per_cpu_mb.is_some() => return None,
        "DefMemPerNode" => limit(scheduler.default_memory_per_node_mb),
        "DependencyParameters" => or_null(&joined([(scheduler.kill_on_invalid_dependency, "kill_invalid_depend")])),
        "DisableRootJobs" => yes(scheduler.disable_root_jobs),
        "AllowSpecResourcesUsage" => word(if config.jobs.may_spare { "Yes" } else { "No" }),
        "EnforcePartLimits" => word(match scheduler.partition_limits {
            PartitionLimits::Wait => "NO",
            PartitionLimits::Any => "ANY",
            PartitionLimits::All => "ALL",
        }),
        "FirstJobId" => controller.first_job_id.to_string(),
        "GresTypes" => or_null(&gres_names(config).into_iter().collect::<Vec<_>>().join(",")),
        "HASH_VAL" => word("Match"),
        "JobAcctGatherType" => word("jobacct_gather/linux"),
        "JobDefaults" => {
            or_null(&super::job_defaults(scheduler.default_cpus_per_gpu, scheduler.default_memory_per_gpu_mb))
        }
        "JobSubmitPlugins" => {
            let plugin = |word: &String| if word.starts_with('/') { "lua".into() } else { word.clone() };
            or_null(&config.hooks.job_submit.iter().map(plugin).collect::<Vec<_>>().join(","))
        }
        "JobRequeue" => u8::from(scheduler.requeues).to_string(),
        "KillWait" => secs(agent.kill_wait.secs()),
        "UnkillableStepTimeout" => secs(agent.unkillable_timeout.secs()),
        "Licenses" => {
            let list: Vec<String> = config.licenses.iter().map(|one| format!("{}:{}", one.name, one.count)).collect();
            or_null(&list.join(","))
        }
        "MailProg" => or_null(&controller.mail_program),
        "MaxArraySize" => controller.max_array_size.to_string(),
        "MaxJobCount" => controller.max_job_count.to_string(),
        "MaxJobId" => controller.max_job_id.to_string(),
        "MaxMemPerCPU" => scheduler.max_memory_per_cpu_mb?.to_string(),
        "MaxMemPerNode" if scheduler.max_memory_per_cpu_mb.is_some() => return None,
        "MaxMemPerNode" => limit(scheduler.max_memory_per_node_mb),
        "MaxNodeCount" => config.nodes.len().to_string(),
        "MinJobAge" => secs(controller.min_job_age.secs()),
        "MULTIPLE_SLURMD" => word("Yes"),
        "NEXT_JOB_ID" => configuration.next_job.to_string(),
        "PreemptMode" => scheduler.preemption.mode_text(),
        "PreemptType" => format!("preempt/{}", scheduler.preemption.kind.word()),
        "PreemptExemptTime" => duration::show(scheduler.preemption.exempt_time.secs()),
        "Prolog" => or_null(&config.hooks.prolog.join(",")),
        "Epilog" => or_null(&config.hooks.epilog.join(",")),
        "PrologSlurmctld" => or_null(&config.hooks.controller_prolog.join(",")),
        "EpilogSlurmctld" => or_null(&config.hooks.controller_epilog.join(",")),
        "TaskProlog" => or_null(&config.hooks.task_prolog),
        "MpiParams" => word(&config.mpi_ports.map_or("(null)".to_string(), |ports| format!("ports={ports}"))),
        "MpiDefault" => word(if config.mpi_default.is_empty() { "none" } else { &config.mpi_default }),
        "SrunProlog" => or_null(&config.hooks.srun_prolog),
        "SrunEpilog" => or_null(&config.hooks.srun_epilog),
        "SlurmctldDebug" => word(configuration.loudness.level.unwrap_or_default().word()),
        "DebugFlags" => {
            let flags: Vec<&str> = configuration.loudness.flags.iter().map(|flag| flag.word()).collect();
            or_null(&flags.join(","))
        }
        "TaskEpilog" => or_null(&config.hooks.task_epilog),
        "PrologEpilogTimeout" => {
            let timeout = config.hooks.prolog_timeout.or(config.hooks.epilog_timeout);
            timeout.map_or(word("65534"), |span| span.secs().to_string())
        }
        "OverTimeLimit" => match scheduler.over_time_limit {
            None => word("0 min"),
            Some(TimeLimit::Secs(secs)) => format!("{} min", secs / 60),
            Some(TimeLimit::Unlimited) => word("UNLIMITED"),
        },
        "PrologFlags" => {
            let flags = &config.hooks.flags;
            or_null(&joined([
                (flags.alloc || config.accounting.has_extern, "Alloc"),
                (config.accounting.has_extern, "Contain"),
                (flags.no_hold, "NoHold"),
                (flags.serial, "Serial"),
                (flags.force_requeue, "ForceRequeueOnFail"),
            ]))
        }
        "ResvOverRun" => format!("{} min", scheduler.reservation_over_run.secs() / 60),
        "ReturnToService" => word(match (controller.return_to_service, controller.returns_from_down) {
            (_, true) => "2",
            (true, false) => "1",
            (false, false) => "0",
        }),
        "HealthCheckProgram" => or_null(&config.health.check),
        "HealthCheckInterval" => secs(config.health.check_interval.secs()),
        "HealthCheckNodeState" => config.health.states_text(),
        "RebootProgram" => or_null(&config.health.reboot_program),
        "ResumeTimeout" => secs(config.health.resume_timeout.secs()),
        "SchedulerTimeSlice" => secs(scheduler.preemption.time_slice.secs()),
        "SchedulerType" => word(if scheduler.backfill.is_on { "sched/backfill" } else { "sched/builtin" }),
        "SelectType" => config.as_given.get(name).map_or("select/cons_tres".into(), |value| value.to_lowercase()),
        "SelectTypeParameters" => match config.as_given.get(name) {
            Some(value) => value.to_uppercase(),
            None => selection(scheduler),
        },
        "SlurmUser" => around.owner.clone(),
        "SlurmdUser" => agents_user(config, around),
        "SlurmctldHost[0]" => controller.host.clone(),
        "SlurmctldLogFile" => or_null(&controller.log_file),
        "SlurmctldPidFile" => or_null(&controller.pid_file),
        "SlurmctldPort" => given(config, name, "0", ""),
        "SlurmdLogFile" => or_null(&agent.log_file),
        "SlurmdPidFile" => or_null(&agent.pid_file),
        "SlurmdPort" => given(config, name, "0", ""),
        "SlurmdSpoolDir" => or_null(&agent.spool_dir),
        "SlurmdTimeout" => secs(controller.node_timeout.secs()),
        "SLURM_CONF" => word(around.file),
        "SLURM_VERSION" => version::SLURM.into(),
        "SPUR_CONTROLLER_SOCKET" => or_null(&controller.socket),
        "SPUR_VERSION" => configuration.version.clone(),
        "StateSaveLocation" => or_null(&controller.state_dir),
        "TaskPlugin" => word(if agent.constrain_cores || agent.constrain_memory { "task/cgroup" } else { "task/none" }),
        "TopologyParam" => or_null(&topology_params(config)),
        "TopologyPlugin" => word(topology_plugin(config)),
        _ => return multifactor(name, config),
    })
}

/// Lines that are there only when priorities have factors; PriorityType itself always is.
fn multifactor(name: &str, config: &Config) -> Option<String> {
    let priority = &config.scheduler.priority;
    let is_multifactor = priority.kind == PriorityKind::Multifactor;
    if name == "PriorityType" {
        return Some(if is_multifactor { "priority/multifactor" } else { "priority/basic" }.into());
    }
    let kept = |usual: &str| given(config, name, usual, "");
    is_multifactor.then(|| match name {
        "FairShareDampeningFactor" => priority.dampening.to_string(),
        "PriorityDecayHalfLife" => duration::show(priority.half_life.secs()),
        "PriorityCalcPeriod" => duration::show(priority.calc_period.secs()),
        "PriorityFavorSmall" => if priority.favors_small { "Yes" } else { "No" }.into(),
        "PriorityFlags" => priority.flags(),
        "PriorityMaxAge" => duration::show(priority.max_age.secs()),
        "PriorityUsageResetPeriod" => priority.usage_reset.word().into(),
        "PriorityWeightAge" => priority.weight_age.to_string(),
        "PriorityWeightAssoc" => priority.weight_association.to_string(),
        "PriorityWeightFairShare" => priority.weight_fair_share.to_string(),
        "PriorityWeightJobSize" => priority.weight_job_size.to_string(),
        "PriorityWeightPartition" => priority.weight_partition.to_string(),
        "PriorityWeightQOS" => priority.weight_qos.to_string(),
        "PriorityWeightTRES" => super::record::or_null(&priority.weight_tres).into(),
        _ => kept("(null)"),
    })
}

fn joined<const N: usize>(words: [(bool, &str); N]) -> String {
    let words: Vec<&str> = words.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word).collect();
    words.join(",")
}

fn gres_names(config: &Config) -> BTreeSet<&str> {
    config.nodes.iter().flat_map(|node| &node.config.gres).map(|gres| gres.name.as_str()).collect()
}

/// What is accounted for: Slurm's own kinds first, then those the site names.
fn tracked(config: &Config) -> String {
    let mut list = String::from("cpu,mem,energy,node,billing,fs/disk,vmem,pages");
    for more in config.as_given.get("AccountingStorageTRES").into_iter().flat_map(|list| list.split(',')) {
        list.push_str(&format!(",{}", more.trim().to_lowercase()));
    }
    list
}

fn topology_plugin(config: &Config) -> &'static str {
    let default = config.topologies.iter().find(|topology| topology.is_default);
    match default.map(|topology| topology.kind) {
        None | Some(TopologyKind::Flat) => "topology/none",
        Some(kind) => kind.plugin(),
    }
}

fn topology_params(config: &Config) -> String {
    let rules = &config.topology;
    let mut words: Vec<String> = rules.routes.clone();
    words.extend(rules.ranks_by_unit.then(|| "SwitchAsNodeRank".into()));
    words.extend(rules.is_optional.then(|| "TopoOptional".into()));
    words.extend(rules.dragonfly.then(|| "Dragonfly".into()));
    words.extend((rules.max_size_unroll > 0).then(|| format!("TopoMaxSizeUnroll={}", rules.max_size_unroll)));
    words.join(",")
}

/// What is handed out, in the words of a slurm.conf.
fn selection(scheduler: &SchedulerConfig) -> String {
    let what = match scheduler.hand_out {
        HandOut::Cpus => "CR_CPU",
        HandOut::Cores => "CR_CORE",
        HandOut::Sockets => "CR_SOCKET",
    };
    let words = [
        (scheduler.tracks_memory, "_MEMORY"),
        (scheduler.one_task_per_core, ",CR_ONE_TASK_PER_CORE"),
        (scheduler.fills_sockets, ",CR_CORE_DEFAULT_DIST_BLOCK"),
        (scheduler.fills_nodes, ",CR_PACK_NODES"),
    ];
    words.iter().filter(|(is_set, _)| *is_set).fold(what.to_string(), |text, (_, word)| text + word)
}

/// A slurm.conf names whom agents run as, or it is root; others' agents are their owner's.
fn agents_user(config: &Config, around: &Around) -> String {
    let name = match config.as_given.get("SlurmdUser") {
        Some(name) => name.as_str(),
        None if config.as_given.contains_key("SlurmUser") => "root",
        None => return around.owner.clone(),
    };
    let uid = crate::users::uid_of(name).or_else(|| name.parse().ok()).unwrap_or(0);
    format!("{}({uid})", crate::users::Names::default().user(uid))
}
