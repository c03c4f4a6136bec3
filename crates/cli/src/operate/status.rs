//! `spur status`: how the cluster is, in a few lines.
use std::collections::BTreeMap;
use std::path::Path;

use model::config::Sockets;
use model::members::Members;
use model::request::JobFilter;
use model::{duration, hostlist};
use serde_json::json;
use wire::{CallError, Controller};

use super::daemon::{self, Daemon, Role};
use super::folder::Folder;
use super::{Call, directory, options};
use crate::context::block_on;
use crate::getopt::{Value, flag};

/// What the controller told.
struct Told {
    version: String,
    up_secs: u64,
    nodes: BTreeMap<String, Vec<String>>,
    jobs: BTreeMap<&'static str, u64>,
    /// What kernels of nodes lack to keep movers and Lua workers in bounds, and the nodes.
    unconfined: BTreeMap<String, Vec<String>>,
    /// The controllers.
    members: Members,
}

/// Everything there is to show.
struct View {
    cluster_name: String,
    conf: String,
    controller_pid: Option<i32>,
    /// Nodes on which no agent runs here.
    without_agent: Vec<String>,
    n_nodes: usize,
    told: Result<Told, String>,
}

pub fn run(call: &Call) -> Result<i32, String> {
    let flags = [flag("dir", Some('d'), Value::Required), flag("json", None, Value::None)];
    let parsed = options(&flags, call.arguments)?;
    let folder = Folder::to_find(directory(&parsed).as_deref())?;
    let view = look(&folder)?;
    match parsed.has("json") {
        true => crate::output::print(&format!("{}\n", as_json(&view))),
        false => crate::output::print(&as_text(&view, &folder.dir)),
    };
    Ok(if view.told.is_ok() { 0 } else { 1 })
}

fn look(folder: &Folder) -> Result<View, String> {
    let config = config::load(&folder.conf()).map_err(|error| error.to_string())?;
    let running = daemon::running(&folder.conf(), &config);
    let pid_of = |role: &Role| {
        let is_it = |daemon: &&Daemon| daemon.role == *role;
        running.iter().find(is_it).map(|daemon| daemon.pid.as_raw_nonzero().get())
    };
    let nodes = config.nodes.iter().map(|node| &node.name);
    let without_agent =
        nodes.filter(|name| pid_of(&Role::Agent((*name).clone())).is_none()).map(|name| name.to_string()).collect();
    let told = block_on(ask(config.controller.sockets()));
    Ok(View {
        cluster_name: config.cluster_name,
        conf: folder.conf().display().to_string(),
        controller_pid: pid_of(&Role::Controller),
        without_agent,
        n_nodes: config.nodes.len(),
        told: told.map_err(|error| error.to_string()),
    })
}

async fn ask(sockets: Sockets) -> Result<Told, CallError> {
    let mut controller = Controller::connect(sockets).await?;
    let about = controller.configuration().await?;
    let (mut nodes, mut unconfined): (BTreeMap<String, Vec<String>>, BTreeMap<String, Vec<String>>) =
        Default::default();
    for view in controller.nodes().await? {
        nodes.entry(view.state().word()).or_default().push(view.node.name.to_string());
        for missing in &view.node.machine.unconfined {
            unconfined.entry(missing.clone()).or_default().push(view.node.name.to_string());
        }
    }
    let mut jobs = BTreeMap::new();
    for job in controller.all_jobs(&JobFilter::default()).await?.jobs {
        *jobs.entry(job.state().name()).or_insert(0) += job.n_tasks_waiting().max(1);
    }
    let members = controller.members().await?;
    Ok(Told { version: about.version, up_secs: (about.now - about.started).secs(), nodes, jobs, unconfined, members })
}

fn as_text(view: &View, dir: &Path) -> String {
    let mut text = format!("cluster     {} ({})\n", view.cluster_name, view.conf);
    match &view.told {
        Err(_) if view.controller_pid.is_none() => {
            text.push_str(&format!("controller  down; start it with `spur up --dir {}`\n", dir.display()));
        }
        Err(why) => {
            let pid = view.controller_pid.unwrap_or_default();
            text.push_str(&format!("controller  runs (pid {pid}) but does not answer: {why}\n"));
        }
        Ok(told) => {
            let pid = view.controller_pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            let age = duration::show_short(told.up_secs);
            text.push_str(&format!("controller  up for {age}{pid}, version {}\n", told.version));
            if told.members.members.len() > 1 {
                text.push_str(&members_as_text(&told.members));
            }
            let nodes: Vec<String> = told
                .nodes
                .iter()
                .map(|(state, names)| format!("{} {state} ({})", names.len(), hostlist::compress(names)))
                .collect();
            text.push_str(&format!("nodes       {}\n", nodes.join(", ")));
            let jobs: Vec<String> =
                told.jobs.iter().map(|(state, n_jobs)| format!("{n_jobs} {}", state.to_lowercase())).collect();
            let jobs = if jobs.is_empty() { "none in the queue".into() } else { jobs.join(", ") };
            text.push_str(&format!("jobs        {jobs}\n"));
            for (missing, names) in &told.unconfined {
                text.push_str(&format!("confinement {}: {missing}\n", hostlist::compress(names)));
            }
        }
    }
    match view.without_agent.len() {
        0 => {}
        n if n == view.n_nodes => text.push_str("agents      none runs on this machine\n"),
        _ => {
            let names = hostlist::compress(&view.without_agent);
            text.push_str(&format!(
                "agents      not running: {names}; `spur up --dir {}` starts them\n",
                dir.display()
            ));
        }
    }
    text
}

/// One line each, where there are several.
pub(super) fn members_as_text(members: &Members) -> String {
    let line = |member: &model::members::MemberView| {
        let role = match (member.is_leader, member.is_voter) {
            (true, _) => "leads",
            (false, true) => "follows",
            (false, false) => "learns",
        };
        let lag = match (member.answers, member.n_behind) {
            (false, _) => "does not answer".to_owned(),
            (true, None) => "has not been heard by the leader yet".to_owned(),
            (true, Some(0)) => "up to date".to_owned(),
            (true, Some(n_behind)) => format!("{n_behind} entries behind"),
        };
        format!("  {:<9} {role}, {lag} ({})\n", format!("number {}", member.id), member.address)
    };
    members.members.iter().map(line).collect()
}

fn as_json(view: &View) -> serde_json::Value {
    let told = view.told.as_ref().ok();
    json!({
        "cluster": view.cluster_name,
        "configuration": view.conf,
        "controller": {
            "up": told.is_some(),
            "pid": view.controller_pid,
            "version": told.map(|told| &told.version),
            "up_secs": told.map(|told| told.up_secs),
        },
        "controllers": told.map(|told| &told.members),
        "nodes": told.map(|told| &told.nodes),
        "jobs": told.map(|told| &told.jobs),
        "nodes_without_agent": view.without_agent,
        "unconfined": told.map(|told| &told.unconfined),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(told: Result<Told, String>) -> View {
        View {
            cluster_name: "spur".into(),
            conf: "/c/spur.conf".into(),
            controller_pid: told.is_ok().then_some(7),
            without_agent: vec!["n3".into()],
            n_nodes: 3,
            told,
        }
    }

    #[test]
    fn a_cluster_that_is_down_says_how_to_start_it() {
        let text = as_text(&view(Err("refused".into())), Path::new("/c"));
        assert!(text.contains("controller  down; start it with `spur up --dir /c`"), "{text}");
    }

    #[test]
    fn nodes_and_jobs_are_counted_by_state() {
        let nodes = [("idle".to_string(), vec!["n1".to_string(), "n2".to_string()])].into();
        let told = Told {
            version: "1".into(),
            up_secs: 62,
            nodes,
            jobs: [("RUNNING", 3)].into(),
            unconfined: [("this kernel has no landlock".to_owned(), vec!["n2".to_owned()])].into(),
            members: Members::default(),
        };
        let text = as_text(&view(Ok(told)), Path::new("/c"));
        assert_eq!(
            text,
            "cluster     spur (/c/spur.conf)\ncontroller  up for 1:02, pid 7, version 1\nnodes       2 idle (n[1-2])\n\
             jobs        3 running\nconfinement n2: this kernel has no landlock\nagents      not running: n3; `spur up --dir /c` starts them\n"
        );
    }
}
