//! What history has still to record. Every change is numbered; the recorder says up to which number it has written,
//! so a change that comes in between is written once more and nothing is ever missed.
use std::sync::Arc;

use imbl::OrdMap;
use model::history::{PastRun, Subject};
use model::{Event, JobId, Step, StepId};
use serde::{Deserialize, Serialize};

use crate::Cluster;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    last: u64,
    changed: OrdMap<u64, Subject>,
    numbers: OrdMap<Subject, u64>,
    /// Runs that were followed by others, until they are recorded.
    past: OrdMap<(JobId, u32), Arc<PastRun>>,
}

impl History {
    /// The number of the latest change.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// What is not recorded, the oldest change first.
    pub fn unrecorded(&self) -> impl Iterator<Item = Subject> {
        self.changed.values().copied()
    }

    /// The latest change before the first that is not recorded.
    pub fn unrecorded_from(&self) -> u64 {
        self.changed.get_min().map_or(self.last, |(number, _)| number - 1)
    }

    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    pub fn past_run(&self, job: JobId, attempt: u32) -> Option<&Arc<PastRun>> {
        self.past.get(&(job, attempt))
    }

    fn add(&mut self, subject: Subject) {
        self.last += 1;
        if let Some(before) = self.numbers.insert(subject, self.last) {
            self.changed.remove(&before);
        }
        self.changed.insert(self.last, subject);
    }

    fn remove(&mut self, subject: Subject) {
        if let Some(number) = self.numbers.remove(&subject) {
            self.changed.remove(&number);
        }
    }

    /// Something of the job's present run is not recorded.
    pub(crate) fn awaits(&self, job: JobId) -> bool {
        self.numbers.contains_key(&Subject::Job(job)) || self.steps_of(job).next().is_some()
    }

    fn steps_of(&self, job: JobId) -> impl Iterator<Item = Subject> {
        let range = Subject::Step(job, StepId::Number(0))..=Subject::Step(job, StepId::Batch);
        self.numbers.range(range).map(|(subject, _)| *subject)
    }
}

/// Notes what an event is about.
pub(crate) fn note(cluster: &mut Cluster, event: &Event) {
    if !cluster.config.accounting.records {
        return;
    }
    match event {
        Event::JobChanged { job, .. } | Event::JobSubmitted { job, .. } | Event::JobUpdated { job, .. } => {
            changed(cluster, *job);
        }
        // The summary of what was moved, and what went wrong.
        Event::BufferChanged { job, .. } => changed(cluster, *job),
        Event::StepChanged { job, step, .. } => cluster.history.add(Subject::Step(*job, *step)),
        Event::JobGone { .. }
        | Event::NodeChanged { .. }
        | Event::Reconfigured { .. }
        | Event::TimeUsed { .. }
        | Event::ReservationChanged { .. } => (),
    }
}

/// The job's row is no longer what was recorded.
pub(crate) fn changed(cluster: &mut Cluster, job: JobId) {
    if cluster.config.accounting.records {
        cluster.history.add(Subject::Job(job));
    }
}

/// The job's run is over and another will follow: it becomes a row of its own.
pub(crate) fn keep_run(cluster: &mut Cluster, id: JobId) {
    if !cluster.config.accounting.records {
        return;
    }
    let job = (*cluster.jobs[&id]).clone();
    let steps: Vec<Step> = cluster.steps_of(id).map(|step| (**step).clone()).collect();
    let unrecorded: Vec<Subject> = cluster.history.steps_of(id).collect();
    let attempt = job.attempt;
    let history = &mut cluster.history;
    unrecorded.into_iter().for_each(|step| history.remove(step));
    history.past.insert((id, attempt), Arc::new(PastRun { job, steps }));
    history.add(Subject::Past(id, attempt));
}

/// Everything up to change `up_to` is safe elsewhere. Returns the jobs it was about.
pub(crate) fn recorded(cluster: &mut Cluster, up_to: u64) -> Vec<JobId> {
    let subjects: Vec<Subject> = cluster.history.changed.range(..=up_to).map(|(_, subject)| *subject).collect();
    for subject in &subjects {
        cluster.history.remove(*subject);
        if let Subject::Past(job, attempt) = subject {
            cluster.history.past.remove(&(*job, *attempt));
        }
    }
    subjects.into_iter().map(Subject::job).collect()
}

/// History begins, or ends, with this configuration.
pub(crate) fn configured(cluster: &mut Cluster, recorded_before: bool) {
    match (recorded_before, cluster.config.accounting.records) {
        (false, true) => {
            let jobs: Vec<JobId> = cluster.jobs.keys().copied().collect();
            let steps: Vec<(JobId, StepId)> = cluster.steps.keys().copied().collect();
            jobs.into_iter().for_each(|job| cluster.history.add(Subject::Job(job)));
            steps.into_iter().for_each(|(job, step)| cluster.history.add(Subject::Step(job, step)));
        }
        (true, false) => cluster.history = History { last: cluster.history.last, ..History::default() },
        (true, true) | (false, false) => (),
    }
}

/// Every number leads to a subject that exists, and back.
pub(crate) fn check(cluster: &Cluster) -> Result<(), String> {
    let history = &cluster.history;
    let is_kept = |subject: &Subject| match subject {
        Subject::Job(job) => cluster.jobs.contains_key(job),
        Subject::Step(job, step) => cluster.steps.contains_key(&(*job, *step)),
        Subject::Past(job, attempt) => history.past.contains_key(&(*job, *attempt)),
    };
    for (number, subject) in &history.changed {
        if history.numbers.get(subject) != Some(number) || *number > history.last {
            return Err(format!("history: change {number} of {subject:?} is not indexed"));
        }
        if !is_kept(subject) {
            return Err(format!("history: {subject:?} is gone and was not recorded"));
        }
    }
    let n_past = history.numbers.keys().filter(|subject| matches!(subject, Subject::Past(..))).count();
    if history.numbers.len() != history.changed.len() || n_past != history.past.len() {
        return Err("history: the indexes differ".into());
    }
    if !cluster.config.accounting.records && !history.changed.is_empty() {
        return Err("history: changes are noted though nothing is recorded".into());
    }
    Ok(())
}
