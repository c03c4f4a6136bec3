//! Files to `model::Config`, with every problem and its line. Reads files, decides nothing.
//!
//! ```text
//! spur.conf ─┬─ load ─────────▶ model::Config    the daemons and `spur config check`: everything, checked
//! slurm.conf ┴─ client::find ──▶ Client          the commands: only where the cluster is, without reading the nodes
//! ```
mod beside;
mod burst_buffer;
mod call_limit;
pub mod client;
mod health;
pub mod home;
mod hooks;
mod job_rules;
pub mod machine;
mod nearest;
mod node;
mod partition;
mod plain;
mod preemption;
mod problem;
mod render;
mod secret_file;
mod section;
mod settings;
mod slurm;
mod topology;
mod units;

use std::collections::BTreeMap;
use std::path::Path;

use model::Config;
use model::config::NamedNode;
use model::step::Mpi;
use toml_edit::{Document, TableLike};

pub use client::Client;
pub use problem::{Problem, Problems};
pub use render::render;
pub use secret_file::read_secret;
use section::{Notes, Section};
pub use settings::usual_accounting;

/// Where daemons are found when `spur.conf` does not say: `%n` is the node's name.
pub const DEFAULT_CONTROLLER_SOCKET: &str = "/run/spur/controller.sock";
pub const DEFAULT_AGENT_SOCKET: &str = "/run/spur/agent-%n.sock";

/// Reads and checks a whole file, a spur.conf or a slurm.conf. What it leaves open is filled in: places of files by the
/// system's usual ones, CPUs and memory of nodes by this machine's.
pub fn load(path: &Path) -> Result<Config, Problems> {
    load_with_warnings(path).map(|(config, _)| config)
}

/// As [`load`], with what the file says in vain: only a slurm.conf may do that.
pub fn load_with_warnings(path: &Path) -> Result<(Config, Problems), Problems> {
    let (mut config, warnings) = read_with_warnings(path)?;
    fill_in_places(&mut config, Places::of_the_system());
    fill_in_machine(&mut config, machine::n_cpus(), machine::memory_mb());
    Ok((config, warnings))
}

/// As [`load_with_warnings`], but what the file leaves open stays open: empty strings and zeros.
pub fn read_with_warnings(path: &Path) -> Result<(Config, Problems), Problems> {
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| Problems::of_file(&name, error.to_string());
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let folder = slurm::folder_of(path);
    if slurm::is_slurm(path).map_err(unreadable)? {
        return slurm::parse(&text, &name, folder.as_deref());
    }
    let (mut config, mut warnings) = parse_with_warnings(&text, &name)?;
    if let Some(folder) = &folder {
        beside::read_yaml(folder, &mut config, &mut warnings)?;
    }
    settle_units(&mut config, &name)?;
    for place in places(&mut config).into_iter().filter(|place| !place.is_empty()) {
        let anchored = folder.as_deref().unwrap_or(Path::new("/")).join(&place);
        *place = anchored.to_string_lossy().into_owned();
    }
    if let Some(file) = settings::database_file(&mut config.accounting) {
        *file = folder.as_deref().unwrap_or(Path::new("/")).join(&*file).to_string_lossy().into_owned();
    }
    if !config.accounting.database_password_file.is_empty() {
        let file = &mut config.accounting.database_password_file;
        *file = folder.as_deref().unwrap_or(Path::new("/")).join(&*file).to_string_lossy().into_owned();
    }
    if let Some(burst) = config.burst_buffer.as_mut().filter(|burst| burst.plugin.is_external()) {
        let folder = folder.as_deref().unwrap_or(Path::new("/"));
        beside::read_burst_buffer(folder, burst, &mut warnings)?;
    }
    for pool in config.burst_buffer.iter_mut().flat_map(|burst| &mut burst.pools) {
        let anchored = folder.as_deref().unwrap_or(Path::new("/")).join(&pool.root);
        pool.root = anchored.to_string_lossy().into_owned();
    }
    Ok((config, warnings))
}

/// Nodes as `scontrol create` describes them, in one `NodeName=…` line, and what of it has no effect.
pub fn parse_node_line(text: &str) -> Result<(Vec<NamedNode>, Option<String>), Vec<String>> {
    slurm::node_line(text)
}

/// Checks the text of a slurm.conf. `file_name` only serves the messages; without a folder no other files are read.
pub fn parse_slurm(text: &str, file_name: &str) -> Result<(Config, Problems), Problems> {
    slurm::parse(text, file_name, None)
}

/// Checks the text of a spur.conf; paths in it stay as written. `file_name` only serves the messages.
pub fn parse(text: &str, file_name: &str) -> Result<Config, Problems> {
    let (mut config, _) = parse_with_warnings(text, file_name)?;
    settle_units(&mut config, file_name)?;
    Ok(config)
}

fn settle_units(config: &mut Config, file_name: &str) -> Result<(), Problems> {
    let problems = units::settle(config);
    let list = problems.into_iter().flat_map(|text| Problems::of_file(file_name, text).list).collect::<Vec<_>>();
    if list.is_empty() { Ok(()) } else { Err(Problems { file: file_name.into(), list }) }
}

fn parse_with_warnings(text: &str, file_name: &str) -> Result<(Config, Problems), Problems> {
    let notes = Notes::default();
    let mut config = Config::default();
    match Document::parse(text) {
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            notes.add(at, error.message().lines().collect::<Vec<_>>().join("; "));
        }
        Ok(document) => read_document(document.as_table(), &notes, &mut config),
    }
    let (problems, warnings) = notes.into_problems(text, file_name);
    if problems.is_empty() { Ok((config, warnings)) } else { Err(problems) }
}

fn read_document(table: &dyn TableLike, notes: &Notes, config: &mut Config) {
    let mut top = Section::new(table, "the top of the file", 0, notes);
    top.word("cluster_name", &mut config.cluster_name);
    // Not in `[hooks]`: commands read these lines and no others.
    top.text("srun_prolog", &mut config.hooks.srun_prolog);
    top.text("srun_epilog", &mut config.hooks.srun_epilog);
    let expected = "none, pmi2, pmix, pmix_v3, pmix_v4 or pmix_v5";
    top.one_of("mpi_default", expected, &Mpi::NAMES, &mut config.mpi_default);
    top.ports("mpi_ports", &mut config.mpi_ports);
    job_rules::read_top(&mut top, &mut config.jobs);
    if let Some(section) = top.section("jobs") {
        job_rules::read(section, &mut config.jobs);
    }
    if let Some(section) = top.section("controller") {
        settings::controller(section, &mut config.controller);
    }
    let shared = top.section("agent").map(|section| settings::agent(section, &mut config.agent)).unwrap_or_default();
    if let Some(section) = top.section("scheduler") {
        settings::scheduler(section, &mut config.scheduler);
    }
    config.accounting = settings::usual_accounting();
    if let Some(section) = top.section("accounting") {
        settings::accounting(section, &mut config.accounting);
    }
    if let Some(section) = top.section("licenses") {
        settings::licenses(section, &mut config.licenses);
    }
    if let Some(section) = top.section("slurm_conf") {
        settings::as_given(section, &mut config.as_given);
    }
    let mut seen = BTreeMap::new();
    let nodes = top.sections("nodes");
    // Where other machines are heard, nodes join by themselves.
    if nodes.is_empty() && config.controller.listen.is_empty() {
        notes.add(0, "no nodes: add a [[nodes]] table with `names`, `cpus` and `memory_mb`");
    }
    for section in nodes {
        node::read(section, &mut seen, &mut config.nodes);
    }
    if config.nodes.len() > 1 {
        shared.into_iter().for_each(|(at, problem)| notes.add(at, problem));
    }
    config.burst_buffer = top.section("burst_buffer").map(|section| burst_buffer::read(section, &seen));
    if let Some(section) = top.section("health") {
        health::read(section, &mut config.health);
    }
    if let Some(section) = top.section("hooks") {
        hooks::read(section, config);
    }
    let networks = (top.section("topology"), top.sections("topologies"));
    let (partitions, has_partitions) = (top.sections("partitions"), top.has("partitions"));
    top.finish();
    let raw = topology::read_table(networks.0, networks.1, &mut config.topology);
    config.topologies = topology::check(raw, &config.nodes, &mut |severity, at, text| match severity {
        topology::Severity::Fatal => notes.add(*at, text),
        topology::Severity::Warning => notes.warn(*at, text),
    });
    partition::read_all(partitions, &seen, config);
    if !has_partitions {
        config.partitions.push(partition::of_all_nodes(&config.nodes));
    }
    inherit_limits(config);
}

/// A partition without a limit of its own has the cluster's.
pub(crate) fn inherit_limits(config: &mut Config) {
    let (per_node, per_cpu) = (config.scheduler.max_memory_per_node_mb, config.scheduler.max_memory_per_cpu_mb);
    let has_none = |partition: &&mut model::Partition| {
        partition.max_memory_per_node_mb.is_none() && partition.max_memory_per_cpu_mb.is_none()
    };
    for partition in config.partitions.iter_mut().filter(has_none) {
        partition.max_memory_per_node_mb = per_node;
        partition.max_memory_per_cpu_mb = per_cpu;
    }
}

/// Where the files of a cluster are when its configuration leaves that open; `%n` is the node's name.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub controller_socket: String,
    pub state_dir: String,
    pub controller_pid_file: String,
    pub controller_log_file: String,
    pub agent_socket: String,
    pub spool_dir: String,
    pub agent_pid_file: String,
    pub agent_log_file: String,
    /// Of a pool that is declared by its size alone.
    pub buffer_root: String,
}

impl Places {
    fn of_the_system() -> Self {
        Places {
            controller_socket: DEFAULT_CONTROLLER_SOCKET.into(),
            state_dir: "/var/lib/spur/state".into(),
            controller_pid_file: "/run/spur/controller.pid".into(),
            controller_log_file: String::new(),
            agent_socket: DEFAULT_AGENT_SOCKET.into(),
            spool_dir: "/var/spool/spur/%n".into(),
            agent_pid_file: "/run/spur/agent-%n.pid".into(),
            agent_log_file: String::new(),
            buffer_root: "/var/lib/spur/burst-buffer".into(),
        }
    }
}

/// Gives every place that the configuration leaves open.
pub fn fill_in_places(config: &mut Config, usual: Places) {
    let buffer_root = usual.buffer_root.clone();
    let usual = [
        usual.controller_socket,
        usual.state_dir,
        usual.controller_pid_file,
        usual.controller_log_file,
        usual.agent_socket,
        usual.spool_dir,
        usual.agent_pid_file,
        usual.agent_log_file,
    ];
    for (place, usual) in places(config).into_iter().zip(usual) {
        if place.is_empty() {
            *place = usual;
        }
    }
    let native = config.burst_buffer.iter_mut().filter(|burst| !burst.plugin.is_external());
    for pool in native.flat_map(|burst| &mut burst.pools).filter(|pool| pool.root.is_empty()) {
        pool.root.clone_from(&buffer_root);
    }
}

/// In the order of [`Places`].
fn places(config: &mut Config) -> [&mut String; 8] {
    let (controller, agent) = (&mut config.controller, &mut config.agent);
    [
        &mut controller.socket,
        &mut controller.state_dir,
        &mut controller.pid_file,
        &mut controller.log_file,
        &mut agent.socket,
        &mut agent.spool_dir,
        &mut agent.pid_file,
        &mut agent.log_file,
    ]
}

/// Nodes that do not say how large they are get this size.
pub fn fill_in_machine(config: &mut Config, cpus: u32, memory_mb: u64) {
    for node in &mut config.nodes {
        if node.config.cpus == 0 {
            node.config.cpus = cpus;
        }
        if node.config.memory_mb == 0 {
            node.config.memory_mb = memory_mb;
        }
    }
}
