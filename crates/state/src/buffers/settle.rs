//! Moves a job's buffer on as far as what it waited for has come.
use model::buffer::PersistentPhase;
use model::time::Span;
use model::{Buffer, BufferPhase, Job, JobId, Phase, Timestamp, Wake};

use super::life::{self, Step};
use super::{persistent, runs_nothing};
use crate::Cluster;

/// An agent gives up at the timeout itself; one that says nothing has a little more.
fn patience(timeout: Span) -> Span {
    let more = Span(timeout.0 / 4).max(Span::from_secs(2)).min(Span::from_secs(60));
    timeout + more
}

/// Part of settling the job; harmless when there is nothing to move.
pub(crate) fn settle(cluster: &mut Cluster, id: JobId) {
    while let Some(buffer) = cluster.buffers.get(&id) {
        let job = &cluster.jobs[&id];
        let has_failed = !buffer.failure.is_empty();
        let was_released = has_failed && job.phase == Phase::Pending && job.held.is_none();
        let all_done = buffer.places.iter().all(|place| place.is_done || place.is_unwanted);
        if buffer.phase == BufferPhase::Deleting && !has_failed && persistent::condemn_for(cluster, id) {
            continue;
        }
        let buffer = &cluster.buffers[&id];
        let job = &cluster.jobs[&id];
        let step = match buffer.phase {
            _ if life::is_left_over(job) => Step::Discard,
            BufferPhase::StagingIn if was_released && !buffer.plugin.is_external() => return life::retry(cluster, id),
            BufferPhase::StagingIn if was_released => Step::Discard,
            BufferPhase::Allocating | BufferPhase::StagedIn | BufferPhase::Deleting if was_released => Step::Discard,
            _ if has_failed => return,
            // Whoever was still waited for will not answer any more.
            BufferPhase::StagingIn | BufferPhase::PreRun | BufferPhase::Revoked | BufferPhase::StagingOut
                if cluster.rules() >= 2 && why_failed(buffer).is_some() =>
            {
                let (why, operation) = (why_failed(buffer).unwrap_or_default(), operation(buffer.phase));
                return life::fail(cluster, id, operation, &why);
            }
            // What it found under that name was being destroyed, or was never made: it has another turn, and makes its own.
            BufferPhase::Allocating if cluster.rules() >= 2 && lacks_its_own(cluster, job) => Step::Discard,
            BufferPhase::Allocating if persistent_is_ready(cluster, job) => Step::Allocated,
            BufferPhase::StagingIn if all_done => Step::StagedIn,
            // Nothing is launched: it has its turn at once.
            BufferPhase::StagedIn if runs_nothing(job) && job.phase == Phase::Pending && job.held.is_none() => {
                Step::Place
            }
            BufferPhase::Deleting if persistent_is_gone(cluster, job) => Step::Deleted,
            BufferPhase::PreRun if all_done => Step::Ready,
            BufferPhase::Revoked if all_done => Step::Settled,
            BufferPhase::PostRun if is_empty(job) && buffer.hurry => Step::Discard,
            BufferPhase::PostRun if is_empty(job) && buffer.plugin.is_external() && !buffer.is_vacated => {
                life::buffer_mut(cluster, id).is_vacated = true;
                life::moved(cluster, id);
                continue;
            }
            BufferPhase::PostRun if is_empty(job) && (all_done || !buffer.plugin.is_external()) => Step::Empty,
            BufferPhase::StagingOut if all_done => Step::StagedOut,
            BufferPhase::TearingDown if buffer.places.is_empty() => return life::remove(cluster, id),
            _ if deadline(cluster, job).is_some_and(|at| at <= cluster.now) => return overdue(cluster, id),
            _ => return,
        };
        life::take(cluster, id, step);
    }
}

/// Nothing of the run is left that could write into the buffer.
fn is_empty(job: &Job) -> bool {
    match job.phase {
        Phase::Ending => !job.alive,
        Phase::Pending | Phase::Finishing | Phase::Done => true,
        Phase::Starting | Phase::Running | Phase::Suspended => false,
    }
}

fn persistent_is_ready(cluster: &Cluster, job: &Job) -> bool {
    let Some(request) = &job.spec.buffer else { return true };
    let names = request.creates.iter().map(|creation| &creation.name).chain(&request.uses);
    let is_ready = |name: &String| cluster.persistent.get(name).is_some_and(|it| it.phase == PersistentPhase::Ready);
    names.into_iter().all(is_ready)
}

fn lacks_its_own(cluster: &Cluster, job: &Job) -> bool {
    let Some(request) = &job.spec.buffer else { return false };
    request.creates.iter().any(|creation| !cluster.persistent.contains_key(&creation.name))
}

fn persistent_is_gone(cluster: &Cluster, job: &Job) -> bool {
    let Some(request) = &job.spec.buffer else { return true };
    let waits_for = |name: &String| {
        cluster
            .persistent
            .get(name)
            .is_some_and(|it| matches!(it.phase, PersistentPhase::Condemned | PersistentPhase::Destroying))
    };
    !request.destroys.iter().any(|destruction| waits_for(&destruction.name))
}

/// What moves the buffer on while its job waits, for whatever it waits.
pub(crate) fn wakes(cluster: &Cluster, job: &Job) -> Vec<Wake> {
    let (Some(request), Some(phase)) = (&job.spec.buffer, job.buffer) else { return Vec::new() };
    let created = request.creates.iter().map(|creation| &creation.name);
    let names: Vec<&String> = match phase {
        BufferPhase::Allocating => created.chain(&request.uses).collect(),
        BufferPhase::StagedIn | BufferPhase::Deleting => {
            request.destroys.iter().map(|destruction| &destruction.name).collect()
        }
        _ => Vec::new(),
    };
    let named = names.into_iter().map(|name| Wake::Persistent(name.clone()));
    named.chain(deadline(cluster, job).map(Wake::At)).chain([Wake::Buffer(job.id)]).collect()
}

/// When what the buffer's agents do has taken too long. Teardown never has.
pub(crate) fn deadline(cluster: &Cluster, job: &Job) -> Option<Timestamp> {
    let buffer = cluster.buffers.get(&job.id).filter(|buffer| buffer.failure.is_empty())?;
    // Whoever runs hooks ends those that take too long.
    if buffer.plugin.is_external() {
        return None;
    }
    let config = cluster.config.burst_buffer.as_ref()?;
    let most = match buffer.phase {
        BufferPhase::StagingIn | BufferPhase::PreRun | BufferPhase::Revoked => config.stage_in_timeout,
        BufferPhase::StagingOut => config.stage_out_timeout,
        BufferPhase::Allocating
        | BufferPhase::StagedIn
        | BufferPhase::Deleting
        | BufferPhase::InUse
        | BufferPhase::PostRun
        | BufferPhase::TearingDown => return None,
    };
    Some(buffer.since + patience(most))
}

fn overdue(cluster: &mut Cluster, id: JobId) {
    let buffer = &cluster.buffers[&id];
    let open = buffer.places.iter().filter(|place| !place.is_done && !place.is_unwanted);
    let silent: Vec<&str> = open.map(|place| place.node.as_str()).collect();
    let why = format!("timed out waiting for {}", model::hostlist::compress(silent));
    life::fail(cluster, id, operation(buffer.phase), &why);
}

/// What went wrong, once nobody is waited for any more: the report is to be complete.
pub(crate) fn why_failed(buffer: &Buffer) -> Option<String> {
    let wanted = || buffer.places.iter().filter(|place| !place.is_unwanted);
    if wanted().any(|place| !place.is_done && place.failure.is_empty()) {
        return None;
    }
    let failed: Vec<_> = wanted().filter(|place| !place.failure.is_empty()).collect();
    let first = failed.first()?;
    let more = if failed.len() > 1 { format!(" (and {} other nodes)", failed.len() - 1) } else { String::new() };
    Some(match buffer.places.len() {
        1 => first.failure.clone(),
        _ => format!("{}: {}{more}", first.node, first.failure),
    })
}

/// As failures name it.
pub(crate) fn operation(phase: BufferPhase) -> &'static str {
    match phase {
        BufferPhase::Allocating => "create_persistent",
        BufferPhase::StagingIn | BufferPhase::StagedIn => "stage_in",
        BufferPhase::Deleting => "destroy_persistent",
        BufferPhase::PreRun | BufferPhase::Revoked | BufferPhase::InUse => "pre_run",
        BufferPhase::PostRun | BufferPhase::StagingOut => "stage_out",
        BufferPhase::TearingDown => "teardown",
    }
}
