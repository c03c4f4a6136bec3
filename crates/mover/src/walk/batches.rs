//! The files that one walker finds, gathered into batches of one directory.
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::Stat;

use super::{Ground, Outcome};
use crate::plan::{Batch, Follow, Item, Record, Where};
use crate::trouble::Trouble;

const BATCH_FILES: usize = 256;
const BATCH_BYTES: u64 = 16 << 20;

pub struct Batches<'a, 's> {
    ground: &'s Ground<'a>,
    batch: Batch,
    batch_bytes: u64,
}

impl<'a, 's> Batches<'a, 's> {
    pub fn new(ground: &'s Ground<'a>) -> Self {
        Batches { ground, batch: Batch::default(), batch_bytes: 0 }
    }

    /// Following files are of this directory.
    pub fn start(&mut self, transfer: u32, source: Where, target: Where, follow: Follow) -> Outcome {
        let is_same = self.batch.transfer == transfer
            && self.batch.source == source
            && self.batch.target == target
            && self.batch.follow == follow;
        if !is_same {
            self.flush()?;
            self.batch = Batch { transfer, source, target, follow, items: Vec::new() };
        }
        Ok(())
    }

    pub fn add(&mut self, item: Item, stat: &Stat) -> Outcome {
        let counters = self.ground.counters;
        counters.files_total.fetch_add(1, Relaxed);
        counters.bytes_total.fetch_add(item.size_bytes, Relaxed);
        if let Some(fence) = self.batch.target.fence {
            let (bytes, files) = &self.ground.needs[fence as usize];
            bytes.fetch_add(item.size_bytes.min(stat.st_blocks as u64 * 512), Relaxed);
            files.fetch_add(1, Relaxed);
        }
        let is_large = item.size_bytes > self.ground.order.split_bytes;
        if is_large {
            self.flush()?;
        }
        self.batch_bytes += item.size_bytes;
        self.batch.items.push(item);
        if is_large || self.batch.items.len() >= BATCH_FILES || self.batch_bytes >= BATCH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    pub fn flush(&mut self) -> Outcome {
        if self.batch.items.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let record = Record::Batch(batch);
        self.write(&record)?;
        let Record::Batch(mut batch) = record else { unreachable!("just made") };
        batch.items.clear();
        self.batch = batch;
        self.batch_bytes = 0;
        Ok(())
    }

    pub fn write(&mut self, record: &Record) -> Outcome {
        let mut plan = self.ground.plan.lock().expect("no panic while held");
        plan.add(record).map_err(|error| Trouble::permanent(format!("cannot write the plan: {error}")))
    }
}
