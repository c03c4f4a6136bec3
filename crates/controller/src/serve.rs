//! Opens the journal, starts the leader's loops, and serves the socket until told to stop.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use journal::{Journal, Leadership};
use model::members::MemberView;
use model::{Caller, Command};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::transport::Server;
use wire::channel::MAX_MESSAGE_BYTES;
use wire::connection_table::{ConnectionLimits, ConnectionTable};
use wire::guarded::{CallGuard, alive, http2_for_members, http2_for_others};
use wire::long_path::SocketPath;
use wire::proto::member_server::MemberServer;
use wire::tls::identity::Keyring;
use wire::waiting_peers::WaitingPeers;

use crate::agents::Agents;
use crate::audit::AuditLog;
use crate::call_limiter::CallLimiter;
use crate::door::Door;
use crate::leading::{self, Ground, HandOver, Leading};
use crate::machine::ClusterMachine;
use crate::members::{self, Carrier, ClusterJournal, Connections, MemberApi, MemberGate};
use crate::names::Names;
use crate::router::{self, Router};
use crate::to_agents::ToAgents;
use crate::{Options, metrics, tls};

/// How often a leader of several is heard; the others elect after 12 to 16 times this silence.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// A controller that is told to stop gives the lead away within this time, or without.
const HAND_OVER_PATIENCE: Duration = Duration::from_secs(4);
/// So long may the last snapshot take; without it, the log is replayed.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(5);
/// With so much of the disk kept back, jobs can end when it is full.
const JOURNAL_RESERVE_BYTES: u64 = 16 << 20;
/// A predecessor that was killed may still be in the middle of a write.
const WAIT_FOR_PREDECESSOR: Duration = Duration::from_secs(10);

/// Values inside values are read with the stack, as deep as they may be nested; what is not touched takes no memory.
const STACK_BYTES: usize = 8 << 20;

/// Runs until SIGTERM or SIGINT. Running jobs are left alone.
pub fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK_BYTES).build()?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<()> {
    let settings = options.own;
    crate::loudness::follow(&settings.loudness);
    // Before anything is opened: the journal and all else live on what connections do not get.
    let table = ConnectionTable::new(ConnectionLimits::of_process());
    let (machine, published) = ClusterMachine::new();
    let tls_dir = tls::dir(Path::new(&settings.state_dir));
    let keyring = match tls_dir.join("identity.pem").exists() {
        true => Some(Arc::new(Keyring::open(&tls_dir).with_context(|| tls_dir.display().to_string())?)),
        false => None,
    };
    let connections = Arc::new(Connections::new(keyring.clone()));
    let mut journal_options =
        journal::Options::new(Path::new(&settings.state_dir).join("journal"), options.place.member);
    journal_options.wait_for_lock = WAIT_FOR_PREDECESSOR;
    journal_options.members = options.place.members.iter().cloned().collect();
    journal_options.joins = options.place.joins;
    journal_options.heartbeat = HEARTBEAT;
    journal_options.reserve_bytes = JOURNAL_RESERVE_BYTES;
    journal_options.transport = Some(Arc::new(Carrier { connections: connections.clone() }));
    let journal = Journal::open(journal_options, machine).await.context("the journal does not open")?;
    let agents = Arc::new(Agents::default());
    if !settings.metrics_address.is_empty() {
        let address = &settings.metrics_address;
        let listener = TcpListener::bind(address).await.with_context(|| format!("metrics_address {address}"))?;
        tokio::spawn(metrics::serve(listener, published.clone(), agents.clone()));
    }
    let names = Arc::new(Names::default());
    let started = Door::new(journal.clone(), published.clone(), names.clone()).now();
    let host = wire::host::name();
    let (id, rules) = (options.place.member, state::rules::LATEST);
    let own = MemberView { id, host, started: Some(started), rules, ..Default::default() };
    let (hand_overs, wishes) = mpsc::channel(1);
    let ends_all = Arc::new(AtomicBool::new(false));
    let state_dir = Path::new(&settings.state_dir);
    let audit = AuditLog::open(state_dir, names.clone()).context("the audit's file does not open")?;
    let is_private = options.is_private;
    let ground = Arc::new(Ground {
        audit: audit.clone(),
        ends_all: ends_all.clone(),
        names: names.clone(),
        journal: journal.clone(),
        opened_at: published.now().now(),
        published,
        agents,
        connections: connections.clone(),
        config: options.config,
        config_file: options.config_file,
        started,
        state_dir: settings.state_dir.clone().into(),
        keyring: keyring.clone(),
        own: own.clone(),
        hand_overs: hand_overs.clone(),
    });
    // A lone controller leads by now; what is wrong with its configuration is told at once.
    let first = match journal.is_leader() {
        true => Some(Leading::begin(&ground).await?),
        false => None,
    };
    let (lead_sender, lead) = watch::channel(first.clone());
    tokio::spawn(leading::follow(ground.clone(), lead_sender, first, wishes));
    tokio::spawn(reload_on_hangup(lead.clone(), ground.config_file.clone(), audit.clone()));
    // Whoever finds somebody listening finds out who it is.
    if !settings.pid_file.is_empty() {
        fs::write(&settings.pid_file, format!("{}\n", std::process::id())).context(settings.pid_file.clone())?;
    }
    let listener = listen(Path::new(&settings.socket))?;
    let published = ground.published.clone();
    let member = MemberApi { journal: journal.clone(), ends_all: ends_all.clone(), own, audit: audit.clone() };
    let member = MemberServer::new(member)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let member =
        MemberGate { inner: member, audit: audit.clone(), journal: journal.clone(), published: published.clone() };
    tracing::info!(socket = settings.socket, "the controller answers");
    let limiter = CallLimiter::new(published.statistics.clone());
    let router = Router { journal: journal.clone(), connections, lead, published, names, audit, limiter, is_private };
    if let Some(keyring) = keyring.clone() {
        tokio::spawn(members::keep_belief(ground.published.clone(), journal.clone(), keyring));
    }
    let to_agents = ToAgents {
        router: router.clone(),
        agents: keyring.clone().map(|keyring| Arc::new(wire::tls::nodes::Agents::new(keyring))),
    };
    let services = |mut http2: Server| {
        http2
            .add_service(CallGuard(router.clone()))
            .add_service(CallGuard(to_agents.clone()))
            .add_service(CallGuard(member.clone()))
    };
    if !settings.listen.is_empty() {
        let address = &settings.listen;
        let keyring = keyring.context("`listen` needs a certificate: make the cluster with `spur init`")?;
        let listener = TcpListener::bind(address).await.with_context(|| format!("listen {address}"))?;
        tracing::info!(address, "the controller answers other machines");
        let waiting = WaitingPeers::new(table.limits().n_handshakes());
        // After a restart all come at once.
        waiting.expect_named(tls::addresses_of_members(&ground.published.now(), &journal));
        let connections = wire::tls::listen::incoming(listener, table.clone(), keyring.clone(), waiting);
        tokio::spawn(services(alive(http2_for_members())).serve_with_incoming(connections.members));
        tokio::spawn(services(alive(http2_for_others())).serve_with_incoming(connections.others));
        tokio::spawn(wire::tls::renewal::keep_fresh(keyring, move || vec![settings.address.clone()]));
    }
    let connections = wire::brief::incoming(listener, table, router.clone());
    let members = services(http2_for_members()).serve_with_incoming(connections.members);
    let others = services(http2_for_others()).serve_with_incoming(connections.others);
    tokio::select! {
        served = members => served.context("the socket failed")?,
        served = others => served.context("the socket failed")?,
        () = stop_in_order(&journal, &hand_overs, &ends_all) => leave_nothing_to_replay(&journal).await,
        // Whether the last entries were kept is known only when the journal is open again: a new process must look.
        () = journal_failed(&journal) => anyhow::bail!("the journal has stopped; see the log above"),
    }
    journal.shutdown().await;
    // Others see at once that nobody answers here any more.
    let _ = fs::remove_file(&settings.socket);
    Ok(())
}

/// Of several controllers, one that leads lets another lead before it goes.
async fn stop_in_order(journal: &ClusterJournal, hand_overs: &mpsc::Sender<HandOver>, ends_all: &AtomicBool) {
    told_to_stop().await;
    tracing::info!("told to stop");
    if journal.is_lone() || !journal.is_leader() || ends_all.load(Ordering::Relaxed) {
        return;
    }
    let (tell, told) = oneshot::channel();
    if hand_overs.send((None, tell)).await.is_ok()
        && let Ok(Ok(Err(error))) = tokio::time::timeout(HAND_OVER_PATIENCE, told).await
    {
        tracing::warn!("stopping without a successor: {error}");
    }
}

/// Whoever starts next may be a later release with other rules; what was decided by ours is not judged again.
async fn leave_nothing_to_replay(journal: &ClusterJournal) {
    match tokio::time::timeout(SNAPSHOT_PATIENCE, journal.snapshot_now()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!("stopping without a snapshot: {error}"),
        Err(_) => tracing::warn!("stopping without a snapshot: it takes too long"),
    }
}

/// The journal's lock is held, so whatever is at this path is left over.
fn listen(socket: &Path) -> Result<UnixListener> {
    if let Some(dir) = socket.parent() {
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    }
    match fs::remove_file(socket) {
        Ok(()) => (),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (),
        Err(error) => return Err(error).with_context(|| socket.display().to_string()),
    }
    let listener = SocketPath::of(socket).and_then(UnixListener::bind).with_context(|| socket.display().to_string())?;
    // Anyone on this machine may ask; the kernel tells who it is.
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// SIGHUP is `scontrol reconfigure`.
async fn reload_on_hangup(lead: router::Lead, config_file: PathBuf, audit: AuditLog) {
    const ABOUT: &str = "SIGHUP";
    let mut hangup = signal(SignalKind::hangup()).expect("signals can be awaited");
    while hangup.recv().await.is_some() {
        let Some(leading) = lead.borrow().clone() else {
            tracing::info!("another controller leads, and reads its own file");
            continue;
        };
        let config = match config::load(&config_file) {
            Ok(config) => Box::new(config),
            Err(problems) => {
                tracing::error!(%problems, "the configuration stays as it was");
                audit.own("Reconfigure", ABOUT, &problems.to_string());
                continue;
            }
        };
        let loudness = config.controller.loudness.clone();
        match leading.door.propose(Caller::SYSTEM, Command::Reconfigure { config }).await {
            Ok(_) => {
                crate::loudness::follow(&loudness);
                tracing::info!("the configuration was read again");
                audit.own("Reconfigure", ABOUT, "");
            }
            Err(refusal) => {
                tracing::error!(?refusal, "the configuration stays as it was");
                audit.own("Reconfigure", ABOUT, &format!("{refusal:?}"));
            }
        }
    }
}

async fn journal_failed<R: Send + Clone + std::fmt::Debug + 'static>(journal: &Journal<R>) {
    let mut leadership = journal.leadership();
    // The sender goes only with the journal.
    let _ = leadership.wait_for(|now| *now == Leadership::Stopped).await;
}

async fn told_to_stop() {
    let mut term = signal(SignalKind::terminate()).expect("signals can be awaited");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be awaited");
    tokio::select! {
        _ = term.recv() => (),
        _ = interrupt.recv() => (),
    }
}
