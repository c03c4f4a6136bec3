//! Opening a journal's directory: what is there, what a crash left half done, and what must not be touched.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::batch::LogId;
use crate::error::{Damage, OpenError};
use crate::files::{self, Files, TEMPORARY};
use crate::hard_state::{self, HardState};
use crate::options::Options;
use crate::segment::{self, Follows, Place, Position, Segment};
use crate::segments::{self, Segments};
use crate::snapshots::{Cover, Snapshots};

/// Held by everything that may still write into the directory.
pub(crate) type Lock = Arc<LockGuard>;

pub(crate) struct LockGuard {
    held: Option<Box<dyn Send + Sync>>,
    released: Option<oneshot::Sender<()>>,
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.held = None;
        if let Some(released) = self.released.take() {
            // Nobody waits when the journal was dropped without a shutdown.
            let _ = released.send(());
        }
    }
}

/// A directory read back and fit to go on with.
pub(crate) struct Recovered {
    pub segments: Segments,
    /// The log id before the first entry below.
    pub purged: Option<LogId>,
    pub entries: VecDeque<(LogId, Place)>,
    pub committed: Option<LogId>,
    pub snapshots: Snapshots,
    pub snapshot: Option<(std::path::PathBuf, Cover, Vec<u8>)>,
}

/// Between two looks at a lock that another process holds.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The receiver is told when the last holder is gone.
pub(crate) fn lock(options: &Options) -> Result<(Lock, oneshot::Receiver<()>), OpenError> {
    let path = options.dir.join("lock");
    options.files.create_directory(&options.dir).map_err(OpenError::io(&options.dir))?;
    match lock_file(options, &path) {
        Ok(held) => {
            let (released, receiver) = oneshot::channel();
            Ok((Arc::new(LockGuard { held: Some(held), released: Some(released) }), receiver))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(OpenError::InUse(options.dir.clone())),
        Err(error) => Err(OpenError::io(&path)(error)),
    }
}

/// A process that was killed holds its lock until its last write has come back from the disk.
fn lock_file(options: &Options, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
    let patience = Instant::now() + options.wait_for_lock;
    loop {
        match options.files.lock(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < patience => {
                std::thread::sleep(LOCK_PAUSE);
            }
            locked => return locked,
        }
    }
}

pub(crate) fn recover(options: &Options) -> Result<Recovered, OpenError> {
    let Options { dir, files, .. } = options;
    let names = files.list(dir).map_err(OpenError::io(dir))?;
    for name in names.iter().filter(|name| name.ends_with(&format!(".{TEMPORARY}"))) {
        files.remove(&dir.join(name)).map_err(OpenError::io(&dir.join(name)))?;
    }
    let snapshots = Snapshots { files: files.clone(), dir: dir.clone() };
    let snapshot = snapshots.load()?;
    let covered = snapshot.as_ref().and_then(|(_, cover, _)| cover.meta.last_log_id);

    let mut sequences: Vec<u64> = names.iter().filter_map(|name| segment::sequence_of(name)).collect();
    sequences.sort_unstable();
    let state = match hard_state::load(&**files, dir)? {
        Some(state) => state,
        None => found(options, &sequences, snapshot.is_some())?,
    };
    if state.member != options.member {
        return Err(OpenError::OtherMember { dir: dir.clone(), found: state.member, wanted: options.member });
    }
    let mut log = read_segments(options, &sequences, &state)?;
    let base = log.purged.map(|id| id.index);
    if base > covered.map(|id| id.index) {
        let (first, last) = (covered.map_or(0, |id| id.index + 1), base.unwrap_or_default());
        let what = format!("entries {first} to {last} are neither in a snapshot nor in the log");
        return Err(OpenError::Missing { file: segment::path(dir, sequences[0]), what });
    }
    let newest = log.all.back().expect("there is at least one segment").0;
    let segments = reopen(options, state, newest, &mut log)?;
    let committed = log.committed.and_then(|index| {
        let last = log.entries.back().map_or(0, |(id, _)| id.index);
        log.entries.iter().find(|(id, _)| id.index == index.min(last)).map(|(id, _)| *id)
    });
    Ok(Recovered { segments, purged: log.purged, entries: log.entries, committed, snapshots, snapshot })
}

/// The state of a journal that is being made. A crash may have left its first segment, never more.
fn found(options: &Options, sequences: &[u64], has_snapshot: bool) -> Result<HardState, OpenError> {
    let Options { dir, files, .. } = options;
    let state_file = hard_state::path(dir);
    if has_snapshot || !matches!(sequences, [] | [1]) {
        let what = "there are entries, but nothing says how far they reach";
        return Err(OpenError::Missing { file: state_file, what: what.into() });
    }
    let first = segment::path(dir, 1);
    if sequences == [1] {
        let bytes = files.read(&first).map_err(OpenError::io(&first))?;
        if bytes.len() > segment::HEADER {
            let what = "there are entries, but nothing says how far they reach";
            return Err(OpenError::Missing { file: state_file, what: what.into() });
        }
    }
    segments::create(&**files, dir, 1, Follows::Nothing).map_err(OpenError::io(&first))?;
    let state = HardState { member: options.member, vote: None, newest_segment: 1 };
    hard_state::save(&**files, dir, &state).map_err(OpenError::io(&state_file))?;
    Ok(state)
}

struct Log {
    all: VecDeque<(u64, Follows)>,
    purged: Option<LogId>,
    entries: VecDeque<(LogId, Place)>,
    committed: Option<u64>,
    newest: Segment,
    newest_length: u64,
}

fn read_segments(options: &Options, sequences: &[u64], state: &HardState) -> Result<Log, OpenError> {
    let Options { dir, files, .. } = options;
    let first = sequences.first().copied().unwrap_or(state.newest_segment);
    let last = sequences.last().copied().unwrap_or(state.newest_segment).max(state.newest_segment);
    let mut log: Option<Log> = None;
    for sequence in first..=last {
        let path = segment::path(dir, sequence);
        let bytes = match files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let what = format!("the log has the segments {first} to {last}");
                return Err(OpenError::Missing { file: path, what });
            }
            Err(error) => return Err(OpenError::io(&path)(error)),
        };
        let position = if sequence == last { Position::Last } else { Position::Earlier };
        let mut segment = segment::decode(&path, &bytes, sequence, position)?;
        let entries = VecDeque::from(std::mem::take(&mut segment.entries));
        let follows = segment.follows;
        let newest_length = bytes.len() as u64;
        log = Some(match log.take() {
            Some(mut log) if !matches!(follows, Follows::Snapshot(_)) => {
                let before = follows.log_id();
                while log.entries.back().is_some_and(|(id, _)| Some(id.index) > before.map(|id| id.index)) {
                    log.entries.pop_back();
                }
                let end = log.entries.back().map_or(log.purged, |(id, _)| Some(*id));
                if end != before {
                    let what = format!("it follows {before:?}, but the segment before it does not lead there");
                    return Err(Damage::new(&path, 0, what).into());
                }
                log.all.push_back((sequence, follows));
                log.entries.extend(entries);
                Log { committed: log.committed.max(segment.committed), newest: segment, newest_length, ..log }
            }
            older => {
                for (sequence, _) in older.into_iter().flat_map(|log| log.all) {
                    let path = segment::path(dir, sequence);
                    files.remove(&path).map_err(OpenError::io(&path))?;
                }
                Log {
                    all: VecDeque::from([(sequence, follows)]),
                    purged: follows.log_id(),
                    entries,
                    committed: segment.committed,
                    newest: segment,
                    newest_length,
                }
            }
        });
    }
    Ok(log.expect("the range of segments is not empty"))
}

/// Opens the newest segment for appending. Its last frame may be in the page cache only (the process was killed
/// before its sync, or the sync failed), so it is written and synced again before anybody relies on it.
fn reopen(options: &Options, mut state: HardState, newest: u64, log: &mut Log) -> Result<Segments, OpenError> {
    let Options { dir, files, .. } = options;
    let path = segment::path(dir, newest);
    let end = log.newest.end;
    if log.newest.is_torn {
        tracing::warn!(
            file = %path.display(),
            offset = end,
            bytes = log.newest_length - end,
            "the last write was torn by a crash; it was never acknowledged and is cut off"
        );
    }
    let make_ready = |state: &mut HardState| -> io::Result<Box<dyn files::OpenFile>> {
        let file = files.open(&path)?;
        let from = log.newest.last_frame.unwrap_or(0);
        let mut last_frame = vec![0; (end - from) as usize];
        files::read_exact(&*file, &mut last_frame, from)?;
        files::write_all(&*file, &last_frame, from)?;
        file.set_length(end)?;
        file.sync()?;
        if state.newest_segment != newest {
            state.newest_segment = newest;
            hard_state::save(&**files, dir, state)?;
        }
        Ok(file)
    };
    let file = make_ready(&mut state).map_err(OpenError::io(&path))?;
    Ok(Segments {
        files: Arc::clone(files) as Arc<dyn Files>,
        dir: dir.clone(),
        state,
        all: std::mem::take(&mut log.all),
        file,
        end,
        filled: end,
        segment_bytes: options.segment_bytes,
    })
}
