//! Suspend and resume: the decision and its stamp. Freezing itself is the agents' task.
use model::node::NodePhase;
use model::{Caller, JobId, JobRef, Phase, Reject, Reply};

use super::job::touched;
use super::{Answer, each_whole};
use crate::job_life::{self, Step};
use crate::{Cluster, gang, ledger};

pub(crate) fn suspend(cluster: &mut Cluster, by: Caller, jobs: &[JobRef]) -> Answer {
    let owners_may = cluster.config.scheduler.allow_owner_suspend;
    each_whole(cluster, by, jobs, |cluster, id| {
        may(by, owners_may)?;
        match cluster.jobs[&id].phase {
            Phase::Pending => return Err(Reject::JobPending),
            // It stood still for another; from now on it does so for whoever asks.
            Phase::Suspended if cluster.jobs[&id].is_parked => {
                cluster.job_mut(id).is_parked = false;
                cluster.parked.remove(&id);
                ledger::lend_cpus(cluster, id);
                cluster.sharing_changed = true;
                touched(cluster, id);
                return Ok(());
            }
            Phase::Suspended => return Err(Reject::AlreadySuspended),
            Phase::Ending | Phase::Finishing | Phase::Done => return Err(Reject::AlreadyOver),
            Phase::Starting if cluster.jobs[&id].starts_suspended => return Err(Reject::AlreadySuspended),
            // Its nodes are prepared first, and its data is brought.
            Phase::Starting if cluster.jobs[&id].is_being_prepared() => {
                cluster.job_mut(id).starts_suspended = true;
                touched(cluster, id);
                return Ok(());
            }
            // The launch is still done first; then what it started is frozen.
            Phase::Starting => {
                job_life::take(cluster, id, Step::Launched);
            }
            Phase::Running => (),
        }
        job_life::take(cluster, id, Step::Suspend);
        cluster.unsettled.insert(id);
        Ok(())
    })
}

pub(crate) fn resume(cluster: &mut Cluster, by: Caller, jobs: &[JobRef]) -> Answer {
    let owners_may = cluster.config.scheduler.allow_owner_suspend;
    each_whole(cluster, by, jobs, |cluster, id| {
        may(by, owners_may)?;
        let job = &cluster.jobs[&id];
        match job.phase {
            Phase::Pending => return Err(Reject::JobPending),
            Phase::Ending | Phase::Finishing | Phase::Done => return Err(Reject::AlreadyOver),
            Phase::Starting if job.starts_suspended => {
                cluster.job_mut(id).starts_suspended = false;
                touched(cluster, id);
                return Ok(());
            }
            Phase::Starting | Phase::Running => return Err(Reject::NotSuspended),
            // It goes on when its CPUs are free, or its turn comes.
            Phase::Suspended if job.is_parked => return Ok(()),
            Phase::Suspended => (),
        }
        let down = |name: &&model::NodeName| {
            cluster.nodes.get(*name).is_none_or(|node| matches!(node.phase, NodePhase::Down | NodePhase::Lost))
        };
        if let Some(node) = job.allocation.names().find(down) {
            return Err(Reject::NodesBusy(node.to_string()));
        }
        job_life::take(cluster, id, Step::Resume);
        gang::give_turn(cluster, id);
        cluster.unsettled.insert(id);
        Ok(())
    })
}

/// STOPPED is a mark on running jobs only.
pub(crate) fn note_stopped(cluster: &mut Cluster, jobs: &[JobId], is_stopped: bool) -> Answer {
    for id in jobs {
        let runs = cluster.jobs.get(id).is_some_and(|job| job.phase == Phase::Running);
        if runs && cluster.jobs[id].is_stopped != is_stopped {
            cluster.job_mut(*id).is_stopped = is_stopped;
            touched(cluster, *id);
        }
    }
    Ok(Reply::Ok)
}

fn may(by: Caller, owners_may: bool) -> Result<(), Reject> {
    if by.is_admin || owners_may { Ok(()) } else { Err(Reject::NotPermitted) }
}
