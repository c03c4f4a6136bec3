//! `scontrol show config`: what is configured, under the names Slurm's users look for.
use model::config::Config;
use wire::client::Configuration;

use crate::version;
use crate::zone::Clock;

/// The whole text, without the ping that follows it.
pub fn text(configuration: &Configuration, file: &str, clock: &Clock) -> String {
    let mut out = format!("Configuration data as of {}\n", clock.show(configuration.now));
    for (name, value) in entries(configuration, file, clock) {
        out.push_str(&format!("{name:<23} = {value}\n"));
    }
    out.push('\n');
    out
}

fn entries(configuration: &Configuration, file: &str, clock: &Clock) -> Vec<(&'static str, String)> {
    let config: &Config = &configuration.config;
    let (controller, agent, scheduler) = (&config.controller, &config.agent, &config.scheduler);
    let secs = |secs: u64| format!("{secs} sec");
    let or_null = |text: &str| super::record::or_null(text).to_string();
    let gres: std::collections::BTreeSet<&str> =
        config.nodes.iter().flat_map(|node| &node.config.gres).map(|gres| gres.name.as_str()).collect();
    let gres: Vec<&str> = gres.into_iter().collect();
    let memory = match (scheduler.default_memory_per_cpu_mb, scheduler.default_memory_per_node_mb) {
        (Some(megabytes), _) => ("DefMemPerCPU", megabytes.to_string()),
        (None, Some(megabytes)) => ("DefMemPerNode", megabytes.to_string()),
        (None, None) => ("DefMemPerNode", "UNLIMITED".into()),
    };
    let null = || String::from("(null)");
    let word = |text: &str| text.to_string();
    let dependency = if scheduler.kill_on_invalid_dependency { word("kill_invalid_depend") } else { null() };
    vec![
        ("AccountingStorageEnforce", word("none")),
        (
            "AccountingStorageType",
            word(if config.accounting.records { "accounting_storage/slurmdbd" } else { "accounting_storage/none" }),
        ),
        ("AcctGatherEnergyType", word("acct_gather_energy/none")),
        ("AcctGatherFilesystemType", word("acct_gather_filesystem/none")),
        ("AcctGatherInterconnectType", word("acct_gather_interconnect/none")),
        ("AcctGatherNodeFreq", secs(0)),
        ("AcctGatherProfileType", word("acct_gather_profile/none")),
        ("AllowSpecResourcesUsage", word("No")),
        ("AuthAltTypes", null()),
        ("AuthType", word("auth/peercred")),
        ("BOOT_TIME", clock.show(configuration.started)),
        ("BurstBufferType", null()),
        ("CliFilterPlugins", null()),
        ("ClusterName", config.cluster_name.clone()),
        ("CompleteWait", secs(0)),
        ("CoreSpecPlugin", word("core_spec/none")),
        memory,
        ("DependencyParameters", dependency),
        ("DisableRootJobs", word("No")),
        ("EnforcePartLimits", word("NO")),
        ("Epilog", null()),
        ("EpilogSlurmctld", null()),
        ("FirstJobId", controller.first_job_id.to_string()),
        ("GresTypes", or_null(&gres.join(","))),
        ("HealthCheckInterval", secs(0)),
        ("HealthCheckProgram", null()),
        ("InactiveLimit", secs(0)),
        ("JobAcctGatherType", word("jobacct_gather/none")),
        ("JobCompType", word("jobcomp/none")),
        ("JobContainerType", word("job_container/none")),
        ("JobDefaults", null()),
        ("JobRequeue", u8::from(scheduler.requeues).to_string()),
        ("JobSubmitPlugins", null()),
        ("KillWait", secs(agent.kill_wait.secs())),
        ("Licenses", null()),
        ("MailProg", or_null(&controller.mail_program)),
        ("MaxArraySize", controller.max_array_size.to_string()),
        ("MaxJobCount", controller.max_job_count.to_string()),
        ("MaxJobId", controller.max_job_id.to_string()),
        ("MaxMemPerNode", word("UNLIMITED")),
        ("MaxNodeCount", config.nodes.len().to_string()),
        ("MCSPlugin", word("mcs/none")),
        ("MinJobAge", secs(controller.min_job_age.secs())),
        ("MpiDefault", word("none")),
        ("MULTIPLE_SLURMD", word("Yes")),
        ("NEXT_JOB_ID", configuration.next_job.to_string()),
        ("NodeFeaturesPlugins", null()),
        ("OverTimeLimit", word("0 min")),
        ("PreemptMode", word("OFF")),
        ("PreemptType", word("preempt/none")),
        ("PriorityType", word("priority/basic")),
        ("PrivateData", word("none")),
        ("Prolog", null()),
        ("PrologSlurmctld", null()),
        ("PrologFlags", null()),
        ("RebootProgram", null()),
        ("RequeueExit", null()),
        ("RequeueExitHold", null()),
        ("ResumeProgram", null()),
        ("ResvEpilog", null()),
        ("ResvProlog", null()),
        ("ReturnToService", word(if controller.return_to_service { "2" } else { "0" })),
        ("SchedulerType", word("sched/builtin")),
        ("SelectType", word("select/cons_tres")),
        ("SelectTypeParameters", word(if scheduler.tracks_memory { "CR_CPU_MEMORY" } else { "CR_CPU" })),
        ("SlurmctldHost[0]", controller.host.clone()),
        ("SlurmctldLogFile", or_null(&controller.log_file)),
        ("SlurmctldPort", word("0")),
        ("SlurmdLogFile", or_null(&agent.log_file)),
        ("SlurmdParameters", word("config_overrides")),
        ("SlurmdPidFile", or_null(&agent.pid_file)),
        ("SlurmdPort", word("0")),
        ("SlurmdSpoolDir", or_null(&agent.spool_dir)),
        ("SlurmdTimeout", secs(controller.node_timeout.secs())),
        ("SlurmctldPidFile", or_null(&controller.pid_file)),
        ("SLURM_CONF", word(file)),
        ("SLURM_VERSION", version::SLURM.into()),
        ("SPUR_CONTROLLER_SOCKET", or_null(&controller.socket)),
        ("SPUR_VERSION", configuration.version.clone()),
        ("SrunEpilog", null()),
        ("SrunProlog", null()),
        ("StateSaveLocation", or_null(&controller.state_dir)),
        ("SuspendProgram", null()),
        ("SuspendTime", word("INFINITE")),
        ("SwitchType", word("switch/none")),
        ("TaskEpilog", null()),
        ("TaskPlugin", word("task/none")),
        ("TaskProlog", null()),
        ("TopologyParam", or_null(&topology_params(config))),
        ("TopologyPlugin", word(topology_plugin(config))),
        ("TrackWCKey", word("No")),
        ("UsePam", word("No")),
        ("WaitTime", secs(0)),
    ]
}

fn topology_plugin(config: &Config) -> &'static str {
    let default = config.topologies.iter().find(|topology| topology.is_default);
    default.map_or("topology/flat", |topology| topology.kind.plugin())
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
