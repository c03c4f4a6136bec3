//! `scontrol write config`: what is in effect, as a slurm.conf.
use std::path::PathBuf;

use model::config::Config;
use model::hostlist;
use model::spec::TimeLimit;

use super::{Reply, asking, now, owner, show_config};

/// Beside the file that is in use, with the day in its name, unless a name is given.
pub fn write(name: Option<&String>) -> Reply {
    asking("slurm_load_ctl_conf error", async |controller, cluster| {
        let configuration = controller.configuration().await?;
        let clock = now().at(configuration.now);
        let file = cluster.file.display().to_string();
        let around = show_config::Around { file: &file, owner: owner(&configuration), clock: &clock };
        let text = of(&show_config::text(&configuration, &around), &configuration.config);
        let day: String = clock.show(configuration.now).chars().filter(char::is_ascii_digit).take(14).collect();
        let asked = name.map(PathBuf::from).or_else(|| std::env::var_os("SLURM_CONF_OUT").map(PathBuf::from));
        let path = asked.unwrap_or_else(|| PathBuf::from(format!("{file}.{day}")));
        Ok(match std::fs::write(&path, text) {
            Ok(()) => Reply::text(format!("Slurm config saved to {}\n", path.display())),
            Err(error) => Reply::failed(&format!("scontrol: error: Could not create file {}: {error}", path.display())),
        })
    })
}

/// Keys that tell how things are, not how they should be.
const TOLD: [&str; 6] = ["BOOT_TIME", "HASH_VAL", "MULTIPLE_SLURMD", "NEXT_JOB_ID", "SLURM_CONF", "SLURM_VERSION"];

fn of(shown: &str, config: &Config) -> String {
    let mut text = "# slurm.conf, as it is in effect\n".to_string();
    for (key, value) in shown.lines().filter_map(|line| line.split_once('=')) {
        let (key, value) = (key.trim(), value.trim());
        // `300 sec` is how a number is shown; `root(0)` a name.
        let plain = match value.split_once(' ') {
            Some((number, "sec" | "min" | "days" | "MB")) => number,
            _ => value.split_once('(').map_or(value, |(name, _)| name),
        };
        let is_comment = TOLD.contains(&key) || key.starts_with("SPUR_") || plain.is_empty();
        text.push_str(&format!("{}{key}={plain}\n", if is_comment { "#" } else { "" }));
    }
    for node in &config.nodes {
        let own = &node.config;
        text.push_str(&format!("NodeName={} CPUs={} RealMemory={}", node.name, own.cpus, own.memory_mb));
        if !own.features.is_empty() {
            text.push_str(&format!(" Feature={}", own.features.join(",")));
        }
        let gres: Vec<String> = own.gres.iter().map(|gres| gres.to_string()).collect();
        if !gres.is_empty() {
            text.push_str(&format!(" Gres={}", gres.join(",")));
        }
        text.push('\n');
    }
    for partition in &config.partitions {
        let limit = match partition.max_time {
            Some(TimeLimit::Secs(secs)) => model::duration::show(secs),
            Some(TimeLimit::Unlimited) | None => "UNLIMITED".into(),
        };
        text.push_str(&format!(
            "PartitionName={} Nodes={} Default={} MaxTime={limit} State={}\n",
            partition.name,
            hostlist::compress(&partition.nodes),
            if partition.is_default { "YES" } else { "NO" },
            partition.state.word(),
        ));
    }
    text
}
