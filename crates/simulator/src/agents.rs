//! The nodes as they really are: processes, spools, and the memory of what was killed. The truth that the state must agree with.
use std::collections::{BTreeMap, BTreeSet};

use model::command::{DutyResult, Exited};
use model::node::Run;
use model::staging::Home;
use model::{ExitStatus, JobId, NodeName, StepId};

use crate::World;
use crate::stages::{self, Errand};

/// One step (or batch script) of one run of a job.
pub type Part = (JobId, u32, StepId);
pub type RunId = (JobId, u32);

#[derive(Clone, Debug)]
pub enum Order {
    Launch(Part),
    Kill(RunId, Option<StepId>),
    Freeze(RunId),
    Thaw(RunId),
    Prolog(RunId),
    Epilog(RunId),
    /// For a run that the controller has given up: only if its prolog was run here, and its epilog was not.
    LateEpilog(RunId),
}

#[derive(Default)]
pub struct Agent {
    /// The stream to the controller, if there is one.
    pub connection: Option<u64>,
    /// Its registration is in the log; no order comes before.
    pub is_welcome: bool,
    pub processes: BTreeSet<Part>,
    /// Launched in this life of the agent; an order that comes twice does nothing the second time.
    pub started: BTreeSet<Part>,
    pub killed: BTreeSet<(RunId, Option<StepId>)>,
    pub frozen: BTreeSet<RunId>,
    /// Runs whose site programs were begun here; kept until the controller says that their ends are durable.
    pub prologs: BTreeMap<RunId, DutyResult>,
    pub epilogs: BTreeMap<RunId, DutyResult>,
    /// Results that the controller has not acknowledged.
    pub spool: BTreeMap<u64, Exited>,
    /// Orders on their way here; lost with the connection.
    pub inbox: Vec<(u64, Order)>,
    /// Orders about burst buffers on their way here.
    pub stages: Vec<Errand>,
    /// The highest order seen for each directory, and the removals done.
    pub stage_attempts: BTreeMap<Home, u32>,
    pub removed: BTreeSet<(Home, u32)>,
    next_result: u64,
    /// How often the machine was started anew.
    pub n_boots: u32,
}

impl Agent {
    /// What it tells when it connects: runs with processes, and runs with results that are not acknowledged.
    pub fn runs(&self) -> Vec<Run> {
        let living = self.processes.iter().map(|(job, attempt, _)| (*job, *attempt));
        let ended = self.spool.values().map(|exited| (exited.job, exited.attempt));
        let prepared = self.prologs.keys().chain(self.epilogs.keys()).copied();
        let runs: BTreeSet<RunId> = living.chain(ended).chain(prepared).collect();
        runs.into_iter().map(|(job, attempt)| Run { job, attempt }).collect()
    }

    /// A process has ended; nothing is left of it.
    pub fn end(&mut self, name: &NodeName, part: Part, exit: ExitStatus) -> Exited {
        self.processes.remove(&part);
        let (job, attempt, step) = part;
        let exited = Exited { job, attempt, step, node: name.clone(), exit, ..Default::default() };
        self.next_result += 1;
        self.spool.insert(self.next_result, exited.clone());
        exited
    }

    fn is_killed(&self, (job, attempt, step): Part) -> bool {
        self.killed.contains(&((job, attempt), None)) || self.killed.contains(&((job, attempt), Some(step)))
    }

    fn parts_of(&self, run: RunId, step: Option<StepId>) -> Vec<Part> {
        let meant = |part: &&Part| (part.0, part.1) == run && step.is_none_or(|step| step == part.2);
        self.processes.iter().filter(meant).copied().collect()
    }
}

/// Orders arrive in any order and sometimes twice; processes end by themselves; results are reported until acknowledged.
pub fn act(world: &mut World) {
    let names: Vec<NodeName> = world.agents.keys().cloned().collect();
    for name in names {
        obey(world, &name);
        stages::obey(world, &name);
        end_some(world, &name);
        report(world, &name);
    }
}

fn obey(world: &mut World, name: &NodeName) {
    let inbox = std::mem::take(&mut world.agent(name).inbox);
    let mut postponed = BTreeSet::new();
    for (number, order) in inbox {
        // Only launches and kills overtake each other.
        let in_turn = match &order {
            Order::Freeze(run) | Order::Thaw(run) => Some(*run),
            Order::Launch(_) | Order::Kill(..) | Order::Prolog(_) | Order::Epilog(_) | Order::LateEpilog(_) => None,
        };
        // An epilog waits until nothing of its run is left.
        let comes_last = matches!(&order, Order::Epilog(run) | Order::LateEpilog(run) if !world.agent(name).parts_of(*run, None).is_empty());
        let must_wait = comes_last || in_turn.is_some_and(|run| postponed.contains(&run));
        if must_wait || (!world.is_healing && world.dice.one_in(3)) {
            postponed.extend(in_turn);
            world.agent(name).inbox.push((number, order));
            continue;
        }
        if in_turn.is_none() && !world.is_healing && world.dice.one_in(8) {
            world.agent(name).inbox.push((number, order.clone()));
        }
        let result = carry_out(world, name, &order);
        let connection = world.agent(name).connection;
        if connection.is_some() {
            world.leader.answers.push((name.clone(), number, result));
        }
    }
}

fn carry_out(world: &mut World, name: &NodeName, order: &Order) -> DutyResult {
    let fails = !world.is_healing && world.dice.one_in(20);
    let failed = |why: &str| DutyResult::Failed { node: name.clone(), why: why.into() };
    match order {
        Order::Launch(part) => {
            let agent = world.agent(name);
            let is_known = agent.started.contains(part) || agent.spool.values().any(|exited| id_of(exited) == *part);
            if is_known {
                agent.started.insert(*part);
                return DutyResult::Done;
            }
            if agent.is_killed(*part) {
                return failed("the run has been ended");
            }
            if fails {
                return failed("no such user");
            }
            agent.started.insert(*part);
            agent.processes.insert(*part);
            let launched = world.truth.launched(name, *part);
            world.ensure(launched);
        }
        Order::Kill(run, step) => {
            world.agent(name).killed.insert((*run, *step));
            for part in world.agent(name).parts_of(*run, *step) {
                let exited = world.agent(name).end(name, part, ExitStatus::signaled(9));
                world.truth.ended(&exited);
            }
        }
        Order::Freeze(_) if fails => return failed("cannot be frozen"),
        Order::Freeze(run) => {
            world.agent(name).frozen.insert(*run);
        }
        Order::Thaw(run) => {
            world.agent(name).frozen.remove(run);
        }
        Order::LateEpilog(run) if !world.agent(name).prologs.contains_key(run) => (),
        Order::Prolog(run) | Order::Epilog(run) | Order::LateEpilog(run) => {
            let is_prolog = matches!(order, Order::Prolog(_));
            let agent = world.agent(name);
            let records = if is_prolog { &mut agent.prologs } else { &mut agent.epilogs };
            if let Some(result) = records.get(run) {
                return result.clone();
            }
            let failure = DutyResult::HookFailed {
                nodes: vec![name.clone()],
                why: "exit status 1".into(),
                drained_for: String::new(),
            };
            let result = if fails { failure } else { DutyResult::Done };
            records.insert(*run, result.clone());
            let is_clear = agent.parts_of(*run, None).is_empty();
            let begun = match is_prolog {
                true => world.truth.prolog(name, *run),
                false => world.truth.epilog(name, *run, is_clear),
            };
            world.ensure(begun);
            return result;
        }
    }
    DutyResult::Done
}

fn id_of(exited: &Exited) -> Part {
    (exited.job, exited.attempt, exited.step)
}

fn end_some(world: &mut World, name: &NodeName) {
    let parts: Vec<Part> = world.agent(name).processes.iter().copied().collect();
    for part in parts {
        let is_frozen = world.agent(name).frozen.contains(&(part.0, part.1));
        if is_frozen || !world.dice.one_in(if world.is_healing { 2 } else { 9 }) {
            continue;
        }
        let exit = match world.dice.below(6) {
            0 => ExitStatus::exited(1),
            1 => ExitStatus::signaled(11),
            _ => ExitStatus::SUCCESS,
        };
        let exited = world.agent(name).end(name, part, exit);
        world.truth.ended(&exited);
    }
}

fn report(world: &mut World, name: &NodeName) {
    if world.agent(name).connection.is_none() {
        return;
    }
    let results: Vec<Exited> = world.agent(name).spool.values().cloned().collect();
    for exited in results {
        if world.dice.one_in(2) {
            world.leader.propose_later(model::Command::Exited(exited));
        }
    }
}
