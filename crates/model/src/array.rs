//! A job array: what its tasks have in common. Tasks get records of their own when they start.
use std::collections::{BTreeMap, BTreeSet};

use crate::JobId;
use crate::agent::ArrayFacts;

record! {
    pub struct Array {
        pub id: JobId,
        /// At most this many tasks run at once.
        pub limit: Option<u32>,
        /// Records that stand for tasks which have not started.
        pub waiting: BTreeSet<JobId>,
        /// Tasks with a record of their own, until that record is forgotten.
        pub tasks: BTreeMap<u32, JobId>,
        /// Tasks that hold nodes.
        pub n_live: u32,
        /// Tasks that are over, and how many of them did not complete well.
        pub n_over: u64,
        pub n_failed: u64,
        /// Lowest, highest, stride and count of the task numbers, for the tasks' environment.
        pub min: u32,
        pub max: u32,
        pub stride: u32,
        pub count: u32,
    }
}

impl Array {
    pub fn facts(&self, task: u32) -> ArrayFacts {
        let Array { id, min, max, stride, count, .. } = *self;
        ArrayFacts { array: id, task, min, max, stride, count }
    }

    /// How many more tasks may start now.
    pub fn n_may_start(&self) -> u32 {
        self.limit.map_or(u32::MAX, |limit| limit.saturating_sub(self.n_live))
    }

    /// Those that wait, run, or are not forgotten yet.
    pub fn n_records(&self) -> usize {
        self.waiting.len() + self.tasks.len()
    }

    pub fn is_over(&self) -> bool {
        self.n_over >= u64::from(self.count)
    }
}
