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
    vec![
        ("AccountingStorageType", "accounting_storage/none".into()),
        ("AuthType", "auth/peercred".into()),
        ("BOOT_TIME", clock.show(configuration.started)),
        ("ClusterName", config.cluster_name.clone()),
        memory,
        ("FirstJobId", controller.first_job_id.to_string()),
        ("GresTypes", or_null(&gres.join(","))),
        ("JobRequeue", u8::from(scheduler.requeues).to_string()),
        ("KillWait", secs(agent.kill_wait.secs())),
        ("MaxArraySize", controller.max_array_size.to_string()),
        ("MaxJobCount", controller.max_job_count.to_string()),
        ("MaxJobId", controller.max_job_id.to_string()),
        ("MaxMemPerNode", "UNLIMITED".into()),
        ("MaxNodeCount", config.nodes.len().to_string()),
        ("MinJobAge", secs(controller.min_job_age.secs())),
        ("NEXT_JOB_ID", configuration.next_job.to_string()),
        ("PreemptMode", "OFF".into()),
        ("PriorityType", "priority/basic".into()),
        ("ReturnToService", if controller.return_to_service { "2" } else { "0" }.into()),
        ("SelectTypeParameters", if scheduler.tracks_memory { "CR_CPU_MEMORY" } else { "CR_CPU" }.into()),
        ("SlurmctldHost[0]", controller.host.clone()),
        ("SlurmctldLogFile", or_null(&controller.log_file)),
        ("SlurmctldPort", "0".into()),
        ("SlurmdLogFile", or_null(&agent.log_file)),
        ("SlurmdPidFile", or_null(&agent.pid_file)),
        ("SlurmdPort", "0".into()),
        ("SlurmdSpoolDir", or_null(&agent.spool_dir)),
        ("SlurmdTimeout", secs(controller.node_timeout.secs())),
        ("SlurmctldPidFile", or_null(&controller.pid_file)),
        ("SLURM_CONF", file.to_string()),
        ("SLURM_VERSION", version::SLURM.into()),
        ("SPUR_CONTROLLER_SOCKET", or_null(&controller.socket)),
        ("SPUR_VERSION", configuration.version.clone()),
        ("StateSaveLocation", or_null(&controller.state_dir)),
        ("TopologyPlugin", "topology/none".into()),
    ]
}
