//! The front: open, propose, lead, stop. All that the rest of the world sees of the journal.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use openraft::{BasicNode, Config, ServerState, SnapshotPolicy};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::applier::{Applier, SnapshotPace, Waiters};
use crate::batch::{Batch, Raft};
use crate::error::{OpenError, ProposeError};
use crate::gather::{self, Proposal};
use crate::index::Index;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::network::{self, Network};
use crate::options::Options;
use crate::recovery::{self, Recovered};
use crate::room::{self, DiskRoom, LogRoom};
use crate::snapshots::Cover;
use crate::writer;

/// No single entry may be larger.
const MAX_ENTRY_BYTES: usize = 64 << 20;
/// Proposals beyond this many wait at the door.
const QUEUE: usize = 4096;

/// Who leads, as this member knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// This member leads, and has applied everything that was committed before it did.
    Leader {
        term: u64,
    },
    Follower {
        leader: Option<u64>,
    },
    /// Shut down or failed; nothing more is accepted.
    Stopped,
}

/// A handle to an open journal. When the last one is dropped, the journal stops.
pub struct Journal<R> {
    pub(crate) shared: Arc<Shared<R>>,
}

impl<R> Clone for Journal<R> {
    fn clone(&self) -> Self {
        Journal { shared: self.shared.clone() }
    }
}

pub(crate) struct Shared<R> {
    pub(crate) raft: Raft,
    proposals: mpsc::Sender<Proposal<R>>,
    leadership: watch::Receiver<Leadership>,
    stop: watch::Sender<bool>,
    room: Arc<LogRoom>,
    /// Closed when nothing of the journal runs any more and its directory is free.
    running: watch::Receiver<()>,
}

impl<R: Send + Clone + std::fmt::Debug + 'static> Journal<R> {
    /// Reads the directory back and replays what is known to be committed. A lone member leads, with its whole log
    /// applied, when this returns.
    pub async fn open<M: Machine<Reply = R>>(options: Options, mut machine: M) -> Result<Journal<R>, OpenError> {
        let (lock, released) = recovery::lock(&options)?;
        let (files, reserve_bytes) = (options.files.clone(), options.reserve_bytes);
        let room = Arc::new(LogRoom::new(files, options.dir.clone(), reserve_bytes));
        let recovered = match recovery::recover(&options) {
            Err(OpenError::Io { source, .. }) if room::is_full(&source) && room.give_up_reserve() => {
                recovery::recover(&options)
            }
            recovered => recovered,
        };
        let Recovered { segments, purged, entries, committed, snapshots, snapshot } = recovered?;
        let cover = match snapshot {
            Some((file, cover, data)) => {
                machine.restore(&data).map_err(|why| OpenError::Snapshot { file, why })?;
                cover
            }
            None => Cover::default(),
        };
        let vote = segments.state.vote;
        let index = Arc::new(Index::new(options.files.clone(), options.dir.clone(), purged, entries, committed));
        let (work, flushed, writer) =
            writer::start(segments, index.clone(), lock.clone(), room.clone()).map_err(OpenError::io(&options.dir))?;
        let waiters = Arc::new(Waiters::new());
        let pace =
            SnapshotPace { every_entries: options.snapshot_every_entries, every_bytes: options.snapshot_every_bytes };
        let applier = Applier::new(machine, cover, snapshots, pace, waiters.clone(), lock, room.clone());
        let network = Network { transport: options.transport.clone() };
        let store = LogStore::new(index, work, vote);
        let raft = Raft::new(options.member, Arc::new(config(&options)), network, store, applier)
            .await
            .map_err(|fatal| OpenError::Stopped(fatal.to_string()))?;

        let (leadership_sender, leadership) = watch::channel(Leadership::Follower { leader: None });
        tokio::spawn(keep(raft.clone(), leadership_sender, room.clone()));
        let (proposals, receiver) = mpsc::channel(QUEUE);
        let (stop, stopping) = watch::channel(false);
        let (running_sender, running) = watch::channel(());
        let raft_to_stop = raft.clone();
        tokio::spawn(async move {
            gather::run(&raft_to_stop, receiver, waiters, flushed, stopping).await;
            close(raft_to_stop, writer, released).await;
            drop(running_sender);
        });
        let journal = Journal { shared: Arc::new(Shared { raft, proposals, leadership, stop, running, room }) };
        if let Err(error) = journal.begin(&options).await {
            journal.shutdown().await;
            return Err(error);
        }
        Ok(journal)
    }

    /// Resolves when the entry is durable and applied; then gives the machine's reply.
    /// A leader that has lost its majority cannot tell yet, and waits until it knows.
    pub async fn propose(&self, entry: Vec<u8>) -> Result<R, ProposeError> {
        match self.shared.room.now() {
            DiskRoom::Ample => self.propose_vital(entry).await,
            DiskRoom::Reserve | DiskRoom::None => Err(ProposeError::DiskFull),
        }
    }

    /// How much room the disk has.
    pub fn room(&self) -> watch::Receiver<DiskRoom> {
        self.shared.room.watched()
    }

    /// As `propose`, for what may use up the reserve of a full disk.
    pub async fn propose_vital(&self, entry: Vec<u8>) -> Result<R, ProposeError> {
        if self.shared.room.now() == DiskRoom::None {
            return Err(ProposeError::DiskFull);
        }
        if entry.len() > MAX_ENTRY_BYTES {
            return Err(ProposeError::TooLarge { size_bytes: entry.len(), max_bytes: MAX_ENTRY_BYTES });
        }
        let (reply, answer) = oneshot::channel();
        match self.shared.proposals.send(Proposal { entry, reply }).await {
            Ok(()) => tokio::select! {
                biased;
                answered = answer => answered.unwrap_or_else(|_| Err(gather::why_stopped(&self.shared.raft))),
                () = self.shared.room.gone() => Err(ProposeError::WaitsForRoom),
            },
            Err(_) => Err(gather::why_stopped(&self.shared.raft)),
        }
    }

    /// Whether this member leads and has caught up with its own log.
    pub fn is_leader(&self) -> bool {
        matches!(*self.shared.leadership.borrow(), Leadership::Leader { .. })
    }

    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.clone()
    }

    /// Takes a snapshot of everything applied so far; it is durable when this returns.
    pub async fn snapshot_now(&self) -> Result<(), ProposeError> {
        let raft = &self.shared.raft;
        let mut metrics = raft.metrics();
        let mut given_up = self.shared.room.snapshots_given_up();
        given_up.mark_unchanged();
        let wanted = metrics.borrow_and_update().last_applied;
        while metrics.borrow().snapshot < wanted {
            // Asking while one is being taken does nothing, so ask again after each that was not late enough.
            raft.trigger().snapshot().await.map_err(|fatal| gather::stopped(&fatal))?;
            let before = metrics.borrow().snapshot;
            let taken = tokio::select! {
                taken = metrics.wait_for(|now| now.snapshot > before || now.running_state.is_err()) => taken,
                Ok(()) = given_up.changed() => return Err(ProposeError::DiskFull),
            };
            match taken {
                Ok(now) if now.running_state.is_ok() => {}
                Ok(_) | Err(_) => return Err(gather::why_stopped(raft)),
            }
        }
        Ok(())
    }

    /// Answers a request that another member's transport brought here.
    pub async fn answer(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        network::answer(&self.shared.raft, request).await
    }

    /// Answers what was proposed, stops, and gives the directory free. Other handles of this journal are stopped too.
    pub async fn shutdown(self) {
        // A disk that stays full would keep the last proposals waiting for ever.
        self.shared.room.stop();
        self.shared.stop.send_replace(true);
        let mut running = self.shared.running.clone();
        drop(self);
        while running.changed().await.is_ok() {}
    }

    /// Makes a new journal's first membership; lets a lone member lead at once.
    async fn begin(&self, options: &Options) -> Result<(), OpenError> {
        let raft = &self.shared.raft;
        let failed = |why: String| OpenError::Stopped(why);
        let is_initialized = raft.is_initialized().await.map_err(|fatal| failed(fatal.to_string()))?;
        if !is_initialized && options.joins {
            return Ok(());
        }
        if !is_initialized {
            raft.initialize(members(options)).await.map_err(|error| failed(error.to_string()))?;
        }
        let member = options.member;
        let (is_lone, is_leader) = raft
            .with_raft_state(move |state| {
                let membership = state.membership_state.effective();
                (membership.voter_ids().eq([member]), state.server_state == ServerState::Leader)
            })
            .await
            .map_err(|fatal| failed(fatal.to_string()))?;
        if !is_lone {
            return Ok(());
        }
        if is_initialized && !is_leader {
            raft.trigger().elect().await.map_err(|fatal| failed(fatal.to_string()))?;
        }
        let mut leadership = self.leadership();
        let settled = leadership.wait_for(|now| !matches!(now, Leadership::Follower { .. })).await;
        match settled.as_deref() {
            Ok(Leadership::Leader { .. }) => Ok(()),
            Ok(_) | Err(_) => Err(failed(gather::why_stopped(raft).to_string())),
        }
    }
}

fn members(options: &Options) -> BTreeMap<u64, BasicNode> {
    let mut members: BTreeMap<u64, BasicNode> =
        options.members.iter().map(|(id, address)| (*id, BasicNode::new(address))).collect();
    members.entry(options.member).or_default();
    members
}

fn config(options: &Options) -> Config {
    let heartbeat = options.heartbeat.as_millis().max(1) as u64;
    Config {
        cluster_name: "journal".into(),
        heartbeat_interval: heartbeat,
        election_timeout_min: heartbeat * 4,
        election_timeout_max: heartbeat * 8,
        install_snapshot_timeout: 10_000,
        max_payload_entries: 64,
        // A member that is behind gets entries as long as the log has them, and a snapshot otherwise.
        replication_lag_threshold: u64::MAX,
        // Snapshots are asked for by count of entries, of which a Raft entry may hold many.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: options.keep_batches,
        purge_batch_size: (options.keep_batches / 4).max(1),
        ..Config::default()
    }
}

/// Tells who leads and asks for snapshots, as long as the journal runs.
async fn keep(raft: Raft, leadership: watch::Sender<Leadership>, room: Arc<LogRoom>) {
    // These change with elections only, not with every batch.
    let mut metrics = raft.server_metrics();
    let mut leading_term = None;
    let mut barrier = JoinSet::new();
    loop {
        let (state, term, leader) = {
            let now = metrics.borrow_and_update();
            (now.state, now.vote.leader_id.term, now.current_leader.filter(|leader| *leader != now.id))
        };
        if state != ServerState::Leader {
            leading_term = None;
            publish(&leadership, Leadership::Follower { leader });
        } else if leading_term != Some(term) {
            leading_term = Some(term);
            publish(&leadership, Leadership::Follower { leader: None });
            let raft = raft.clone();
            // When an entry of this member's own is applied, all before it are.
            barrier.spawn(async move { raft.client_write(Batch::default()).await.is_ok().then_some(term) });
        }
        tokio::select! {
            changed = metrics.changed() => if changed.is_err() { break },
            Some(passed) = barrier.join_next() => {
                if let Ok(Some(term)) = passed && leading_term == Some(term) {
                    publish(&leadership, Leadership::Leader { term });
                }
            }
            () = room.snapshot_wanted.notified() => if room.now() != DiskRoom::Ample {
                room.owe_snapshot();
            } else {
                // An error means the journal has stopped, which the metrics tell too.
                let _ = raft.trigger().snapshot().await;
            }
        }
    }
    publish(&leadership, Leadership::Stopped);
}

fn publish(leadership: &watch::Sender<Leadership>, now: Leadership) {
    leadership.send_if_modified(|was| std::mem::replace(was, now) != now);
}

async fn close(raft: Raft, writer: std::thread::JoinHandle<()>, released: oneshot::Receiver<()>) {
    if let Err(error) = raft.shutdown().await {
        tracing::error!(%error, "the journal did not stop cleanly");
    }
    drop(raft);
    let joined = tokio::task::spawn_blocking(move || writer.join()).await;
    if !matches!(joined, Ok(Ok(()))) {
        tracing::error!("the writer of the journal panicked");
    }
    // Dropped without a word or told: either way nobody holds the directory.
    let _ = released.await;
}
