//! openraft's view of the log: hands writes to the writer thread, reads from the index.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{EntryPayload, LogState, OptionalSend, RaftLogReader};
use tokio::sync::oneshot;

use crate::batch::{LogId, RaftEntry, StorageError, StorageIoError, Types, Vote};
use crate::frame;
use crate::index::Index;
use crate::writer::{Done, Work};

/// A reader that is far behind gets about this much at once.
const READ_BYTES: usize = 1 << 20;

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
        self.index.forget_last_read();
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
