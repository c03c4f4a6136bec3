//! Everything replicas agree on. Cheap to copy: readers and the scheduler work on snapshots.
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use model::accounts::Accounts;
use model::capacity::Measures;
use model::node::NodeConfig;
use model::request::NodeView;
use model::reservation::Flag;
use model::trigger::{NodeMark, Trigger};
use model::trust::Trust;
use model::{
    Array, BlobId, Buffer, Config, Duty, Event, Job, JobId, JobRef, Node, NodeName, Owner, PersistentBuffer, Phase,
    Reservation, Step, StepId, Timestamp, Wake,
};
use serde::{Deserialize, Serialize};
use topology::Network;

use crate::blobs::StoredBlob;
use crate::derived::Derived;
use crate::fair_share::FairShare;
use crate::history::{self, History};
use crate::limits::Tally;
use crate::queue::QueueKey;
use crate::requests::Requests;
use crate::{fair_share, gang, het, reboots, reservations, triggers};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cluster {
    pub(crate) now: Timestamp,
    /// The edition of the rules that entries are judged by.
    pub(crate) rules: u32,
    pub(crate) config: Arc<Config>,
    /// As the file had it last: what differs in `config` was changed at run time.
    pub(crate) file_config: Arc<Config>,
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
    /// Jobs that only wait for the scheduler to have their burst buffers filled, the most important first.
    pub(crate) staging_queue: OrdSet<QueueKey>,
    /// The same, of those that ask nothing of a shared pool.
    pub(crate) unpooled_staging_queue: OrdSet<QueueKey>,
    /// Waiting jobs that others were told to make room for: that room is theirs.
    pub(crate) claims: OrdSet<JobId>,
    pub(crate) buffers: OrdMap<JobId, Arc<Buffer>>,
    /// Which buffers have a directory on a node, or are worked for by its agent.
    pub(crate) buffer_places: OrdSet<(NodeName, JobId)>,
    pub(crate) persistent: OrdMap<String, Arc<PersistentBuffer>>,
    /// What buffers can have of shared pools' file systems, besides what others have put there.
    pub(crate) usable: OrdMap<String, u64>,
    /// Counts what was ordered for persistent buffers.
    pub(crate) n_persistent_orders: u32,
    /// Jobs that are not over, by owner and name: what `singleton` asks for.
    pub(crate) live_names: OrdSet<(u32, String, JobId)>,
    /// Who may use how much.
    pub(crate) accounts: Arc<Accounts>,
    /// What jobs count for, and for whom.
    pub(crate) tally: Tally,
    pub(crate) fair_share: FairShare,
    /// When minutes that are used up are looked for next; none: nobody has such a limit.
    pub(crate) minutes_due: Option<Timestamp>,
    /// When jobs whose age does not count yet are looked at next; none: there is no such job.
    pub(crate) accrual_due: Option<Timestamp>,
    /// Who changed accounts, and when nodes were out of service.
    pub(crate) chronicle: crate::chronicle::Kept,
    /// When time alone may give another plan; none: only what happens gives one.
    pub(crate) plan_due: Option<Timestamp>,
    /// What is still to be recorded.
    pub(crate) history: History,
    pub(crate) reservations: OrdMap<String, Arc<Reservation>>,
    /// Reservations made so far; new ones without a name are numbered.
    pub(crate) n_reservations: u32,
    /// The last of the ports that a step was given.
    pub(crate) last_port: u16,
    /// What jobs hold of each licence. The ledger keeps it equal to the sum over the jobs.
    pub(crate) license_use: OrdMap<String, u32>,
    /// Jobs that hold licences.
    pub(crate) license_holders: OrdSet<JobId>,
    /// Who belongs to the cluster.
    pub(crate) trust: Arc<Trust>,
    /// Nodes that have joined and that no file names.
    pub(crate) joined: OrdMap<NodeName, NodeConfig>,
    /// Nodes that are to start anew, or do.
    pub(crate) reboots: OrdSet<NodeName>,
    /// What was answered to requests that may come again.
    pub(crate) requests: Requests,
    /// Jobs that stand still for others.
    pub(crate) parked: OrdSet<JobId>,
    /// Nodes with CPUs that several jobs hold.
    pub(crate) shared_nodes: OrdSet<NodeName>,
    /// Turns given so far.
    pub(crate) last_turn: u64,
    /// When the turn of those who run is over; none while nobody waits for it.
    pub(crate) slice_ends: Option<Timestamp>,
    /// Programs that wait for something to happen.
    pub(crate) triggers: OrdMap<u32, Arc<Trigger>>,
    pub(crate) last_trigger: u32,
    /// While there are triggers: nodes that are not as they should be.
    pub(crate) node_marks: OrdMap<NodeName, NodeMark>,
    /// While there are triggers: nodes that the command in hand has changed. Empty between commands.
    #[serde(skip)]
    pub(crate) touched_nodes: BTreeSet<NodeName>,
    /// The command in hand has changed who holds which shared CPUs. False between commands.
    #[serde(skip)]
    pub(crate) sharing_changed: bool,
    /// Jobs the command in hand has touched. Empty between commands.
    #[serde(skip)]
    pub(crate) unsettled: BTreeSet<JobId>,
    #[serde(skip)]
    pub(crate) events: Vec<Event>,
    /// The topologies of the configuration, made ready when first asked for.
    #[serde(skip)]
    pub(crate) network: Derived<Network>,
    /// What sizes of jobs are compared with, worked out when first asked for.
    #[serde(skip)]
    pub(crate) measures: Derived<Measures>,
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

    pub fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }

    /// A node where users log in: it vouches for all of them, also without jobs there.
    pub fn is_login_node(&self, node: &str) -> bool {
        let configured = &self.config.controller.login_nodes;
        self.trust.logins.contains(node) || configured.iter().any(|name| name.as_str() == node)
    }

    /// A job of the user's is on the node: it runs, or has not quite left.
    pub fn has_job_on(&self, uid: u32, node: &str) -> bool {
        let jobs = self.node(node).into_iter().flat_map(|node| &node.jobs);
        jobs.filter_map(|id| self.job(*id)).any(|job| job.spec.uid == uid)
    }

    /// The user's jobs that are not over; counted no further than `most`.
    pub fn n_live_jobs_of(&self, uid: u32, most: usize) -> usize {
        let own = self.live_names.range((uid, String::new(), JobId(0))..);
        own.take_while(|(owner, ..)| *owner == uid).take(most).count()
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

    /// So many jobs, in order of their ids: those after that one.
    pub fn jobs_after(&self, last: Option<JobId>, n_max: usize) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.range((bound_after(last), Bound::Unbounded)).take(n_max).map(|(_, job)| job)
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

    /// What buffers can have of a shared pool's file system; none: no agent has told.
    pub fn usable(&self, pool: &str) -> Option<u64> {
        self.usable.get(pool).copied()
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

    /// So many nodes, in order of their names: those after that one.
    pub fn nodes_after(&self, last: Option<NodeName>, n_max: usize) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.range((bound_after(last), Bound::Unbounded)).take(n_max).map(|(_, node)| node)
    }

    /// So many triggers, in the order in which they were set: those after that one.
    pub fn triggers_after(&self, last: Option<u32>, n_max: usize) -> impl Iterator<Item = &Arc<Trigger>> {
        self.triggers.range((bound_after(last), Bound::Unbounded)).take(n_max).map(|(_, trigger)| trigger)
    }

    /// So many reservations, in order of their names: those after that one.
    pub fn reservations_after(&self, last: Option<String>, n_max: usize) -> impl Iterator<Item = &Arc<Reservation>> {
        self.reservations.range((bound_after(last), Bound::Unbounded)).take(n_max).map(|(_, one)| one)
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn node_view(&self, node: &Node) -> NodeView {
        let reservation = self.reservation_on(&node.name);
        let phases = || node.jobs.iter().filter_map(|job| self.jobs.get(job)).map(|job| job.phase);
        NodeView {
            node: node.clone(),
            has_ending_job: phases().any(|phase| phase == Phase::Ending),
            has_live_job: phases().any(|phase| phase != Phase::Ending),
            reservation: reservation.map_or_else(String::new, |reservation| reservation.name.clone()),
            is_in_maintenance: reservation.is_some_and(|reservation| reservation.has(Flag::Maint)),
            load: None,
        }
    }

    /// Jobs that hold licences.
    pub fn license_holders(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.license_holders.iter().filter_map(|id| self.jobs.get(id))
    }

    /// CPUs of the node that jobs of one partition hold.
    pub fn cpus_of_partition(&self, node: &NodeName, partition: &str) -> u32 {
        let Some(node) = self.nodes.get(node) else { return 0 };
        let jobs = node.jobs.iter().filter_map(|id| self.jobs.get(id)).filter(|job| job.partition == partition);
        jobs.filter_map(|job| job.allocation.share(node.name.as_str())).map(|share| share.cpus.len()).sum()
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

    pub fn buffer(&self, job: JobId) -> Option<&Arc<Buffer>> {
        self.buffers.get(&job)
    }

    /// As the file had it last; what was changed at run time is not in it.
    pub fn file_config(&self) -> &Arc<Config> {
        &self.file_config
    }

    /// A directory of a buffer of the user's jobs is on the node, or is to be.
    pub fn has_buffer_on(&self, uid: u32, node: &str) -> bool {
        let own = self.buffers.values().filter(|buffer| buffer.uid == uid);
        self.has_job_on(uid, node) || own.flat_map(|buffer| &buffer.places).any(|place| place.node.as_str() == node)
    }

    pub fn buffers(&self) -> impl Iterator<Item = &Arc<Buffer>> {
        self.buffers.values()
    }

    pub fn persistent(&self, name: &str) -> Option<&Arc<PersistentBuffer>> {
        self.persistent.get(name)
    }

    pub fn persistent_buffers(&self) -> impl Iterator<Item = &Arc<PersistentBuffer>> {
        self.persistent.values()
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// Nothing that a job waits for by the clock comes later; no limit of a running job ends later either.
    pub fn last_deadline(&self) -> Option<Timestamp> {
        let first_other = (Wake::JobMoved(JobId(0)), JobId(0));
        match self.waiters.range(..first_other).next_back() {
            Some((Wake::At(at), _)) => Some(*at),
            _ => None,
        }
    }

    /// When the leader must propose the next `Tick`.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let of_jobs = match self.waiters.get_min() {
            Some((Wake::At(at), _)) => Some(*at),
            _ => None,
        };
        let of_reservations = reservations::next_deadline(self);
        let of_shares = fair_share::next_deadline(self);
        let of_gangs = gang::next_deadline(self);
        let of_reboots = reboots::next_deadline(self);
        let of_triggers = triggers::next_deadline(self);
        let of_minutes = crate::limits::minutes::next_deadline(self);
        of_jobs
            .into_iter()
            .chain(of_shares)
            .chain(of_minutes)
            .chain(crate::accrual::next_deadline(self))
            .chain(of_reservations)
            .chain(of_gangs)
            .chain(of_reboots)
            .chain(of_triggers)
            .chain(self.plan_due.filter(|_| self.n_queued() + self.n_to_stage() > 0))
            .min()
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
        let waiting = array.waiting.iter().filter(|job| match (&self.jobs[*job].waiting_tasks, &named.tasks) {
            (Some(waiting), Some(tasks)) => tasks.intersects(waiting),
            _ => true,
        });
        let mut found: BTreeSet<JobId> = waiting.copied().collect();
        // The shorter of the two is gone through.
        match &named.tasks {
            Some(tasks) if (tasks.len() as usize) < array.tasks.len() => {
                found.extend(tasks.iter().filter_map(|task| array.tasks.get(&task)));
            }
            Some(tasks) => {
                found.extend(array.tasks.iter().filter(|(task, _)| tasks.contains(**task)).map(|(_, job)| job));
            }
            None => found.extend(array.tasks.values()),
        }
        (!found.is_empty()).then(|| found.into_iter().collect())
    }

    pub(crate) fn job_mut(&mut self, id: JobId) -> &mut Job {
        Arc::make_mut(self.jobs.get_mut(&id).expect("callers look the job up first"))
    }

    pub(crate) fn node_mut(&mut self, name: &str) -> &mut Node {
        if !self.triggers.is_empty() {
            self.touched_nodes.insert(name.into());
        }
        Arc::make_mut(self.nodes.get_mut(name).expect("callers look the node up first"))
    }

    pub(crate) fn reservation_mut(&mut self, name: &str) -> &mut Reservation {
        Arc::make_mut(self.reservations.get_mut(name).expect("callers look the reservation up first"))
    }

    pub(crate) fn step_mut(&mut self, job: JobId, step: StepId) -> &mut Step {
        Arc::make_mut(self.steps.get_mut(&(job, step)).expect("callers look the step up first"))
    }

    pub(crate) fn array_mut(&mut self, id: JobId) -> Option<&mut Array> {
        self.arrays.get_mut(&id).map(Arc::make_mut)
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
        history::note(self, &event);
        self.events.push(event);
    }
}

fn bound_after<T>(last: Option<T>) -> Bound<T> {
    last.map_or(Bound::Unbounded, Bound::Excluded)
}
