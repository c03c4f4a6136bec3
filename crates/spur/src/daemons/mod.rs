//! How the daemons are started: by our names, which stay in the foreground, or by Slurm's, which do not.
mod detach;
mod dynamic;
mod given;
mod prepare;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use model::config::ControllerConfig;
use model::pool::PoolKind;
use model::{Config, NodeName};

use wire::tls::Principal;
use wire::tls::identity::{Identity, Keyring};

use given::{Given, Wish};

/// `spurctld [-f FILE] …`
pub fn controller(arguments: &[String]) -> i32 {
    run("spurctld", given::CONTROLLER, arguments, control)
}

/// `spurd [-f FILE] [-N NAME] …`
pub fn agent(arguments: &[String]) -> i32 {
    run("spurd", given::AGENT, arguments, attend)
}

/// As Slurm's scripts start it: in the background unless `-D`.
pub fn slurmctld(arguments: &[String]) -> i32 {
    run("slurmctld", given::CONTROLLER, arguments, control)
}

/// As Slurm's scripts start it: in the background unless `-D`.
pub fn slurmd(arguments: &[String]) -> i32 {
    run("slurmd", given::AGENT, arguments, attend)
}

fn control(name: &str, given: &Given) -> Result<(), String> {
    let (config_file, mut config) = given.load()?;
    if let Some(log) = &given.log_file {
        config.controller.log_file.clone_from(log);
    }
    let member = given.member.unwrap_or(1);
    if member > config.controller.local_members {
        return Err(format!("the configuration has {} controllers on this machine", config.controller.local_members));
    }
    let own = own_places(&config.controller, member);
    if let Some(file) = &given.backup {
        let copied = controller::backup::of_journal_at_rest(Path::new(&own.state_dir));
        let copied = copied.map_err(|error| format!("{error:#}"))?;
        return wire::tls::identity::replace_bytes(file, &copied)
            .map_err(|error| format!("{}: {error}", file.display()));
    }
    prepare::controller(&own, &config)?;
    controller::backup::prepare_identity(Path::new(&own.state_dir)).map_err(|error| format!("{error:#}"))?;
    if given.ignores_errors {
        tracing::warn!("-i changes nothing: a journal that is damaged is refused, not guessed at");
    }
    if given.cleans {
        prepare::forget_state(Path::new(&own.state_dir))?;
    }
    if stays_behind(name, given) {
        let log = or_beside(&own.log_file, &own.state_dir, "slurmctld.log");
        detach::detach(Path::new(&own.socket), &log)?;
    } else {
        log_to(&own.log_file)?;
    }
    let members = match config.controller.local_members {
        0 | 1 => Vec::new(),
        _ => controller::on_this_machine(config.controller.sockets().all().map(PathBuf::from)),
    };
    let place = place(&own, member, members)?;
    // Where other machines join, their agents may run what this one cannot.
    let is_private = given.is_private && config.controller.listen.is_empty();
    controller::run(controller::Options { config_file, config, own, place, is_private })
        .map_err(|error| format!("{error:#}"))
}

/// Which controller this is: by its certificate, or by its number among those of this machine.
fn place(own: &ControllerConfig, member: u32, members: Vec<(u64, String)>) -> Result<controller::Place, String> {
    let dir = controller::tls::dir(Path::new(&own.state_dir));
    if !dir.join("identity.pem").exists() {
        return Ok(controller::Place { member: member.into(), members, joins: false });
    }
    let identity = Identity::load(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    match identity.principal {
        Principal::Controller(1) => {
            Ok(controller::Place { member: 1, members: vec![(1, own.address.clone())], joins: false })
        }
        Principal::Controller(member) => Ok(controller::Place { member, members: Vec::new(), joins: true }),
        Principal::Node(node) => Err(format!("the certificate in {} is that of node {node}", dir.display())),
    }
}

/// Where a controller keeps its things; the first of a machine where the file says, the others beside that.
fn own_places(shared: &ControllerConfig, member: u32) -> ControllerConfig {
    let place = |path: &str| model::config::for_member(path, member);
    ControllerConfig {
        socket: place(&shared.socket),
        state_dir: place(&shared.state_dir),
        pid_file: place(&shared.pid_file),
        log_file: place(&shared.log_file),
        metrics_address: if member > 1 { String::new() } else { shared.metrics_address.clone() },
        ..shared.clone()
    }
}

fn attend(name: &str, given: &Given) -> Result<(), String> {
    let (file, config) = given.load()?;
    let node = match (&given.node, given.clears) {
        // Also a node that has just been taken out of the configuration.
        (Some(node), true) => node.clone(),
        _ if given.is_dynamic => dynamic::own_name(given.node.as_ref()),
        _ => own_node(given.node.as_ref(), &config)?,
    };
    let told = dynamic::told(given, &node)?;
    let mut options = agent_options(&file, &config, node)?;
    options.reports_reboot = given.reports_reboot;
    (options.topology, options.dynamic) = (told.topology, told.node);
    let log = given.log_file.clone().unwrap_or_else(|| config.agent.log_file.clone());
    let log = Config::for_node(&log, options.node.as_str());
    if given.clears {
        log_to(&log)?;
        let n_ended = agent::clear(&options).map_err(|error| format!("{error:#}"))?;
        tracing::info!(n_ended, "no job is left");
        return Ok(());
    }
    prepare::agent(&options, Path::new(&log))?;
    if stays_behind(name, given) {
        detach::detach(&options.socket, &or_beside(&log, &options.spool_dir.to_string_lossy(), "slurmd.log"))?;
    } else {
        log_to(&log)?;
    }
    agent::run(options).map_err(|error| format!("{error:#}"))
}

/// Slurm's daemons let go of the terminal; ours are looked after by whoever starts them.
fn stays_behind(name: &str, given: &Given) -> bool {
    name.starts_with("slurm") && !given.foreground
}

/// A daemon in the background needs a log.
fn or_beside(log: &str, dir: &str, name: &str) -> PathBuf {
    if log.is_empty() { Path::new(dir).join(name) } else { log.into() }
}

/// The node this agent is: the one named, or the one that bears this machine's name or address.
fn own_node(named: Option<&NodeName>, config: &Config) -> Result<NodeName, String> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = host.split('.').next().unwrap_or_default();
    let names = match named {
        Some(node) => vec![node.as_str()],
        None => vec![host.as_str(), short],
    };
    let by_name = config.nodes.iter().find(|node| names.contains(&node.name.as_str()));
    let mut by_address = config.nodes.iter().filter(|node| names.contains(&node.config.address.as_str()));
    let found = by_name.or_else(|| by_address.next().filter(|_| named.is_none() && by_address.next().is_none()));
    found.map(|node| node.name.clone()).ok_or_else(|| match named {
        Some(node) => format!("the configuration names no node {node}"),
        None => format!("the configuration names no node {host}: say which node this is with -N NAME"),
    })
}

fn agent_options(file: &Path, config: &Config, node: NodeName) -> Result<agent::Options, String> {
    let place = |pattern: &str| PathBuf::from(Config::for_node(pattern, node.as_str()));
    let remote = match config.agent.controllers.is_empty() {
        true => None,
        false => {
            let dir = Path::new(&config.agent.tls_dir);
            let keyring = Keyring::open(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
            let settings = &config.agent;
            let (controllers, listen) = (settings.controllers.clone(), settings.listen.clone());
            Some(agent::Remote::new(keyring, controllers, listen, settings.address.clone()))
        }
    };
    Ok(agent::Options {
        // A path of the submitter's machine may be nothing on this one.
        config_file: remote.is_some().then(|| file.to_owned()),
        remote,
        controllers: config.controller.sockets().all().map(PathBuf::from).collect(),
        socket: place(&config.agent.socket),
        spool_dir: place(&config.agent.spool_dir),
        pid_file: Some(place(&config.agent.pid_file)),
        log_file: None,
        heartbeat: std::time::Duration::from_micros(config.agent.heartbeat.0),
        reports_reboot: false,
        topology: None,
        dynamic: None,
        pools: pools_of(config, &node),
        measure_every: measure_every(config),
        unkillable_timeout: std::time::Duration::from_micros(config.agent.unkillable_timeout.0),
        node,
    })
}

fn measure_every(config: &Config) -> std::time::Duration {
    let every = config.burst_buffer.as_ref().map_or(30_000_000, |section| section.measure_interval.0);
    std::time::Duration::from_micros(every.max(100_000))
}

/// The pools this agent has to do with: those of nodes, and the shared ones that it moves data for.
fn pools_of(config: &Config, node: &NodeName) -> Vec<model::pool::Pool> {
    let pools = config.burst_buffer.iter().flat_map(|section| &section.pools);
    let is_ours =
        |pool: &&model::pool::Pool| pool.kind == PoolKind::Node || pool.movers.is_empty() || pool.movers.contains(node);
    let placed = |pool: &model::pool::Pool| model::pool::Pool {
        root: Config::for_node(&pool.root, node.as_str()),
        ..pool.clone()
    };
    pools.filter(is_ours).map(placed).collect()
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
fn run(
    name: &str,
    flags: &[cli::getopt::Flag],
    arguments: &[String],
    body: fn(&str, &Given) -> Result<(), String>,
) -> i32 {
    let given = match Given::read(flags, arguments) {
        Ok(Wish::Run(given)) => given,
        Ok(Wish::Show(text)) => {
            print!("{text}");
            return 0;
        }
        Err(message) => {
            eprintln!("{name}: {message}");
            return 1;
        }
    };
    controller::loudness::start(given.n_verbose);
    // As `ps` and `top` show it; the executable may be called anything.
    if let Ok(name) = std::ffi::CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
    match body(name, &given) {
        Ok(()) => 0,
        Err(message) => {
            tracing::error!("{message}");
            eprintln!("{name}: {message}");
            1
        }
    }
}
