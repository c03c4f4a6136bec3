//! The writer thread: the only place that waits for the disk. After the first failure it writes nothing any more.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use openraft::storage::LogFlushed;
use tokio::sync::{oneshot, watch};

use crate::batch::{LogId, Types, Vote};
use crate::index::Index;
use crate::recovery::Lock;
use crate::room::{self, DiskRoom, LogRoom};
use crate::segments::Segments;

/// Between two looks at a disk that is full.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Journals that are open for a moment only need no reserve.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// One piece of work for the disk. All work is done in the order it was handed in.
pub(crate) enum Work {
    Append {
        frame: Vec<u8>,
        before: Option<LogId>,
        first_index: u64,
        n_entries: u64,
        ticket: u64,
        done: LogFlushed<Types>,
    },
    SaveVote {
        vote: Vote,
        done: Done,
    },
    CutBehind {
        last: Option<LogId>,
        done: Done,
    },
    FollowSnapshot {
        last: LogId,
        done: Done,
    },
    DropUpto {
        last: LogId,
        done: Done,
    },
}

pub(crate) type Done = oneshot::Sender<io::Result<()>>;

/// Starts the thread. It ends when the sender is dropped and all work is done.
/// The watch tells the ticket of the last batch that is on the disk.
pub(crate) fn start(
    segments: Segments,
    index: Arc<Index>,
    lock: Lock,
    room: Arc<LogRoom>,
) -> io::Result<(Sender<Work>, watch::Receiver<u64>, JoinHandle<()>)> {
    let (sender, receiver) = channel();
    let (flushed, flushed_receiver) = watch::channel(0);
    let thread = std::thread::Builder::new().name("journal-writer".into()).spawn(move || {
        run(Writer { segments, failure: None, room }, &receiver, &index, &flushed);
        drop(lock);
    })?;
    Ok((sender, flushed_receiver, thread))
}

fn run(mut writer: Writer, work: &Receiver<Work>, index: &Index, flushed: &watch::Sender<u64>) {
    // The reserve is made when there is a moment for it, and a disk that was full is looked at until it has room again.
    let mut look_at = Some(Instant::now() + FIRST_LOOK);
    loop {
        if look_at.is_some_and(|at| at <= Instant::now()) {
            writer.room.restore();
            look_at = None;
        }
        if writer.room.now() != DiskRoom::Ample {
            look_at = look_at.or(Some(Instant::now() + LOOK_AGAIN));
        }
        let next = match look_at {
            None => work.recv().map_err(RecvTimeoutError::from),
            Some(at) => work.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        let work = match next {
            Ok(work) => work,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match work {
            Work::Append { frame, before, first_index, n_entries, ticket, done } => {
                let placed = writer.attempt(|segments| segments.append(&frame, before));
                match placed {
                    Ok(place) => {
                        index.placed(first_index, n_entries, place);
                        done.log_io_completed(Ok(()));
                        if ticket > 0 {
                            flushed.send_replace(ticket);
                        }
                    }
                    Err(error) => done.log_io_completed(Err(error)),
                }
            }
            Work::SaveVote { vote, done } => answer(done, writer.attempt(|segments| segments.save_vote(vote))),
            Work::CutBehind { last, done } => answer(done, writer.attempt(|segments| segments.cut_behind(last))),
            Work::FollowSnapshot { last, done } => {
                answer(done, writer.attempt(|segments| segments.follow_snapshot(last)));
            }
            Work::DropUpto { last, done } => answer(done, writer.attempt(|segments| segments.drop_upto(last))),
        }
    }
}

fn answer(done: Done, result: io::Result<()>) {
    // Whoever asked may have been stopped meanwhile; the work is done all the same.
    let _ = done.send(result);
}

struct Writer {
    segments: Segments,
    room: Arc<LogRoom>,
    failure: Option<(io::ErrorKind, String)>,
}

impl Writer {
    /// After a failed write or sync nobody knows what the disk holds: a later sync may succeed without the lost
    /// pages. So the first failure is final, but for a full disk: all that was not synced is then written again.
    fn attempt<T>(&mut self, mut work: impl FnMut(&mut Segments) -> io::Result<T>) -> io::Result<T> {
        if let Some((kind, message)) = &self.failure {
            return Err(io::Error::new(*kind, format!("the journal failed before: {message}")));
        }
        loop {
            match work(&mut self.segments) {
                Ok(done) => {
                    self.room.written();
                    return Ok(done);
                }
                Err(error) if room::is_full(&error) && self.room.make(&error) => (),
                Err(error) => {
                    let dir = self.segments.dir.display();
                    tracing::error!(%dir, %error, "the journal cannot be written; it stops here");
                    self.failure = Some((error.kind(), error.to_string()));
                    return Err(error);
                }
            }
        }
    }
}
