//! The life of a job's burst buffer. Every phase change of a buffer is one line of `next`.
//!
//! ```text
//!            plan                                job gets nodes                     run ends         processes gone
//! (nothing) ─────▶ Allocating ▶ StagingIn ▶ StagedIn ─────▶ Deleting ▶ PreRun ▶ InUse ─────▶ PostRun ─────▶ StagingOut
//!                      │            │          │               │         │        (hurry)      │ hurry          │
//!                      └────────────┴──────────┴──── Discard ──┴─────────┘                     └─▶ TearingDown ◀┘ ──▶ (gone)
//! ```
//! Nodes that are taken back before anything ran leave the data where it is: `PreRun ▶ Revoked ▶ StagedIn`, and at once from
//! `Deleting` and `InUse`.
//! The job's record mirrors the phase (`Job::buffer`), so that whoever has a job can tell what its buffer does.
use std::sync::Arc;

use model::buffer::{BufferRequest, Place, Space};
use model::job::Remark;
use model::staging::{Access, Direction, Moved};
use model::trigger::TriggerKind;
use model::{
    Buffer, BufferPhase, Config, Duty, Event, HeldBy, Job, JobId, NodeName, Owner, Phase, Plugin, Task, Wake, size,
};

use super::{capacity, movers, persistent, words};
use crate::settle::wake;
use crate::{Cluster, job_life, triggers};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The persistent buffers it waits for are there.
    Allocated,
    StagedIn,
    /// The job has nodes.
    Place,
    /// What the job wanted destroyed is gone.
    Deleted,
    /// Every node has what it needs.
    Ready,
    /// The nodes are taken back, and nothing ran on them.
    Revoke,
    /// What was still on its way then has come.
    Settled,
    /// The run has ended.
    Leave,
    /// Its processes are gone.
    Empty,
    StagedOut,
    /// The data is given up.
    Discard,
}

fn next(phase: BufferPhase, step: Step) -> Option<BufferPhase> {
    use BufferPhase::*;
    Some(match (phase, step) {
        (Allocating, Step::Allocated) => StagingIn,
        (StagingIn, Step::StagedIn) => StagedIn,
        (StagedIn, Step::Place) => Deleting,
        (Deleting, Step::Deleted) => PreRun,
        (PreRun, Step::Ready) => InUse,
        (PreRun, Step::Revoke) => Revoked,
        (Deleting | InUse, Step::Revoke) => StagedIn,
        (Revoked, Step::Settled) => StagedIn,
        (InUse, Step::Leave) => PostRun,
        (PostRun, Step::Empty) => StagingOut,
        (StagingOut, Step::StagedOut) => TearingDown,
        (
            Allocating | StagingIn | StagedIn | Deleting | PreRun | Revoked | InUse | PostRun | StagingOut,
            Step::Discard,
        ) => TearingDown,
        _ => return None,
    })
}

/// The job's buffer begins: its space is charged from now on. `nodes` are where private space is made ahead.
pub(crate) fn create(cluster: &mut Cluster, id: JobId, nodes: &[NodeName]) {
    let left = left_places(cluster, id);
    let request = cluster.jobs[&id].spec.buffer.as_ref();
    let resolved = request.and_then(|request| capacity::resolved(cluster, request)).map(Arc::new);
    let job = cluster.job_mut(id);
    if resolved.is_some() {
        Arc::make_mut(&mut job.spec).buffer = resolved;
    }
    job.n_buffer_orders += 1;
    job.buffer_failure.clear();
    let (spec, epoch) = (job.spec.clone(), job.n_buffer_orders);
    let Some(request) = spec.buffer.as_deref() else { return };
    let now = cluster.now;
    let mut places = Vec::new();
    if request.plugin.is_external() {
        places.extend(request.is_used_by_job().then(Place::default));
    } else if request.has_shared_place() {
        places.extend(movers::shared_place(cluster, request, id));
    }
    places.extend(nodes.iter().filter_map(|node| private_place(cluster, request, node)));
    places.extend(left);
    let buffer = Buffer {
        job: id,
        epoch,
        attempt: epoch,
        phase: BufferPhase::Allocating,
        uid: spec.uid,
        gid: spec.gid,
        spaces: rounded(cluster, request),
        plugin: request.plugin,
        uses: request.uses.clone(),
        places,
        created: now,
        since: now,
        ..Default::default()
    };
    cluster.buffers.insert(id, Arc::new(buffer));
    cluster.job_mut(id).buffer = Some(BufferPhase::Allocating);
    index(cluster, id);
    persistent::create_for(cluster, id);
    moved(cluster, id);
}

/// What an earlier run has left on nodes that do not answer goes when they do; until then it is charged there.
fn left_places(cluster: &mut Cluster, id: JobId) -> Vec<Place> {
    if !cluster.buffers.get(&id).is_some_and(|buffer| is_out_of_reach(cluster, buffer)) {
        return Vec::new();
    }
    unindex(cluster, id);
    cluster.duties.remove(&Owner::Buffer(id));
    let Some(old) = cluster.buffers.remove(&id) else { return Vec::new() };
    let leave = |place: &Place| Place { epoch: old.epoch_of(place), is_unwanted: true, ..place.clone() };
    old.places.iter().map(leave).collect()
}

/// All that is left of an earlier run's buffer is on nodes that do not answer: the next run need not wait for them.
pub fn is_left_behind(cluster: &Cluster, job: &Job) -> bool {
    let buffer = cluster.buffers.get(&job.id).filter(|_| job.phase == Phase::Pending);
    buffer.is_some_and(|buffer| is_out_of_reach(cluster, buffer))
}

fn is_out_of_reach(cluster: &Cluster, buffer: &Buffer) -> bool {
    let answers = |name: &NodeName| cluster.nodes.get(name).is_some_and(|node| node.answers);
    cluster.rules() >= 3
        && buffer.phase == BufferPhase::TearingDown
        && !buffer.plugin.is_external()
        && !buffer.places.is_empty()
        && buffer.places.iter().all(|place| place.access == Access::Private && !answers(&place.node))
}

/// Whole granules, also of a pool that nobody knew when the job was submitted.
fn rounded(cluster: &Cluster, request: &BufferRequest) -> Vec<Space> {
    let config = cluster.config.burst_buffer.as_ref();
    let pool = |space: &Space| config.and_then(|config| config.pool(&space.pool));
    let round = |space: &Space| pool(space).and_then(|pool| pool.rounded(space.bytes)).unwrap_or(space.bytes);
    request.spaces.iter().map(|space| Space { bytes: round(space), ..space.clone() }).collect()
}

fn private_place(cluster: &Cluster, request: &BufferRequest, node: &NodeName) -> Option<Place> {
    let space = request.spaces.iter().find(|space| space.access == Access::Private)?;
    let pool = cluster.config.burst_buffer.as_ref()?.pool(&space.pool)?;
    let root = Config::for_node(&pool.root, node.as_str());
    Some(Place { access: Access::Private, node: node.clone(), pool: pool.name.clone(), root, ..Default::default() })
}

/// Takes `step` if the job has a buffer whose phase allows it; says whether it did.
pub(crate) fn take(cluster: &mut Cluster, id: JobId, step: Step) -> bool {
    let Some(buffer) = cluster.buffers.get(&id) else { return false };
    let Some(to) = next(buffer.phase, step) else { return false };
    let now = cluster.now;
    if to == BufferPhase::Revoked {
        revoke_nodes(cluster, id);
        return true;
    }
    unindex(cluster, id);
    let attempt = next_order(cluster, id);
    let job = &cluster.jobs[&id];
    let spec = job.spec.clone();
    let new_places: Vec<Place> = match (step, &spec.buffer) {
        (Step::Place, Some(request)) => {
            let place = |(rank, node)| Some(Place { rank, ..private_place(cluster, request, node)? });
            (0..).zip(job.allocation.names()).filter_map(place).collect()
        }
        _ => Vec::new(),
    };
    let stays_idle = |access| match (to, &spec.buffer) {
        (BufferPhase::StagingOut, Some(request)) if !request.plugin.is_external() => {
            request.transfers(access, Direction::Out).next().is_none()
        }
        _ => false,
    };
    let buffer = buffer_mut(cluster, id);
    let is_external = buffer.plugin.is_external();
    buffer.phase = to;
    buffer.since = now;
    buffer.attempt = attempt;
    buffer.failure.clear();
    for place in &mut buffer.places {
        let stays_as_staged =
            matches!(to, BufferPhase::StagedIn | BufferPhase::Deleting) || (to == BufferPhase::PreRun && !is_external);
        place.is_done = stays_as_staged && place.is_staged || stays_idle(place.access);
        place.failure.clear();
    }
    let begins_use = step == Step::Allocated;
    match step {
        Step::Place => take_nodes(buffer, new_places),
        Step::Discard => buffer.hurry = true,
        Step::Ready => buffer.was_used = true,
        Step::Revoke => buffer.was_used = false,
        Step::Allocated | Step::StagedIn | Step::Deleted | Step::Settled => (),
        Step::Leave | Step::Empty | Step::StagedOut => (),
    }
    if to == BufferPhase::TearingDown {
        persistent::let_go(cluster, id);
    }
    if begins_use {
        persistent::use_begins(cluster, id);
    }
    let job = cluster.job_mut(id);
    job.buffer = Some(to);
    job.buffer_failure.clear();
    // What is prepared by now may be asked to stand still.
    cluster.sharing_changed |= !cluster.shared_nodes.is_empty() || !cluster.parked.is_empty();
    index(cluster, id);
    movers::relieve(cluster, id);
    moved(cluster, id);
    true
}

/// The nodes of the run become the buffer's places; what was staged elsewhere is of no use.
fn take_nodes(buffer: &mut Buffer, wanted: Vec<Place>) {
    for place in buffer.places.iter_mut().filter(|place| place.access == Access::Private) {
        place.is_unwanted |= !wanted.iter().any(|other| other.node == place.node);
    }
    for place in wanted {
        let is_there = |other: &&mut Place| other.access == Access::Private && other.node == place.node;
        match buffer.places.iter_mut().find(is_there) {
            Some(known) => known.rank = place.rank,
            None => buffer.places.push(place),
        }
    }
}

/// What was ordered stands, and its answers count: only what it is for has changed.
fn revoke_nodes(cluster: &mut Cluster, id: JobId) {
    buffer_mut(cluster, id).phase = BufferPhase::Revoked;
    cluster.job_mut(id).buffer = Some(BufferPhase::Revoked);
    cluster.sharing_changed |= !cluster.shared_nodes.is_empty() || !cluster.parked.is_empty();
    moved(cluster, id);
}

/// Private space alone begins with the run.
pub(crate) fn place(cluster: &mut Cluster, id: JobId) {
    if cluster.jobs[&id].spec.buffer.is_none() {
        return;
    }
    if cluster.buffers.get(&id).is_none_or(|buffer| is_out_of_reach(cluster, buffer)) {
        create(cluster, id, &[]);
        take(cluster, id, Step::Allocated);
        take(cluster, id, Step::StagedIn);
    }
    take(cluster, id, Step::Place);
}

/// The run has ended, or will never be.
pub(crate) fn leave(cluster: &mut Cluster, id: JobId) {
    let Some(buffer) = cluster.buffers.get(&id) else { return };
    match buffer.phase {
        BufferPhase::Allocating | BufferPhase::StagingIn => {
            persistent::call_off(cluster, id);
            take(cluster, id, Step::Discard);
        }
        BufferPhase::Deleting | BufferPhase::PreRun => {
            revoke(cluster, id);
        }
        // It goes too, unless the job waits for nodes again.
        BufferPhase::StagedIn | BufferPhase::Revoked => {
            cluster.unsettled.insert(id);
        }
        BufferPhase::InUse => {
            let hurry = cluster.jobs[&id].hurry;
            buffer_mut(cluster, id).hurry |= hurry;
            take(cluster, id, Step::Leave);
        }
        // What an earlier run left goes its way.
        BufferPhase::PostRun | BufferPhase::StagingOut | BufferPhase::TearingDown => (),
    }
}

/// The nodes are taken back, and nothing ran on them: the data is as good as before. Whether somebody still wants it, settling says.
pub(crate) fn revoke(cluster: &mut Cluster, id: JobId) {
    let Some(buffer) = cluster.buffers.get(&id) else { return };
    let request = cluster.jobs[&id].spec.buffer.clone();
    let is_lasting = buffer.failure.is_empty() && request.is_some_and(|request| !request.depends_on_rank());
    take(cluster, id, if is_lasting { Step::Revoke } else { Step::Discard });
}

/// Nobody will start with what was staged in.
pub(crate) fn is_left_over(job: &Job) -> bool {
    let is_over = matches!(job.phase, Phase::Ending | Phase::Finishing | Phase::Done) && !job.requeue;
    is_over && matches!(job.buffer, Some(BufferPhase::StagedIn | BufferPhase::Revoked))
}

/// `scancel --hurry` of a job whose run is over: says whether there was something to give up.
pub(crate) fn hurry(cluster: &mut Cluster, id: JobId) -> bool {
    let Some(buffer) = cluster.buffers.get(&id) else { return false };
    match buffer.phase {
        // It goes as soon as the processes have.
        BufferPhase::PostRun if buffer.is_vacated => take(cluster, id, Step::Discard),
        BufferPhase::PostRun => {
            buffer_mut(cluster, id).hurry = true;
            cluster.unsettled.insert(id);
            true
        }
        BufferPhase::StagingOut => take(cluster, id, Step::Discard),
        _ => false,
    }
}

/// The buffer is gone, with all it was charged for.
pub(crate) fn remove(cluster: &mut Cluster, id: JobId) {
    unindex(cluster, id);
    persistent::let_go(cluster, id);
    let Some(buffer) = cluster.buffers.remove(&id) else { return };
    cluster.duties.remove(&Owner::Buffer(id));
    if cluster.jobs.contains_key(&id) {
        if let Some(summary) = summary(&buffer) {
            remark(cluster, id, summary);
        }
        let job = cluster.job_mut(id);
        job.buffer = None;
        job.buffer_failure.clear();
        tell(cluster, id, None);
    }
}

/// `bb stage-in 120GiB 4031 files 85s; stage-out 3.2GiB 2 files 4s, 3 skipped`
fn summary(buffer: &Buffer) -> Option<String> {
    let part = |word: &str, moved: &Moved| {
        let (bytes, secs) = (size::show_rounded_bytes(moved.n_bytes), moved.took.secs());
        let skipped = if moved.n_skipped > 0 { format!(", {} skipped", moved.n_skipped) } else { String::new() };
        (moved.n_files > 0 || moved.n_skipped > 0)
            .then(|| format!("{word} {bytes} {} files {secs}s{skipped}", moved.n_files))
    };
    let parts = [part("stage-in", &buffer.staged_in), part("stage-out", &buffer.staged_out)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("bb {}", parts.join("; ")))
}

/// The present task has failed, and is not tried again by itself.
pub(crate) fn fail(cluster: &mut Cluster, id: JobId, operation: &str, why: &str) {
    let rules = cluster.rules();
    let buffer = buffer_mut(cluster, id);
    let words = words::failure(buffer.plugin, operation, &one_line(why), rules);
    let text = words.shown;
    buffer.failure = text.clone();
    let phase = buffer.phase;
    remark(cluster, id, words.noted);
    triggers::happened(cluster, TriggerKind::BurstBuffer);
    let gives_up = cluster.config.burst_buffer.as_ref().is_some_and(|config| config.tears_down_after_failure);
    match phase {
        BufferPhase::Allocating
        | BufferPhase::StagingIn
        | BufferPhase::StagedIn
        | BufferPhase::Deleting
        | BufferPhase::PreRun
        | BufferPhase::Revoked => {
            hold_job(cluster, id, &text);
            if cluster.jobs[&id].phase == Phase::Starting {
                job_life::give_back(cluster, id);
            } else if gives_up || phase == BufferPhase::Revoked {
                take(cluster, id, Step::Discard);
            }
        }
        BufferPhase::InUse | BufferPhase::PostRun | BufferPhase::StagingOut => {
            cluster.job_mut(id).buffer_failure = text;
            if gives_up && phase == BufferPhase::PostRun {
                take(cluster, id, Step::Empty);
            }
            if gives_up {
                take(cluster, id, Step::StagedOut);
            }
        }
        BufferPhase::TearingDown => (),
    }
    moved(cluster, id);
}

/// Teardown is tried again until it succeeds; users see what is in its way.
pub(crate) fn teardown_failed(cluster: &mut Cluster, id: JobId, why: &str) {
    /// A script that cannot do it three times is not asked again.
    const N_TEARDOWNS_OF_A_SCRIPT: u32 = 3;
    let rules = cluster.rules();
    let buffer = buffer_mut(cluster, id);
    buffer.n_teardown_failures += 1;
    let gives_up = buffer.plugin == Plugin::Lua && buffer.n_teardown_failures >= N_TEARDOWNS_OF_A_SCRIPT;
    let words = words::failure(buffer.plugin, "teardown", &one_line(why), rules);
    let text = words.shown;
    if cluster.jobs[&id].buffer_failure != text {
        cluster.job_mut(id).buffer_failure = text;
        remark(cluster, id, words.noted);
        triggers::happened(cluster, TriggerKind::BurstBuffer);
        moved(cluster, id);
    }
    if gives_up {
        remark(cluster, id, "burst_buffer/lua: teardown failed too often; the buffer is forgotten".into());
        remove(cluster, id);
    }
}

/// A node is lost, or gone for good. What was staged there ahead of a run is of no use now; shared work goes to another.
pub(crate) fn node_lost(cluster: &mut Cluster, node: &NodeName) {
    for id in on_node(cluster, node) {
        if is_ahead(cluster.buffers[&id].phase) {
            let places = buffer_mut(cluster, id).places.iter_mut();
            places.filter(|it| it.access == Access::Private && it.node == *node).for_each(|it| it.is_unwanted = true);
        }
        movers::relieve(cluster, id);
        moved(cluster, id);
    }
    persistent::relieve(cluster);
}

/// A machine that has started anew may have lost what was brought to it: whoever starts there has it looked at again.
pub(crate) fn node_restarted(cluster: &mut Cluster, node: &NodeName) {
    for id in on_node(cluster, node) {
        let phase = cluster.buffers[&id].phase;
        if !is_ahead(phase) && !matches!(phase, BufferPhase::Deleting | BufferPhase::PreRun) {
            continue;
        }
        // An answer that is still on its way is about what was there before.
        let attempt = next_order(cluster, id);
        let buffer = buffer_mut(cluster, id);
        buffer.attempt = attempt;
        for place in buffer.places.iter_mut().filter(|it| it.access == Access::Private && it.node == *node) {
            (place.is_staged, place.is_done) = (false, false);
        }
        moved(cluster, id);
    }
}

/// It waits for a start, or for what it needs to have one.
fn is_ahead(phase: BufferPhase) -> bool {
    matches!(phase, BufferPhase::StagingIn | BufferPhase::StagedIn | BufferPhase::Revoked)
}

/// Nobody will ever answer for what is on a node that is not configured any more.
pub(crate) fn node_removed(cluster: &mut Cluster, node: &NodeName) {
    node_lost(cluster, node);
    for id in on_node(cluster, node) {
        unindex(cluster, id);
        buffer_mut(cluster, id).places.retain(|place| place.access == Access::Shared || place.node != *node);
        index(cluster, id);
        moved(cluster, id);
    }
}

/// A node has come: work that nobody could do has somebody again.
pub(crate) fn node_came(cluster: &mut Cluster) {
    let with_work = cluster.duties.keys().filter_map(|owner| match owner {
        Owner::Buffer(id) => Some(*id),
        _ => None,
    });
    let with_work: Vec<JobId> = with_work.collect();
    for id in with_work {
        // A job that need not wait for its old buffer may have to now: the agent removes it.
        let is_left = cluster.jobs.get(&id).is_some_and(|job| job.phase == Phase::Pending);
        if is_left {
            cluster.unsettled.insert(id);
        }
        if movers::relieve(cluster, id) {
            moved(cluster, id);
        }
    }
    persistent::relieve(cluster);
}

fn on_node(cluster: &Cluster, node: &NodeName) -> Vec<JobId> {
    let range = (node.clone(), JobId(0))..=(node.clone(), JobId(u32::MAX));
    cluster.buffer_places.range(range).map(|(_, id)| *id).collect()
}

fn hold_job(cluster: &mut Cluster, id: JobId, text: &str) {
    let job = cluster.job_mut(id);
    job.buffer_failure = text.to_owned();
    job.buffer_hold = text.to_owned();
    job.held.get_or_insert(HeldBy::BurstBuffer);
}

/// Nobody knows how far its hooks came when the controller went down: what follows a run begins again.
pub(crate) fn post_run_again(cluster: &mut Cluster, id: JobId) {
    let attempt = next_order(cluster, id);
    let now = cluster.now;
    let buffer = buffer_mut(cluster, id);
    (buffer.phase, buffer.since, buffer.attempt) = (BufferPhase::PostRun, now, attempt);
    buffer.failure.clear();
    for place in &mut buffer.places {
        place.is_done = false;
        place.failure.clear();
    }
    let job = cluster.job_mut(id);
    job.buffer = Some(BufferPhase::PostRun);
    job.buffer_failure.clear();
    moved(cluster, id);
}

/// What failed is tried again; what is done stays done.
pub(crate) fn retry(cluster: &mut Cluster, id: JobId) {
    let attempt = next_order(cluster, id);
    let now = cluster.now;
    let buffer = buffer_mut(cluster, id);
    buffer.attempt = attempt;
    if !buffer.failure.is_empty() {
        // Its time begins anew.
        buffer.since = now;
    }
    buffer.failure.clear();
    buffer.places.iter_mut().for_each(|place| place.failure.clear());
    cluster.job_mut(id).buffer_failure.clear();
    movers::relieve(cluster, id);
    moved(cluster, id);
}

/// The data of a run is still there, since it could not be staged out.
pub(crate) fn stage_out_failed(cluster: &Cluster, id: JobId) -> bool {
    let buffer = cluster.buffers.get(&id);
    buffer.is_some_and(|buffer| {
        matches!(buffer.phase, BufferPhase::PostRun | BufferPhase::StagingOut) && !buffer.failure.is_empty()
    })
}

/// Agents bring the data of a run back, or wait until its destination has room again.
pub(crate) fn is_staging_out(cluster: &Cluster, id: JobId) -> bool {
    let buffer = cluster.buffers.get(&id);
    buffer.is_some_and(|buffer| buffer.phase == BufferPhase::StagingOut && !buffer.plugin.is_external())
}

/// Whoever waits for the buffer looks again, and its duty is what its phase asks for.
pub(crate) fn moved(cluster: &mut Cluster, id: JobId) {
    let Some(buffer) = cluster.buffers.get(&id) else { return };
    let owner = Owner::Buffer(id);
    match task(buffer) {
        Some(task) => cluster.duties.insert(owner.clone(), Duty { owner, attempt: buffer.attempt, task, sequence: 0 }),
        None => cluster.duties.remove(&owner),
    };
    let phase = buffer.phase;
    tell(cluster, id, Some(phase));
}

fn tell(cluster: &mut Cluster, job: JobId, to: Option<BufferPhase>) {
    wake(cluster, Wake::Buffer(job));
    job_life::moved(cluster, job);
    cluster.unsettled.insert(job);
    let at = cluster.now;
    cluster.tell(Event::BufferChanged { job, to, at });
}

/// What the leader has to do for the buffer now.
pub(crate) fn task(buffer: &Buffer) -> Option<Task> {
    let trims = buffer.places.iter().any(|place| place.is_unwanted);
    let has_open = |place: &Place| !place.is_unwanted && !place.is_done && place.failure.is_empty();
    let works = buffer.places.iter().any(has_open) && buffer.failure.is_empty();
    match buffer.phase {
        BufferPhase::StagingIn if works => Some(Task::StageIn),
        BufferPhase::PreRun | BufferPhase::Revoked if works => Some(Task::PreRun),
        BufferPhase::PostRun if works && buffer.plugin.is_external() && buffer.is_vacated => Some(Task::PostRun),
        BufferPhase::StagingOut if works => Some(Task::StageOut),
        BufferPhase::TearingDown if !buffer.places.is_empty() => Some(Task::TearDown),
        BufferPhase::TearingDown => None,
        _ => trims.then_some(Task::Trim),
    }
}

/// One line of SystemComment. A long history is not made longer.
pub(crate) fn remark(cluster: &mut Cluster, id: JobId, text: String) {
    const ENOUGH: usize = 1024;
    let at = cluster.now;
    let job = cluster.job_mut(id);
    let length: usize = job.remarks.iter().map(|remark| remark.text.len() + 20).sum();
    if length < ENOUGH {
        job.remarks.push(Remark { at, text });
    }
}

/// Whatever an agent sent, in one printable line of bounded length.
fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    line.chars().take(LONGEST).collect()
}

pub(crate) fn next_order(cluster: &mut Cluster, id: JobId) -> u32 {
    let job = cluster.job_mut(id);
    job.n_buffer_orders += 1;
    job.n_buffer_orders
}

pub(crate) fn buffer_mut(cluster: &mut Cluster, id: JobId) -> &mut Buffer {
    Arc::make_mut(cluster.buffers.get_mut(&id).expect("callers look the buffer up first"))
}

/// Which buffers have something on a node.
pub(crate) fn index(cluster: &mut Cluster, id: JobId) {
    let buffer = cluster.buffers[&id].clone();
    cluster.buffer_places.extend(buffer.places.iter().map(|place| (place.node.clone(), id)));
}

pub(crate) fn unindex(cluster: &mut Cluster, id: JobId) {
    let Some(buffer) = cluster.buffers.get(&id).cloned() else { return };
    for place in &buffer.places {
        cluster.buffer_places.remove(&(place.node.clone(), id));
    }
}
