//! Jobs lie all over the memory, and most of a long queue is only glanced at: waiting for memory is most of the work. So what a glance
//! needs of the next few is asked for at once.
use std::hint::black_box;
use std::sync::Arc;

use model::Job;

use crate::allowance::Allowance;
use crate::pick;

const N_AHEAD: usize = 16;

pub(crate) struct Ahead<'a, I> {
    jobs: I,
    /// The last is the next.
    fetched: Vec<&'a Job>,
}

impl<'a, I: Iterator<Item = &'a Arc<Job>>> Ahead<'a, I> {
    pub fn new(jobs: I) -> Self {
        Ahead { jobs, fetched: Vec::with_capacity(N_AHEAD) }
    }

    /// The same jobs, in the same order.
    pub fn next(&mut self, allowance: &Allowance) -> Option<&'a Job> {
        if self.fetched.is_empty() {
            self.fetched.extend(self.jobs.by_ref().take(N_AHEAD).map(|job| &**job));
            fetch(&self.fetched, allowance);
            self.fetched.reverse();
        }
        self.fetched.pop()
    }
}

/// Step by step: where one thing lies is known when another has come.
fn fetch(jobs: &[&Job], allowance: &Allowance) {
    let specs = || jobs.iter().map(|job| &job.spec);
    for job in jobs {
        black_box((job.reason, job.reason_text.len(), job.expected_start, job.association, job.het.is_some()));
    }
    for spec in specs() {
        let size = &spec.size;
        black_box((pick::least_cpus(size, size.node_bounds().0), size.memory, size.network.n_switches));
        black_box((spec.licenses.is_empty(), spec.reservations.len(), spec.uid, spec.time_limit));
    }
    jobs.iter().for_each(|job| allowance.fetch_association(job));
    for spec in specs() {
        black_box((spec.partitions.first().map(String::len), spec.qos.bytes().next()));
    }
    jobs.iter().for_each(|job| allowance.fetch_user(job));
    for spec in specs() {
        black_box(spec.partitions.first().and_then(|name| name.bytes().next()));
    }
}
