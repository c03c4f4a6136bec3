//! What users and administrators do to jobs that exist: cancel, complete, hold, release, requeue.
use std::sync::Arc;

use model::priority::PriorityKind;
use model::{
    Caller, Event, ExitStatus, HeldBy, Job, JobId, JobKind, JobRef, Outcome, Phase, Reason, Reject, Reply, Wake,
};

use super::{Answer, each, each_of, not_a_component};
use crate::buffers::life;
use crate::job_life::{self, Step};
use crate::settle::wake;
use crate::{Cluster, het};

pub(crate) fn cancel(cluster: &mut Cluster, by: Caller, jobs: &[JobRef], hurry: bool) -> Answer {
    // A component that runs may be cancelled alone, one that waits only with the others.
    let may = |job: &Job, named: &JobRef| match job.holds_nodes() || (hurry && job.is_over()) {
        true => Ok(()),
        false => not_a_component(job, named),
    };
    each_of(cluster, by, jobs, may, |cluster, id| {
        let job = &cluster.jobs[&id];
        if job.is_over() {
            // Only the data is left to be given up.
            let gives_up = hurry && life::hurry(cluster, id);
            return if gives_up { Ok(()) } else { Err(Reject::AlreadyOver) };
        }
        if hurry {
            life::hurry(cluster, id);
        }
        let job = cluster.job_mut(id);
        job.hurry |= hurry;
        job.requeue = false;
        job.cancelled_by = Some(by.uid);
        // A run that ends to be requeued ends for good now.
        if job.phase == Phase::Ending || job.phase == Phase::Finishing {
            job.outcome = Some(Outcome::Cancelled);
            job_life::moved(cluster, id);
        }
        job_life::end(cluster, id, Outcome::Cancelled, None);
        cluster.unsettled.insert(id);
        Ok(())
    })
}

/// The client of an allocation is done with it.
pub(crate) fn complete(cluster: &mut Cluster, by: Caller, id: JobId, exit: ExitStatus) -> Answer {
    let job = cluster.jobs.get(&id).ok_or(Reject::NoSuchJob)?;
    if !by.may_act_for(job.spec.uid) {
        return Err(Reject::NotPermitted);
    }
    if job.is_over() {
        return Err(Reject::AlreadyOver);
    }
    if job.phase == Phase::Pending {
        return Err(Reject::JobPending);
    }
    het::whole_only(job)?;
    if !matches!(job.spec.kind, JobKind::Allocation) {
        return Err(Reject::NotPermitted);
    }
    let outcome = if exit.is_success() { Outcome::Completed } else { Outcome::Failed };
    let reason = (!exit.is_success()).then_some(Reason::NonZeroExitCode);
    let has_live_steps = !crate::step_life::live(cluster, id).is_empty();
    let job = cluster.job_mut(id);
    job.exit = exit;
    job.alive = has_live_steps;
    job_life::end(cluster, id, outcome, reason);
    cluster.unsettled.insert(id);
    Ok(Reply::Ok)
}

/// A job that already runs is held only if it is requeued.
pub(crate) fn hold(cluster: &mut Cluster, by: Caller, jobs: &[JobRef], by_user: bool) -> Answer {
    each(cluster, by, jobs, |cluster, id| {
        if cluster.jobs[&id].is_over() {
            return Err(Reject::AlreadyOver);
        }
        let owner = cluster.jobs[&id].spec.uid;
        let as_user = by_user || !by.is_admin || (by.uid == owner && by.uid != 0);
        let job = cluster.job_mut(id);
        // A user cannot weaken an administrator's hold.
        if job.held != Some(HeldBy::Admin) {
            job.held = Some(if as_user { HeldBy::User } else { HeldBy::Admin });
        }
        touched(cluster, id);
        Ok(())
    })
}

pub(crate) fn release(cluster: &mut Cluster, by: Caller, jobs: &[JobRef]) -> Answer {
    each(cluster, by, jobs, |cluster, id| {
        let waits_for_room = cluster.rules() >= 2 && life::is_staging_out(cluster, id);
        if life::stage_out_failed(cluster, id) || waits_for_room {
            life::retry(cluster, id);
            if cluster.jobs[&id].is_over() {
                touched(cluster, id);
                return Ok(());
            }
        }
        let job = &cluster.jobs[&id];
        // Whoever suspended it has to resume it.
        if job.phase == Phase::Suspended && by.may_act_for(job.spec.uid) {
            return Ok(());
        }
        pending_only(job)?;
        if job.held == Some(HeldBy::Admin) && !by.is_admin {
            return Err(Reject::NotPermitted);
        }
        let weighs = cluster.config.scheduler.priority.kind == PriorityKind::Multifactor;
        let job = cluster.job_mut(id);
        job.held = None;
        job.auto_requeues = 0;
        if weighs && job.spec.priority.is_some() {
            // Whoever releases a job leaves its importance to the factors.
            Arc::make_mut(&mut job.spec).priority = None;
        }
        wake(cluster, Wake::Released(id));
        touched(cluster, id);
        Ok(())
    })
}

pub(crate) fn requeue(cluster: &mut Cluster, by: Caller, jobs: &[JobRef], hold: bool) -> Answer {
    let may = |job: &Job, named: &JobRef| match not_a_component(job, named) {
        Err(_) if named.component.is_some() => Err(Reject::NoSuchJob),
        Err(_) => Err(Reject::NotHetLeader),
        Ok(()) => Ok(()),
    };
    each_of(cluster, by, jobs, may, |cluster, id| {
        let job = &cluster.jobs[&id];
        if !job.spec.is_batch() {
            return Err(Reject::NotBatch);
        }
        if job.spec.requeue == Some(false) {
            return Err(Reject::RequeueDisabled);
        }
        if job.phase == Phase::Pending {
            return Err(Reject::JobPending);
        }
        let was_suspended = job.is_suspended_by_hand();
        let job = cluster.job_mut(id);
        if hold {
            job.held = Some(HeldBy::Requeue);
        } else if was_suspended {
            job.held = Some(HeldBy::Admin);
        }
        match job.phase {
            Phase::Done => {
                job_life::take(cluster, id, Step::Requeue);
            }
            Phase::Starting | Phase::Running | Phase::Suspended => {
                job.requeue = true;
                job_life::end(cluster, id, Outcome::Cancelled, None);
            }
            Phase::Pending | Phase::Ending | Phase::Finishing => {
                job.requeue = true;
                job_life::moved(cluster, id);
            }
        }
        cluster.unsettled.insert(id);
        Ok(())
    })
}

pub(crate) fn pending_only(job: &Job) -> Result<(), Reject> {
    match job.phase {
        Phase::Pending => Ok(()),
        _ if job.is_over() => Err(Reject::AlreadyOver),
        _ => Err(Reject::JobNotPending),
    }
}

/// Something users see has changed.
pub(crate) fn touched(cluster: &mut Cluster, id: JobId) {
    cluster.unsettled.insert(id);
    let at = cluster.now;
    cluster.tell(Event::JobUpdated { job: id, at });
}
