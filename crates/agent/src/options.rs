//! What an agent must be told.
use std::path::PathBuf;
use std::time::Duration;

use model::NodeName;
use model::node::NodeConfig;
use model::pool::Pool;

use crate::neighbours::Remote;

#[derive(Clone, Debug)]
pub struct Options {
    pub node: NodeName,
    /// Any of them will do: they pass on what they cannot answer.
    pub controllers: Vec<PathBuf>,
    /// They are elsewhere.
    pub remote: Option<Remote>,
    /// Where `srun` reaches this agent.
    pub socket: PathBuf,
    /// Where commands of its jobs find the cluster; none: where those of the submitter do.
    pub config_file: Option<PathBuf>,
    /// Belongs to this agent alone; records of runs, results, scripts.
    pub spool_dir: PathBuf,
    pub pid_file: Option<PathBuf>,
    /// None: standard error.
    pub log_file: Option<PathBuf>,
    pub heartbeat: Duration,
    /// What is left of a run so long after SIGKILL is given up.
    pub unkillable_timeout: Duration,
    /// As if the machine had just been started; for tests.
    pub reports_reboot: bool,
    /// Burst buffer pools of this node, `%n` replaced.
    pub pools: Vec<Pool>,
    /// Where the node is in the network, if it was told.
    pub topology: Option<String>,
    /// What the node is, where no file names it.
    pub dynamic: Option<Box<NodeConfig>>,
    /// How often it is measured what their buffers hold.
    pub measure_every: Duration,
}
