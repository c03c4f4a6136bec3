//! A large file: its part is written by many workers at once, chunk by chunk, and a killed mover's chunks are kept.
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use rustix::fs::{self, Stat};

use super::Work;
use super::batch::{self, Sides, fail, fault_trouble, mismatch, target_trouble, version_of};
use super::bytes::{Copy, Fault, lengthen, read_back};
use super::target::Target;
use crate::hash;
use crate::journal::{self, DoneFile};
use crate::order::Verify;
use crate::plan::{Batch, Item};
use crate::trouble::{Class, Trouble};

pub struct Large {
    batch: Batch,
    source: OwnedFd,
    before: Stat,
    key: u64,
    /// Taken by whoever finishes the file.
    target: Mutex<Option<Target>>,
    part: OwnedFd,
    /// Who writes to the part.
    turn: Mutex<()>,
    n_chunks: u64,
    next: AtomicU64,
    n_left: AtomicU64,
    /// Known beforehand for chunks of an earlier mover.
    chunks: Mutex<Vec<Option<u128>>>,
    trouble: Mutex<Option<Trouble>>,
    counted: AtomicU64,
    n_tries: u32,
}

/// Opens both ends and lets every worker help.
pub fn begin(work: &Work, batch: &Batch, buffer: &mut [u8]) {
    let begun = start(work, batch, 0, buffer);
    match begun.or_else(|trouble| work.persist(trouble, || start(work, batch, 0, buffer))) {
        Ok(()) => {}
        Err(trouble) => fail(work, batch, &trouble),
    }
}

fn start(work: &Work, batch: &Batch, n_tries: u32, buffer: &mut [u8]) -> Result<(), Trouble> {
    let item = &batch.items[0];
    let sides = batch::open_sides(work, batch)?;
    let (source, before) = batch::open_source(work, batch, item, &sides)?;
    let size_bytes = before.st_size as u64;
    if batch::is_done(work, batch, item, &sides, &before, buffer) {
        work.counters.bytes_done.fetch_add(size_bytes, Relaxed);
        work.counters.files_done.fetch_add(1, Relaxed);
        work.counters.files_resumed.fetch_add(1, Relaxed);
        return Ok(());
    }
    let noted = work.journal.lock().expect("no panic while held").begun(&batch.target);
    work.counters.check_journal(noted);
    let key = journal::key(&batch.target, item.destination(), &version_of(&before));
    let n_chunks = size_bytes.div_ceil(work.order.chunk_bytes).max(1);
    let target_trouble = |errno| target_trouble(work, &batch.target, item.destination(), errno);
    let (target, chunks) = open_part(work, &sides, item, key, n_chunks, size_bytes, n_tries).map_err(target_trouble)?;
    if work.clones_work.load(Relaxed) {
        match fs::ioctl_ficlone(&target.fd, &source) {
            Ok(()) => return finish_clone(work, batch, &source, target, &before),
            Err(_) => work.clones_work.store(false, Relaxed),
        }
    }
    lengthen(target.fd.as_fd(), &before).map_err(target_trouble)?;
    let part = target.fd.try_clone().map_err(|error| Trouble::new(Class::Transient, error.to_string()))?;
    let large = Arc::new(Large {
        batch: batch.clone(),
        source,
        before,
        key,
        target: Mutex::new(Some(target)),
        part,
        turn: Mutex::default(),
        n_chunks,
        next: AtomicU64::new(0),
        n_left: AtomicU64::new(n_chunks),
        chunks: Mutex::new(chunks),
        trouble: Mutex::new(None),
        counted: AtomicU64::new(0),
        n_tries,
    });
    work.large.lock().expect("no panic while held").push_back(large);
    Ok(())
}

type Chunks = Vec<Option<u128>>;

/// The part of an earlier mover with what it holds, or a new one.
fn open_part(
    work: &Work,
    sides: &Sides,
    item: &Item,
    key: u64,
    n_chunks: u64,
    size_bytes: u64,
    n_tries: u32,
) -> rustix::io::Result<(Target, Chunks)> {
    let mut chunks = vec![None; n_chunks as usize];
    let known = work.past.chunks_of(key);
    let name = item.destination();
    if !known.is_empty()
        && n_tries == 0
        && let Some(target) = Target::resume(&sides.target, name, &work.order.tag)
        && fs::fstat(&target.fd).is_ok_and(|stat| stat.st_size as u64 == size_bytes)
    {
        for (index, hash) in known {
            if let Some(chunk) = chunks.get_mut(*index as usize) {
                *chunk = Some(*hash);
            }
        }
        return Ok((target, chunks));
    }
    Ok((Target::create(&sides.target, name, &work.order.tag, false)?, chunks))
}

fn finish_clone(
    work: &Work,
    batch: &Batch,
    source: &OwnedFd,
    mut target: Target,
    before: &Stat,
) -> Result<(), Trouble> {
    let name = batch.items[0].destination();
    work.commit(batch, &batch.items[0], source, &mut target, before)?;
    work.counters.bytes_done.fetch_add(before.st_size as u64, Relaxed);
    work.counters.files_done.fetch_add(1, Relaxed);
    let mut done = vec![DoneFile { name: name.to_vec(), version: version_of(before), hash: None }];
    work.note_done(batch.transfer, &batch.target, &mut done);
    Ok(())
}

impl Large {
    pub fn take(&self) -> Option<u64> {
        let index = self.next.fetch_add(1, SeqCst);
        (index < self.n_chunks).then_some(index)
    }

    fn item(&self) -> &Item {
        &self.batch.items[0]
    }

    pub fn copy_chunk(self: Arc<Self>, work: &Work, index: u64, buffer: &mut [u8]) {
        let is_given_up = self.trouble.lock().expect("no panic while held").is_some();
        if !is_given_up {
            let copied = self.try_chunk(work, index, buffer);
            let copied = copied.or_else(|trouble| work.persist(trouble, || self.try_chunk(work, index, buffer)));
            if let Err(trouble) = copied {
                self.trouble.lock().expect("no panic while held").get_or_insert(trouble);
            }
        }
        if self.n_left.fetch_sub(1, SeqCst) == 1 {
            self.finish(work, buffer);
        }
    }

    fn try_chunk(&self, work: &Work, index: u64, buffer: &mut [u8]) -> Result<(), Trouble> {
        let start = index * work.order.chunk_bytes;
        let length = work.order.chunk_bytes.min(self.before.st_size as u64 - start);
        let trouble = |fault: Fault| fault_trouble(work, &self.batch, self.item(), fault);
        if self.is_kept(work, index, start, length, buffer) {
            self.counted.fetch_add(length, Relaxed);
            work.counters.bytes_done.fetch_add(length, Relaxed);
            return Ok(());
        }
        let copy = Copy::new(work, self.source.as_fd(), self.part.as_fd(), &self.before);
        let mut copy = copy.in_turn(&self.turn, index);
        let filled = copy.range(start, length, buffer);
        let counted = copy.counted;
        let checked = filled.map_err(trouble).and_then(|hash| {
            if let (Verify::Full, Some(hash)) = (work.order.verify, hash) {
                let there = read_back(work, &self.part, start, length, buffer, true).map_err(trouble)?;
                if there != hash {
                    return Err(mismatch(work, &self.batch.target, self.item().destination()));
                }
            }
            Ok(hash)
        });
        match checked {
            Ok(hash) => {
                self.counted.fetch_add(counted, Relaxed);
                self.chunks.lock().expect("no panic while held")[index as usize] = hash;
                let noted = work.journal.lock().expect("no panic while held").chunk(self.key, index, hash);
                work.counters.check_journal(noted);
                Ok(())
            }
            Err(trouble) => {
                work.counters.bytes_done.fetch_sub(counted, Relaxed);
                Err(trouble)
            }
        }
    }

    /// An earlier mover wrote it. After a crash of the machine, only if it reads as it should.
    fn is_kept(&self, work: &Work, index: u64, start: u64, length: u64, buffer: &mut [u8]) -> bool {
        let known = self.chunks.lock().expect("no panic while held")[index as usize];
        let Some(hash) = known else { return false };
        if !work.past.is_doubtful {
            return true;
        }
        work.order.verify.hashes()
            && read_back(work, &self.part, start, length, buffer, false).is_ok_and(|there| there == hash)
    }

    fn finish(&self, work: &Work, buffer: &mut [u8]) {
        let Some(mut target) = self.target.lock().expect("no panic while held").take() else { return };
        let name = self.item().destination();
        let ended = match self.trouble.lock().expect("no panic while held").take() {
            Some(trouble) => Err(trouble),
            None => batch::check_stable(work, &self.batch, self.item(), &self.source, &self.before),
        };
        let ended = ended.and_then(|()| work.commit(&self.batch, self.item(), &self.source, &mut target, &self.before));
        match ended {
            Ok(()) => {
                let chunks: Vec<u128> =
                    self.chunks.lock().expect("no panic while held").iter().copied().flatten().collect();
                let hash = work.order.verify.hashes().then(|| hash::combine(&chunks));
                let mut done = vec![DoneFile { name: name.to_vec(), version: version_of(&self.before), hash }];
                work.note_done(self.batch.transfer, &self.batch.target, &mut done);
                work.counters.files_done.fetch_add(1, Relaxed);
            }
            Err(trouble) => {
                drop(target);
                work.counters.bytes_done.fetch_sub(self.counted.load(Relaxed), Relaxed);
                self.begin_again(work, trouble, buffer);
            }
        }
    }

    /// Only a source that has changed makes a second copy of all of it worthwhile.
    fn begin_again(&self, work: &Work, trouble: Trouble, buffer: &mut [u8]) {
        if trouble.class != Class::Data || self.n_tries >= trouble.class.retries() {
            return fail(work, &self.batch, &trouble);
        }
        work.counters.retries.fetch_add(1, Relaxed);
        if let Err(trouble) = start(work, &self.batch, self.n_tries + 1, buffer) {
            fail(work, &self.batch, &trouble);
        }
    }
}
