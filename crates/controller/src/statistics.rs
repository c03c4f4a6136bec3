//! What the controller has done since it started, or since somebody set the counters back. Nothing here is kept.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::diagnosis::{Calls, Cycles, Diagnosis, JobCounts, Placements};
use model::plan::Grant;
use model::{Event, JobState, Phase, Plan, Timestamp};
use state::Cluster;

use crate::buffer_metrics::Moved;
use crate::leader::mail_queue::MailTally;

#[derive(Default)]
pub struct Statistics {
    since: AtomicU64,
    entries: AtomicU64,
    jobs: Mutex<JobCounts>,
    cycles: Mutex<Cycles>,
    placements: Mutex<Placements>,
    by_call: Mutex<BTreeMap<String, (u64, u64)>>,
    by_user: Mutex<BTreeMap<u32, (u64, u64)>>,
    moved: Mutex<Moved>,
    pub mails: Arc<MailTally>,
    n_put_off: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while holding this lock")
}

impl Statistics {
    /// Counting begins anew.
    pub fn reset(&self, now: Timestamp) {
        self.since.store(now.0, Relaxed);
        self.entries.store(0, Relaxed);
        *lock(&self.jobs) = JobCounts::default();
        let mut cycles = lock(&self.cycles);
        // Since the start, whatever is set back.
        *cycles = Cycles { n_backfilled_ever: cycles.n_backfilled_ever, ..Default::default() };
        *lock(&self.placements) = Placements::default();
        lock(&self.by_call).clear();
        lock(&self.by_user).clear();
        self.mails.reset();
        self.n_put_off.store(0, Relaxed);
    }

    /// One entry of the log was applied, with these events.
    pub fn applied(&self, cluster: &Cluster, events: &[Event]) {
        self.entries.fetch_add(1, Relaxed);
        if events.is_empty() {
            return;
        }
        if events.iter().any(|event| matches!(event, Event::BufferChanged { .. })) {
            lock(&self.moved).applied(cluster, events);
        }
        let mut jobs = lock(&self.jobs);
        for event in events {
            match event {
                Event::JobSubmitted { .. } => jobs.submitted += 1,
                Event::JobChanged { to: Phase::Starting, .. } => jobs.started += 1,
                Event::JobChanged { job, to: Phase::Done, .. } => match cluster.job(*job).map(|job| job.base_state()) {
                    Some(JobState::Completed) => jobs.completed += 1,
                    Some(JobState::Cancelled) => jobs.canceled += 1,
                    Some(_) => jobs.failed += 1,
                    None => (),
                },
                _ => (),
            }
        }
    }

    /// What has become of data.
    pub fn moved(&self) -> Moved {
        lock(&self.moved).clone()
    }

    /// The scheduler has looked at the queue.
    pub fn planned(&self, now: Timestamp, took: Duration, n_queued: usize, n_backfilled: u64) {
        let mut cycles = lock(&self.cycles);
        let micros = took.as_micros() as u64;
        cycles.n_cycles += 1;
        cycles.last_micros = micros;
        cycles.max_micros = cycles.max_micros.max(micros);
        cycles.total_micros += micros;
        cycles.last_at = Some(now);
        cycles.last_queue_length = n_queued as u64;
        cycles.total_queue_length += n_queued as u64;
        cycles.n_backfilled += n_backfilled;
        cycles.n_backfilled_ever += n_backfilled;
    }

    /// Jobs get these nodes.
    pub fn placed(&self, cluster: &Cluster, plan: &Plan) {
        if cluster.config().topologies.is_empty() || plan.starts.is_empty() {
            return;
        }
        let mut placements = lock(&self.placements);
        for start in &plan.starts {
            let partition = cluster.config().partition(&start.partition);
            let (Some(job), Some(partition)) = (cluster.job(start.job), partition) else { continue };
            let Some(shape) = state::shape_for(cluster, partition, &job.spec.size) else { continue };
            let node = |grant: &Grant| cluster.network().find(grant.node.as_str());
            let units: BTreeSet<u32> = start.nodes.iter().filter_map(|grant| shape.unit_of(node(grant)?)).collect();
            placements.n_placed += 1;
            placements.n_units += units.len() as u64;
            placements.n_units_fewest += u64::from(shape.fewest_units(start.nodes.len() as u32));
        }
    }

    /// A call came too soon after others of its user.
    pub fn put_off(&self) {
        self.n_put_off.fetch_add(1, Relaxed);
    }

    pub fn n_put_off(&self) -> u64 {
        self.n_put_off.load(Relaxed)
    }

    /// A call was answered.
    pub fn answered(&self, call: &str, uid: Option<u32>, took: Duration) {
        let micros = took.as_micros() as u64;
        let count = |entry: &mut (u64, u64)| {
            entry.0 += 1;
            entry.1 += micros;
        };
        let mut by_call = lock(&self.by_call);
        match by_call.get_mut(call) {
            Some(entry) => count(entry),
            None => count(by_call.entry(call.to_string()).or_default()),
        }
        drop(by_call);
        if let Some(uid) = uid {
            count(lock(&self.by_user).entry(uid).or_default());
        }
    }

    fn placements(&self, cluster: &Cluster) -> Placements {
        let shape = cluster.network().shape("").filter(|shape| shape.n_units() > 0);
        let Some(shape) = shape else { return Placements::default() };
        let is_free = |node: u32| {
            let node = cluster.node(cluster.network().name(node).as_str());
            node.is_some_and(|node| node.is_usable() && node.jobs.is_empty() && node.blocked_by.is_none())
        };
        let (plugin, fragmentation) = (shape.kind().plugin().to_string(), shape.fragmentation(is_free));
        Placements { plugin, fragmentation, ..lock(&self.placements).clone() }
    }

    pub fn diagnosis(
        &self,
        cluster: &Cluster,
        now: Timestamp,
        n_agents: usize,
        names: impl Fn(u32) -> String,
    ) -> Diagnosis {
        let calls = |name: String, id: u32, (count, total_micros): &(u64, u64)| Calls {
            name,
            id,
            count: *count,
            total_micros: *total_micros,
        };
        let mut diagnosis = Diagnosis {
            now,
            since: Timestamp(self.since.load(Relaxed)),
            n_agents: n_agents as u32,
            n_entries: self.entries.load(Relaxed),
            jobs: lock(&self.jobs).clone(),
            cycles: lock(&self.cycles).clone(),
            placements: self.placements(cluster),
            mails: self.mails.counts(),
            n_limited: self.n_put_off(),
            by_call: lock(&self.by_call).iter().map(|(name, both)| calls(name.clone(), 0, both)).collect(),
            by_user: lock(&self.by_user).iter().map(|(uid, both)| calls(names(*uid), *uid, both)).collect(),
            ..Default::default()
        };
        for job in cluster.jobs() {
            match job.phase {
                Phase::Pending => diagnosis.n_pending += job.n_tasks_waiting(),
                Phase::Starting | Phase::Running => diagnosis.n_running += 1,
                Phase::Suspended => diagnosis.n_suspended += 1,
                Phase::Ending | Phase::Finishing | Phase::Done => (),
            }
        }
        diagnosis
    }
}
