//! The life of a step. Every phase change of a step happens here.
//!
//! ```text
//! Starting ──launched──▶ Running ──all nodes ended──▶ Done
//!     └────────cancel / job ends────▶ Ending ──────────┘
//! ```
use std::sync::Arc;

use model::command::Exited;
use model::{Duty, Event, ExitStatus, JobId, Outcome, Owner, Step, StepId, StepPhase, StepSpec, Task, Wake};

use crate::settle::wake;
use crate::step_layout::Layout;
use crate::{Cluster, blobs};

pub(crate) fn create(cluster: &mut Cluster, job: JobId, id: StepId, spec: &StepSpec, layout: Layout, ports: Vec<u16>) {
    let now = cluster.now;
    if let Some(last) = ports.last() {
        cluster.last_port = *last;
        wake(cluster, Wake::Ports);
    }
    let record = cluster.job_mut(job);
    record.alive = true;
    let step = Step {
        job,
        id,
        attempt: record.attempt,
        spec: Box::new(spec.clone()),
        shares: layout.shares,
        n_tasks: layout.n_tasks,
        ports,
        started: Some(now),
        ..Default::default()
    };
    cluster.steps.insert((job, id), Arc::new(step));
    enter(cluster, job, id, StepPhase::Starting);
}

/// The agents have started its tasks.
pub(crate) fn launched(cluster: &mut Cluster, job: JobId, id: StepId) {
    if cluster.steps[&(job, id)].phase == StepPhase::Starting {
        enter(cluster, job, id, StepPhase::Running);
    }
}

/// Has its processes ended, wherever they are.
pub(crate) fn end(cluster: &mut Cluster, job: JobId, id: StepId) {
    if matches!(cluster.steps[&(job, id)].phase, StepPhase::Starting | StepPhase::Running) {
        cluster.step_mut(job, id).was_cancelled = true;
        enter(cluster, job, id, StepPhase::Ending);
    }
}

/// All its tasks on `node` have ended; nothing is left of it there.
pub(crate) fn node_ended(cluster: &mut Cluster, exited: &Exited) {
    let (job, id) = (exited.job, exited.step);
    let at = cluster.now;
    let step = cluster.step_mut(job, id);
    if step.ended_nodes.contains(&exited.node) {
        return;
    }
    step.ended_nodes.push(exited.node.clone());
    if let Some(usage) = &exited.usage {
        step.usage.get_or_insert_default().add(&usage.on(&exited.node));
    }
    step.out_of_memory |= exited.out_of_memory;
    step.exit = step.exit.worse(exited.exit);
    if step.phase == StepPhase::Done {
        // The nodes were said to be clear before this came; how it ended and what was measured is news.
        if derive(cluster, job, exited.exit) {
            cluster.tell(Event::JobUpdated { job, at });
        }
        return cluster.tell(Event::StepChanged { job, step: id, to: StepPhase::Done, at });
    }
    if step.shares.iter().all(|share| step.ended_nodes.contains(&share.node)) {
        done(cluster, job, id);
    }
}

/// Nothing is left of the step on any node.
pub(crate) fn cleared(cluster: &mut Cluster, job: JobId, id: StepId) {
    if cluster.steps[&(job, id)].phase != StepPhase::Done {
        done(cluster, job, id);
    }
}

/// The job ends: its own task clears the nodes, so the steps need none.
pub(crate) fn end_all(cluster: &mut Cluster, job: JobId) {
    for id in live(cluster, job) {
        cluster.duties.remove(&Owner::Step(job, id));
        cluster.step_mut(job, id).phase = StepPhase::Ending;
    }
}

/// The job's nodes are clear.
pub(crate) fn all_cleared(cluster: &mut Cluster, job: JobId) {
    for id in live(cluster, job) {
        done(cluster, job, id);
    }
}

pub(crate) fn forget_all(cluster: &mut Cluster, job: JobId) {
    let steps: Vec<StepId> = cluster.steps_of(job).map(|step| step.id).collect();
    for id in steps {
        let step = cluster.steps.remove(&(job, id)).expect("just listed");
        cluster.duties.remove(&Owner::Step(job, id));
        blobs::release(cluster, &blobs::of_step(&step.spec));
    }
}

pub(crate) fn live(cluster: &Cluster, job: JobId) -> Vec<StepId> {
    cluster.steps_of(job).filter(|step| step.is_live()).map(|step| step.id).collect()
}

fn done(cluster: &mut Cluster, job: JobId, id: StepId) {
    let now = cluster.now;
    let step = cluster.step_mut(job, id);
    step.ended = Some(now);
    let (exit, had_ports) = (step.exit, !step.ports.is_empty());
    enter(cluster, job, id, StepPhase::Done);
    derive(cluster, job, exit);
    wake(cluster, Wake::JobMoved(job));
    if had_ports {
        wake(cluster, Wake::Ports);
    }
}

/// The worst end of a step is the job's derived exit; whether this one was.
fn derive(cluster: &mut Cluster, job: JobId, exit: ExitStatus) -> bool {
    let record = cluster.job_mut(job);
    // What ends with its job because the job was ended says nothing of its own.
    let is_swept_away = matches!(
        record.outcome,
        Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Preempted | Outcome::Deadline | Outcome::NodeFail)
    );
    let before = record.derived_exit;
    if !is_swept_away {
        record.derived_exit = before.worse(exit);
    }
    record.derived_exit != before
}

fn enter(cluster: &mut Cluster, job: JobId, id: StepId, phase: StepPhase) {
    let at = cluster.now;
    let step = cluster.step_mut(job, id);
    step.phase = phase;
    let attempt = step.attempt;
    let owner = Owner::Step(job, id);
    let task = match phase {
        StepPhase::Starting => Some(Task::Launch),
        StepPhase::Ending => Some(Task::Kill),
        StepPhase::Running | StepPhase::Done => None,
    };
    match task {
        Some(task) => cluster.duties.insert(owner.clone(), Duty { owner, attempt, task, sequence: 0 }),
        None => cluster.duties.remove(&owner),
    };
    cluster.tell(Event::StepChanged { job, step: id, to: phase, at });
}
