//! What really happened on the nodes, and whether the state agrees with it.
use std::collections::{BTreeMap, BTreeSet};

use model::command::Exited;
use model::node::Run;
use model::{ExitStatus, Job, JobKind, NodeName, Outcome, Phase, StepId, StepPhase};

use crate::World;
use crate::agents::{Part, RunId};

#[derive(Default)]
pub struct Truth {
    launched: BTreeSet<(NodeName, Part)>,
    ended: BTreeMap<(NodeName, Part), ExitStatus>,
    /// Lost with the machine that knew it: it may be launched there again.
    forgotten: BTreeSet<(NodeName, Part)>,
    prologs: BTreeSet<(NodeName, RunId)>,
    epilogs: BTreeSet<(NodeName, RunId)>,
    /// Machines that came back empty, and so may run the site's programs for a run again.
    wiped: BTreeSet<NodeName>,
}

impl Truth {
    pub fn launched(&mut self, node: &NodeName, part: Part) -> Result<(), String> {
        let place = (node.clone(), part);
        let is_first = self.launched.insert(place.clone()) || self.forgotten.contains(&place);
        if is_first { Ok(()) } else { Err(format!("{part:?} is launched on {node} for the second time")) }
    }

    pub fn ended(&mut self, exited: &Exited) {
        let part = (exited.job, exited.attempt, exited.step);
        let place = (exited.node.clone(), part);
        let before = self.ended.insert(place.clone(), exited.exit);
        assert!(
            before.is_none() || self.forgotten.contains(&place),
            "{part:?} ended on {} for the second time",
            exited.node
        );
    }

    /// Nobody knows what happened there and was not told.
    pub fn forgotten(&mut self, node: &NodeName, parts: impl Iterator<Item = Part>) {
        self.forgotten.extend(parts.map(|part| (node.clone(), part)));
    }

    pub fn wiped(&mut self, node: &NodeName) {
        self.wiped.insert(node.clone());
    }

    /// The site's program has been begun on this node.
    pub fn prolog(&mut self, node: &NodeName, run: RunId) -> Result<(), String> {
        let is_late = self.launched.iter().any(|(at, part)| at == node && (part.0, part.1) == run);
        if is_late && !self.wiped.contains(node) {
            return Err(format!("{node} is prepared for {run:?} after something was launched"));
        }
        self.begun(node, run, Hooks::Prolog)
    }

    pub fn epilog(&mut self, node: &NodeName, run: RunId, is_clear: bool) -> Result<(), String> {
        if !is_clear {
            return Err(format!("the epilog of {run:?} runs on {node} beside its processes"));
        }
        self.begun(node, run, Hooks::Epilog)
    }

    fn begun(&mut self, node: &NodeName, run: RunId, which: Hooks) -> Result<(), String> {
        let begun = match which {
            Hooks::Prolog => &mut self.prologs,
            Hooks::Epilog => &mut self.epilogs,
        };
        let is_first = begun.insert((node.clone(), run));
        if is_first || self.wiped.contains(node) {
            return Ok(());
        }
        Err(format!("the {which:?} of {run:?} runs on {node} for the second time"))
    }

    fn exit(&self, node: &NodeName, part: Part) -> Option<ExitStatus> {
        self.ended.get(&(node.clone(), part)).copied()
    }
}

#[derive(Clone, Copy, Debug)]
enum Hooks {
    Prolog,
    Epilog,
}

pub fn check(world: &World) -> Result<(), String> {
    for (name, agent) in &world.agents {
        for part in &agent.processes {
            check_process(world, name, *part)?;
        }
    }
    for job in world.cluster.jobs() {
        check_outcome(world, job)?;
        check_frozen(world, job)?;
    }
    Ok(())
}

/// A process belongs to a job that holds the node, or to a node that is not used before it is cleared.
fn check_process(world: &World, name: &NodeName, part: Part) -> Result<(), String> {
    let (id, attempt, step) = part;
    let Some(node) = world.cluster.node(name.as_str()) else { return Ok(()) };
    let is_stale = node.stale_runs.contains(&Run { job: id, attempt });
    if !node.answers || is_stale {
        return Ok(());
    }
    let job = world.cluster.job(id).filter(|job| job.attempt == attempt && job.holds_nodes());
    let Some(job) = job.filter(|job| job.allocation.share(name.as_str()).is_some()) else {
        return Err(format!("{part:?} lives on {name}, which its job has given back"));
    };
    match step {
        StepId::Batch => Ok(()),
        StepId::Number(_) => match world.cluster.step(job.id, step) {
            Some(step) if step.phase != StepPhase::Done => Ok(()),
            Some(_) => Err(format!("{part:?} lives on {name}, but its step is over")),
            None => Err(format!("{part:?} lives on {name}, but there is no such step")),
        },
    }
}

/// A job that counts as completed, or as failed by itself, really ended so.
fn check_outcome(world: &World, job: &Job) -> Result<(), String> {
    let told = match job.outcome {
        Some(Outcome::Completed) => true,
        Some(Outcome::Failed) => {
            matches!(job.reason, Some(model::Reason::NonZeroExitCode | model::Reason::RaisedSignal))
        }
        _ => false,
    };
    if !told {
        return Ok(());
    }
    let run = (job.id, job.attempt);
    let ends: Vec<Option<ExitStatus>> = match &job.spec.kind {
        JobKind::Allocation => return Ok(()),
        // A component runs no script; it ends as its leader does.
        JobKind::Batch { .. } if !job.runs_script() => return Ok(()),
        JobKind::Batch { .. } => {
            let first = job.script_node().expect("a job that ran had nodes");
            vec![world.truth.exit(first, (run.0, run.1, StepId::Batch))]
        }
        JobKind::Run(_) => {
            let only = StepId::Number(0);
            let Some(step) = world.cluster.step(job.id, only) else {
                return Err(format!("{run:?} has lost its step"));
            };
            step.shares.iter().map(|share| world.truth.exit(&share.node, (run.0, run.1, only))).collect()
        }
    };
    let completed = job.outcome == Some(Outcome::Completed);
    if completed && !ends.iter().all(|end| *end == Some(ExitStatus::SUCCESS)) {
        return Err(format!("{run:?} counts as completed, but ended as {ends:?}"));
    }
    if !completed && job.runs_script() && ends != [Some(job.exit)] {
        return Err(format!("{run:?} counts as ended with {:?}, but ended as {ends:?}", job.exit));
    }
    Ok(())
}

/// Once the duty is done, a suspended job's processes stand still, and a resumed job's do not.
fn check_frozen(world: &World, job: &Job) -> Result<(), String> {
    let run = (job.id, job.attempt);
    if world.cluster.duty(&model::Owner::Job(job.id)).is_some() {
        return Ok(());
    }
    for (name, agent) in &world.agents {
        let runs_here = agent.processes.iter().any(|part| (part.0, part.1) == run);
        let answers = world.cluster.node(name.as_str()).is_some_and(|node| node.answers);
        if !runs_here || !answers {
            continue;
        }
        let is_frozen = agent.frozen.contains(&run);
        match job.phase {
            Phase::Suspended if !is_frozen => return Err(format!("{run:?} is suspended but runs on {name}")),
            Phase::Running if is_frozen => return Err(format!("{run:?} is not suspended but frozen on {name}")),
            _ => (),
        }
    }
    Ok(())
}
