//! Steps: one `srun` in a job.
use std::collections::BTreeSet;

use model::command::Blob;
use model::het::{MAX_COMPONENTS, StepPart};
use model::{Caller, Job, JobId, NodeName, Phase, Reject, Reply, Step, StepId, StepSpec};

use super::Answer;
use crate::step_layout::{Layout, Place};
use crate::{Cluster, blobs, het, network, ports, step_layout, step_life};

pub(crate) fn create(cluster: &mut Cluster, by: Caller, id: JobId, spec: &StepSpec, brought: &[Blob]) -> Answer {
    create_as(cluster, by, id, spec, brought, None)
}

fn create_as(
    cluster: &mut Cluster,
    by: Caller,
    id: JobId,
    spec: &StepSpec,
    brought: &[Blob],
    number: Option<StepId>,
) -> Answer {
    let job = cluster.jobs.get(&id).ok_or(Reject::NoSuchJob)?;
    // It runs as the owner: whoever manages jobs is not thereby everybody.
    if by.uid != job.spec.uid && by.uid != 0 {
        return Err(Reject::NotPermitted);
    }
    let (layout, ports) = lay_out(cluster, job, spec)?;
    let wanted = blobs::of_step(spec);
    blobs::are_at_hand(cluster, &wanted, brought)?;
    blobs::take(cluster, &wanted, brought);
    let number = number.unwrap_or_else(|| het::next_step(cluster, id));
    step_life::create(cluster, id, number, spec, layout, ports);
    Ok(Reply::StepCreated(number))
}

fn lay_out(cluster: &Cluster, job: &Job, spec: &StepSpec) -> Result<(Layout, Vec<u16>), Reject> {
    match job.phase {
        Phase::Pending => return Err(Reject::JobPending),
        Phase::Suspended => return Err(Reject::StepsDisabled),
        Phase::Ending | Phase::Finishing | Phase::Done => return Err(Reject::AlreadyOver),
        Phase::Starting | Phase::Running => (),
    }
    let live = cluster.steps_of(job.id).filter(|step| step.is_live()).map(|step| -> &Step { step });
    let place = |name: &NodeName| Place {
        unit: network::unit_for(cluster, job, name),
        cpus_together: cluster.nodes.get(name).map_or(1, |node| node.config.unit()),
    };
    let packs = cluster.rules() >= 2 && (spec.packs || cluster.config.scheduler.fills_nodes);
    let layout = match packs == spec.packs {
        true => step_layout::lay_out(job, spec, live, place)?,
        false => step_layout::lay_out(job, &StepSpec { packs, ..spec.clone() }, live, place)?,
    };
    let ports = ports::choose(cluster, spec, layout.shares.iter())?;
    Ok((layout, ports))
}

/// Whether it is of use to ask for the step now: it would be created, or refused for good.
pub fn need_not_wait(cluster: &Cluster, id: JobId, spec: &StepSpec) -> bool {
    let answer = cluster.jobs.get(&id).map(|job| lay_out(cluster, job, spec));
    !matches!(answer, Some(Err(Reject::StepMustWait | Reject::StepsDisabled | Reject::PortsInUse)))
}

/// One step in several parts: all are created, or none.
pub(crate) fn create_together(
    cluster: &mut Cluster,
    by: Caller,
    parts: &[(JobId, StepSpec)],
    brought: &[Blob],
) -> Answer {
    if parts.is_empty() || parts.len() > MAX_COMPONENTS {
        return Err(Reject::InvalidValue("the number of components".into()));
    }
    let before = cluster.clone();
    let mut created: Vec<StepPart> = Vec::new();
    let jobs: BTreeSet<JobId> = parts.iter().map(|(job, _)| *job).collect();
    for (job, spec) in parts {
        // Parts in different jobs share the number of the first; those in one job cannot.
        let number = created.first().map(|first| first.step).filter(|_| jobs.len() == parts.len());
        match create_as(cluster, by, *job, spec, brought, number) {
            Ok(Reply::StepCreated(step)) => created.push(StepPart { job: *job, step }),
            Ok(other) => unreachable!("a step's creation is answered with {other:?}"),
            Err(reject) => {
                *cluster = before;
                return Err(reject);
            }
        }
    }
    het::join(cluster, &created);
    Ok(Reply::StepsCreated(created))
}

pub(crate) fn cancel(cluster: &mut Cluster, by: Caller, id: JobId, step: StepId) -> Answer {
    let job = cluster.jobs.get(&id).ok_or(Reject::NoSuchJob)?;
    if !by.may_act_for(job.spec.uid) {
        return Err(Reject::NotPermitted);
    }
    let record = cluster.step(id, step).ok_or(Reject::NoSuchStep)?;
    if !record.is_live() {
        return Err(Reject::AlreadyOver);
    }
    het::end_step(cluster, id, step);
    Ok(Reply::Ok)
}
