//! The leader: does the duties, plans, ticks. All it knows besides the log is lost when it restarts.
use std::collections::{BTreeMap, VecDeque};

use model::command::{DutyResult, Exited};
use model::node::Run;
use model::{Caller, Command, Duty, Entry, JobId, NodeName, Owner, Plan, Reject, Reply, Task};
use state::Cluster;

use crate::World;
use crate::agents::Order;
use crate::dice::Dice;
use crate::stages;

#[derive(Default)]
pub struct Leader {
    work: BTreeMap<Owner, Work>,
    /// Proposals on their way into the log, in order. Users' commands may come between any two of them.
    door: VecDeque<Command>,
    /// Answers of agents that have not been looked at.
    pub answers: Vec<(NodeName, u64, DutyResult)>,
    /// Made on a state that may be gone when the plan reaches the log.
    plan: Plan,
    pub stages: stages::Open,
}

/// One duty under way.
struct Work {
    duty: Duty,
    orders: BTreeMap<u64, (NodeName, Order)>,
    /// Those that are not answered.
    open: BTreeMap<u64, (NodeName, Order)>,
    failure: Option<DutyResult>,
    is_proposed: bool,
}

impl Leader {
    pub fn propose_later(&mut self, command: Command) {
        self.door.push_back(command);
    }

    /// What still gets into the log when the leader dies.
    pub fn some_of_the_door(self, dice: &mut Dice) -> impl Iterator<Item = Command> + use<> {
        let n_through = dice.below(1 + self.door.len() as u64);
        self.door.into_iter().take(n_through as usize)
    }
}

pub fn act(world: &mut World) {
    close_streams(world);
    hear_answers(world);
    take_up(world);
    stages::lead(world);
    if world.cluster.next_deadline().is_some_and(|deadline| deadline <= world.at) {
        world.leader.propose_later(Command::Tick);
    }
    record_history(world);
    if world.is_healing || world.dice.one_in(2) {
        let next = scheduler::plan(&world.cluster);
        let checked = is_wholly_adopted(world, &next);
        world.ensure(checked);
        let plan = std::mem::replace(&mut world.leader.plan, next);
        if plan != Plan::default() {
            world.leader.propose_later(Command::AdoptPlan(plan));
        }
    }
    let n_through = if world.is_healing { u64::MAX } else { world.dice.below(12) };
    for _ in 0..n_through {
        let Some(command) = world.leader.door.pop_front() else { break };
        commit(world, command);
    }
}

/// The recorder has written everything up to some change; its word may be late, doubled, or lost with the leader.
fn record_history(world: &mut World) {
    let last = world.cluster.history().last();
    if world.cluster.history().is_empty() || !(world.is_healing || world.dice.one_in(4)) {
        return;
    }
    let up_to = if world.is_healing { last } else { world.dice.below(last + 1) };
    world.leader.propose_later(Command::Recorded { up_to });
}

/// A plan for the present state is good for the present state.
fn is_wholly_adopted(world: &World, plan: &Plan) -> Result<(), String> {
    let mut copy = world.cluster.clone();
    let entry = Entry { at: world.cluster.now(), by: Caller::SYSTEM, command: Command::AdoptPlan(plan.clone()) };
    match state::apply(&mut copy, &entry).reply {
        Ok(Reply::Adopted { n_stale: 0, .. }) => Ok(()),
        other => {
            let waits = |job: &JobId| copy.job(*job).is_some_and(|job| !job.holds_nodes());
            let stale: Vec<JobId> = plan.starts.iter().map(|start| start.job).filter(waits).collect();
            Err(format!("a new plan is answered with {other:?}, {stale:?} still wait: {plan:?}"))
        }
    }
}

/// Applies a proposal of the leader's own, and does what follows from the reply.
pub fn commit(world: &mut World, command: Command) {
    let reply = world.propose(Caller::SYSTEM, command.clone());
    match command {
        Command::Exited(exited) if matches!(reply, Ok(_) | Err(Reject::Stale)) => acknowledge(world, &exited),
        Command::DutyDone { duty, .. } => {
            world.leader.work.remove(&duty.owner);
            if reply.is_ok() && world.cluster.config().hooks.on_nodes() {
                forget_hooks(world, &duty);
            }
        }
        Command::RegisterNode { node, .. } => match reply {
            Ok(_) => welcome(world, &node),
            Err(_) => world.disconnect(&node),
        },
        _ => (),
    }
}

/// The job itself has its epilogs run.
fn holds_nodes(cluster: &Cluster, run: &Run) -> bool {
    cluster.job(run.job).is_some_and(|job| job.attempt == run.attempt && job.holds_nodes())
}

/// What the site's programs did is durable; the word may get lost, and then the agent tells of the run when it comes again.
fn forget_hooks(world: &mut World, duty: &Duty) {
    let names: Vec<NodeName> = world.agents.keys().cloned().collect();
    for name in names {
        let is_lost = !world.is_healing && world.dice.one_in(4);
        let runs = world.agent(&name).runs();
        let is_over = |run: &&Run| match &duty.owner {
            Owner::Job(id) => duty.task == Task::Epilog && run.job == *id && run.attempt == duty.attempt,
            Owner::Node(node) => *node == name && !holds_nodes(&world.cluster, run),
            _ => false,
        };
        let over: Vec<Run> = runs.iter().filter(is_over).cloned().collect();
        let agent = world.agent(&name);
        if !agent.is_welcome || is_lost {
            continue;
        }
        for run in over {
            agent.prologs.remove(&(run.job, run.attempt));
            agent.epilogs.remove(&(run.job, run.attempt));
            // Orders that were sent before come before it.
            let run = (run.job, run.attempt);
            let is_before = |order: &Order| match order {
                Order::Prolog(of) | Order::Epilog(of) | Order::LateEpilog(of) => *of == run,
                Order::Launch(_) | Order::Kill(..) | Order::Freeze(_) | Order::Thaw(_) => false,
            };
            agent.inbox.retain(|(_, order)| !is_before(order));
        }
    }
}

/// The acknowledgement may get lost; then the result comes again.
fn acknowledge(world: &mut World, exited: &Exited) {
    let is_lost = !world.is_healing && world.dice.one_in(4);
    let agent = world.agent(&exited.node);
    if agent.connection.is_some() && !is_lost {
        agent.spool.retain(|_, result| result != exited);
        // A launch that is still on its way is not for it any more; the agent remembers as long as the stream lives.
        agent.started.insert((exited.job, exited.attempt, exited.step));
    }
}

/// The agent is registered: orders that it may have missed are sent again.
fn welcome(world: &mut World, node: &NodeName) {
    stages::welcome(world, node);
    let mut missed: Vec<(u64, Order)> = Vec::new();
    for work in world.leader.work.values_mut().filter(|work| !work.is_proposed) {
        // What it answered before no longer counts: the machine may have been restarted since.
        // What has ended there is not launched again.
        let has_ended = match &work.duty.owner {
            Owner::Step(job, step) if work.duty.task == Task::Launch => {
                world.cluster.step(*job, *step).is_none_or(|step| step.ended_nodes.contains(node))
            }
            _ => false,
        };
        if has_ended {
            work.open.retain(|_, (to, _)| to != node);
            continue;
        }
        let again = work.orders.iter().filter(|(_, (to, _))| to == node);
        work.open.extend(again.map(|(number, order)| (*number, order.clone())));
        missed.extend(work.open.iter().filter(|(_, (to, _))| to == node).map(|(n, (_, order))| (*n, order.clone())));
    }
    let agent = world.agent(node);
    if agent.connection.is_some() {
        agent.is_welcome = true;
        agent.inbox.extend(missed);
    }
}

/// A stream stands only while its node answers as far as the log knows; the agent then comes again and registers.
fn close_streams(world: &mut World) {
    let is_coming = |leader: &Leader, name: &NodeName| {
        leader.door.iter().any(|command| matches!(command, Command::RegisterNode { node, .. } if node == name))
    };
    let answers = |name: &NodeName| world.cluster.node(name.as_str()).is_some_and(|node| node.answers);
    let unknown: Vec<NodeName> =
        world.agents.keys().filter(|name| !answers(name) && !is_coming(&world.leader, name)).cloned().collect();
    for name in unknown {
        world.disconnect(&name);
    }
}

fn hear_answers(world: &mut World) {
    for (node, number, result) in std::mem::take(&mut world.leader.answers) {
        if !world.is_healing && world.dice.one_in(4) {
            world.leader.answers.push((node, number, result));
            continue;
        }
        let Some(work) = world.leader.work.values_mut().find(|work| work.open.contains_key(&number)) else { continue };
        work.open.remove(&number);
        match result {
            DutyResult::Done => (),
            DutyResult::Failed { .. } | DutyResult::HookFailed { .. } => work.failure = Some(result),
        }
    }
}

/// Drops what no longer stands in the state, begins what is new, stops waiting for lost nodes, and proposes results.
fn take_up(world: &mut World) {
    let cluster = world.cluster.clone();
    world.leader.work.retain(|owner, work| cluster.duty(owner) == Some(&work.duty));
    let is_own = |duty: &&Duty| !matches!(duty.owner, Owner::Buffer(_) | Owner::Persistent(_));
    // Nothing is launched before the job's nodes are prepared.
    let is_ready = |duty: &&Duty| match &duty.owner {
        Owner::Step(job, _) => {
            duty.task != Task::Launch || cluster.job(*job).is_none_or(|job| !job.is_being_prepared())
        }
        _ => true,
    };
    for duty in cluster.duties().filter(is_own).filter(is_ready) {
        if !world.leader.work.contains_key(&duty.owner) && (world.is_healing || !world.dice.one_in(3)) {
            begin(world, &cluster, duty);
        }
    }
    let is_lost = |node: &NodeName| cluster.node(node.as_str()).is_none_or(|node| !node.answers);
    for work in world.leader.work.values_mut() {
        if work.duty.task != Task::Launch {
            work.open.retain(|_, (node, _)| !is_lost(node));
        }
        if work.open.is_empty() && !work.is_proposed {
            work.is_proposed = true;
            let result = work.failure.take().unwrap_or(DutyResult::Done);
            world.leader.door.push_back(Command::DutyDone { duty: work.duty.clone(), result });
        }
    }
}

fn begin(world: &mut World, cluster: &Cluster, duty: &Duty) {
    let mut orders = BTreeMap::new();
    for (node, order) in orders_for(cluster, duty) {
        let number = world.next_number();
        if world.agent(&node).is_welcome {
            world.agent(&node).inbox.push((number, order.clone()));
        }
        orders.insert(number, (node, order));
    }
    let work = Work { duty: duty.clone(), open: orders.clone(), orders, failure: None, is_proposed: false };
    world.leader.work.insert(duty.owner.clone(), work);
}

fn orders_for(cluster: &Cluster, duty: &Duty) -> Vec<(NodeName, Order)> {
    match &duty.owner {
        Owner::Job(id) => job_orders(cluster, *id, duty),
        Owner::Step(job, id) => {
            let step = cluster.step(*job, *id).expect("duties have owners");
            let order = match duty.task {
                Task::Launch => Order::Launch((*job, duty.attempt, *id)),
                _ => Order::Kill((*job, duty.attempt), Some(*id)),
            };
            let nodes = step.shares.iter().map(|share| &share.node);
            let nodes = nodes.filter(|node| duty.task != Task::Launch || !step.ended_nodes.contains(node));
            nodes.map(|node| (node.clone(), order.clone())).collect()
        }
        Owner::Buffer(_) | Owner::Persistent(_) => Vec::new(),
        Owner::Node(name) => {
            let node = cluster.node(name.as_str()).expect("duties have owners");
            let has_hooks = cluster.config().hooks.on_nodes();
            let orders = node.stale_runs.iter().flat_map(|run| {
                let id = (run.job, run.attempt);
                let epilog = (has_hooks && !holds_nodes(cluster, run)).then_some(Order::LateEpilog(id));
                [Some(Order::Kill(id, None)), epilog].into_iter().flatten()
            });
            orders.map(|order| (name.clone(), order)).collect()
        }
    }
}

fn job_orders(cluster: &Cluster, id: JobId, duty: &Duty) -> Vec<(NodeName, Order)> {
    let job = cluster.job(id).expect("duties have owners");
    let first = job.script_node().expect("a job with a duty holds nodes").clone();
    let run = (id, duty.attempt);
    let order = match duty.task {
        Task::Launch => return vec![(first, Order::Launch((id, duty.attempt, model::StepId::Batch)))],
        Task::Warn
        | Task::Preempt
        | Task::Clear
        | Task::Reboot
        | Task::StageIn
        | Task::PreRun
        | Task::PostRun
        | Task::StageOut
        | Task::Trim
        | Task::TearDown
        | Task::Create
        | Task::Destroy => return Vec::new(),
        // On the controller itself: there is nobody to ask.
        Task::ControllerProlog | Task::ControllerEpilog => return Vec::new(),
        Task::Prolog | Task::Epilog => {
            let order = if duty.task == Task::Prolog { Order::Prolog(run) } else { Order::Epilog(run) };
            return job.allocation.names().map(|node| (node.clone(), order.clone())).collect();
        }
        Task::Stop => Order::Freeze(run),
        Task::Continue => Order::Thaw(run),
        Task::Kill => Order::Kill(run, None),
    };
    // Where anything of the job may have been started.
    let mut nodes: Vec<NodeName> =
        cluster.steps_of(id).flat_map(|step| &step.shares).map(|share| share.node.clone()).collect();
    if job.runs_script() {
        nodes.push(first);
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes.into_iter().map(|node| (node, order.clone())).collect()
}
