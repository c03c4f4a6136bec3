//! `spur join`: this machine becomes a node, or a controller, of the cluster that the token is of.
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use config::machine;
use model::config::NamedNode;
use model::members::Wish;
use model::node::NodeConfig;
use model::trust::{JoinRequest, Joined, Role};
use model::{Config, size};
use std::sync::Arc;
use wire::tls::connect::{Expected, connect, connect_pinned};
use wire::tls::identity::{Keyring, NewKey};
use wire::tls::token::Token;
use wire::{CallError, Controller};

use super::{AGENT_PORT, PORT, host_name, with_port};
use crate::context::block_on;
use crate::getopt::{self, Operands, Parsed, Value, flag};
use crate::operate::daemon::{self, Role as DaemonRole};
use crate::operate::folder::{Folder, cannot};
use crate::operate::settle::Wanted;
use crate::operate::{Call, directory, machine_wide, up};

const PATIENCE: Duration = Duration::from_secs(20);

pub fn run(call: &Call) -> Result<i32, String> {
    let flags = [
        flag("dir", Some('d'), Value::Required),
        flag("node", None, Value::Required),
        flag("cpus", Some('c'), Value::Required),
        flag("memory", Some('m'), Value::Required),
        flag("controller", None, Value::None),
        flag("listen", None, Value::Required),
        flag("address", None, Value::Required),
        flag("token-file", None, Value::Required),
    ];
    let parsed = getopt::parse(&flags, Operands::Mixed, call.arguments)?;
    let target = super::join_token::read(&parsed)?;
    let (token, host) =
        target.split_once('@').ok_or("the word must be TOKEN@HOST[:PORT], as `spur token` prints it")?;
    let token: Token = token.parse().map_err(|()| "this is no join token; `spur token` prints one")?;
    let folder = Folder::to_start(directory(&parsed).as_deref())?;
    if folder.conf().exists() {
        return Err(format!("{} describes a cluster already", folder.conf().display()));
    }
    folder.create()?;
    let key = NewKey::make().map_err(|error| error.to_string())?;
    let address = with_port(host);
    match parsed.has("controller") {
        false => join_as_node(call, &parsed, &folder, &token, &key, &address),
        true => join_as_controller(call, &parsed, &folder, &token, &key, &address),
    }
}

fn join_as_node(
    call: &Call,
    parsed: &Parsed,
    folder: &Folder,
    token: &Token,
    key: &NewKey,
    address: &str,
) -> Result<i32, String> {
    let host = host_name();
    let name = parsed.value("node").unwrap_or_else(|| host.split('.').next().unwrap_or(&host)).to_owned();
    let cpus = match parsed.value("cpus") {
        Some(text) => text.parse().map_err(|_| format!("--cpus must be a number, not '{text}'"))?,
        None => machine::n_cpus(),
    };
    let memory_mb = match parsed.value("memory") {
        Some(text) => size::parse_megabytes(text).ok_or_else(|| format!("--memory must be a size, not '{text}'"))?,
        None => machine::memory_mb(),
    };
    let node = NamedNode {
        name: name.as_str().into(),
        config: NodeConfig { cpus, memory_mb, weight: 1, address: host, ..NodeConfig::default() },
    };
    let request = JoinRequest {
        secret: token.secret.to_vec(),
        public_key: key.public(),
        role: Role::Node,
        node: Some(node.clone()),
        address: String::new(),
    };
    let joined = ask_to_join(address, token, &request)?;
    let tls_dir = folder.dir.join("tls");
    keep(key, &tls_dir, &joined)?;
    // What the cluster knows of the node counts; where things are on this machine is this machine's business.
    let known = joined.config.nodes.iter().find(|known| known.name == node.name).cloned().unwrap_or(node);
    let mut config = Config {
        cluster_name: joined.config.cluster_name.clone(),
        nodes: vec![known],
        agent: joined.config.agent.clone(),
        burst_buffer: joined.config.burst_buffer.clone(),
        ..Config::default()
    };
    for place in
        [&mut config.agent.socket, &mut config.agent.spool_dir, &mut config.agent.pid_file, &mut config.agent.log_file]
    {
        place.clear();
    }
    config::fill_in_places(&mut config, folder.places(&name));
    config.agent.controllers = or_else(joined.controllers, address);
    config.agent.tls_dir = tls_dir.to_string_lossy().into_owned();
    config.agent.listen = match parsed.value("listen") {
        Some(listen) => listen.to_owned(),
        None => usual_listen(),
    };
    config.agent.address = parsed.value("address").unwrap_or_default().to_owned();
    // Commands go to the agent, which says who they are.
    config.controller.socket = Config::for_node(&config.agent.socket, &name);
    config.controller.patience_secs = model::config::PATIENCE_SECS;
    write(folder, &config, "node")?;
    up::bring_up(folder, &Wanted::default(), call.command_names)?;
    machine_wide::announce(folder, call.command_names);
    eprintln!("Node {name} is part of cluster {}.", config.cluster_name);
    Ok(0)
}

fn join_as_controller(
    call: &Call,
    parsed: &Parsed,
    folder: &Folder,
    token: &Token,
    key: &NewKey,
    leader: &str,
) -> Result<i32, String> {
    let listen = with_port(parsed.value("listen").unwrap_or("0.0.0.0"));
    let port = listen.rsplit_once(':').map_or(PORT.to_string(), |(_, port)| port.to_owned());
    let own = match parsed.value("address") {
        Some(address) => with_port(address),
        None if !listen.starts_with("0.0.0.0:") => listen.clone(),
        None => format!("{}:{port}", host_name()),
    };
    let request = JoinRequest {
        secret: token.secret.to_vec(),
        public_key: key.public(),
        role: Role::Controller,
        node: None,
        address: own.clone(),
    };
    let joined = ask_to_join(leader, token, &request)?;
    let mut config = joined.config.clone();
    for place in [
        &mut config.controller.socket,
        &mut config.controller.state_dir,
        &mut config.controller.pid_file,
        &mut config.controller.log_file,
    ] {
        place.clear();
    }
    config::fill_in_places(&mut config, folder.places("a-long-node-name"));
    config.controller.listen = listen;
    config.controller.address.clone_from(&own);
    config.controller.host = host_name();
    let tls_dir = Path::new(&config.controller.state_dir).join("tls");
    keep(key, &tls_dir, &joined)?;
    write(folder, &config, "controller")?;
    let role = DaemonRole::Controller;
    let child = daemon::start(&role, &folder.conf(), &config)?;
    let pid_file = role.pid_file(&config);
    fs::write(&pid_file, format!("{}\n", child.id())).map_err(|error| cannot("write", &pid_file, error))?;
    wait_until_heard(&own)?;
    let keyring = Arc::new(Keyring::open(&tls_dir).map_err(|error| error.to_string())?);
    let wish = Wish::Add { id: joined.member, address: own };
    let added = until_led(async || {
        let channel = connect(leader, keyring.clone(), Expected::AnyController).await?;
        Controller::over(channel).change_members(&wish).await
    });
    added.map_err(|error| format!("the controllers do not take this one: {error}"))?;
    up::bring_up(folder, &Wanted::default(), call.command_names)?;
    machine_wide::announce(folder, call.command_names);
    eprintln!("This is controller {} of cluster {}.", joined.member, config.cluster_name);
    Ok(0)
}

fn ask_to_join(address: &str, token: &Token, request: &JoinRequest) -> Result<Joined, String> {
    let joined = until_led(async || {
        let channel = connect_pinned(address, token.pin).await?;
        Controller::over(channel).join(request).await
    });
    joined.map_err(|error| error.to_string())
}

/// Another controller may be about to lead: what was not carried out for that is asked for again.
fn until_led<T>(ask: impl AsyncFn() -> Result<T, CallError>) -> Result<T, CallError> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match block_on(ask()) {
            Err(CallError::Broken(_)) if Instant::now() < give_up => std::thread::sleep(Duration::from_millis(200)),
            outcome => return outcome,
        }
    }
}

fn keep(key: &NewKey, dir: &Path, joined: &Joined) -> Result<(), String> {
    key.keep(dir, &joined.ca_certificate, &joined.certificate, joined.from_secs, joined.until_secs)
        .map_err(|error| cannot("write", dir, error))
}

fn write(folder: &Folder, config: &Config, what: &str) -> Result<(), String> {
    let text =
        format!("# Written by `spur join`: this machine is a {what} of the cluster.\n{}", config::render(config));
    fs::write(folder.conf(), text).map_err(|error| cannot("write", &folder.conf(), error))
}

/// The usual port, or any if another agent of this machine has that one: the controllers are told which.
fn usual_listen() -> String {
    let usual = format!("0.0.0.0:{AGENT_PORT}");
    if TcpListener::bind(&usual).is_ok() { usual } else { "0.0.0.0:0".into() }
}

fn or_else(addresses: Vec<String>, known: &str) -> Vec<String> {
    if addresses.is_empty() { vec![known.to_owned()] } else { addresses }
}

fn wait_until_heard(address: &str) -> Result<(), String> {
    let give_up = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        if Instant::now() > give_up {
            return Err(format!("the controller does not listen on {address}; see its log"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
