//! Steps: one `srun` in a job.
use model::command::Blob;
use model::{Caller, JobId, Phase, Reject, Reply, Step, StepId, StepSpec};

use super::Answer;
use crate::{Cluster, blobs, step_layout, step_life};

pub(crate) fn create(cluster: &mut Cluster, by: Caller, id: JobId, spec: &StepSpec, brought: &[Blob]) -> Answer {
    let job = cluster.jobs.get(&id).ok_or(Reject::NoSuchJob)?;
    if !by.may_act_for(job.spec.uid) {
        return Err(Reject::NotPermitted);
    }
    match job.phase {
        Phase::Pending => return Err(Reject::JobPending),
        Phase::Suspended => return Err(Reject::StepsDisabled),
        Phase::Ending | Phase::Finishing | Phase::Done => return Err(Reject::AlreadyOver),
        Phase::Starting | Phase::Running => (),
    }
    let live = cluster.steps_of(id).filter(|step| step.is_live()).map(|step| -> &Step { step });
    let layout = step_layout::lay_out(job, spec, live)?;
    let wanted = blobs::of_step(spec);
    blobs::are_at_hand(cluster, &wanted, brought)?;
    blobs::take(cluster, &wanted, brought);
    Ok(Reply::StepCreated(step_life::create(cluster, id, spec, layout)))
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
    step_life::end(cluster, id, step);
    Ok(Reply::Ok)
}
