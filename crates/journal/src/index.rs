//! What the log holds and where: recent entries in memory, all else on disk.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use openraft::EntryPayload;

use crate::batch::{LogId, RaftEntry};
use crate::error::Damage;
use crate::files::{self, Files, OpenFile};
use crate::frame;
use crate::segment::{self, Place};

/// Entries that every reader has seen stay in memory up to this size.
const MEMORY_BYTES: usize = 4 << 20;

/// What the log holds. Shared by openraft's core, its replication tasks and the writer thread.
pub(crate) struct Index {
    files: Arc<dyn Files>,
    dir: PathBuf,
    tail: Mutex<Tail>,
    /// The segment that was read last; whoever reads one frame reads the next one too.
    last_read: Mutex<Option<(u64, Arc<dyn OpenFile>)>>,
}

pub(crate) struct Tail {
    pub purged: Option<LogId>,
    entries: VecDeque<Known>,
    pub committed: Option<LogId>,
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

    pub fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().expect("no holder of the index panics")
    }

    /// The entries in the range that the log has, but no more than about `limit_bytes`.
    pub fn read(&self, from: u64, to: u64, limit_bytes: usize) -> io::Result<Vec<RaftEntry>> {
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

    /// Lets go of the segment that was read last; it may be deleted now.
    pub fn forget_last_read(&self) {
        *self.last_read.lock().expect("no reader panics") = None;
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
            Err(flaw) => Err(io::Error::other(Damage::new(&path, place.offset, flaw.describe()))),
        }
    }
}

impl Tail {
    pub fn first_index(&self) -> u64 {
        match (self.entries.front(), self.purged) {
            (Some(known), _) => known.log_id.index,
            (None, Some(purged)) => purged.index + 1,
            (None, None) => 0,
        }
    }

    pub fn next_index(&self) -> u64 {
        self.first_index() + self.entries.len() as u64
    }

    pub fn last_log_id(&self) -> Option<LogId> {
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
    pub fn log_id_at(&self, index: u64) -> Option<LogId> {
        self.get(index).map(|known| known.log_id).or(self.purged.filter(|id| id.index == index))
    }

    pub fn push(&mut self, entry: RaftEntry) {
        self.bytes_in_memory += size_of(&entry);
        self.entries.push_back(Known { log_id: entry.log_id, place: None, in_memory: Some(entry) });
    }

    /// Forgets the oldest entries that are committed: those were read already by whoever applies them.
    pub fn trim_memory(&mut self) {
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

    pub fn cut_from(&mut self, index: u64) {
        while self.last_log_id().is_some_and(|id| id.index >= index) && !self.entries.is_empty() {
            let known = self.entries.pop_back();
            self.forget(known);
        }
        self.first_in_memory = self.first_in_memory.min(self.next_index());
    }

    pub fn purge(&mut self, last: LogId) {
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
