//! Heterogeneous jobs: components are submitted, started and ended together. To their user they are one job.
use model::command::Blob;
use model::dependency::Dependency;
use model::het::{MAX_COMPONENTS, StepPart};
use model::{Caller, HetPlace, Job, JobId, JobSpec, NodeName, Outcome, Phase, Reason, Reject, Reply, StepId};

use crate::on::{Answer, submit};
use crate::{Cluster, job_life, limits, step_life};

/// All components, or none of them.
pub(crate) fn submit(cluster: &mut Cluster, by: Caller, specs: &[JobSpec], brought: &[Blob]) -> Answer {
    match specs {
        [] => return Err(Reject::InvalidValue("the number of components".into())),
        [only] => return submit::submit(cluster, by, only, brought),
        _ if specs.len() > MAX_COMPONENTS => return Err(Reject::InvalidValue("the number of components".into())),
        _ if specs.iter().any(|spec| spec.array.is_some()) => return Err(Reject::BadArray),
        _ => (),
    }
    let before = cluster.clone();
    let dependency = common_dependency(specs);
    let mut ids = Vec::new();
    let mut taken: Vec<NodeName> = Vec::new();
    for (offset, spec) in (0..).zip(specs) {
        let mut spec = JobSpec { dependency: dependency.clone(), component: Some(offset), ..spec.clone() };
        // No node serves two components.
        let more: Vec<NodeName> = taken.iter().filter(|name| !spec.size.excluded.contains(name)).cloned().collect();
        spec.size.excluded.extend(more);
        taken.extend(spec.size.nodes.iter().cloned());
        match submit::submit(cluster, by, &spec, brought) {
            Ok(Reply::Submitted(id)) => ids.push(id),
            Ok(other) => unreachable!("a submission is answered with {other:?}"),
            Err(reject) => {
                *cluster = before;
                return Err(reject);
            }
        }
    }
    let leader = ids[0];
    for (offset, id) in ids.iter().enumerate() {
        cluster.job_mut(*id).het = Some(HetPlace { leader, offset: offset as u32, ids: ids.clone() });
    }
    Ok(Reply::Submitted(leader))
}

/// What one component waits for, all wait for.
fn common_dependency(specs: &[JobSpec]) -> Dependency {
    let mut common = Dependency::default();
    for dependency in specs.iter().map(|spec| &spec.dependency).filter(|dependency| !dependency.terms.is_empty()) {
        common.any_is_enough |= dependency.any_is_enough;
        for term in &dependency.terms {
            if !common.terms.contains(term) {
                common.terms.push(term.clone());
            }
        }
    }
    common
}

/// The other components that are still known.
pub(crate) fn siblings<'a>(cluster: &'a Cluster, job: &'a Job) -> impl Iterator<Item = &'a Job> {
    let ids = job.het.iter().flat_map(|het| &het.ids).filter(|id| **id != job.id);
    ids.filter_map(|id| cluster.jobs.get(id)).map(|job| &**job)
}

/// The components that the id names: all of them by the leader's, otherwise the one.
pub(crate) fn named(cluster: &Cluster, id: JobId) -> Vec<JobId> {
    let Some(job) = cluster.jobs.get(&id) else { return Vec::new() };
    match &job.het {
        Some(het) if het.is_leader() => het.ids.iter().filter(|id| cluster.jobs.contains_key(*id)).copied().collect(),
        _ => vec![id],
    }
}

pub(crate) fn component(cluster: &Cluster, leader: JobId, offset: u32) -> Option<JobId> {
    // The leader's record may be forgotten before the others; components have ids near to its own.
    let is_it = |job: &Job| job.het.as_ref().is_some_and(|het| het.leader == leader && het.offset == offset);
    match cluster.jobs.get(&leader) {
        Some(job) => {
            let id = *job.het.as_ref()?.ids.get(offset as usize)?;
            cluster.jobs.contains_key(&id).then_some(id)
        }
        None => {
            let near = cluster.jobs.range(leader..=JobId(leader.0.saturating_add(MAX_COMPONENTS as u32)));
            near.map(|(_, job)| job).find(|job| is_it(job)).map(|job| job.id)
        }
    }
}

/// Refuses what can only be done to the whole.
pub(crate) fn whole_only(job: &Job) -> Result<(), Reject> {
    match &job.het {
        Some(het) if !het.is_leader() => Err(Reject::HetComponent),
        _ => Ok(()),
    }
}

/// How the whole has ended, if this component goes on alone.
pub(crate) fn end_of_the_others(cluster: &Cluster, job: &Job) -> Option<(Outcome, Option<Reason>)> {
    let ended = first_ended(cluster, job)?;
    Some((ended.outcome.unwrap_or(Outcome::Cancelled), ended.reason))
}

fn first_ended<'a>(cluster: &'a Cluster, job: &'a Job) -> Option<&'a Job> {
    use model::Phase::{Done, Ending, Finishing, Pending, Running, Starting, Suspended};
    let has_ended = |other: &&Job| match (job.phase, other.phase) {
        (Pending, _) => other.is_over(),
        (Starting | Running | Suspended, Ending | Finishing | Done) => ends_all(other),
        _ => false,
    };
    siblings(cluster, job).find(has_ended)
}

/// The script, or whoever holds the allocation, is the leader's; and a failed node fails the whole. Others may be cancelled alone.
fn ends_all(component: &Job) -> bool {
    let is_leader = component.het.as_ref().is_some_and(HetPlace::is_leader);
    is_leader || component.requeue || component.outcome == Some(Outcome::NodeFail)
}

/// The leader is to run again, so the whole is: components that ended before it come back too.
pub(crate) fn requeued(cluster: &mut Cluster, id: JobId) {
    if !cluster.jobs[&id].het.as_ref().is_some_and(HetPlace::is_leader) {
        return;
    }
    let others: Vec<JobId> = siblings(cluster, &cluster.jobs[&id]).map(|job| job.id).collect();
    for other in others {
        match cluster.jobs[&other].phase {
            Phase::Done => {
                job_life::take(cluster, other, job_life::Step::Requeue);
            }
            Phase::Ending | Phase::Finishing => cluster.job_mut(other).requeue = true,
            Phase::Pending | Phase::Starting | Phase::Running | Phase::Suspended => (),
        }
        cluster.unsettled.insert(other);
    }
}

/// A component has ended: the others look whether they must.
pub(crate) fn ended(cluster: &mut Cluster, id: JobId) {
    let others: Vec<JobId> = siblings(cluster, &cluster.jobs[&id]).map(|job| job.id).collect();
    cluster.unsettled.extend(others);
}

/// A component that the end of another ends takes over how that came about, and what is to follow.
pub(crate) fn end_with_the_others(cluster: &mut Cluster, id: JobId, outcome: Outcome, reason: Option<Reason>) {
    let how = first_ended(cluster, &cluster.jobs[&id]);
    let how = how.map(|other| (other.exit, other.requeue, other.held, other.cancelled_by, other.reason_text.clone()));
    job_life::end(cluster, id, outcome, reason);
    if let Some((exit, requeue, held, cancelled_by, reason_text)) = how {
        let job = cluster.job_mut(id);
        (job.exit, job.requeue, job.held, job.cancelled_by) = (exit, requeue, held, cancelled_by);
        job.reason_text = reason_text;
        // What is to run again counts on.
        limits::keep(cluster, id);
    }
}

/// Makes the parts one step.
pub(crate) fn join(cluster: &mut Cluster, parts: &[StepPart]) {
    for part in parts {
        cluster.step_mut(part.job, part.step).together = parts.to_vec();
    }
}

/// The parts that are not over of the step that this is one of.
pub(crate) fn live_parts(cluster: &Cluster, job: JobId, step: StepId) -> Vec<StepPart> {
    let Some(known) = cluster.step(job, step) else { return Vec::new() };
    let is_live = |part: &&StepPart| {
        cluster.step(part.job, part.step).is_some_and(|other| other.is_live() && other.together == known.together)
    };
    known.together.iter().filter(is_live).cloned().collect()
}

/// Ends every part of a step.
pub(crate) fn end_step(cluster: &mut Cluster, job: JobId, step: StepId) {
    let parts = live_parts(cluster, job, step);
    step_life::end(cluster, job, step);
    for part in parts {
        step_life::end(cluster, part.job, part.step);
    }
}

/// The number of the next step: those of all components are counted together, by the leader.
pub(crate) fn next_step(cluster: &mut Cluster, id: JobId) -> StepId {
    let leader = cluster.jobs[&id].het.as_ref().map_or(id, |het| het.leader);
    let counter = if cluster.jobs.contains_key(&leader) { leader } else { id };
    let job = cluster.job_mut(counter);
    let number = job.next_step;
    job.next_step += 1;
    StepId::Number(number)
}
