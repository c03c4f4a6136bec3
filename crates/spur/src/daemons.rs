//! How the daemons are started: their arguments, their configuration, their log.
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use model::{Config, NodeName};

/// `spurctld [--config FILE]`
pub fn controller(arguments: &[String]) -> i32 {
    run("spurctld", || {
        let given = Given::read(arguments, &["--config"])?;
        let (config_file, config) = given.load()?;
        log_to(&config.controller.log_file)?;
        controller::run(controller::Options { config_file, config }).map_err(|error| format!("{error:#}"))
    })
}

/// `spurd [--config FILE] [--node NAME] [--clear]`
pub fn agent(arguments: &[String]) -> i32 {
    run("spurd", || {
        let given = Given::read(arguments, &["--config", "--node", "--clear"])?;
        let (_, config) = given.load()?;
        let node = match (&given.node, given.clear) {
            // Also a node that has just been taken out of the configuration.
            (Some(node), true) => node.clone(),
            _ => given.node(&config)?,
        };
        let options = agent_options(&config, node);
        log_to(&Config::for_node(&config.agent.log_file, options.node.as_str()))?;
        if given.clear {
            let n_ended = agent::clear(&options).map_err(|error| format!("{error:#}"))?;
            tracing::info!(n_ended, "no job is left");
            return Ok(());
        }
        agent::run(options).map_err(|error| format!("{error:#}"))
    })
}

fn agent_options(config: &Config, node: NodeName) -> agent::Options {
    let place = |pattern: &str| PathBuf::from(Config::for_node(pattern, node.as_str()));
    agent::Options {
        controller_socket: config.controller.socket.clone().into(),
        socket: place(&config.agent.socket),
        spool_dir: place(&config.agent.spool_dir),
        pid_file: Some(place(&config.agent.pid_file)),
        log_file: None,
        heartbeat: std::time::Duration::from_micros(config.agent.heartbeat.0),
        node,
    }
}

/// Sends standard output and error to the log file, if the configuration names one.
fn log_to(file: &str) -> Result<(), String> {
    if file.is_empty() {
        return Ok(());
    }
    let log =
        std::fs::File::options().create(true).append(true).open(file).map_err(|error| format!("{file}: {error}"))?;
    for standard in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both descriptors are open, and nobody else runs yet.
        if unsafe { libc::dup2(log.as_raw_fd(), standard) } < 0 {
            return Err(format!("{file}: {}", std::io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// A daemon logs to standard error, wherever that leads.
fn run(name: &str, body: impl FnOnce() -> Result<(), String>) -> i32 {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("SPUR_LOG").unwrap_or_else(|_| EnvFilter::new("info,openraft=warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    // As `ps` and `top` show it; the executable may be called anything.
    if let Ok(name) = std::ffi::CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
    match body() {
        Ok(()) => 0,
        Err(message) => {
            tracing::error!("{message}");
            eprintln!("{name}: {message}");
            1
        }
    }
}

/// What stands on a daemon's command line.
#[derive(Default)]
struct Given {
    config: Option<PathBuf>,
    node: Option<NodeName>,
    clear: bool,
}

impl Given {
    fn read(arguments: &[String], known: &[&str]) -> Result<Given, String> {
        let mut given = Given::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = if argument == "-f" { "--config" } else { argument.as_str() };
            if !known.contains(&name) {
                return Err(format!("unexpected argument '{argument}'"));
            }
            let mut value = || rest.next().ok_or_else(|| format!("{name} requires an argument"));
            match name {
                "--config" => given.config = Some(value()?.into()),
                "--node" => given.node = Some(value()?.as_str().into()),
                _ => given.clear = true,
            }
        }
        Ok(given)
    }

    fn load(&self) -> Result<(PathBuf, Config), String> {
        let file = config::client::locate(self.config.as_deref())?;
        let config = config::load(&file).map_err(|problems| problems.to_string())?;
        Ok((file, config))
    }

    /// The node this agent is: the one named, or the one that bears this machine's name.
    fn node(&self, config: &Config) -> Result<NodeName, String> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let short = host.split('.').next().unwrap_or_default();
        let names = match &self.node {
            Some(node) => vec![node.as_str()],
            None => vec![host.as_str(), short],
        };
        let found = config.nodes.iter().find(|node| names.contains(&node.name.as_str()));
        found.map(|node| node.name.clone()).ok_or_else(|| format!("no [[nodes]] table names {}", names[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_refuse_arguments_they_do_not_know() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
            Given::read(&words, &["--config", "--node"])
        };
        let given = read("--config /c --node n1").unwrap();
        assert_eq!((given.config, given.node), (Some("/c".into()), Some("n1".into())));
        assert_eq!(read("--clear").err().unwrap(), "unexpected argument '--clear'");
        assert_eq!(read("--node").err().unwrap(), "--node requires an argument");
    }
}
