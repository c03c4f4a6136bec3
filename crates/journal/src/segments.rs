//! The segments of the log on disk: append, cut, drop the old. The only writer of segment files.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::batch::LogId;
use crate::files::{self, Files, OpenFile};
use crate::hard_state::{self, HardState};
use crate::segment::{self, Follows, Place};

/// A segment is filled with zeros this far ahead: a sync that changes no file size is about a quarter cheaper.
const FILL_BYTES: u64 = 256 << 10;

pub(crate) struct Segments {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) dir: PathBuf,
    pub(crate) state: HardState,
    /// All segments, oldest first, and what each follows.
    pub(crate) all: VecDeque<(u64, Follows)>,
    /// The newest segment, which takes the appends.
    pub(crate) file: Box<dyn OpenFile>,
    pub(crate) end: u64,
    /// The file is this long; what lies after `end` is zero.
    pub(crate) filled: u64,
    pub(crate) segment_bytes: u64,
}

impl Segments {
    /// Writes one frame and syncs it. `last` is the last log id before the frame.
    pub fn append(&mut self, frame: &[u8], last: Option<LogId>) -> io::Result<Place> {
        if self.end > segment::HEADER as u64 && self.end + frame.len() as u64 > self.segment_bytes {
            self.begin(last.map_or(Follows::Nothing, Follows::Entry))?;
        }
        let place = Place { segment: self.state.newest_segment, offset: self.end, size: frame.len() as u32 };
        // Until the frame is synced, nothing says that it is there: a disk that was full is written again at the same place.
        let end = self.end + frame.len() as u64;
        files::write_all(&*self.file, frame, self.end)?;
        if end > self.filled {
            self.fill_ahead(end);
        }
        self.file.sync()?;
        self.end = end;
        Ok(place)
    }

    /// Makes `last` the last entry of the log; all behind it is void.
    pub fn cut_behind(&mut self, last: Option<LogId>) -> io::Result<()> {
        self.begin(last.map_or(Follows::Nothing, Follows::Entry))
    }

    /// Goes on after a snapshot that ends behind the end of the log.
    pub fn follow_snapshot(&mut self, last: LogId) -> io::Result<()> {
        self.begin(Follows::Snapshot(last))?;
        self.drop_oldest(|_| true)
    }

    /// Deletes the segments in which no entry behind `last` lies.
    pub fn drop_upto(&mut self, last: LogId) -> io::Result<()> {
        self.drop_oldest(|last_here| last_here.is_none_or(|id| id.index <= last.index))
    }

    pub fn save_vote(&mut self, vote: crate::batch::Vote) -> io::Result<()> {
        let state = HardState { vote: Some(vote), ..self.state.clone() };
        hard_state::save(&*self.files, &self.dir, &state)?;
        self.state = state;
        Ok(())
    }

    fn drop_oldest(&mut self, is_done: impl Fn(Option<LogId>) -> bool) -> io::Result<()> {
        let mut dropped = false;
        while let (Some((sequence, _)), Some((_, next))) = (self.all.front(), self.all.get(1)) {
            if !is_done(next.log_id()) {
                break;
            }
            self.files.remove(&segment::path(&self.dir, *sequence))?;
            self.all.pop_front();
            dropped = true;
        }
        if dropped { self.files.sync_directory(&self.dir) } else { Ok(()) }
    }

    /// Begins a new segment. The old one keeps no zeros behind its end.
    fn begin(&mut self, follows: Follows) -> io::Result<()> {
        self.file.set_length(self.end)?;
        self.filled = self.end;
        self.file.sync()?;
        let sequence = self.state.newest_segment + 1;
        let file = create(&*self.files, &self.dir, sequence, follows)?;
        let state = HardState { newest_segment: sequence, ..self.state.clone() };
        hard_state::save(&*self.files, &self.dir, &state)?;
        (self.file, self.state) = (file, state);
        self.all.push_back((sequence, follows));
        self.end = segment::HEADER as u64;
        self.filled = self.end;
        Ok(())
    }

    /// Only saves time, so a disk too full for it is no failure.
    fn fill_ahead(&mut self, end: u64) {
        let zeros = vec![0; FILL_BYTES as usize];
        let written = files::write_all(&*self.file, &zeros, end);
        self.filled = if written.is_ok() { end + FILL_BYTES } else { end };
    }
}

pub(crate) fn create(
    files: &dyn Files,
    dir: &std::path::Path,
    sequence: u64,
    follows: Follows,
) -> io::Result<Box<dyn OpenFile>> {
    let path = segment::path(dir, sequence);
    files::replace(files, &path, [segment::encode_header(sequence, follows).to_vec()])?;
    files.open(&path)
}
