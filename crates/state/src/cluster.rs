//! Everything replicas agree on. Cheap to copy: readers and the scheduler work on snapshots.
use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::accounts::Accounts;
use model::request::NodeView;
use model::{
    Array, BlobId, Config, Duty, Event, Job, JobId, JobRef, Node, NodeName, Owner, Phase, Step, StepId, Timestamp, Wake,
};
use serde::{Deserialize, Serialize};

use crate::blobs::StoredBlob;
use crate::het;
use crate::network::Derived;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cluster {
    pub(crate) now: Timestamp,
    pub(crate) config: Arc<Config>,
    pub(crate) last_job: JobId,
    /// Submissions so far; earlier ones get the higher priority.
    pub(crate) n_submitted: u32,
    pub(crate) jobs: OrdMap<JobId, Arc<Job>>,
    pub(crate) steps: OrdMap<(JobId, StepId), Arc<Step>>,
    pub(crate) arrays: OrdMap<JobId, Arc<Array>>,
    pub(crate) nodes: OrdMap<NodeName, Arc<Node>>,
    pub(crate) blobs: OrdMap<BlobId, StoredBlob>,
    /// What the leader has to do now: at most one duty an owner.
    pub(crate) duties: OrdMap<Owner, Duty>,
    /// Who to settle again when something happens.
    pub(crate) waiters: OrdSet<(Wake, JobId)>,
    /// Jobs that only wait for the scheduler, the most important first.
    pub(crate) queue: OrdSet<QueueKey>,
    /// Jobs that are not over, by owner and name: what `singleton` asks for.
    pub(crate) live_names: OrdSet<(u32, String, JobId)>,
    /// Who may use how much.
    pub(crate) accounts: Arc<Accounts>,
    /// Jobs the command in hand has touched. Empty between commands.
    #[serde(skip)]
    pub(crate) unsettled: BTreeSet<JobId>,
    #[serde(skip)]
    pub(crate) events: Vec<Event>,
    /// The topologies of the configuration, made ready when first asked for.
    #[serde(skip)]
    pub(crate) network: Derived,
}

/// The order in which the scheduler looks at jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueKey {
    before_tier: u32,
    before_priority: u32,
    pub job: JobId,
}

impl Cluster {
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// The id the next job will probably get.
    pub fn next_job(&self) -> JobId {
        JobId(self.last_job.0 + 1)
    }

    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(&id)
    }

    pub fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    pub fn step(&self, job: JobId, step: StepId) -> Option<&Arc<Step>> {
        self.steps.get(&(job, step))
    }

    pub fn steps_of(&self, job: JobId) -> impl Iterator<Item = &Arc<Step>> {
        self.steps.range((job, StepId::Number(0))..=(job, StepId::Batch)).map(|(_, step)| step)
    }

    pub fn array(&self, id: JobId) -> Option<&Arc<Array>> {
        self.arrays.get(&id)
    }

    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn node_view(&self, node: &Node) -> NodeView {
        let phases = || node.jobs.iter().filter_map(|job| self.jobs.get(job)).map(|job| job.phase);
        NodeView {
            node: node.clone(),
            has_ending_job: phases().any(|phase| phase == Phase::Ending),
            has_live_job: phases().any(|phase| phase != Phase::Ending),
        }
    }

    pub fn blob(&self, id: BlobId) -> Option<&Arc<[u8]>> {
        self.blobs.get(&id).map(|blob| &blob.content)
    }

    pub fn duties(&self) -> impl Iterator<Item = &Duty> {
        self.duties.values()
    }

    pub fn duty(&self, owner: &Owner) -> Option<&Duty> {
        self.duties.get(owner)
    }

    /// Jobs that only wait for the scheduler, the most important first.
    pub fn queue(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.queue.iter().map(|key| &self.jobs[&key.job])
    }

    pub fn n_queued(&self) -> usize {
        self.queue.len()
    }

    pub fn is_eligible(&self, job: &Job) -> bool {
        job.phase == Phase::Pending && self.queue.contains(&self.queue_key(job))
    }

    /// When the leader must propose the next `Tick`.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        match self.waiters.get_min()? {
            (Wake::At(at), _) => Some(*at),
            _ => None,
        }
    }

    /// Every job that a user's words name, or none if there is no such job. Tasks that still wait together
    /// are named by their common record, which may stand for more than was asked.
    pub fn named(&self, named: &JobRef) -> Option<Vec<JobId>> {
        if let Some(offset) = named.component {
            return het::component(self, named.job, offset).map(|id| vec![id]);
        }
        let Some(array) = self.arrays.get(&named.job) else {
            return (named.tasks.is_none() && self.jobs.contains_key(&named.job)).then(|| het::named(self, named.job));
        };
        let wanted = |task: u32| named.tasks.as_ref().is_none_or(|tasks| tasks.contains(task));
        let started = array.tasks.iter().filter(|(task, _)| wanted(**task)).map(|(_, job)| *job);
        let waiting = array.waiting.iter().filter(|job| match (&self.jobs[*job].waiting_tasks, &named.tasks) {
            (Some(waiting), Some(tasks)) => tasks.iter().any(|task| waiting.contains(task)),
            _ => true,
        });
        let found: BTreeSet<JobId> = started.chain(waiting.copied()).collect();
        (!found.is_empty()).then(|| found.into_iter().collect())
    }

    pub(crate) fn job_mut(&mut self, id: JobId) -> &mut Job {
        Arc::make_mut(self.jobs.get_mut(&id).expect("callers look the job up first"))
    }

    pub(crate) fn node_mut(&mut self, name: &str) -> &mut Node {
        Arc::make_mut(self.nodes.get_mut(name).expect("callers look the node up first"))
    }

    pub(crate) fn step_mut(&mut self, job: JobId, step: StepId) -> &mut Step {
        Arc::make_mut(self.steps.get_mut(&(job, step)).expect("callers look the step up first"))
    }

    pub(crate) fn array_mut(&mut self, id: JobId) -> Option<&mut Array> {
        self.arrays.get_mut(&id).map(Arc::make_mut)
    }

    pub(crate) fn queue_key(&self, job: &Job) -> QueueKey {
        let partitions = job.spec.partitions.iter().filter_map(|name| self.config.partition(name));
        let tier = partitions.map(|partition| partition.priority_tier).max().unwrap_or(0);
        QueueKey { before_tier: u32::MAX - tier, before_priority: u32::MAX - job.priority, job: job.id }
    }

    pub(crate) fn next_job_id(&mut self) -> JobId {
        let limits = &self.config.controller;
        let next = self.last_job.0.max(limits.first_job_id.saturating_sub(1)) + 1;
        self.last_job = JobId(if next > limits.max_job_id { limits.first_job_id.max(1) } else { next });
        while self.jobs.contains_key(&self.last_job) || self.arrays.contains_key(&self.last_job) {
            self.last_job.0 += 1;
        }
        self.last_job
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }
}
