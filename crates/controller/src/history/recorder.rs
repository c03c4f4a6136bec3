//! The one who writes history. Never in anybody's way: the state keeps what it has not written, however long that takes.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use accounting::{Failure, Store};
use model::secret::SecretText;
use model::{Caller, Command, Config, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::purge::Purge;
use super::{History, Progress, collect};
use crate::door::Door;
use crate::machine::Published;

/// Changes are gathered this long: most jobs are short, and are written once instead of three times.
const GATHER: Duration = Duration::from_secs(1);
/// A database that failed is asked again after this long.
const RETRY: Duration = Duration::from_secs(2);
/// The first attempt may hold up the start of the controller no longer than this.
const FIRST_OPEN: Duration = Duration::from_secs(5);

struct Recorder {
    door: Arc<Door>,
    published: Published,
    progress: watch::Sender<Progress>,
    hurry: mpsc::Receiver<()>,
    /// The state's own time when the journal was opened.
    opened_at: Timestamp,
}

/// Opens the database and starts to record. One that cannot be opened is tried again and again.
pub async fn start(
    config: &Config,
    opened_at: Timestamp,
    door: Arc<Door>,
    published: Published,
    loops: &mut JoinSet<()>,
) -> History {
    let (progress, reader) = watch::channel(Progress::default());
    let (hurry, hurried) = mpsc::channel(1);
    let history = History { published: published.clone(), progress: reader, hurry };
    let mut recorder = Recorder { door, published, progress, hurry: hurried, opened_at };
    let database = DatabasePlace::of(config);
    let opened = timeout(FIRST_OPEN, recorder.open(&database)).await;
    let is_open = opened.is_ok_and(|opened| opened);
    loops.spawn(async move {
        if !is_open {
            recorder.open_at_last(&database).await;
        }
        recorder.run().await;
    });
    history
}

/// Where this controller's own file has history kept, with the secrets that only it has.
struct DatabasePlace {
    address: SecretText,
    password_file: Option<PathBuf>,
}

impl DatabasePlace {
    fn of(config: &Config) -> DatabasePlace {
        let accounting = &config.accounting;
        let address = match accounting.database.as_str() {
            "" => {
                let file = Path::new(&config.controller.state_dir).join("history.sqlite");
                SecretText::new(file.to_string_lossy())
            }
            _ if !accounting.database_address.is_empty() => accounting.database_address.clone(),
            named => SecretText::new(named),
        };
        let file = &accounting.database_password_file;
        DatabasePlace { address, password_file: (!file.is_empty()).then(|| file.into()) }
    }

    /// The password is read each time, since it may have been changed.
    async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        let password = self.password_file.as_deref().map(config::read_secret).transpose().map_err(Failure)?;
        accounting::open_with(self.address.expose(), &password.unwrap_or_default()).await
    }
}

impl Recorder {
    /// The configuration may come to want history later, and a database may come up later.
    async fn open_at_last(&mut self, database: &DatabasePlace) {
        let mut changes = self.published.changes();
        loop {
            let wants_history = |cluster: &Arc<state::Cluster>| cluster.config().accounting.records;
            if changes.wait_for(wants_history).await.is_err() || self.open(database).await {
                return;
            }
            sleep(RETRY).await;
        }
    }

    async fn open(&mut self, database: &DatabasePlace) -> bool {
        if !self.published.now().config().accounting.records {
            return false;
        }
        let opened = async {
            let store = database.open().await?;
            self.continue_ids(&*store).await?;
            Ok(store)
        };
        match opened.await {
            Ok(store) => {
                let recorded = self.published.now().history().unrecorded_from();
                self.progress.send_replace(Progress { store: Some(store), recorded, trouble: None });
                true
            }
            Err(failure) => {
                self.note_trouble(failure);
                false
            }
        }
    }

    /// A state that was lost, or restored from a copy, must not give ids again that history knows.
    async fn continue_ids(&self, store: &dyn Store) -> Result<(), Failure> {
        let Some(after) = store.last_job_since(self.opened_at).await? else { return Ok(()) };
        if after < self.published.now().next_job() {
            return Ok(());
        }
        tracing::warn!(%after, "history knows later jobs than the state; ids go on after them");
        let proposed = self.door.propose(Caller::SYSTEM, Command::ContinueIds { after }).await;
        proposed.map(|_| ()).map_err(|refusal| Failure(format!("{refusal:?}")))
    }

    async fn run(&mut self) {
        let mut changes = self.published.changes();
        let mut last_written = Instant::now() - GATHER;
        let mut purge = Purge::new();
        loop {
            let has_news = |cluster: &Arc<state::Cluster>| !cluster.history().is_empty();
            tokio::select! {
                is_over = async { changes.wait_for(has_news).await.is_err() } => {
                    if is_over {
                        return;
                    }
                }
                () = sleep_until(purge.due()) => {
                    self.purge(&mut purge).await;
                    continue;
                }
            }
            // Either nobody is in a hurry and there may be more to come, or somebody waits.
            let _ = timeout_at(last_written + GATHER, self.hurry.recv()).await;
            last_written = Instant::now();
            if let Err(failure) = self.write().await {
                self.note_trouble(failure);
                sleep(RETRY).await;
            }
        }
    }

    async fn purge(&self, purge: &mut Purge) {
        let store = self.progress.borrow().store.clone().expect("the recorder runs with an open store");
        let wanted = self.published.now().config().accounting.clone();
        purge.go_on(&*store, &wanted, self.door.now()).await;
    }

    async fn write(&mut self) -> Result<(), Failure> {
        let cluster = self.published.now();
        let up_to = cluster.history().last();
        let collected = tokio::task::spawn_blocking(move || collect::collect(&cluster)).await;
        let batch = collected.map_err(|error| Failure(error.to_string()))?;
        let store = self.progress.borrow().store.clone().expect("the recorder runs with an open store");
        let n_rows = batch.n_rows();
        store.write(batch).await?;
        tracing::debug!(n_rows, up_to, "history is written");
        self.progress.send_modify(|progress| {
            if progress.trouble.take().is_some() {
                tracing::info!("history is recorded again");
            }
            progress.recorded = up_to;
        });
        // If this is lost, the same rows are written once more.
        let proposed = self.door.propose(Caller::SYSTEM, Command::Recorded { up_to }).await;
        proposed.map(|_| ()).map_err(|refusal| Failure(format!("{refusal:?}")))
    }

    /// Told once, until it changes.
    fn note_trouble(&mut self, failure: Failure) {
        self.progress.send_modify(|progress| {
            if progress.trouble.as_ref().map(|known| &known.0) != Some(&failure.0) {
                tracing::error!(%failure, "history cannot be recorded; ended jobs are kept until it can");
            }
            progress.trouble = Some(failure);
        });
    }
}
