//! Who next. The state keeps eligible jobs in order of importance; here an array's record becomes its tasks, as far as
//! the array's limit lets them start.
use std::collections::BTreeMap;

use model::{Job, JobId};
use state::Cluster;

pub(crate) struct Order<'a> {
    cluster: &'a Cluster,
    /// Tasks started by this plan, by array.
    n_started: BTreeMap<JobId, u32>,
}

impl<'a> Order<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Order { cluster, n_started: BTreeMap::new() }
    }

    /// What may start of the job now: itself, or tasks by number. Never walks further than it is asked to.
    pub fn tasks(&self, job: &'a Job) -> Box<dyn Iterator<Item = Option<u32>> + 'a> {
        let may_start = self.n_may_start(job);
        match &job.waiting_tasks {
            None => Box::new(std::iter::repeat_n(None, may_start.min(1))),
            Some(tasks) => Box::new(tasks.iter().map(Some).take(may_start)),
        }
    }

    pub fn started(&mut self, job: &Job) {
        if let Some(array) = job.array_id() {
            *self.n_started.entry(array).or_default() += 1;
        }
    }

    fn n_may_start(&self, job: &Job) -> usize {
        let Some(array) = job.array_id().and_then(|array| self.cluster.array(array)) else { return 1 };
        let started = self.n_started.get(&array.id).copied().unwrap_or(0);
        array.n_may_start().saturating_sub(started) as usize
    }
}
