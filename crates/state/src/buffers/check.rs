//! What must always hold of burst buffers.
use std::collections::BTreeSet;

use model::buffer::PersistentPhase;
use model::staging::Access;
use model::{Buffer, BufferPhase, Job, JobId, NodeName, Owner, Phase};

use super::{is_staged_ahead, life, persistent};
use crate::Cluster;
use crate::check::ensure;

pub(crate) fn check(cluster: &Cluster) -> Result<(), String> {
    for (id, buffer) in &cluster.buffers {
        let job = cluster.jobs.get(id).ok_or_else(|| format!("the buffer of {id} has no job"))?;
        check_buffer(cluster, job, buffer).map_err(|violation| format!("buffer of {id}: {violation}"))?;
    }
    for job in cluster.jobs() {
        check_job(cluster, job).map_err(|violation| format!("job {}: {violation}", job.id))?;
    }
    for (name, buffer) in &cluster.persistent {
        let duty = cluster.duties.get(&Owner::Persistent(name.clone())).map(|duty| duty.task);
        ensure(duty == persistent::task(buffer), || format!("persistent {name}: {:?} but {duty:?}", buffer.phase))?;
        ensure(buffer.phase != PersistentPhase::Creating || buffer.bytes > 0, || format!("{name} is of no size"))?;
    }
    let places =
        cluster.buffers.iter().flat_map(|(id, buffer)| buffer.places.iter().map(move |it| (it.node.clone(), *id)));
    let places: BTreeSet<(NodeName, JobId)> = places.collect();
    ensure(places.into_iter().eq(cluster.buffer_places.iter().cloned()), || "buffer places are indexed wrongly".into())
}

fn check_buffer(cluster: &Cluster, job: &Job, buffer: &Buffer) -> Result<(), String> {
    ensure(job.buffer == Some(buffer.phase), || format!("is {:?}, but the job says {:?}", buffer.phase, job.buffer))?;
    ensure(job.spec.buffer.is_some(), || "nobody asked for it".into())?;
    let duty = cluster.duties.get(&Owner::Buffer(buffer.job)).map(|duty| duty.task);
    ensure(duty == life::task(buffer), || format!("{:?} but the duty is {duty:?}", buffer.phase))?;
    ensure(buffer.attempt <= job.n_buffer_orders, || "an order was counted twice".into())?;
    let mut names: Vec<_> = buffer.places.iter().map(|place| (place.access, &place.node)).collect();
    names.sort_unstable();
    ensure(names.windows(2).all(|pair| pair[0] != pair[1]), || "two places are one".into())?;
    let n_shared = buffer.places.iter().filter(|place| place.access == Access::Shared).count();
    ensure(n_shared <= 1, || "two shared places".into())?;
    use BufferPhase::{InUse, PreRun, Revoked, StagedIn};
    let live = matches!(buffer.phase, StagedIn | PreRun | Revoked | InUse);
    let is_staged =
        buffer.places.iter().all(|place| place.is_staged || place.is_unwanted || place.access == Access::Private);
    ensure(!live || is_staged, || format!("{:?} without its data", buffer.phase))?;
    let used = matches!(buffer.phase, BufferPhase::InUse);
    let all_staged = buffer.places.iter().all(|place| place.is_staged || place.is_unwanted);
    ensure(!used || all_staged, || "in use without its data".into())
}

/// A job runs only with its buffer, and is not forgotten before it.
fn check_job(cluster: &Cluster, job: &Job) -> Result<(), String> {
    let phase = cluster.buffers.get(&job.id).map(|buffer| buffer.phase);
    ensure(job.buffer == phase, || format!("says its buffer is {:?}, it is {phase:?}", job.buffer))?;
    if job.spec.buffer.is_none() {
        return Ok(());
    }
    let is_right = match job.phase {
        Phase::Starting => matches!(phase, Some(BufferPhase::Deleting | BufferPhase::PreRun | BufferPhase::InUse)),
        Phase::Running | Phase::Suspended => phase == Some(BufferPhase::InUse),
        Phase::Pending => phase != Some(BufferPhase::PreRun),
        Phase::Ending | Phase::Finishing | Phase::Done => {
            phase != Some(BufferPhase::PreRun) && !life::is_left_over(job)
        }
    };
    ensure(is_right, || format!("{:?} with its buffer {phase:?}", job.phase))?;
    let queued = cluster.is_eligible(job);
    let has_none = phase.is_none() || life::is_left_behind(cluster, job);
    let is_ready = phase == Some(BufferPhase::StagedIn) || (has_none && !is_staged_ahead(&job.spec));
    ensure(!queued || is_ready, || format!("queued with its buffer {phase:?}"))
}
