//! The copying: workers that take batches of small files from the plan, and chunks of large ones from each other.
mod batch;
pub mod bytes;
mod large;
mod retry;
pub mod target;

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::fence::Fences;
use crate::journal::{DoneFile, Journal, Past};
use crate::order::Order;
use crate::pace::{Bandwidth, Stop};
use crate::plan::{Plan, Record, Where};
use crate::progress::Counters;
use crate::trouble::Trouble;
use large::Large;

/// What the workers share.
pub struct Work<'a> {
    pub order: &'a Order,
    pub fences: &'a Fences,
    pub counters: &'a Counters,
    pub stop: &'a Stop,
    pub bandwidth: Bandwidth,
    pub past: Past,
    pub journal: Mutex<Journal>,
    pub plan: Mutex<Plan>,
    large: Mutex<VecDeque<Arc<Large>>>,
    /// Until they are seen not to, on these file systems.
    clones_work: AtomicBool,
    ranges_work: AtomicBool,
}

impl<'a> Work<'a> {
    pub fn new(
        order: &'a Order,
        fences: &'a Fences,
        counters: &'a Counters,
        stop: &'a Stop,
        (journal, past): (Journal, Past),
        plan: Plan,
    ) -> Self {
        Work {
            order,
            fences,
            counters,
            stop,
            bandwidth: Bandwidth::new(order.bytes_per_sec),
            past,
            journal: Mutex::new(journal),
            plan: Mutex::new(plan),
            large: Mutex::default(),
            clones_work: AtomicBool::new(true),
            ranges_work: AtomicBool::new(true),
        }
    }

    /// Until all is copied, has failed, or is called off.
    pub fn run(&self) {
        let n_workers = self.order.n_workers.unwrap_or_else(usual_workers).clamp(1, 256);
        std::thread::scope(|scope| {
            for _ in 1..n_workers {
                // One less than wished for is slower, not wrong.
                let _ = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, || self.labour());
            }
            self.labour();
        });
    }

    fn labour(&self) {
        let mut buffer = vec![0; bytes::BLOCK_BYTES];
        while !self.stop.is_set() && !self.is_hopeless() {
            if let Some((large, index)) = self.next_chunk() {
                large.copy_chunk(self, index, &mut buffer);
                continue;
            }
            let record = self.plan.lock().expect("no panic while held").next();
            match record {
                Ok(Some(Record::Batch(batch))) if batch.items[0].size_bytes > self.order.split_bytes => {
                    large::begin(self, &batch, &mut buffer);
                }
                Ok(Some(Record::Batch(batch))) => batch::copy(self, &batch, &mut buffer),
                Ok(Some(Record::Directory(_))) => {}
                Ok(None) => return,
                Err(error) => {
                    return self.counters.failed(&Trouble::permanent(format!("cannot read the plan: {error}")));
                }
            }
        }
    }

    /// A full fence stays full: the other files would fail alike.
    fn is_hopeless(&self) -> bool {
        self.counters.errors.lock().expect("no panic while held").has_full_fence
    }

    fn next_chunk(&self) -> Option<(Arc<Large>, u64)> {
        let mut queue = self.large.lock().expect("no panic while held");
        loop {
            let large = queue.front()?;
            if let Some(index) = large.take() {
                return Some((large.clone(), index));
            }
            queue.pop_front();
        }
    }

    fn note_done(&self, transfer: u32, target: &Where, files: &mut Vec<DoneFile>) {
        let noted = self.journal.lock().expect("no panic while held").done(transfer, target, files);
        files.clear();
        self.check_journal(noted);
    }

    /// Without a journal a later mover copies again what this one has copied; that is no reason to fail.
    fn check_journal(&self, noted: std::io::Result<()>) {
        if let Err(error) = noted {
            self.counters.warn(format!("cannot write the journal: {error}"));
        }
    }

    fn is_unread(&self, target: &Where) -> bool {
        target.fence.is_some_and(|fence| self.order.fences[fence as usize].is_unread)
    }
}

fn usual_workers() -> u32 {
    let n_cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    (2 * n_cpus).min(16)
}
