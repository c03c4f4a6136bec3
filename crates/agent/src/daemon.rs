//! The agent from start to stop.
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::transport::Server;
use wire::connection_table::{ConnectionLimits, ConnectionTable};
use wire::guarded::{CallGuard, http2_for_members, http2_for_others};
use wire::log_lines::LogLines;
use wire::long_path::SocketPath;

use crate::attach::Door;
use crate::audited::AgentAudit;
use crate::killed::Killed;
use crate::neighbours::Remote;
use crate::relay::{Exchange, Relay};
use crate::spool::Spool;
use crate::staging::{self, Staging};
use crate::table::{Agent, Table};
use crate::{Options, adopt, cgroup, gate, launcher, link, machine};

const LISTEN_PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);

/// Runs until SIGTERM or SIGINT; running jobs go on without it.
pub fn run(options: Options) -> anyhow::Result<()> {
    start_log(&options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(serve(options));
    // A walk over processes must not hold up the end.
    runtime.shutdown_background();
    result
}

fn start_log(options: &Options) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("SPUR_LOG").unwrap_or_else(|_| "info".into());
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_target(false);
    // On a full disk lines are lost; to tell of that on the same disk would end the thread.
    let subscriber = subscriber.log_internal_errors(false);
    // A caller that has a log of its own keeps it.
    match &options.log_file {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file.with_context(|| format!("cannot open the log {}", path.display()))?;
            let _ = subscriber.with_writer(Mutex::new(LogLines(file))).try_init();
        }
        None => {
            let _ = subscriber.with_writer(|| LogLines(std::io::stderr())).try_init();
        }
    }
    Ok(())
}

async fn serve(options: Options) -> anyhow::Result<()> {
    launcher::raise_open_files_limit();
    let table = ConnectionTable::new(ConnectionLimits::of_process());
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // There is nothing to read again here; but a hangup must not end the agent.
    let _hangup = signal(SignalKind::hangup())?;
    let spool = Spool::open(&options.spool_dir)
        .with_context(|| format!("cannot use the spool {}", options.spool_dir.display()))?;
    if let Some(path) = &options.pid_file {
        fs::write(path, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let audit = AgentAudit::open(spool.dir()).context("the audit's file does not open")?;
    let killed = Killed::open(&spool.dir().join("killed"))?;
    let agent = Arc::new(Agent {
        machine: machine::describe(&options),
        cgroup: cgroup::find_parent(&cgroup_name(&options, &spool)),
        launcher: launcher::start().context("cannot start the fork server")?,
        standby: Default::default(),
        launched: tokio::sync::watch::channel(0).0,
        table: Mutex::new(Table::new(killed)),
        staging: Staging::new(&options),
        hooks: Default::default(),
        heard: Default::default(),
        care: Default::default(),
        writers: Default::default(),
        shares: Default::default(),
        audit,
        spool,
        options,
    });
    tracing::info!(node = %agent.options.node, cgroup = ?agent.cgroup, "agent started");
    for shortcoming in confine::shortcomings() {
        tracing::warn!("{shortcoming}");
    }
    adopt::adopt_all(&agent)?;
    if let Some(remote) = agent.options.remote.clone() {
        let addresses = remote.clone();
        tokio::spawn(wire::tls::renewal::keep_fresh(remote.keyring.clone(), move || addresses.controllers()));
        if !remote.listen.is_empty() {
            listen_to_others(agent.clone(), table.clone(), remote).await;
        }
    }
    let listener = listen(&agent.options)?;
    let relay = Relay::new(agent.options.remote.clone());
    let exchange = Exchange::new(agent.options.node.to_string(), gate::served(Door::new(agent.clone())), relay.clone());
    let connections = wire::brief::incoming(listener, table, exchange.clone());
    let services =
        |mut http2: Server| http2.add_service(CallGuard(exchange.clone())).add_service(CallGuard(relay.clone()));
    let members = services(http2_for_members()).serve_with_incoming(connections.members);
    let others = services(http2_for_others()).serve_with_incoming(connections.others);
    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: running jobs are left alone"),
        _ = interrupt.recv() => tracing::info!("SIGINT: running jobs are left alone"),
        ended = members => ended.context("the agent's own socket")?,
        ended = others => ended.context("the agent's own socket")?,
        never = link::keep(agent.clone()) => match never {},
        () = staging::watch(agent.clone()) => {}
    }
    if let Some(path) = &agent.options.pid_file {
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_file(&agent.options.socket);
    Ok(())
}

/// The controllers are told where, so this is known before they are; a port that is taken is waited for meanwhile.
async fn listen_to_others(agent: Arc<Agent>, table: ConnectionTable, remote: Remote) {
    let heard = agent.heard.clone();
    let at_once = tokio::time::timeout(LISTEN_PATIENCE, gate::open(&remote, &heard)).await;
    tokio::spawn(async move {
        let listener = match at_once {
            Ok(listener) => listener,
            Err(_) => gate::open(&remote, &heard).await,
        };
        gate::serve(listener, table, remote, Door::new(agent)).await
    });
}

/// The spool's lock says that no other agent is listening there.
fn listen(options: &Options) -> anyhow::Result<UnixListener> {
    let path = &options.socket;
    let _ = fs::remove_file(path);
    let listener = SocketPath::of(path)
        .and_then(UnixListener::bind)
        .with_context(|| format!("cannot listen on {}", path.display()))?;
    // Anybody may knock; the kernel says who it is.
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))?;
    Ok(listener)
}

/// Different for every agent on the machine, the same for its next life.
pub fn cgroup_name(options: &Options, spool: &Spool) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    spool.dir().hash(&mut hasher);
    format!("spur-{}-{:08x}", options.node, hasher.finish() as u32)
}
