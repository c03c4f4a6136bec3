//! What a machine may say that it is: sizes that no machine has are refused before the log, since sets of its CPUs are kept by bit.
use model::node::NodeConfig;
use model::trust::TrustChange;
use model::update::NodeChange;
use model::{Command, Reject};

/// More CPUs than a node of Slurm can have.
const CPUS_MAX: u64 = 1 << 16;
/// Of all generic resources together.
const GRES_UNITS_MAX: u64 = 1 << 20;
const MEMORY_MB_MAX: u64 = 1 << 40;
const LISTED_MAX: usize = 4096;

/// Nodes that a command brings are machines that there can be.
pub fn judge_machines(command: &Command) -> Result<(), Reject> {
    match command {
        Command::RegisterNode { machine, runs, .. } => {
            let is_sized = u64::from(machine.cpus) <= CPUS_MAX && machine.memory_mb <= MEMORY_MB_MAX;
            let is_short = machine.pools.len() <= LISTED_MAX && runs.len() <= CPUS_MAX as usize;
            if !is_sized || !is_short {
                return Err(impossible("machine"));
            }
            machine.dynamic.as_deref().map_or(Ok(()), judge_node)
        }
        Command::UpdateNodes { change: NodeChange::Create(config), .. } => judge_node(config),
        Command::Trust(TrustChange::Enroll { node: Some(node), .. }) => judge_node(&node.config),
        Command::Once { command, .. } => judge_machines(command),
        _ => Ok(()),
    }
}

fn judge_node(config: &NodeConfig) -> Result<(), Reject> {
    let counts = [config.sockets, config.cores_per_socket, config.threads_per_core];
    let n_places = counts.iter().fold(1_u64, |product, count| product.saturating_mul(u64::from((*count).max(1))));
    let n_parts = |parts: &[u32]| parts.iter().map(|part| u64::from(*part)).sum::<u64>();
    let n_units: u64 = config.gres.iter().map(|gres| u64::from(gres.count) + n_parts(&gres.parts)).sum();
    let checks = [
        ("CPUs", u64::from(config.cpus) <= CPUS_MAX && u64::from(config.kept_cores) <= CPUS_MAX),
        ("sockets, cores and threads", n_places <= CPUS_MAX && u64::from(config.cpus_together) <= CPUS_MAX),
        ("CPUs kept from jobs", config.kept_cpus.iter().all(|cpu| u64::from(cpu) < CPUS_MAX)),
        ("memory", config.memory_mb <= MEMORY_MB_MAX && config.kept_memory_mb <= MEMORY_MB_MAX),
        ("temporary disk", config.tmp_disk_mb <= MEMORY_MB_MAX),
        ("generic resources", n_units <= GRES_UNITS_MAX && config.gres.len() <= LISTED_MAX),
        ("features", config.features.len() <= LISTED_MAX),
    ];
    match checks.iter().find(|(_, holds)| !holds) {
        Some((what, _)) => Err(impossible(what)),
        None => Ok(()),
    }
}

fn impossible(what: &str) -> Reject {
    Reject::InvalidValue(format!("no machine has as many {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_nodes_are_refused_and_large_ones_taken() {
        let large = NodeConfig {
            cpus: 1024,
            sockets: 4,
            cores_per_socket: 128,
            threads_per_core: 2,
            memory_mb: 64 << 20,
            ..Default::default()
        };
        judge_node(&large).unwrap();
        for wrong in [
            NodeConfig { cpus: u32::MAX, ..large.clone() },
            NodeConfig { sockets: 1 << 16, threads_per_core: 1 << 16, ..large.clone() },
            NodeConfig { memory_mb: u64::MAX, ..large.clone() },
        ] {
            judge_node(&wrong).unwrap_err();
            let machine = model::node::Machine { dynamic: Some(Box::new(wrong)), ..Default::default() };
            let register = Command::RegisterNode { node: "n1".into(), machine: Box::new(machine), runs: Vec::new() };
            judge_machines(&register).unwrap_err();
        }
    }
}
