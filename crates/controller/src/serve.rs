//! Opens the journal, starts the leader's loops, and serves the socket until told to stop.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use journal::{Journal, Leadership};
use model::{Caller, Command};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use wire::channel::MAX_MESSAGE_BYTES;
use wire::proto::controller_server::ControllerServer;

use crate::agents::Agents;
use crate::api::Api;
use crate::counted::Counted;
use crate::door::{Door, Refusal};
use crate::machine::ClusterMachine;
use crate::{Options, leader, metrics};

/// A predecessor that was killed may still be in the middle of a write.
const WAIT_FOR_PREDECESSOR: Duration = Duration::from_secs(10);

/// Runs until SIGTERM or SIGINT. Running jobs are left alone.
pub fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(options))
}

async fn serve(options: Options) -> Result<()> {
    let settings = options.config.controller.clone();
    let (machine, published) = ClusterMachine::new();
    let mut journal_options = journal::Options::new(Path::new(&settings.state_dir).join("journal"), 1);
    journal_options.wait_for_lock = WAIT_FOR_PREDECESSOR;
    let journal = Journal::open(journal_options, machine).await.context("the journal does not open")?;
    let opened_at = published.now().now();
    let door = Arc::new(Door::new(journal.clone(), published.clone()));
    let configure = Command::Begin { config: Box::new(options.config.clone()) };
    match door.propose(Caller::SYSTEM, configure).await {
        Ok(_) => (),
        Err(Refusal::Rejected(reject)) => anyhow::bail!("the configuration is refused: {reject}"),
        Err(Refusal::NotWritten(why)) => anyhow::bail!("the configuration could not be written: {why}"),
    }
    // What was read from the log is not counted.
    published.statistics.reset(door.now());
    let history = crate::history::start(&options.config, opened_at, door.clone(), published.clone()).await;
    let agents = Arc::new(Agents::default());
    if !settings.metrics_address.is_empty() {
        let address = &settings.metrics_address;
        let listener = TcpListener::bind(address).await.with_context(|| format!("metrics_address {address}"))?;
        tokio::spawn(metrics::serve(listener, published.clone(), agents.clone()));
    }
    let statistics = published.statistics.clone();
    let (runner, stager) = leader::start(door.clone(), published.clone(), agents.clone());
    let plugin = crate::plugin::start(door.clone(), published.clone(), settings.state_dir.clone().into());
    let (started, config_file) = (door.now(), options.config_file);
    let api = Api {
        started,
        door,
        published,
        agents,
        runner,
        stager,
        plugin,
        progress: Default::default(),
        config_file,
        names: Default::default(),
        history,
    };
    tokio::spawn(reload_on_hangup(api.door.clone(), api.config_file.clone()));
    let listener = listen(Path::new(&settings.socket))?;
    if !settings.pid_file.is_empty() {
        fs::write(&settings.pid_file, format!("{}\n", std::process::id())).context(settings.pid_file.clone())?;
    }
    let service = ControllerServer::new(api)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let service = Counted { inner: service, statistics };
    tracing::info!(socket = settings.socket, "the controller answers");
    let served = tonic::transport::Server::builder()
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20)
        .add_service(service)
        .serve_with_incoming(UnixListenerStream::new(listener));
    tokio::select! {
        served = served => served.context("the socket failed")?,
        () = told_to_stop() => tracing::info!("told to stop"),
        // Whether the last entries were kept is known only when the journal is open again: a new process must look.
        () = journal_failed(&journal) => anyhow::bail!("the journal has stopped; see the log above"),
    }
    journal.shutdown().await;
    // Others see at once that nobody answers here any more.
    let _ = fs::remove_file(&settings.socket);
    Ok(())
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
    let listener = UnixListener::bind(socket).with_context(|| socket.display().to_string())?;
    // Anyone on this machine may ask; the kernel tells who it is.
    fs::set_permissions(socket, fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// SIGHUP is `scontrol reconfigure`.
async fn reload_on_hangup(door: Arc<Door>, config_file: PathBuf) {
    let mut hangup = signal(SignalKind::hangup()).expect("signals can be awaited");
    while hangup.recv().await.is_some() {
        let config = match config::load(&config_file) {
            Ok(config) => Box::new(config),
            Err(problems) => {
                tracing::error!(%problems, "the configuration stays as it was");
                continue;
            }
        };
        match door.propose(Caller::SYSTEM, Command::Reconfigure { config }).await {
            Ok(_) => tracing::info!("the configuration was read again"),
            Err(refusal) => tracing::error!(?refusal, "the configuration stays as it was"),
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
