//! Copies trees: planned first, in parallel, verified, resumable, fenced in. It knows nothing of jobs.
//!
//! ```text
//!  order ─▶ walk ─▶ plan (spilled to a scratch file) ─▶ workers: batches of small files, chunks of large ones ─▶ directories ─▶ flush
//!                                                          │            ▲
//!                                   status file ◀─ counters┘            └─ journal: what is done, for whoever continues after a kill
//! ```
//! A mover is a process of its own (`process`), with the rights of the user whose files it copies.

mod attributes;
mod clean;
mod commands;
mod confine;
mod copy;
mod fence;
mod finish;
mod hash;
mod journal;
mod list;
pub mod mirror;
mod order;
mod pace;
mod pack;
mod plan;
pub mod process;
mod progress;
mod sums;
mod trouble;
mod walk;

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub use clean::clean;
pub use journal::{DoneFile, Version, manifest};
pub use list::{is_contained, parse_line};
pub use order::{Fence, Identity, Kind, Links, Order, Place, Transfer, Verify};
pub use pace::Stop;
pub use plan::Where;
pub use progress::{Ending, Outcome, Phase, STATUS_HEAD_BYTES, Snapshot, Status, read_status, write_status};
pub use walk::{human, scratch_in};

use copy::Work;
use fence::Fences;
use journal::Journal;
use progress::Counters;
use trouble::{Class, Side, Trouble};

/// How often the status file is written.
const STATUS_EVERY: Duration = Duration::from_millis(500);

/// What a mover keeps its notes in. All are opened by whoever starts it.
pub struct Files {
    /// Read, then appended to; the same for every attempt at an order.
    pub journal: File,
    pub status: Option<File>,
    pub scratch: File,
    /// Leads to another mover that has all of it; none: the sources are read.
    pub peer: Option<UnixStream>,
}

/// Does the errand; the caller may call it off from another thread.
pub fn run(order: &Order, files: Files, stop: &Stop) -> Status {
    let counters = Counters::new();
    let over = Stop::default();
    let is_mirroring = files.peer.is_some();
    let mut has_parted = false;
    std::thread::scope(|scope| {
        if let Some(status) = &files.status {
            scope.spawn(|| {
                loop {
                    let _ = write_status(
                        status,
                        &Status { pid: std::process::id(), snapshot: counters.snapshot(), outcome: None },
                    );
                    if over.wait(STATUS_EVERY) {
                        break;
                    }
                }
            });
        }
        let carried = match files.peer {
            Some(peer) => carry_over(order, files.journal, files.scratch, &counters, stop, peer),
            None => carry_out(order, files.journal, files.scratch, &counters, stop),
        };
        has_parted = match carried {
            Err(trouble) if stop.is_set() || trouble.class == Class::Cancelled => false,
            Err(trouble) if is_mirroring && trouble.class != Class::Capacity => {
                counters.warn(trouble.text);
                true
            }
            Err(trouble) => {
                counters.failed(&trouble);
                false
            }
            Ok(()) => false,
        };
        over.set();
    });
    let mut status = conclude(&counters, stop);
    if let Some(outcome) = status.outcome.as_mut().filter(|_| has_parted) {
        outcome.ending = Ending::Parted;
    }
    if let Some(file) = files.status.as_ref().filter(|_| order.commands.is_empty()) {
        write_last(file, &status);
    }
    status
}

/// On a full disk with as much of what went wrong as there is room for.
fn write_last(file: &File, status: &Status) {
    let mut shorter = None;
    let mut n_told = progress::ERRORS_KEPT;
    while write_status(file, shorter.as_ref().unwrap_or(status)).is_err() && n_told > 1 {
        n_told /= 2;
        let Some(outcome) = &mut shorter.get_or_insert_with(|| status.clone()).outcome else { break };
        outcome.errors.truncate(n_told);
        outcome.warnings.truncate(n_told);
    }
    let _ = file.sync_data();
}

/// From another node that has it all.
fn carry_over(
    order: &Order,
    journal: File,
    scratch: File,
    counters: &Counters,
    stop: &Stop,
    peer: UnixStream,
) -> Result<(), Trouble> {
    let fences = Fences::open(&order.fences)
        .map_err(|(path, errno)| Trouble::of(errno, Side::InsideDestination, "open", &path))?;
    let kept = Journal::open(journal, order)
        .map_err(|error| Trouble::permanent(format!("cannot use the journal: {error}")))?;
    let work = Work::new(order, &fences, counters, stop, kept, plan::Writer::new(scratch).finish());
    mirror::receive(&work, peer)?;
    sums::check(&work);
    counters.enter(Phase::Finishing);
    finish::finish(&work);
    Ok(())
}

fn carry_out(order: &Order, journal: File, scratch: File, counters: &Counters, stop: &Stop) -> Result<(), Trouble> {
    let fences = Fences::open(&order.fences)
        .map_err(|(path, errno)| Trouble::of(errno, Side::InsideDestination, "open", &path))?;
    let (mut journal, past) = Journal::open(journal, order)
        .map_err(|error| Trouble::permanent(format!("cannot use the journal: {error}")))?;
    let plan = walk::plan(order, &fences, counters, stop, scratch, &mut journal, &past)?;
    counters.enter(Phase::Copying);
    let work = Work::new(order, &fences, counters, stop, (journal, past), plan);
    work.run();
    if !stop.is_set() {
        sums::check(&work);
        counters.enter(Phase::Finishing);
        finish::finish(&work);
    }
    Ok(())
}

fn conclude(counters: &Counters, stop: &Stop) -> Status {
    let snapshot = counters.snapshot();
    let errors = std::mem::take(&mut *counters.errors.lock().expect("no panic while held"));
    let is_whole = snapshot.files_done == snapshot.files_total;
    let ending = match (stop.is_set(), errors.n_all) {
        (false, 0) => Ending::Done,
        (false, _) => Ending::Failed,
        // Called off when it was already over.
        (true, 0) if is_whole && snapshot.phase == Phase::Finishing => Ending::Done,
        (true, _) => Ending::Cancelled,
    };
    let warnings = std::mem::take(&mut *counters.warnings.lock().expect("no panic while held"));
    let outcome = Outcome { ending, errors: errors.kept, n_errors: errors.n_all, warnings };
    Status { pid: std::process::id(), snapshot, outcome: Some(outcome) }
}
