//! Which configuration `spur up` runs: the one that is there, a file's, or a generated one; written out complete.
use std::fs;
use std::path::{Path, PathBuf};

use config::machine;
use model::config::NamedNode;
use model::node::NodeConfig;
use model::pool::BurstBufferConfig;
use model::topology::Topology;
use model::{Config, Partition, size};

use super::folder::{Folder, cannot};
use crate::getopt::Parsed;

/// What the caller of `spur up` asked for.
#[derive(Default)]
pub struct Wanted {
    pub nodes: Option<u32>,
    pub cpus: Option<u32>,
    pub memory_mb: Option<u64>,
    pub config: Option<PathBuf>,
    pub controllers: Option<u32>,
    /// For a generated configuration.
    pub burst_buffer: Option<BurstBufferConfig>,
    pub network: Option<Topology>,
}

/// More agents than this on one machine are a typing mistake.
const NODES_MAX: u32 = 10_000;

impl Wanted {
    pub fn read(parsed: &Parsed) -> Result<Wanted, String> {
        let number = |name: &str, max: u32| match parsed.value(name) {
            None => Ok(None),
            Some(text) => match text.parse::<u32>() {
                Ok(number) if (1..=max).contains(&number) => Ok(Some(number)),
                _ => Err(format!("--{name} must be a whole number from 1 to {max}, not '{text}'")),
            },
        };
        let memory_mb = match parsed.value("memory") {
            None => None,
            Some(text) => match size::parse_megabytes(text) {
                Some(megabytes) if megabytes > 0 => Some(megabytes),
                _ => return Err(format!("--memory must be a size such as 4G or 500M, not '{text}'")),
            },
        };
        let wanted = Wanted {
            nodes: number("nodes", NODES_MAX)?,
            cpus: number("cpus", 65_536)?,
            memory_mb,
            config: parsed.value("config").map(PathBuf::from),
            controllers: number("controllers", 9)?,
            burst_buffer: None,
            network: None,
        };
        if wanted.config.is_some() && wanted.has_sizes() {
            return Err("--config describes the nodes: leave out --nodes, --cpus and --memory".into());
        }
        Ok(wanted)
    }

    fn has_sizes(&self) -> bool {
        self.nodes.is_some() || self.cpus.is_some() || self.memory_mb.is_some()
    }
}

/// Decides on the configuration to run and writes `DIR/spur.conf`.
pub fn settle(folder: &Folder, wanted: &Wanted) -> Result<Config, String> {
    let conf = folder.conf();
    let is_same_file = |file: &Path| file.canonicalize().is_ok_and(|file| file == conf);
    let present = fs::read_to_string(&conf).ok();
    let (mut config, origin) = match (&wanted.config, &present) {
        (Some(file), _) if !is_same_file(file) => {
            let (config, warnings) = config::read_with_warnings(file).map_err(|error| error.to_string())?;
            warnings.to_string().lines().for_each(|line| eprintln!("{line}"));
            (config, Some(file))
        }
        (None, None) => (generated(wanted), None),
        (_, Some(_)) => {
            let config = config::load(&conf).map_err(|error| error.to_string())?;
            check_sizes(&config, wanted, folder)?;
            check_controllers(&config, wanted)?;
            return Ok(config);
        }
        (Some(file), None) => return Err(format!("cannot read {}", file.display())),
    };
    if let (false, Some(file)) = (config.accounting.database_address.is_empty(), origin) {
        // The file that is written here is for everybody to read.
        let file = file.display();
        return Err(format!(
            "{file} holds the database's password: put it into a file of its own, `database_password_file`"
        ));
    }
    complete(&mut config, folder);
    if let Some(controllers) = wanted.controllers {
        config.controller.local_members = controllers;
    }
    let text = format!("{}{}", heading(origin.map(PathBuf::as_path), folder, &config), config::render(&config));
    if present.is_none_or(|present| present != text) {
        write(&conf, &text)?;
    }
    Ok(config)
}

/// Nodes `n1`, `n2` …; every node has all CPUs of the machine, and they share its memory.
fn generated(wanted: &Wanted) -> Config {
    let n_nodes = wanted.nodes.unwrap_or(1);
    let config = NodeConfig {
        cpus: wanted.cpus.unwrap_or_else(machine::n_cpus),
        memory_mb: wanted.memory_mb.unwrap_or_else(|| (machine::memory_mb() / u64::from(n_nodes)).max(1)),
        weight: 1,
        ..NodeConfig::default()
    };
    let nodes: Vec<NamedNode> =
        (1..=n_nodes).map(|number| NamedNode { name: format!("n{number}").into(), config: config.clone() }).collect();
    let partition = Partition {
        name: "main".into(),
        nodes_text: "ALL".into(),
        nodes: nodes.iter().map(|node| node.name.clone()).collect(),
        is_default: true,
        priority_tier: 1,
        priority_job_factor: 1,
        ..Partition::default()
    };
    let accounting = config::usual_accounting();
    let burst_buffer = wanted.burst_buffer.clone();
    let topologies = wanted.network.iter().cloned().collect();
    Config { nodes, partitions: vec![partition], accounting, burst_buffer, topologies, ..Config::default() }
}

/// Sizes given for a cluster that exists must be the ones it has: its file may hold somebody's work.
fn check_sizes(config: &Config, wanted: &Wanted, folder: &Folder) -> Result<(), String> {
    let fits = |node: &NamedNode| {
        wanted.cpus.is_none_or(|cpus| node.config.cpus == cpus)
            && wanted.memory_mb.is_none_or(|memory_mb| node.config.memory_mb == memory_mb)
    };
    let is_same_count = wanted.nodes.is_none_or(|n_nodes| config.nodes.len() == n_nodes as usize);
    if is_same_count && config.nodes.iter().all(fits) {
        return Ok(());
    }
    let (conf, dir) = (folder.conf(), &folder.dir);
    let (conf, dir) = (conf.display(), dir.display());
    Err(format!(
        "{conf} describes other nodes: edit it and run `spur up` again, or begin anew after `spur down --purge --dir {dir}`"
    ))
}

/// A log that was begun by so many controllers is continued by as many.
fn check_controllers(config: &Config, wanted: &Wanted) -> Result<(), String> {
    match wanted.controllers {
        Some(controllers) if controllers != config.controller.local_members => {
            let n_members = config.controller.local_members;
            Err(format!("this cluster was begun with {n_members} controllers on this machine, not {controllers}"))
        }
        _ => Ok(()),
    }
}

fn complete(config: &mut Config, folder: &Folder) {
    let memory_mb = (machine::memory_mb() / config.nodes.len().max(1) as u64).max(1);
    config::fill_in_machine(config, machine::n_cpus(), memory_mb);
    let longest = config.nodes.iter().map(|node| node.name.as_str()).max_by_key(|name| name.len()).unwrap_or_default();
    config::fill_in_places(config, folder.places(longest));
    if config.controller.host == "localhost" {
        config.controller.host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    }
}

fn heading(origin: Option<&Path>, folder: &Folder, config: &Config) -> String {
    let from = match origin {
        Some(file) => format!(" from {}", file.display()),
        None => String::new(),
    };
    let mut text = format!(
        "# Written by `spur up`{from}. Yours to edit: run `spur up --dir {}` afterwards.\n# Every key is explained in docs/admin.md; `spur config check` tells what is wrong.\n",
        folder.dir.display()
    );
    if folder.socket_directory(config).is_some() {
        text.push_str("# The sockets are in $XDG_RUNTIME_DIR because the kernel limits their paths to 107 bytes.\n");
    }
    text
}

/// At once: readers see the old file or the new one.
fn write(conf: &Path, text: &str) -> Result<(), String> {
    let fresh = conf.with_extension("conf.new");
    fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, conf)).map_err(|error| cannot("write", conf, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(nodes: Option<u32>, cpus: Option<u32>, memory_mb: Option<u64>) -> Wanted {
        Wanted { nodes, cpus, memory_mb, config: None, controllers: None, burst_buffer: None, network: None }
    }

    #[test]
    fn a_generated_configuration_reads_back_the_same() {
        let mut config = generated(&wanted(Some(3), Some(8), Some(500)));
        let folder = Folder { dir: "/c".into() };
        config::fill_in_places(&mut config, folder.places("n3"));
        let text = format!("{}{}", heading(None, &folder, &config), config::render(&config));
        assert_eq!(config::parse(&text, "c").unwrap(), config);
        assert_eq!(config.nodes[2].name.as_str(), "n3");
    }

    #[test]
    fn sizes_of_a_cluster_that_exists_must_agree() {
        let folder = Folder { dir: "/c".into() };
        let config = generated(&wanted(Some(3), Some(8), Some(500)));
        assert!(check_sizes(&config, &wanted(None, None, None), &folder).is_ok());
        assert!(check_sizes(&config, &wanted(Some(3), None, Some(500)), &folder).is_ok());
        assert!(check_sizes(&config, &wanted(Some(2), None, None), &folder).is_err());
        assert!(check_sizes(&config, &wanted(None, Some(9), None), &folder).is_err());
    }
}
