//! `scontrol show slurmd`: the agents of this machine, or of a named node.
use model::request::NodeView;

use super::{Reply, asking, now};
use crate::live;
use crate::zone::Clock;

pub fn show(node: Option<&str>) -> Reply {
    let own = std::env::var("SLURMD_NODENAME").ok();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    asking("slurm_load_slurmd_status", async |controller, cluster| {
        let nodes = controller.nodes().await?;
        let is_it = |view: &&NodeView| match node.or(own.as_deref()) {
            Some(name) => view.node.name.as_str() == name,
            None => view.node.machine.hostname == host,
        };
        let found: Vec<&NodeView> = nodes.iter().filter(is_it).collect();
        if found.is_empty() {
            return Ok(Reply::failed("slurm_load_slurmd_status: Invalid node name specified"));
        }
        let mut text = String::new();
        for view in found {
            let name = view.node.name.as_str();
            match live::runs_on(cluster, name, None).await {
                Ok(runs) => {
                    let steps: Vec<String> = runs.iter().map(|run| format!("{}.{}", run.job, run.step)).collect();
                    text.push_str(&status(view, &steps.join(","), &now()));
                }
                Err(error) => return Ok(Reply::failed(&format!("slurm_load_slurmd_status: {name}: {error}"))),
            }
        }
        Ok(Reply::text(text))
    })
}

fn status(view: &NodeView, steps: &str, clock: &Clock) -> String {
    let (node, machine) = (&view.node, &view.node.machine);
    let lines = [
        ("Active Steps", if steps.is_empty() { "NONE".to_string() } else { steps.to_string() }),
        ("Actual CPUs", machine.cpus.to_string()),
        ("Actual Boards", "1".to_string()),
        ("Actual sockets", node.config.sockets.max(1).to_string()),
        ("Actual cores", node.config.cores_per_socket.max(1).to_string()),
        ("Actual threads per core", node.config.threads_per_core.max(1).to_string()),
        ("Actual real memory", format!("{} MB", machine.memory_mb)),
        ("Actual temp disk space", format!("{} MB", node.config.tmp_disk_mb)),
        ("Boot time", clock.show_or(machine.booted, "Unknown")),
        ("Hostname", node.name.to_string()),
        ("Last slurmctld msg time", clock.show_or(node.registered, "NONE")),
        ("Version", machine.version.clone()),
    ];
    let mut text: String = lines.iter().map(|(name, value)| format!("{name:<24} = {value}\n")).collect();
    text.push('\n');
    text
}
