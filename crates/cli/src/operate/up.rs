//! `spur up`: a controller and its agents on this machine, running when it returns.
use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::config::NamedNode;
use model::node::NodePhase;
use model::request::NodeView;
use model::{Config, Timestamp, hostlist, size};
use wire::Controller;

use super::check::count;
use super::daemon::{self, Daemon, Role};
use super::folder::Folder;
use super::settle::{self, Wanted};
use super::{Call, directory, down, interrupt, machine_wide, options};
use crate::context::block_on;
use crate::getopt::{Flag, Value, flag};

const FLAGS: &[Flag] = &[
    flag("nodes", Some('N'), Value::Required),
    flag("cpus", Some('c'), Value::Required),
    flag("memory", Some('m'), Value::Required),
    flag("dir", Some('d'), Value::Required),
    flag("config", Some('f'), Value::Required),
    flag("controllers", None, Value::Required),
];

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(15);
const LOG_LINES_SHOWN: usize = 12;

pub fn run(call: &Call) -> Result<i32, String> {
    let parsed = options(FLAGS, call.arguments)?;
    let wanted = Wanted::read(&parsed)?;
    let folder = Folder::to_start(directory(&parsed).as_deref())?;
    interrupt::note_signals();
    let began = Instant::now();
    let config = bring_up(&folder, &wanted, call.command_names)?;
    let said = machine_wide::announce(&folder, call.command_names);
    report(&folder, &config, began.elapsed(), directory(&parsed).as_deref(), &said);
    Ok(0)
}

/// Starts whatever of the cluster is not running and waits until all nodes are there.
pub fn bring_up(folder: &Folder, wanted: &Wanted, names: &[&str]) -> Result<Config, String> {
    folder.create()?;
    let _lock = folder.lock()?;
    let config = settle::settle(folder, wanted)?;
    folder.link_commands(names)?;
    let conf = folder.conf();
    folder.create_socket_directory(&config)?;
    let running = daemon::running(&conf, &config);
    stop_removed(&running, &config, &conf)?;
    let began = timestamp(SystemTime::now());
    let mut started = start_missing(&running, &config, &conf)?;
    let n_controllers = Role::all(&config).iter().filter(|role| role.is_controller()).count();
    // Of several, whichever leads keeps to what all agreed on until it is told to read the file.
    let was_running = n_controllers > 1 || !started.iter().any(|(role, _)| role.is_controller());
    let waited = block_on(async {
        if was_running && config.agent.controllers.is_empty() {
            tell_of_changes(&config, &conf).await?;
        }
        wait_for_nodes(&config, &mut started, began).await
    });
    if let Err(why) = waited {
        let ours: Vec<Daemon> = daemon::running(&conf, &config)
            .into_iter()
            .filter(|daemon| started.iter().any(|(role, _)| *role == daemon.role))
            .collect();
        daemon::stop(&ours, &conf, Duration::from_secs(5))?;
        return Err(why);
    }
    Ok(config)
}

/// Agents of nodes that the configuration no longer has go, with their jobs.
fn stop_removed(running: &[Daemon], config: &Config, conf: &Path) -> Result<(), String> {
    let wanted = Role::all(config);
    let removed: Vec<Daemon> = running.iter().filter(|daemon| !wanted.contains(&daemon.role)).cloned().collect();
    daemon::stop(&removed, conf, Duration::from_secs(5))?;
    let nodes = removed.iter().filter_map(|daemon| match &daemon.role {
        Role::Controller | Role::Member(_) => None,
        Role::Agent(node) => Some(node),
    });
    down::clear(nodes, config, conf)?;
    for daemon in &removed {
        let _ = fs::remove_file(daemon.role.pid_file(config));
        let _ = fs::remove_file(daemon.role.socket(config));
    }
    Ok(())
}

fn start_missing(running: &[Daemon], config: &Config, conf: &Path) -> Result<Vec<(Role, Child)>, String> {
    let mut started = Vec::new();
    for role in Role::all(config) {
        if running.iter().any(|daemon| daemon.role == role) {
            continue;
        }
        for file in [role.log_file(config), role.pid_file(config), role.socket(config)] {
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent).map_err(|error| super::folder::cannot("make", parent, error))?;
            }
        }
        daemon::wait_for_last_breath(&role.pid_file(config));
        let child = daemon::start(&role, conf, config)?;
        let pid_file = role.pid_file(config);
        fs::write(&pid_file, format!("{}\n", child.id()))
            .map_err(|error| super::folder::cannot("write", &pid_file, error))?;
        started.push((role, child));
    }
    Ok(started)
}

/// A controller that was started before the file was written last reads it again, if it says something else. One that was
/// not is left alone: what administrators have changed since holds.
async fn tell_of_changes(config: &Config, conf: &Path) -> Result<(), String> {
    let mut controller = Controller::connect(config.controller.sockets()).await.map_err(|error| error.to_string())?;
    let about = controller.configuration().await.map_err(|error| error.to_string())?;
    let written = fs::metadata(conf).and_then(|file| file.modified()).map_or(Timestamp(0), timestamp);
    if written < about.started || about.config == *config {
        return Ok(());
    }
    controller.reconfigure().await.map_err(|error| format!("the controller refuses the new configuration: {error}"))
}

fn timestamp(at: SystemTime) -> Timestamp {
    Timestamp(at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64))
}

/// Returns when every node has registered since its agent, or the controller, was started.
async fn wait_for_nodes(config: &Config, started: &mut [(Role, Child)], began: Timestamp) -> Result<(), String> {
    let since = Since::new(began, started, config.controller.local_members.max(1) as usize);
    let give_up = Instant::now() + PATIENCE;
    let mut controller: Option<Controller> = None;
    let mut line = Line::new();
    loop {
        for (role, child) in started.iter_mut() {
            if let Ok(Some(status)) = child.try_wait() {
                line.clear();
                return Err(format!("{} ended with {status}{}", role.name(), last_words(role, config)));
            }
        }
        if controller.is_none() {
            controller = Controller::connect(config.controller.sockets()).await.ok();
        }
        let nodes = match &mut controller {
            Some(connection) => connection.nodes().await.ok(),
            None => None,
        };
        let missing = match &nodes {
            None => {
                controller = None;
                line.show("waiting for the controller");
                None
            }
            Some(nodes) => {
                let missing = missing(config, nodes, &since);
                let n_nodes = config.nodes.len().max(missing.len());
                line.show(&format!("{} of {}", n_nodes - missing.len(), count(n_nodes, "node")));
                Some(missing)
            }
        };
        if missing.as_ref().is_some_and(Vec::is_empty) {
            line.clear();
            return Ok(());
        }
        if interrupt::requested().is_some() {
            line.clear();
            return Err("interrupted".into());
        }
        if Instant::now() > give_up {
            line.clear();
            return Err(gave_up(missing, config));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What was started by us, and when.
struct Since {
    at: Timestamp,
    controller: bool,
    agents: Vec<Role>,
}

impl Since {
    fn new(at: Timestamp, started: &[(Role, Child)], n_controllers: usize) -> Since {
        let agents = started.iter().map(|(role, _)| role.clone()).filter(|role| !role.is_controller()).collect();
        let n_members = started.iter().filter(|(role, _)| role.is_controller()).count();
        // A node need not come again because one of several controllers did.
        let is_new = started.iter().any(|(role, _)| *role == Role::Controller);
        Since { at, controller: is_new && n_members == n_controllers, agents }
    }

    fn is_fresh(&self, node: &NodeView) -> bool {
        let is_ours = self.controller || self.agents.contains(&Role::Agent(node.node.name.clone()));
        !is_ours || node.node.registered.is_some_and(|at| at >= self.at)
    }
}

/// Names of nodes that are not there yet. One that an administrator took down stays down, and is not waited for.
fn missing(config: &Config, nodes: &[NodeView], since: &Since) -> Vec<String> {
    let is_there = |name: &str| {
        nodes.iter().any(|view| {
            let is_settled = matches!(view.node.phase, NodePhase::Up | NodePhase::Down);
            view.node.name.as_str() == name && is_settled && since.is_fresh(view)
        })
    };
    let here = Role::all(config).into_iter().filter_map(|role| match role {
        Role::Agent(node) => Some(node.to_string()),
        Role::Controller | Role::Member(_) => None,
    });
    here.filter(|name| !is_there(name)).collect()
}

fn gave_up(missing: Option<Vec<String>>, config: &Config) -> String {
    let secs = PATIENCE.as_secs();
    match missing {
        None => format!("the controller did not answer within {secs} s{}", last_words(&Role::Controller, config)),
        Some(missing) => {
            let first = Role::Agent(missing[0].as_str().into());
            let words = last_words(&first, config);
            format!("not idle after {secs} s: {}{words}", hostlist::compress(&missing))
        }
    }
}

/// The end of a daemon's log, to stand below a message.
fn last_words(role: &Role, config: &Config) -> String {
    let file = role.log_file(config);
    let text = fs::read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
    if shown.is_empty() {
        return format!("; it left nothing in {}", file.display());
    }
    format!("; the end of {}:\n  {}", file.display(), shown.join("\n  "))
}

fn report(folder: &Folder, config: &Config, took: Duration, dir: Option<&Path>, said: &[String]) {
    let names = hostlist::compress(config.nodes.iter().map(|node| node.name.as_str()));
    let n_nodes = config.nodes.len();
    // Where nodes join, the file names none.
    let first = config.nodes.first().map(|node| (node.config.cpus, node.config.memory_mb));
    let is_like_first = |node: &NamedNode| Some((node.config.cpus, node.config.memory_mb)) == first;
    let each = if n_nodes > 1 { " each" } else { "" };
    let sizes = match first.filter(|_| config.nodes.iter().all(is_like_first)) {
        Some((cpus, megabytes)) => {
            format!(", {} and {}{each}", count(cpus as usize, "CPU"), size::show_megabytes(megabytes))
        }
        None => String::new(),
    };
    if n_nodes == 0 {
        eprintln!(
            "Cluster {} has a controller again after {:.1} s, in {}.",
            config.cluster_name,
            took.as_secs_f64(),
            folder.dir.display()
        );
        return said.iter().for_each(|line| eprintln!("  {line}"));
    }
    eprintln!(
        "Cluster {} is up after {:.1} s: {} ({names}){sizes}, in {}.",
        config.cluster_name,
        took.as_secs_f64(),
        count(n_nodes, "node"),
        folder.dir.display()
    );
    said.iter().for_each(|line| eprintln!("  {line}"));
    let dir = dir.map(|dir| format!(" --dir {}", dir.display())).unwrap_or_default();
    eprintln!("Use it:   eval \"$(spur env{dir})\"   then   sbatch --wrap hostname ; squeue ; sinfo");
    eprintln!("Stop it:  spur down{dir}");
}

/// A line on the terminal that is written over while we wait.
struct Line {
    is_shown: bool,
    last: String,
}

impl Line {
    fn new() -> Self {
        Line { is_shown: crate::output::TalkStream::Stderr.is_terminal(), last: String::new() }
    }

    fn show(&mut self, text: &str) {
        if self.is_shown && self.last != text {
            crate::output::redraw(&format!("\r\x1b[K{}", model::plain_text::shown(text)));
            self.last = text.into();
        }
    }

    fn clear(&mut self) {
        if self.is_shown && !self.last.is_empty() {
            crate::output::redraw("\r\x1b[K");
        }
    }
}
