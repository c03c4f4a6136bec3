//! `spur down`: nothing of the cluster runs any more when it returns; its state stays, unless it is to be forgotten.
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use model::request::JobFilter;
use model::{Command, Config, JobRef, NodeName};
use wire::{CallError, Controller};

use super::check::count;
use super::daemon::{self, Daemon, Role};
use super::folder::{Folder, cannot};
use super::{Call, directory, machine_wide, options};
use crate::context::block_on;
use crate::getopt::{Value, flag};

/// Daemons have nothing to finish that takes longer.
const DAEMON_PATIENCE: Duration = Duration::from_secs(10);
/// Beyond the time that jobs are given between SIGTERM and SIGKILL.
const CLEARING_PATIENCE: Duration = Duration::from_secs(20);

pub fn run(call: &Call) -> Result<i32, String> {
    let flags = [flag("dir", Some('d'), Value::Required), flag("purge", None, Value::None)];
    let parsed = options(&flags, call.arguments)?;
    let folder = Folder::to_find(directory(&parsed).as_deref())?;
    let n_stopped = take_down(&folder)?;
    let dir = folder.dir.display();
    if parsed.has("purge") {
        machine_wide::unlink_commands(&folder, call.command_names);
        purge(&folder)?;
        eprintln!("Cluster stopped ({}) and forgotten: nothing of it is left in {dir}.", count(n_stopped, "daemon"));
        return Ok(0);
    }
    match n_stopped {
        0 => eprintln!("Nothing was running. The state stays in {dir}."),
        n => {
            eprintln!("Cluster stopped ({}). The state stays in {dir}: `spur up` goes on from it.", count(n, "daemon"))
        }
    }
    Ok(0)
}

/// Stops daemons and jobs; how many daemons there were.
pub fn take_down(folder: &Folder) -> Result<usize, String> {
    let _lock = folder.lock()?;
    let conf = folder.conf();
    let config = config::load(&conf).map_err(|error| error.to_string());
    let running = match &config {
        Ok(config) => daemon::running(&conf, config),
        Err(_) => daemon::running(&conf, &usual(folder)),
    };
    // Agents first: without them nothing starts on a node that becomes free, while the running jobs are recorded as cancelled.
    let (controller, agents): (Vec<Daemon>, Vec<Daemon>) =
        running.iter().cloned().partition(|daemon| daemon.role.is_controller());
    daemon::stop(&agents, &conf, DAEMON_PATIENCE)?;
    if let (Ok(config), false) = (&config, controller.is_empty()) {
        cancel_running(config);
    }
    daemon::stop(&controller, &conf, DAEMON_PATIENCE)?;
    let config = config?;
    clear(config.nodes.iter().map(|node| &node.name), &config, &conf)?;
    for role in Role::all(&config) {
        let _ = fs::remove_file(role.socket(&config));
        let _ = fs::remove_file(role.pid_file(&config));
    }
    if let Some(sockets) = folder.socket_directory(&config) {
        let _ = fs::remove_dir(sockets);
    }
    machine_wide::withdraw(folder);
    Ok(running.len())
}

/// Jobs that are about to be killed are cancelled jobs, not failed ones. A controller that cannot be asked any more only costs
/// them that word: they are ended all the same.
fn cancel_running(config: &Config) {
    let cancel = async {
        let mut controller = Controller::connect(config.controller.sockets()).await?;
        let jobs = controller.all_jobs(&JobFilter::default()).await?.jobs;
        let running: Vec<JobRef> = jobs.iter().filter(|job| job.holds_nodes()).map(|job| job.id.into()).collect();
        if !running.is_empty() {
            controller.command(Command::Cancel { jobs: running, hurry: false }).await?;
        }
        Ok::<(), CallError>(())
    };
    match block_on(async { tokio::time::timeout(DAEMON_PATIENCE, cancel).await }) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => eprintln!("spur: running jobs could not be cancelled in order: {error}"),
        Err(_) => eprintln!("spur: running jobs could not be cancelled in order: no answer"),
    }
}

/// A configuration that at least knows where pid files are, for when the real one cannot be read.
fn usual(folder: &Folder) -> Config {
    let mut config = Config::default();
    config::fill_in_places(&mut config, folder.places(""));
    config
}

/// Ends every job of these nodes, whose agents have been stopped; all nodes at once.
pub fn clear<'a>(nodes: impl Iterator<Item = &'a NodeName>, config: &Config, conf: &Path) -> Result<(), String> {
    let has_spool = |node: &str| Path::new(&Config::for_node(&config.agent.spool_dir, node)).exists();
    let mut clearing = Vec::new();
    for node in nodes.filter(|name| has_spool(name.as_str())) {
        clearing.push((node, daemon::start_clearing(node, conf, config)?));
    }
    let deadline = Instant::now() + Duration::from_micros(config.agent.kill_wait.0) + CLEARING_PATIENCE;
    let mut failed = Vec::new();
    for (node, mut child) in clearing {
        match daemon::outcome_before(&mut child, deadline) {
            Some(status) if status.success() => {}
            Some(status) => failed.push(format!("{node} ({status})")),
            None => failed.push(format!("{node} (took too long)")),
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("jobs may still run on {}; see the agents' logs", failed.join(", "))),
    }
}

/// Removes what `spur up` made, and DIR itself if nothing else is in it.
pub fn purge(folder: &Folder) -> Result<(), String> {
    let members = (2..=9).map(|member| format!("state-{member}"));
    for name in ["bin", "run", "state", "spool", "log"].map(String::from).into_iter().chain(members) {
        let path = folder.dir.join(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot("remove", &path, error)),
            _ => {}
        }
    }
    for name in ["spur.conf", "lock"] {
        let _ = fs::remove_file(folder.dir.join(name));
    }
    let _ = fs::remove_dir(&folder.dir);
    Ok(())
}
