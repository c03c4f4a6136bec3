//! Persistent buffers: made and destroyed by jobs, belonging to none.
//!
//! ```text
//! a job with create_persistent ──▶ Creating ──▶ Ready ──▶ Condemned (a job with destroy_persistent; others still use it)
//!                                                            └──▶ Destroying ──▶ (gone)
//! ```
use std::sync::Arc;

use model::buffer::{Creation, PersistentPhase};
use model::staging::StageResult;
use model::{Buffer, BufferPhase, Duty, Job, JobId, JobSpec, NodeName, Owner, PersistentBuffer, Task, Wake};

use super::words::{DENIED, DUPLICATE};
use super::{life, movers};
use crate::settle::wake;
use crate::{Cluster, chronicle, limits};

/// Begins what the job wants made. A buffer of the same name and owner is taken as made, so that a requeued job goes on.
pub(crate) fn create_for(cluster: &mut Cluster, job: JobId) {
    let spec = cluster.jobs[&job].spec.clone();
    let Some(request) = &spec.buffer else { return };
    for creation in &request.creates {
        match cluster.persistent.get(&creation.name) {
            None => create(cluster, job, creation),
            Some(known) if known.uid == spec.uid => (),
            Some(_) => {
                life::fail(cluster, job, "create_persistent", DUPLICATE);
                return;
            }
        }
    }
}

fn create(cluster: &mut Cluster, job: JobId, creation: &Creation) {
    let spec = cluster.jobs[&job].spec.clone();
    let config = cluster.config.clone();
    let pool = config.burst_buffer.as_ref().and_then(|config| config.pool(&creation.pool));
    let node = pool.and_then(|pool| movers::choose_for(cluster, pool, job.0 as usize)).unwrap_or_default();
    cluster.n_persistent_orders += 1;
    let buffer = PersistentBuffer {
        name: creation.name.clone(),
        pool: creation.pool.clone(),
        bytes: creation.bytes,
        uid: spec.uid,
        gid: spec.gid,
        user: spec.user.clone(),
        account: spec.account.clone(),
        root: pool.map(|pool| pool.root.clone()).unwrap_or_default(),
        created: cluster.now,
        phase: PersistentPhase::Creating,
        attempt: cluster.n_persistent_orders,
        node,
        by_job: job,
        plugin: spec.buffer.as_ref().map(|request| request.plugin).unwrap_or_default(),
        association: cluster.jobs[&job].association,
        qos: spec.qos.clone(),
        tres_mb: if config.burst_buffer.as_ref().is_some_and(|config| config.counts) {
            creation.bytes >> 20
        } else {
            0
        },
        access: creation.access.clone(),
        kind: creation.kind.clone(),
        ..Default::default()
    };
    cluster.persistent.insert(creation.name.clone(), Arc::new(buffer));
    limits::keep_standing(cluster, &creation.name);
    moved(cluster, &creation.name);
}

/// The job has its turn: what it wants destroyed is used by nobody new. Says whether it may not.
pub(crate) fn condemn_for(cluster: &mut Cluster, job: JobId) -> bool {
    let spec = cluster.jobs[&job].spec.clone();
    let Some(request) = &spec.buffer else { return false };
    for destruction in &request.destroys {
        let Some(buffer) = cluster.persistent.get_mut(&destruction.name).map(Arc::make_mut) else { continue };
        if buffer.uid != spec.uid && !request.by_admin {
            let why = format!("Delete buffer {} {DENIED}", destruction.name);
            life::fail(cluster, job, "destroy_persistent", &why);
            return true;
        }
        if buffer.phase == PersistentPhase::Ready {
            buffer.phase = PersistentPhase::Condemned;
            buffer.by_job = job;
            buffer.hurry = destruction.hurry;
            let name = destruction.name.clone();
            destroy_if_free(cluster, &name);
            moved(cluster, &name);
        }
    }
    false
}

/// The job is gone before what it wanted made was there: it is not made. What is there stays.
pub(crate) fn call_off(cluster: &mut Cluster, job: JobId) {
    let is_its = |buffer: &&Arc<PersistentBuffer>| buffer.phase == PersistentPhase::Creating && buffer.by_job == job;
    let names: Vec<String> = cluster.persistent.values().filter(is_its).map(|buffer| buffer.name.clone()).collect();
    for name in names {
        let buffer = cluster.persistent.get_mut(&name).map(Arc::make_mut).expect("just listed");
        (buffer.phase, buffer.hurry) = (PersistentPhase::Condemned, true);
        destroy_if_free(cluster, &name);
    }
}

/// A job has stopped using what it used.
pub(crate) fn let_go(cluster: &mut Cluster, job: JobId) {
    let Some(buffer) = cluster.buffers.get_mut(&job).map(Arc::make_mut) else { return };
    for name in std::mem::take(&mut buffer.uses) {
        destroy_if_free(cluster, &name);
        wake(cluster, Wake::Persistent(name));
    }
}

/// A job other than this one has the buffer. A job that still waits for the buffer to be there has nothing of it.
fn is_used(cluster: &Cluster, name: &str, by: JobId) -> bool {
    let counts_all = cluster.rules() < 3;
    let has_it = |other: &Buffer| other.phase != BufferPhase::Allocating && other.job != by;
    cluster.buffers.values().any(|other| (counts_all || has_it(other)) && other.uses.iter().any(|used| used == name))
}

/// Buffers that the job is to destroy and that others use now. It waits for these users without nodes.
pub(crate) fn in_its_way<'a>(cluster: &'a Cluster, job: &'a Job) -> impl Iterator<Item = &'a String> {
    let request = job.spec.buffer.as_ref().filter(|_| cluster.rules() >= 3);
    let destructions = request.into_iter().flat_map(|request| &request.destroys).filter(|one| !one.hurry);
    let may_destroy = move |buffer: &PersistentBuffer| {
        buffer.uid == job.spec.uid || job.spec.buffer.as_ref().is_some_and(|request| request.by_admin)
    };
    destructions.map(|one| &one.name).filter(move |name| {
        cluster.persistent.get(*name).is_some_and(|buffer| may_destroy(buffer)) && is_used(cluster, name, job.id)
    })
}

/// What the job uses is there, or it makes that itself.
pub fn uses_are_ready(cluster: &Cluster, spec: &JobSpec) -> bool {
    let Some(request) = &spec.buffer else { return true };
    let is_made = |name: &String| request.creates.iter().any(|creation| creation.name == *name);
    let is_ready = |name: &String| cluster.persistent.get(name).is_some_and(|it| it.phase == PersistentPhase::Ready);
    request.uses.iter().all(|name| is_made(name) || is_ready(name))
}

/// A job has begun to use what it uses: jobs that are to destroy that wait again.
pub(crate) fn use_begins(cluster: &mut Cluster, job: JobId) {
    let names = cluster.buffers.get(&job).map(|buffer| buffer.uses.clone()).unwrap_or_default();
    names.into_iter().for_each(|name| wake(cluster, Wake::Persistent(name)));
}

fn destroy_if_free(cluster: &mut Cluster, name: &str) {
    let Some(buffer) = cluster.persistent.get(name) else { return };
    if buffer.phase != PersistentPhase::Condemned {
        return;
    }
    if is_used(cluster, name, buffer.by_job) && !buffer.hurry {
        return;
    }
    let pool = buffer.pool.clone();
    cluster.n_persistent_orders += 1;
    let (attempt, config) = (cluster.n_persistent_orders, cluster.config.clone());
    let pool = config.burst_buffer.as_ref().and_then(|config| config.pool(&pool));
    let node = pool.and_then(|pool| movers::choose_for(cluster, pool, attempt as usize));
    let buffer = cluster.persistent.get_mut(name).map(Arc::make_mut).expect("just seen");
    buffer.phase = PersistentPhase::Destroying;
    buffer.attempt = attempt;
    if let Some(node) = node {
        buffer.node = node;
    }
    moved(cluster, name);
}

/// Its agent has answered.
pub(crate) fn answered(cluster: &mut Cluster, name: &str, result: &StageResult) {
    let Some(buffer) = cluster.persistent.get_mut(name).map(Arc::make_mut) else { return };
    let by_job = buffer.by_job;
    match (buffer.phase, result) {
        (PersistentPhase::Creating, StageResult::Done(_)) => buffer.phase = PersistentPhase::Ready,
        (PersistentPhase::Creating, StageResult::Failed(failure)) => {
            remove(cluster, name);
            let is_waiting = cluster.buffers.get(&by_job).is_some_and(|buffer| buffer.failure.is_empty());
            if is_waiting {
                life::fail(cluster, by_job, "create_persistent", &failure.why);
            }
            return;
        }
        (PersistentPhase::Destroying, StageResult::Done(_)) => return remove(cluster, name),
        // Tried again until it is gone.
        (PersistentPhase::Destroying, StageResult::Failed(failure)) => buffer.failure = failure.why.clone(),
        (PersistentPhase::Ready | PersistentPhase::Condemned, _) => (),
    }
    moved(cluster, name);
}

pub(crate) fn remove(cluster: &mut Cluster, name: &str) {
    let Some(buffer) = cluster.persistent.remove(name) else { return };
    limits::keep_standing(cluster, name);
    if buffer.phase != PersistentPhase::Creating {
        chronicle::note_buffer(cluster, &buffer);
    }
    cluster.duties.remove(&Owner::Persistent(name.to_owned()));
    wake(cluster, Wake::Persistent(name.to_owned()));
}

/// The work of an agent that does not answer is given to another.
pub(crate) fn relieve(cluster: &mut Cluster) {
    let answers = |node: &NodeName| cluster.nodes.get(node).is_some_and(|node| node.answers);
    let stuck = cluster
        .persistent
        .values()
        .filter(|buffer| !buffer.plugin.is_external() && task(buffer).is_some() && !answers(&buffer.node));
    let stuck: Vec<String> = stuck.map(|buffer| buffer.name.clone()).collect();
    for name in stuck {
        let config = cluster.config.clone();
        let pool = &cluster.persistent[&name].pool;
        let Some(pool) = config.burst_buffer.as_ref().and_then(|config| config.pool(pool)) else { continue };
        let Some(node) = movers::choose_for(cluster, pool, 0) else { continue };
        cluster.n_persistent_orders += 1;
        let attempt = cluster.n_persistent_orders;
        let buffer = cluster.persistent.get_mut(&name).map(Arc::make_mut).expect("just listed");
        buffer.node = node;
        buffer.attempt = attempt;
        moved(cluster, &name);
    }
}

pub(crate) fn moved(cluster: &mut Cluster, name: &str) {
    let buffer = &cluster.persistent[name];
    let owner = Owner::Persistent(name.to_owned());
    match task(buffer) {
        Some(task) => cluster.duties.insert(owner.clone(), Duty { owner, attempt: buffer.attempt, task, sequence: 0 }),
        None => cluster.duties.remove(&owner),
    };
    wake(cluster, Wake::Persistent(name.to_owned()));
}

pub(crate) fn task(buffer: &PersistentBuffer) -> Option<Task> {
    match buffer.phase {
        PersistentPhase::Creating => Some(Task::Create),
        PersistentPhase::Destroying => Some(Task::Destroy),
        PersistentPhase::Ready | PersistentPhase::Condemned => None,
    }
}
