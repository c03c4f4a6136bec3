//! openraft's view of the machine: applies what is committed, answers who proposed it, takes and installs snapshots.

use std::collections::HashMap;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::storage::RaftStateMachine;
use openraft::{BasicNode, EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, SnapshotMeta, StoredMembership};
use tokio::sync::{oneshot, watch};

use crate::batch::{Batch, LogId, RaftEntry, StorageError, StorageIoError, Types};
use crate::error::ProposeError;
use crate::machine::Machine;
use crate::recovery::Lock;
use crate::room::{self, LogRoom};
use crate::snapshots::{Cover, Snapshots};

/// Between two attempts at a disk that is full.
const FULL_PAUSE: Duration = Duration::from_millis(500);

/// A proposer that waits for its reply.
pub(crate) type Waiter<R> = oneshot::Sender<Result<R, ProposeError>>;

/// Who in this process waits for which batch.
pub(crate) struct Waiters<R> {
    waiting: Mutex<HashMap<u64, Vec<Waiter<R>>>>,
    /// Changes when a snapshot is installed: openraft never tells what became of the entries that it covers.
    overtaken: watch::Sender<()>,
}

impl<R> Waiters<R> {
    pub fn new() -> Self {
        Waiters { waiting: Mutex::new(HashMap::new()), overtaken: watch::Sender::new(()) }
    }

    /// Tells when a snapshot is installed after now.
    pub fn overtaken(&self) -> watch::Receiver<()> {
        self.overtaken.subscribe()
    }

    pub fn add(&self, ticket: u64, waiters: Vec<Waiter<R>>) {
        self.waiting.lock().expect("no holder of the waiters panics").insert(ticket, waiters);
    }

    /// The proposers of a batch, in the order of its entries; empty when they were answered before.
    pub fn take(&self, ticket: u64) -> Vec<Waiter<R>> {
        self.waiting.lock().expect("no holder of the waiters panics").remove(&ticket).unwrap_or_default()
    }
}

/// When a snapshot is taken: what was applied since the last one has come to this.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotPace {
    pub every_entries: u64,
    pub every_bytes: u64,
}

/// Owns the machine.
pub(crate) struct Applier<M: Machine> {
    /// Never contended: the mutex only makes the machine shareable in openraft's eyes.
    machine: Mutex<M>,
    cover: Cover,
    n_entries_in_snapshot: u64,
    n_bytes_since_snapshot: u64,
    pace: SnapshotPace,
    waiters: Arc<Waiters<M::Reply>>,
    snapshots: Snapshots,
    lock: Lock,
    room: Arc<LogRoom>,
    /// What the newest snapshot on the disk covers.
    saved: Saved,
}

/// Shared with the one that is being made.
type Saved = Arc<Mutex<SnapshotMeta<u64, BasicNode>>>;

impl<M: Machine> Applier<M> {
    /// `cover` is what the machine has been restored to.
    pub fn new(
        machine: M,
        cover: Cover,
        snapshots: Snapshots,
        pace: SnapshotPace,
        waiters: Arc<Waiters<M::Reply>>,
        lock: Lock,
        room: Arc<LogRoom>,
    ) -> Self {
        Applier {
            saved: Arc::new(Mutex::new(cover.meta.clone())),
            machine: Mutex::new(machine),
            n_entries_in_snapshot: cover.n_entries,
            cover,
            n_bytes_since_snapshot: 0,
            pace,
            room,
            waiters,
            snapshots,
            lock,
        }
    }

    fn apply_batch(&mut self, log_id: LogId, batch: &Batch) -> Result<Vec<M::Reply>, Box<StorageIoError>> {
        let machine = self.machine.get_mut().expect("a panicked machine is not used again");
        let n_entries = &mut self.cover.n_entries;
        self.n_bytes_since_snapshot += batch.entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
        let applied = catch_unwind(AssertUnwindSafe(|| {
            let apply = |entry: &Vec<u8>| {
                *n_entries += 1;
                machine.apply(*n_entries, entry)
            };
            batch.entries.iter().map(apply).collect()
        }));
        let applied = applied.unwrap_or_else(|_| Err("the state machine panicked while applying an entry".into()));
        applied.map_err(|why| Box::new(StorageIoError::apply(log_id, &std::io::Error::other(why))))
    }
}

impl<M: Machine> RaftStateMachine<Types> for Applier<M> {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership<u64, BasicNode>), StorageError> {
        Ok((self.cover.meta.last_log_id, self.cover.meta.last_membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, StorageError>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut applied = Vec::new();
        let mut answers = Vec::new();
        for entry in entries {
            match &entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(batch) => {
                    let replies = self.apply_batch(entry.log_id, batch).map_err(|error| *error)?;
                    if batch.ticket > 0 {
                        answers.push((batch.ticket, replies));
                    }
                }
                EntryPayload::Membership(membership) => {
                    self.cover.meta.last_membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                }
            }
            self.cover.meta.last_log_id = Some(entry.log_id);
            applied.push(());
        }
        self.machine.get_mut().expect("a panicked machine is not used again").batch_applied();
        for (ticket, replies) in answers {
            for (waiter, reply) in self.waiters.take(ticket).into_iter().zip(replies) {
                // A proposer may have lost patience.
                let _ = waiter.send(Ok(reply));
            }
        }
        let n_entries = self.cover.n_entries - self.n_entries_in_snapshot;
        if n_entries >= self.pace.every_entries || self.n_bytes_since_snapshot >= self.pace.every_bytes {
            self.room.snapshot_wanted.notify_one();
        }
        Ok(applied)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        self.n_entries_in_snapshot = self.cover.n_entries;
        self.n_bytes_since_snapshot = 0;
        let mut cover = self.cover.clone();
        cover.meta.snapshot_id = match cover.meta.last_log_id {
            Some(id) => format!("{}-{}-{}", id.leader_id.term, id.leader_id.node_id, id.index),
            None => String::new(),
        };
        let frozen = self.machine.get_mut().expect("a panicked machine is not used again").freeze();
        Builder {
            cover,
            frozen: Mutex::new(Some(frozen)),
            snapshots: self.snapshots.clone(),
            lock: self.lock.clone(),
            room: self.room.clone(),
            saved: self.saved.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<u64, BasicNode>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let failed = |error: std::io::Error| StorageIoError::write_snapshot(Some(meta.signature()), &error);
        let bytes = snapshot.into_inner();
        let (n_entries, data) = unpack(&bytes).ok_or_else(|| failed(std::io::ErrorKind::InvalidData.into()))?;
        let cover = Cover { meta: meta.clone(), n_entries };
        let machine = self.machine.get_mut().expect("a panicked machine is not used again");
        machine.restore(data).map_err(|why| failed(std::io::Error::other(why)))?;
        while let Err(error) = self.snapshots.save(&cover, data) {
            // Others wait for this member meanwhile; it has nothing without the snapshot.
            if !room::is_full(&error) || self.room.is_stopping() {
                return Err(failed(error).into());
            }
            tokio::time::sleep(FULL_PAUSE).await;
        }
        *self.saved.lock().expect("nobody panics with it") = meta.clone();
        let machine = self.machine.get_mut().expect("a panicked machine is not used again");
        machine.batch_applied();
        self.n_entries_in_snapshot = n_entries;
        self.n_bytes_since_snapshot = 0;
        self.cover = cover;
        self.waiters.overtaken.send_replace(());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let failed = |error: crate::OpenError| StorageIoError::read_snapshot(None, &error);
        let Some((_, cover, data)) = self.snapshots.load().map_err(failed)? else { return Ok(None) };
        let packed = pack(cover.n_entries, data);
        Ok(Some(Snapshot { meta: cover.meta, snapshot: Box::new(Cursor::new(packed)) }))
    }
}

/// What a machine's `freeze` gives.
type Frozen = Box<dyn FnOnce() -> Vec<u8> + Send>;

/// A frozen state on its way to the disk.
pub(crate) struct Builder {
    cover: Cover,
    frozen: Mutex<Option<Frozen>>,
    snapshots: Snapshots,
    /// A snapshot may outlast the journal that asked for it; the directory stays locked until it is done.
    lock: Lock,
    room: Arc<LogRoom>,
    saved: Saved,
}

impl RaftSnapshotBuilder<Types> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let signature = self.cover.meta.signature();
        let frozen = self.frozen.get_mut().ok().and_then(Option::take).expect("a snapshot is built once");
        let (cover, snapshots, lock) = (self.cover.clone(), self.snapshots.clone(), self.lock.clone());
        let built = tokio::task::spawn_blocking(move || {
            let data = frozen();
            snapshots.save(&cover, &data)?;
            drop(lock);
            Ok(data)
        });
        let data = match built.await {
            Ok(result) => result,
            Err(error) => Err(std::io::Error::other(error)),
        };
        let data = match data {
            Err(error) if room::is_full(&error) => {
                tracing::error!(%error, "a snapshot is given up: the disk has no room for it; the log is kept instead");
                self.room.give_up_snapshot();
                // To openraft, the snapshot before is the newest still; of that it keeps all that came later.
                let meta = self.saved.lock().expect("nobody panics with it").clone();
                return Ok(Snapshot { meta, snapshot: Box::default() });
            }
            data => data.map_err(|error| StorageIoError::write_snapshot(Some(signature), &error))?,
        };
        *self.saved.lock().expect("nobody panics with it") = self.cover.meta.clone();
        let packed = pack(self.cover.n_entries, data);
        Ok(Snapshot { meta: self.cover.meta.clone(), snapshot: Box::new(Cursor::new(packed)) })
    }
}

/// Between members the count of entries travels behind the snapshot's data.
fn pack(n_entries: u64, mut data: Vec<u8>) -> Vec<u8> {
    data.extend_from_slice(&n_entries.to_le_bytes());
    data
}

fn unpack(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (data, n_entries) = bytes.split_last_chunk::<8>()?;
    Some((u64::from_le_bytes(*n_entries), data))
}
