//! A job waits for its burst buffer before it starts, and for its data to be staged out before it is over.
use model::BufferPhase;

use super::*;
use crate::buffers;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    if job.spec.buffer.is_none() {
        return Hold::Free;
    }
    // What was looked at before the buffer may come first again. What moves the buffer on is always listened to.
    let wakes = vec![Wake::Partitions];
    match (job.phase, job.buffer) {
        (Phase::Pending, None) if buffers::is_staged_ahead(&job.spec) => Hold::Stage,
        (Phase::Pending, None) => Hold::Free,
        // `sbatch -N0` has done all it is for.
        (Phase::Pending, Some(BufferPhase::InUse)) if buffers::runs_nothing(job) => Hold::End(Outcome::Completed, None),
        (Phase::Pending, Some(BufferPhase::PostRun | BufferPhase::StagingOut)) if !job.buffer_failure.is_empty() => {
            Hold::Wait(Some(Reason::BurstBufferOperation), wakes)
        }
        (Phase::Pending, Some(BufferPhase::StagedIn))
            if !buffers::runs_nothing(job) && buffers::persistent::in_its_way(cluster, job).next().is_none() =>
        {
            Hold::Free
        }
        (Phase::Pending, Some(BufferPhase::StagingIn | BufferPhase::Revoked)) => {
            Hold::Wait(Some(Reason::BurstBufferStageIn), wakes)
        }
        (Phase::Pending, Some(BufferPhase::TearingDown)) if buffers::is_left_behind(cluster, job) => {
            if buffers::is_staged_ahead(&job.spec) {
                Hold::Stage
            } else {
                Hold::Free
            }
        }
        (Phase::Pending, Some(_)) => Hold::Wait(Some(Reason::BurstBufferResources), wakes),
        (Phase::Starting, Some(BufferPhase::Deleting | BufferPhase::PreRun)) => Hold::Wait(None, wakes),
        // What has failed may take days, and keeps no nodes from others.
        (Phase::Ending, Some(BufferPhase::PostRun | BufferPhase::StagingOut))
            if holds_nodes(cluster) && !job.alive && job.buffer_failure.is_empty() =>
        {
            Hold::Wait(None, wakes)
        }
        (Phase::Finishing, Some(BufferPhase::PostRun | BufferPhase::StagingOut)) if !job.requeue => {
            Hold::Wait(None, wakes)
        }
        // A job is remembered as long as anything of its buffer is left.
        (Phase::Done, Some(_)) => Hold::Wait(None, wakes),
        (Phase::Starting | Phase::Running | Phase::Suspended | Phase::Ending | Phase::Finishing | Phase::Done, _) => {
            Hold::Free
        }
    }
}

fn holds_nodes(cluster: &Cluster) -> bool {
    cluster.config.burst_buffer.as_ref().is_some_and(|config| config.holds_nodes)
}
