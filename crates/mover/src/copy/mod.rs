//! The copying: workers that take batches of small files from the plan, and chunks of large ones from each other.
pub mod batch;
pub mod bytes;
mod large;
mod retry;
pub mod target;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::attributes;
use crate::fence::Fences;
use crate::journal::{DoneFile, Journal, Past};
use crate::order::Order;
use crate::pace::{Bandwidth, Stop};
use crate::plan::{Batch, Item, Plan, Record, Where};
use crate::progress::Counters;
use crate::trouble::{Side, Trouble, shown};
use large::Large;
use target::Target;

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
        std::thread::scope(|scope| {
            for _ in 1..self.n_workers() {
                // One less than wished for is slower, not wrong.
                let _ = std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, || self.labour());
            }
            self.labour();
        });
    }

    pub fn n_workers(&self) -> u32 {
        self.order.n_workers.unwrap_or_else(usual_workers).clamp(1, 256)
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

    /// Gives the new file what it has besides its bytes, and its name.
    fn commit(
        &self,
        batch: &Batch,
        item: &Item,
        source: &OwnedFd,
        target: &mut Target,
        stat: &Stat,
    ) -> Result<(), Trouble> {
        let target_trouble = |errno| batch::target_trouble(self, &batch.target, item.destination(), errno);
        if self.order.transfers[batch.transfer as usize].with_attributes {
            let path = || self.fences.path_of(&batch.source, &item.source);
            let found = attributes::read(source)
                .map_err(|errno| Trouble::of(errno, Side::Source, "read the attributes of", &path()))?;
            attributes::write(&target.fd, &found).map_err(|errno| match errno {
                Errno::OPNOTSUPP => Trouble::permanent(format!(
                    "{} has extended attributes, which its destination cannot have",
                    shown(&path())
                )),
                errno => target_trouble(errno),
            })?;
        }
        target.commit(stat).map_err(target_trouble)
    }

    pub fn note_done(&self, transfer: u32, target: &Where, files: &mut Vec<DoneFile>) {
        let noted = self.journal.lock().expect("no panic while held").done(transfer, target, files);
        files.clear();
        self.counters.check_journal(noted);
    }

    pub fn is_unread(&self, target: &Where) -> bool {
        target.fence.is_some_and(|fence| self.order.fences[fence as usize].is_unread)
    }
}

pub fn usual_workers() -> u32 {
    let n_cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    (2 * n_cpus).min(16)
}
