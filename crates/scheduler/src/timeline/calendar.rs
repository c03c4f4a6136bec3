//! On which nodes something ends, in the order of time, read no further than anybody looks.
use std::collections::BTreeMap;

use model::{Job, JobId, NodeName};

use super::Slot;
use crate::room::SpotId;

/// Jobs of which the nodes are read at once.
const N_READ_AT_ONCE: usize = 128;

pub(crate) struct Calendar<'a> {
    /// All that run, the first to end first.
    jobs: Vec<(Slot, &'a Job)>,
    n_read: usize,
    /// Nodes that are closed as long as a job runs elsewhere.
    closed: BTreeMap<JobId, Vec<SpotId>>,
    /// Of the jobs that have been read.
    pub ends: Vec<(Slot, SpotId)>,
}

impl<'a> Calendar<'a> {
    pub fn new(mut jobs: Vec<(Slot, &'a Job)>, closed: BTreeMap<JobId, Vec<SpotId>>) -> Self {
        jobs.sort_unstable_by_key(|(slot, job)| (*slot, job.id));
        Calendar { jobs, n_read: 0, closed, ends: Vec::new() }
    }

    /// The ends that come next; none when all are known.
    pub fn read_on(&mut self, find: impl Fn(&NodeName) -> Option<SpotId>) -> &[(Slot, SpotId)] {
        let n_known = self.ends.len();
        while self.ends.len() == n_known && self.n_read < self.jobs.len() {
            // As many again as are known: a search that reaches far reads seldom.
            let until = self.jobs.len().min(self.n_read * 2 + N_READ_AT_ONCE);
            for (slot, job) in &self.jobs[self.n_read..until] {
                let nodes = job.allocation.names().filter_map(&find);
                let closed = self.closed.get(&job.id).into_iter().flatten().copied();
                self.ends.extend(nodes.chain(closed).map(|spot| (*slot, spot)));
            }
            self.n_read = until;
        }
        &self.ends[n_known..]
    }
}
