//! Does the duties that stand in the state: sends orders to agents, gathers their answers, proposes one result each.
//! Its memory is soft: after a restart it reads the duties and begins anew, since agents know what they have done.
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::agent::{KillNote, Order};
use model::command::{DutyResult, RequestId};
use model::node::{NodePhase, Run};
use model::time::Span;
use model::{Caller, Command, Duty, Job, JobId, NodeName, Outcome, Owner, Reason, Task};
use state::Cluster;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{hooks, launch, numbers};
use crate::agents::Agents;
use crate::door::{Door, Refusal};
use crate::machine::Published;

/// How long a duty that failed, but stands, rests before it is done again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A launch is confirmed in the log only if the job is still there by then. Nobody waits for the confirmation, and the many
/// runs that end sooner are spared the sync.
const CONFIRM_LAUNCH_AFTER: Duration = Duration::from_millis(20);

/// Notices that are heeded before the state is looked at again.
const AT_ONCE_MAX: usize = 4096;

/// What others tell the runner.
pub enum Notice {
    /// An agent has registered anew: what its node has to do is begun again, also what it had answered before.
    Connected(NodeName),
    Answered {
        node: NodeName,
        number: u64,
        result: DutyResult,
    },
    /// The result of this duty has been proposed; do it again if it still stands.
    Proposed(Duty),
    Deliver(Delivery),
}

/// An order that is nobody's duty: somebody waits until it has arrived.
pub struct Delivery {
    pub node: NodeName,
    pub order: Order,
    pub arrived: oneshot::Sender<()>,
}

/// Which nodes have not confirmed that a job stands still, or goes on.
type Awaited = Arc<Mutex<HashMap<JobId, Vec<NodeName>>>>;

#[derive(Clone)]
pub struct Handle {
    notices: mpsc::UnboundedSender<Notice>,
    awaited: Awaited,
}

impl Handle {
    pub fn tell(&self, notice: Notice) {
        // The runner ends with the lead.
        let _ = self.notices.send(notice);
    }

    /// Resolves when the order has arrived; sent again when the node's agent comes again. Dropping it gives up.
    pub fn deliver(&self, node: NodeName, order: Order) -> oneshot::Receiver<()> {
        let (arrived, arrival) = oneshot::channel();
        self.tell(Notice::Deliver(Delivery { node, order, arrived }));
        arrival
    }

    /// Nodes that have not answered the job's last suspend or resume.
    pub fn awaited_nodes(&self, job: JobId) -> Vec<NodeName> {
        self.awaited.lock().expect("nobody panics with it").get(&job).cloned().unwrap_or_default()
    }
}

pub fn start(
    door: Arc<Door>,
    published: Published,
    agents: Arc<Agents>,
    places: hooks::Places,
    loops: &mut JoinSet<()>,
) -> Handle {
    hooks::forget_strangers(&published.now(), &places);
    let (notices, inbox) = mpsc::unbounded_channel();
    let handle = Handle { notices, awaited: Awaited::default() };
    let (work, numbers, deliveries) = (HashMap::new(), HashMap::new(), HashMap::new());
    let runner = Runner {
        door,
        published,
        agents,
        places,
        handle: handle.clone(),
        work,
        numbers,
        deliveries,
        next: numbers::beginning(),
    };
    loops.spawn(runner.run(inbox));
    handle
}

struct Runner {
    door: Arc<Door>,
    published: Published,
    agents: Arc<Agents>,
    places: hooks::Places,
    handle: Handle,
    work: HashMap<Owner, Work>,
    /// Whose order a number is.
    numbers: HashMap<u64, Owner>,
    deliveries: HashMap<u64, Delivery>,
    next: u64,
}

/// One duty under way.
struct Work {
    duty: Duty,
    /// Where orders went, and the registrations they were for: an answer of an earlier one counts no more.
    registrations: Vec<(NodeName, u32)>,
    /// Orders not answered yet, by number.
    open: HashMap<u64, NodeName>,
    failure: Option<DutyResult>,
    is_proposed: bool,
}

impl Work {
    /// Every node where the site's program failed counts; otherwise the last failure does.
    fn note_failure(&mut self, result: DutyResult) {
        match (&mut self.failure, result) {
            (_, DutyResult::Done) => (),
            (Some(DutyResult::HookFailed { nodes, .. }), DutyResult::HookFailed { nodes: more, .. }) => {
                nodes.extend(more);
            }
            (Some(DutyResult::HookFailed { .. }), DutyResult::Failed { .. }) => (),
            (failure, result) => *failure = Some(result),
        }
    }
}

impl Runner {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Notice>) {
        let mut changes = self.published.changes();
        loop {
            let cluster = changes.borrow_and_update().clone();
            self.take_up(&cluster);
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                notice = inbox.recv() => {
                    let Some(notice) = notice else { return };
                    self.heed(notice);
                    // What is new in the state is not kept waiting for however much agents say.
                    for _ in 0..AT_ONCE_MAX {
                        let Ok(notice) = inbox.try_recv() else { break };
                        self.heed(notice);
                    }
                }
            }
        }
    }

    fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::Connected(node) => {
                let concerns = |work: &Work| work.registrations.iter().any(|(to, _)| *to == node);
                let owners = self.work.iter().filter(|(_, work)| concerns(work)).map(|(owner, _)| owner.clone());
                let owners: Vec<Owner> = owners.collect();
                owners.iter().for_each(|owner| self.forget(owner));
                for (number, delivery) in self.deliveries.iter().filter(|(_, delivery)| delivery.node == node) {
                    self.agents.send(&node, numbered(delivery.order.clone(), *number));
                }
            }
            Notice::Deliver(delivery) => {
                self.next += 1;
                self.deliveries.retain(|_, delivery| !delivery.arrived.is_closed());
                self.agents.send(&delivery.node, numbered(delivery.order.clone(), self.next));
                self.deliveries.insert(self.next, delivery);
            }
            Notice::Answered { node, number, result } => {
                if self.asked(number).is_some_and(|asked| *asked != node) {
                    return tracing::warn!(%node, number, "an answer to an order that another node was given");
                }
                if let Some(delivery) = self.deliveries.remove(&number) {
                    let _ = delivery.arrived.send(());
                }
                let Some(owner) = self.numbers.remove(&number) else { return };
                let Some(work) = self.work.get_mut(&owner) else { return };
                work.open.remove(&number);
                work.note_failure(own_failure(&node, result));
                self.note_awaited(&owner);
                self.propose_if_done(&owner);
            }
            Notice::Proposed(duty) => {
                if self.work.get(&duty.owner).is_some_and(|work| work.duty == duty) {
                    self.forget(&duty.owner);
                }
            }
        }
    }

    /// Who was given the order with this number.
    fn asked(&self, number: u64) -> Option<&NodeName> {
        let delivered = self.deliveries.get(&number).map(|delivery| &delivery.node);
        delivered.or_else(|| self.work.get(self.numbers.get(&number)?)?.open.get(&number))
    }

    /// Drops what no longer stands in the state, begins what is new, and stops waiting for nodes that are lost.
    fn take_up(&mut self, cluster: &Cluster) {
        let over: Vec<Owner> = self
            .work
            .iter()
            .filter(|(owner, work)| cluster.duty(owner) != Some(&work.duty))
            .map(|(owner, _)| owner.clone())
            .collect();
        over.iter().for_each(|owner| self.forget(owner));
        // Burst buffers are the stager's.
        let is_own = |duty: &&Duty| !matches!(duty.owner, Owner::Buffer(_) | Owner::Persistent(_));
        // Nothing is launched before the job's nodes are prepared.
        let is_ready = |duty: &&Duty| match &duty.owner {
            Owner::Step(job, _) => {
                duty.task != Task::Launch || cluster.job(*job).is_none_or(|job| !job.is_being_prepared())
            }
            _ => true,
        };
        for duty in cluster.duties().filter(is_own).filter(is_ready) {
            if !self.work.contains_key(&duty.owner) {
                self.begin(cluster, duty);
            }
        }
        self.give_up_on_lost_nodes(cluster);
    }

    fn begin(&mut self, cluster: &Cluster, duty: &Duty) {
        let (registrations, open) = (Vec::new(), HashMap::new());
        let mut work = Work { duty: duty.clone(), registrations, open, failure: None, is_proposed: false };
        if let Some(job) = of_controller(cluster, duty) {
            self.next += 1;
            let here: NodeName = cluster.config().controller.host.as_str().into();
            work.open.insert(self.next, here.clone());
            self.numbers.insert(self.next, duty.owner.clone());
            let (handle, number) = (self.handle.clone(), self.next);
            let (cluster, job, task, places) = (cluster.clone(), job.clone(), duty.task, self.places.clone());
            tokio::spawn(async move {
                let result = hooks::run_here(&cluster, &job, task, places).await;
                handle.tell(Notice::Answered { node: here, number, result });
            });
        }
        for (node, order) in orders(cluster, duty, &self.places) {
            let known = cluster.node(node.as_str());
            if !known.is_some_and(|node| node.answers) && duty.task != Task::Launch {
                continue;
            }
            self.next += 1;
            if let (Owner::Job(job), Task::Stop | Task::Continue) = (&duty.owner, duty.task) {
                let resume = duty.task == Task::Continue;
                tracing::info!(job_id = job.0, %node, resume, "sent SuspendJob");
            }
            work.registrations.push((node.clone(), registration(cluster, &node)));
            work.open.insert(self.next, node.clone());
            self.numbers.insert(self.next, duty.owner.clone());
            // One that is not connected gets its orders when it comes.
            self.agents.send(&node, numbered(order, self.next));
        }
        self.work.insert(duty.owner.clone(), work);
        self.note_awaited(&duty.owner);
        self.propose_if_done(&duty.owner);
    }

    fn note_awaited(&self, owner: &Owner) {
        let Owner::Job(job) = owner else { return };
        let mut awaited = self.handle.awaited.lock().expect("nobody panics with it");
        let work = self.work.get(owner).filter(|work| matches!(work.duty.task, Task::Stop | Task::Continue));
        let mut nodes: Vec<NodeName> = work.map(|work| work.open.values().cloned().collect()).unwrap_or_default();
        nodes.sort_unstable();
        match nodes.is_empty() {
            true => drop(awaited.remove(job)),
            false => drop(awaited.insert(*job, nodes)),
        }
    }

    /// Whatever ran on a lost node is ended when it comes back, before it is used again.
    fn give_up_on_lost_nodes(&mut self, cluster: &Cluster) {
        let is_lost = |node: &NodeName| cluster.node(node.as_str()).is_none_or(|node| !node.answers);
        let mut eased = Vec::new();
        for (owner, work) in &mut self.work {
            if matches!(work.duty.task, Task::Launch | Task::ControllerProlog | Task::ControllerEpilog) {
                continue;
            }
            let n_open = work.open.len();
            work.open.retain(|_, node| !is_lost(node));
            if work.open.len() < n_open {
                eased.push(owner.clone());
            }
        }
        for owner in &eased {
            self.note_awaited(owner);
            self.propose_if_done(owner);
        }
    }

    fn propose_if_done(&mut self, owner: &Owner) {
        let Some(work) = self.work.get_mut(owner) else { return };
        if !work.open.is_empty() || work.is_proposed {
            return;
        }
        work.is_proposed = true;
        let failed = work.failure.is_some();
        let result = work.failure.take().unwrap_or(DutyResult::Done);
        let (duty, registrations) = (work.duty.clone(), work.registrations.clone());
        let (door, handle, published) = (self.door.clone(), self.handle.clone(), self.published.clone());
        let (agents, places) = (self.agents.clone(), self.places.clone());
        tokio::spawn(async move {
            if duty.task == Task::Launch && !failed {
                tokio::time::sleep(CONFIRM_LAUNCH_AFTER).await;
                let cluster = published.now();
                if cluster.duty(&duty.owner) != Some(&duty) {
                    return;
                }
                if registrations.iter().any(|(node, number)| registration(&cluster, node) != *number) {
                    return handle.tell(Notice::Proposed(duty));
                }
            }
            let before = published.now();
            let command = Command::DutyDone { duty: duty.clone(), result };
            let proposed = door.propose(Caller::SYSTEM, command).await;
            if proposed.is_ok() {
                forget_hooks(&before, &duty, &agents, &places);
            }
            if let Err(Refusal::NotWritten(why)) = &proposed {
                tracing::warn!(?duty, why, "the result of a duty was not written");
            }
            if failed || matches!(proposed, Err(Refusal::NotWritten(_))) {
                tokio::time::sleep(RETRY_AFTER).await;
            }
            handle.tell(Notice::Proposed(duty));
        });
    }

    fn forget(&mut self, owner: &Owner) {
        if let Some(work) = self.work.remove(owner) {
            work.open.keys().for_each(|number| {
                self.numbers.remove(number);
            });
            self.note_awaited(owner);
        }
    }
}

/// A node speaks for itself: what failed on others, they say.
fn own_failure(node: &NodeName, result: DutyResult) -> DutyResult {
    match result {
        DutyResult::Done => DutyResult::Done,
        DutyResult::Failed { why, .. } => DutyResult::Failed { node: node.clone(), why },
        DutyResult::HookFailed { nodes, why, drained_for } => {
            let nodes = nodes.into_iter().filter(|named| named == node).collect();
            DutyResult::HookFailed { nodes, why, drained_for }
        }
    }
}

/// The job for which the controller itself has something to run.
fn of_controller<'a>(cluster: &'a Cluster, duty: &Duty) -> Option<&'a Arc<Job>> {
    match (&duty.owner, duty.task) {
        (Owner::Job(id), Task::ControllerProlog | Task::ControllerEpilog) => cluster.job(*id),
        _ => None,
    }
}

/// How the site's programs ended is durable: nobody asks again. Should the word get lost, agents tell of such runs when they come.
fn forget_hooks(before: &Cluster, duty: &Duty, agents: &Agents, places: &hooks::Places) {
    match (&duty.owner, duty.task) {
        (Owner::Job(job), Task::ControllerProlog | Task::ControllerEpilog) => {
            hooks::forget_here(*job, duty.attempt, duty.task, places);
        }
        (Owner::Job(id), Task::Epilog) => {
            let Some(job) = before.job(*id) else { return };
            let run = run_of(job);
            for node in job.allocation.names() {
                agents.send(node, Order::ForgetHooks { run: run.clone() });
            }
        }
        (Owner::Node(name), Task::Clear) => {
            let Some(node) = before.node(name.as_str()) else { return };
            // Where the job itself still waits for its epilogs, it tells.
            for run in node.stale_runs.iter().filter(|run| !holds_nodes(before, run)) {
                agents.send(name, Order::ForgetHooks { run: run.clone() });
            }
        }
        _ => (),
    }
}

/// The job is still there, and has its epilogs run itself.
fn holds_nodes(cluster: &Cluster, run: &Run) -> bool {
    cluster.job(run.job).is_some_and(|job| job.attempt == run.attempt && job.holds_nodes())
}

fn registration(cluster: &Cluster, node: &NodeName) -> u32 {
    cluster.node(node.as_str()).map_or(0, |node| node.attempt)
}

fn orders(cluster: &Cluster, duty: &Duty, places: &hooks::Places) -> Vec<(NodeName, Order)> {
    match &duty.owner {
        Owner::Job(id) => cluster.job(*id).map(|job| job_orders(cluster, job, duty.task, places)).unwrap_or_default(),
        Owner::Step(id, step) => {
            let (Some(job), Some(step)) = (cluster.job(*id), cluster.step(*id, *step)) else { return Vec::new() };
            match duty.task {
                Task::Launch => launch::of_step(cluster, job, step, places)
                    .into_iter()
                    .map(|(node, launch)| (node, Order::Launch { number: 0, launch: Box::new(launch) }))
                    .collect(),
                _ => {
                    let kill = Order::Kill {
                        number: 0,
                        run: run_of(job),
                        step: Some(step.id),
                        // As Slurm: a cancelled step is not asked first.
                        kill_wait: Span(0),
                        note: match step.has_outlived_limit(cluster.now()) {
                            true => KillNote::TimeLimit,
                            false => KillNote::Cancelled,
                        },
                    };
                    step.shares.iter().map(|share| (share.node.clone(), kill.clone())).collect()
                }
            }
        }
        Owner::Buffer(_) | Owner::Persistent(_) => Vec::new(),
        Owner::Node(name) => {
            let Some(node) = cluster.node(name.as_str()) else { return Vec::new() };
            if duty.task == Task::Reboot {
                let program = cluster.config().health.reboot_program.clone();
                let issued = node.reboot.as_ref().and_then(|reboot| reboot.issued).unwrap_or_default();
                return vec![(name.clone(), Order::Reboot { number: 0, program, issued })];
            }
            // Of a node that was given back there is nothing to tell, and nobody there is asked first, as in Slurm.
            let was_given_back = |run: &Run| node.phase == NodePhase::Clearing && holds_nodes(cluster, run);
            let kill = |run: &Run| {
                let (kill_wait, note) = match was_given_back(run) {
                    true => (Span(0), KillNote::Silent),
                    false => (cluster.config().agent.kill_wait, KillNote::NodeFailure),
                };
                Order::Kill { number: 0, run: run.clone(), step: None, kill_wait, note }
            };
            let late_epilog = |run: &Run| {
                let is_late = cluster.config().hooks.on_nodes() && !holds_nodes(cluster, run);
                let hook = Box::new(hooks::of_lost_run(cluster));
                is_late.then(|| Order::Epilog { number: 0, run: run.clone(), hook })
            };
            let orders = node.stale_runs.iter().flat_map(|run| [Some(kill(run)), late_epilog(run)]);
            orders.flatten().map(|order| (name.clone(), order)).collect()
        }
    }
}

fn job_orders(cluster: &Cluster, job: &Job, task: Task, places: &hooks::Places) -> Vec<(NodeName, Order)> {
    let run = run_of(job);
    let order = match task {
        Task::Launch => {
            let launch = launch::of_batch(cluster, job, places);
            return launch
                .map(|(node, launch)| (node, Order::Launch { number: 0, launch: Box::new(launch) }))
                .into_iter()
                .collect();
        }
        Task::Warn => return warnings(job),
        Task::Preempt => return calls_to_make_room(cluster, job),
        Task::Prolog | Task::Epilog => {
            let order = |node: &NodeName| {
                let hook = Box::new(hooks::on_node(cluster, job, node, task, places));
                match task {
                    Task::Prolog => Order::Prolog { number: 0, run: run.clone(), hook },
                    _ => Order::Epilog { number: 0, run: run.clone(), hook },
                }
            };
            return job.allocation.names().map(|node| (node.clone(), order(node))).collect();
        }
        Task::ControllerProlog | Task::ControllerEpilog => return Vec::new(),
        Task::Stop => Order::Freeze { number: 0, run, grace: cluster.config().agent.suspend_grace },
        Task::Continue => Order::Thaw { number: 0, run },
        Task::Kill => {
            Order::Kill { number: 0, run, step: None, kill_wait: kill_wait(cluster, job), note: kill_note(job) }
        }
        Task::Clear
        | Task::Reboot
        | Task::StageIn
        | Task::PreRun
        | Task::PostRun
        | Task::StageOut
        | Task::Trim
        | Task::TearDown
        | Task::Create
        | Task::Destroy => return Vec::new(),
    };
    nodes_with_processes(cluster, job).into_iter().map(|node| (node, order.clone())).collect()
}

fn warnings(job: &Job) -> Vec<(NodeName, Order)> {
    use model::request::SignalScope;
    let Some(warning) = &job.spec.warning else { return Vec::new() };
    let scope = if warning.batch_only { SignalScope::BatchShell } else { SignalScope::Steps };
    let order = call(job, Task::Warn, warning.signal, scope);
    job.allocation.names().map(|node| (node.clone(), order.clone())).collect()
}

/// SIGCONT, so that it can hear, and SIGTERM; or the signal it asked for, where the site has it so.
fn calls_to_make_room(cluster: &Cluster, job: &Job) -> Vec<(NodeName, Order)> {
    use model::request::SignalScope;
    use model::signal::Signal;
    let hears_own = cluster.config().scheduler.preemption.tells_by_own_signal(&job.spec);
    if hears_own && !job.warned {
        return warnings(job);
    }
    let order = |signal: Signal| call(job, Task::Preempt, signal.number().into(), SignalScope::Steps);
    let calls = [Signal::CONT, Signal::TERM].map(order);
    let nodes = nodes_with_processes(cluster, job).into_iter();
    nodes.flat_map(|node| calls.clone().map(|call| (node.clone(), call))).collect()
}

/// A run hears each of these once, whichever leader it was that could no longer note that it had called.
fn call(job: &Job, task: Task, signal: u32, scope: model::request::SignalScope) -> Order {
    let (run, call) = (run_of(job), u64::from(task == Task::Preempt));
    let id = RequestId(u64::from(run.job.0) << 32 | u64::from(run.attempt), call << 32 | u64::from(signal));
    Order::Signal { number: 0, run, signal, scope, request: Some(id) }
}

/// Where anything of the job may have been started: the script's node, and the nodes of its steps.
fn nodes_with_processes(cluster: &Cluster, job: &Job) -> Vec<NodeName> {
    let mut nodes: Vec<NodeName> =
        cluster.steps_of(job.id).flat_map(|step| &step.shares).map(|share| share.node.clone()).collect();
    if job.runs_script() {
        nodes.extend(job.script_node().cloned());
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

fn run_of(job: &Job) -> Run {
    Run { job: job.id, attempt: job.attempt }
}

/// Frozen processes cannot answer a SIGTERM.
fn kill_wait(cluster: &Cluster, job: &Job) -> Span {
    if job.is_frozen { Span(0) } else { cluster.config().agent.kill_wait }
}

fn kill_note(job: &Job) -> KillNote {
    match (job.outcome, job.requeue) {
        (Some(Outcome::NodeFail), _) => KillNote::NodeFailure,
        (Some(Outcome::Preempted), _) => KillNote::Preempted,
        (_, true) => KillNote::Requeued,
        (Some(Outcome::Timeout), _) => KillNote::TimeLimit,
        (Some(Outcome::Cancelled), _) if job.reason != Some(Reason::DependencyNeverSatisfied) => KillNote::Cancelled,
        _ => KillNote::Silent,
    }
}

fn numbered(order: Order, new: u64) -> Order {
    match order {
        Order::Launch { launch, .. } => Order::Launch { number: new, launch },
        Order::Kill { run, step, kill_wait, note, .. } => Order::Kill { number: new, run, step, kill_wait, note },
        Order::Freeze { run, grace, .. } => Order::Freeze { number: new, run, grace },
        Order::Thaw { run, .. } => Order::Thaw { number: new, run },
        Order::Prolog { run, hook, .. } => Order::Prolog { number: new, run, hook },
        Order::Epilog { run, hook, .. } => Order::Epilog { number: new, run, hook },
        Order::Reboot { program, issued, .. } => Order::Reboot { number: new, program, issued },
        Order::Signal { run, signal, scope, request, .. } => Order::Signal { number: new, run, signal, scope, request },
        Order::Notify { run, text, request, .. } => Order::Notify { number: new, run, text, request },
        Order::Welcome
        | Order::Refuse { .. }
        | Order::Stop
        | Order::ForgetHooks { .. }
        | Order::Acknowledge { .. }
        | Order::Ping
        | Order::Stage { .. }
        | Order::Remove { .. }
        | Order::Neighbours(_)
        | Order::Check { .. }
        | Order::Pools(_)
        | Order::StopMover { .. } => order,
    }
}

/// A job by its id, for callers that only have the number.
pub fn signal_targets(cluster: &Cluster, id: JobId) -> Vec<(NodeName, Run)> {
    let Some(job) = cluster.job(id) else { return Vec::new() };
    nodes_with_processes(cluster, job).into_iter().map(|node| (node, run_of(job))).collect()
}
