//! openraft's view of the log: an index of what lies where, recent entries in memory, all else on disk.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{EntryPayload, LogState, OptionalSend, RaftLogReader};
use tokio::sync::oneshot;

use crate::batch::{LogId, RaftEntry, StorageError, StorageIoError, Types, Vote};
use crate::files::{self, Files, OpenFile};
use crate::frame;
use crate::segment::{self, Place};
use crate::writer::{Done, Work};

/// Entries that every reader has seen stay in memory up to this size.
const MEMORY_BYTES: usize = 4 << 20;
/// A reader that is far behind gets about this much at once.
const READ_BYTES: usize = 1 << 20;

/// What the log holds. Shared by openraft's core, its replication tasks and the writer thread.
pub(crate) struct Index {
    files: Arc<dyn Files>,
    dir: PathBuf,
    tail: Mutex<Tail>,
    /// The segment that was read last; whoever reads one frame reads the next one too.
    last_read: Mutex<Option<(u64, Arc<dyn OpenFile>)>>,
}

struct Tail {
    purged: Option<LogId>,
    entries: VecDeque<Known>,
    committed: Option<LogId>,
    /// Entries before this index are not in memory.
    first_in_memory: u64,
    bytes_in_memory: usize,
}

struct Known {
    log_id: LogId,
    /// Unknown until the writer has put it there; until then it is in memory.
    place: Option<Place>,
    in_memory: Option<RaftEntry>,
}

impl Index {
    pub fn new(
        files: Arc<dyn Files>,
        dir: PathBuf,
        purged: Option<LogId>,
        entries: VecDeque<(LogId, Place)>,
        committed: Option<LogId>,
    ) -> Self {
        let entries: VecDeque<Known> =
            entries.into_iter().map(|(log_id, place)| Known { log_id, place: Some(place), in_memory: None }).collect();
        let mut tail = Tail { purged, entries, committed, first_in_memory: 0, bytes_in_memory: 0 };
        tail.first_in_memory = tail.next_index();
        Index { files, dir, tail: Mutex::new(tail), last_read: Mutex::new(None) }
    }

    /// The writer has put these entries on the disk.
    pub fn placed(&self, first_index: u64, n_entries: u64, place: Place) {
        let mut tail = self.tail();
        for index in first_index..first_index + n_entries {
            if let Some(known) = tail.get_mut(index) {
                known.place = Some(place);
            }
        }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().expect("no holder of the index panics")
    }

    /// The entries in the range that the log has, but no more than about `limit_bytes`.
    fn read(&self, from: u64, to: u64, limit_bytes: usize) -> io::Result<Vec<RaftEntry>> {
        let mut entries = Vec::new();
        let mut size_bytes = 0;
        let mut next = from.max(self.tail().first_index());
        while next < to && size_bytes < limit_bytes {
            let place = {
                let tail = self.tail();
                let Some(known) = tail.get(next) else { break };
                if let Some(entry) = &known.in_memory {
                    size_bytes += size_of(entry);
                    entries.push(entry.clone());
                    next += 1;
                    continue;
                }
                known.place.expect("an entry is in memory or on disk")
            };
            // Entries of this frame that were cut since are not the log's any more.
            let frame = self.read_frame(place)?;
            let tail = self.tail();
            let is_wanted = |entry: &RaftEntry| {
                let index = entry.log_id.index;
                (next..to).contains(&index) && tail.get(index).is_some_and(|known| known.place == Some(place))
            };
            let wanted: Vec<RaftEntry> = frame.into_iter().filter(is_wanted).collect();
            drop(tail);
            if wanted.is_empty() {
                break;
            }
            next += wanted.len() as u64;
            size_bytes += wanted.iter().map(size_of).sum::<usize>();
            entries.extend(wanted);
        }
        Ok(entries)
    }

    fn read_frame(&self, place: Place) -> io::Result<Vec<RaftEntry>> {
        let path = segment::path(&self.dir, place.segment);
        let file = {
            let mut last_read = self.last_read.lock().expect("no reader panics");
            match &*last_read {
                Some((segment, file)) if *segment == place.segment => file.clone(),
                _ => last_read.insert((place.segment, Arc::from(self.files.open(&path)?))).1.clone(),
            }
        };
        let mut bytes = vec![0; place.size as usize];
        files::read_exact(&*file, &mut bytes, place.offset)?;
        match frame::decode(&bytes) {
            Ok(frame) => Ok(frame.entries),
            Err(flaw) => Err(io::Error::other(crate::Damage::new(&path, place.offset, flaw.describe()))),
        }
    }
}

impl Tail {
    fn first_index(&self) -> u64 {
        match (self.entries.front(), self.purged) {
            (Some(known), _) => known.log_id.index,
            (None, Some(purged)) => purged.index + 1,
            (None, None) => 0,
        }
    }

    fn next_index(&self) -> u64 {
        self.first_index() + self.entries.len() as u64
    }

    fn last_log_id(&self) -> Option<LogId> {
        self.entries.back().map_or(self.purged, |known| Some(known.log_id))
    }

    fn get(&self, index: u64) -> Option<&Known> {
        self.entries.get(index.checked_sub(self.first_index())? as usize)
    }

    fn get_mut(&mut self, index: u64) -> Option<&mut Known> {
        let position = index.checked_sub(self.first_index())? as usize;
        self.entries.get_mut(position)
    }

    /// The log id at `index`, if the log knows it.
    fn log_id_at(&self, index: u64) -> Option<LogId> {
        self.get(index).map(|known| known.log_id).or(self.purged.filter(|id| id.index == index))
    }

    fn push(&mut self, entry: RaftEntry) {
        self.bytes_in_memory += size_of(&entry);
        self.entries.push_back(Known { log_id: entry.log_id, place: None, in_memory: Some(entry) });
    }

    /// Forgets the oldest entries that are committed: those were read already by whoever applies them.
    fn trim_memory(&mut self) {
        let committed = self.committed.map_or(0, |id| id.index);
        self.first_in_memory = self.first_in_memory.max(self.first_index());
        while self.bytes_in_memory > MEMORY_BYTES && self.first_in_memory < committed {
            let index = self.first_in_memory;
            if let Some(known) = self.get_mut(index).filter(|known| known.place.is_some())
                && let Some(entry) = known.in_memory.take()
            {
                self.bytes_in_memory -= size_of(&entry);
            }
            self.first_in_memory += 1;
        }
    }

    fn forget(&mut self, known: Option<Known>) {
        if let Some(entry) = known.and_then(|known| known.in_memory) {
            self.bytes_in_memory -= size_of(&entry);
        }
    }

    fn cut_from(&mut self, index: u64) {
        while self.last_log_id().is_some_and(|id| id.index >= index) && !self.entries.is_empty() {
            let known = self.entries.pop_back();
            self.forget(known);
        }
        self.first_in_memory = self.first_in_memory.min(self.next_index());
    }

    fn purge(&mut self, last: LogId) {
        while self.entries.front().is_some_and(|known| known.log_id.index <= last.index) {
            let known = self.entries.pop_front();
            self.forget(known);
        }
        self.purged = Some(last);
        self.first_in_memory = self.first_in_memory.max(last.index + 1);
    }
}

fn size_of(entry: &RaftEntry) -> usize {
    64 + match &entry.payload {
        EntryPayload::Normal(batch) => batch.size_bytes(),
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    }
}

/// The log as openraft's core writes it.
pub(crate) struct LogStore {
    index: Arc<Index>,
    work: Sender<Work>,
    vote: Option<Vote>,
}

impl LogStore {
    pub fn new(index: Arc<Index>, work: Sender<Work>, vote: Option<Vote>) -> Self {
        LogStore { index, work, vote }
    }

    async fn ask(&self, work: impl FnOnce(Done) -> Work) -> Result<(), StorageError> {
        let (done, answer) = oneshot::channel();
        let gone = || io::Error::other("the writer of the journal is gone");
        let result = match self.work.send(work(done)) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(gone())),
            Err(_) => Err(gone()),
        };
        result.map_err(|error| StorageIoError::write(&error).into())
    }
}

/// The log as replication tasks read it.
#[derive(Clone)]
pub(crate) struct Reader(Arc<Index>);

impl RaftLogReader<Types> for Reader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<RaftEntry>, StorageError> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(to) => *to,
            Bound::Unbounded => u64::MAX,
        };
        self.0.read(from, to, usize::MAX).map_err(|error| StorageIoError::read_logs(&error).into())
    }

    async fn limited_get_log_entries(&mut self, from: u64, to: u64) -> Result<Vec<RaftEntry>, StorageError> {
        self.0.read(from, to, READ_BYTES).map_err(|error| StorageIoError::read_logs(&error).into())
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<RaftEntry>, StorageError> {
        Reader(self.index.clone()).try_get_log_entries(range).await
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Reader;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let tail = self.index.tail();
        Ok(LogState { last_purged_log_id: tail.purged, last_log_id: tail.last_log_id() })
    }

    async fn get_log_reader(&mut self) -> Reader {
        Reader(self.index.clone())
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let vote = *vote;
        self.ask(|done| Work::SaveVote { vote, done }).await?;
        self.vote = Some(vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.vote)
    }

    /// Costs no sync: the next frame carries it.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        self.index.tail().committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(self.index.tail().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = RaftEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<RaftEntry> = entries.into_iter().collect();
        let Some(first_index) = entries.first().map(|entry| entry.log_id.index) else {
            callback.log_io_completed(Ok(()));
            return Ok(());
        };
        let n_entries = entries.len() as u64;
        let ticket = entries.iter().map(ticket_of).max().unwrap_or(0);
        let (frame, before) = {
            let mut tail = self.index.tail();
            tail.trim_memory();
            let frame = frame::encode(&entries, tail.committed.map(|id| id.index));
            let before = tail.last_log_id();
            entries.into_iter().for_each(|entry| tail.push(entry));
            (frame, before)
        };
        self.work
            .send(Work::Append { frame, before, first_index, n_entries, ticket, done: callback })
            .map_err(|_| StorageIoError::write_logs(&io::Error::other("the writer of the journal is gone")).into())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let last = {
            let mut tail = self.index.tail();
            tail.cut_from(log_id.index);
            tail.last_log_id()
        };
        self.ask(|done| Work::CutBehind { last, done }).await
    }

    async fn purge(&mut self, last: LogId) -> Result<(), StorageError> {
        *self.index.last_read.lock().expect("no reader panics") = None;
        let is_in_log = {
            let mut tail = self.index.tail();
            if tail.purged.is_some_and(|purged| purged.index > last.index) {
                return Ok(());
            }
            let is_in_log = match tail.log_id_at(last.index) {
                Some(id) => id == last,
                None => last.index < tail.next_index(),
            };
            tail.purge(last);
            if !is_in_log {
                tail.cut_from(0);
            }
            is_in_log
        };
        if is_in_log {
            self.ask(|done| Work::DropUpto { last, done }).await
        } else {
            self.ask(|done| Work::FollowSnapshot { last, done }).await
        }
    }
}

fn ticket_of(entry: &RaftEntry) -> u64 {
    match &entry.payload {
        EntryPayload::Normal(batch) => batch.ticket,
        EntryPayload::Blank | EntryPayload::Membership(_) => 0,
    }
}
