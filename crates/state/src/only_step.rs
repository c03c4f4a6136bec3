//! Jobs that are one `srun`: they end with their step, and the components of an `srun a : b` with the last of their steps.
use model::het::StepPart;
use model::{ExitStatus, JobId, JobKind, Outcome, Phase, Reason, StepId};

use crate::job_life::{self, Step};
use crate::{Cluster, het, step_life};

const STEP: StepId = StepId::Number(0);

/// The step may be over: its job ends with it, or those that waited for this component do.
pub(crate) fn ended(cluster: &mut Cluster, id: JobId, step: StepId) {
    if !matches!(cluster.jobs[&id].spec.kind, JobKind::Run(_)) || step != STEP {
        return;
    }
    let Some(step) = cluster.step(id, STEP).filter(|step| !step.is_live()) else { return };
    let alone = [StepPart { job: id, step: STEP }];
    let parts = if step.together.is_empty() { alone.to_vec() } else { step.together.clone() };
    if !het::live_parts(cluster, id, STEP).is_empty() {
        return;
    }
    for part in parts {
        // Whoever ends already ends as it was told to.
        let goes_on = |phase: Phase| matches!(phase, Phase::Starting | Phase::Running | Phase::Suspended);
        let goes_on = cluster.jobs.get(&part.job).is_some_and(|job| goes_on(job.phase));
        let how = cluster.step(part.job, part.step).map(|step| (step.exit, step.was_cancelled));
        if let (true, Some((exit, was_cancelled))) = (goes_on, how) {
            end(cluster, part.job, exit, was_cancelled);
            cluster.unsettled.insert(part.job);
        }
    }
}

fn end(cluster: &mut Cluster, id: JobId, exit: ExitStatus, was_cancelled: bool) {
    let out_of_memory = exit == ExitStatus::OUT_OF_MEMORY;
    let alive = !step_life::live(cluster, id).is_empty();
    let job = cluster.job_mut(id);
    job.exit = exit;
    job.alive = alive;
    let (outcome, reason) = match (exit.is_success(), was_cancelled) {
        (_, true) => (Outcome::Cancelled, None),
        _ if out_of_memory => (Outcome::OutOfMemory, Some(Reason::OutOfMemory)),
        (true, false) => (Outcome::Completed, None),
        (false, false) => (Outcome::Failed, Some(Reason::NonZeroExitCode)),
    };
    job_life::take(cluster, id, Step::Launched);
    job_life::end(cluster, id, outcome, reason);
}
