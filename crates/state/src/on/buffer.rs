//! What agents answer about burst buffers, and what operators do to them.
use std::sync::Arc;

use model::command::PlaceResult;
use model::pool::{Pool, PoolKind, PoolReport};
use model::staging::{Moved, StageFailure, StageResult};
use model::{Buffer, BufferPhase, Caller, Duty, JobId, NodeName, Owner, Phase, Plugin, Reject, Reply};

use super::Answer;
use crate::Cluster;
use crate::buffers::settle::{operation, why_failed};
use crate::buffers::{life, persistent};

pub(crate) fn staged(cluster: &mut Cluster, duty: &Duty, results: &[PlaceResult]) -> Answer {
    if cluster.duties.get(&duty.owner) != Some(duty) {
        return Err(Reject::Stale);
    }
    match &duty.owner {
        Owner::Buffer(id) => buffer_answered(cluster, *id, results),
        Owner::Persistent(name) => {
            let node = cluster.persistent[name].node.clone();
            let result = results.iter().find(|result| result.node == node).ok_or(Reject::Stale)?;
            persistent::answered(cluster, name, &result.result);
        }
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => return Err(Reject::Stale),
    }
    Ok(Reply::Ok)
}

fn buffer_answered(cluster: &mut Cluster, id: JobId, results: &[PlaceResult]) {
    life::unindex(cluster, id);
    let rules = cluster.rules();
    let buffer = life::buffer_mut(cluster, id);
    results.iter().for_each(|result| take(buffer, result, rules));
    let hook = results.iter().find_map(|result| match &result.result {
        StageResult::Failed(failure) => Some(failure.operation.as_str()).filter(|hook| !hook.is_empty()),
        StageResult::Done(_) => None,
    });
    // Nothing was allocated, so nothing is charged.
    if buffer.plugin == Plugin::DataWarp && hook == Some("setup") {
        buffer.spaces.clear();
    }
    life::index(cluster, id);
    let buffer = &cluster.buffers[&id];
    let failed = buffer.places.iter().find(|place| !place.is_unwanted && !place.failure.is_empty());
    if let Some(first) = failed.filter(|_| buffer.phase == BufferPhase::TearingDown) {
        let why = match buffer.plugin.is_external() {
            true => first.failure.clone(),
            false => format!("{}: {}", first.node, first.failure),
        };
        return life::teardown_failed(cluster, id, &why);
    }
    match why_failed(buffer) {
        Some(why) => life::fail(cluster, id, hook.unwrap_or(operation(buffer.phase)), &why),
        None => life::moved(cluster, id),
    }
}

fn take(buffer: &mut Buffer, result: &PlaceResult, rules: u32) {
    let is_it = |place: &model::buffer::Place| place.access == result.access && place.node == result.node;
    let Some(at) = buffer.places.iter().position(is_it) else { return };
    let is_removal = buffer.phase == BufferPhase::TearingDown || buffer.places[at].is_unwanted;
    match (&result.result, is_removal) {
        (StageResult::Done(_), true) => {
            buffer.places.remove(at);
        }
        (StageResult::Done(moved), false) => {
            let place = &mut buffer.places[at];
            place.is_done = true;
            place.failure.clear();
            let is_after = matches!(buffer.phase, BufferPhase::PostRun | BufferPhase::StagingOut);
            place.is_staged |= !is_after;
            let sum = if is_after { &mut buffer.staged_out } else { &mut buffer.staged_in };
            add(sum, moved, rules);
            if matches!(buffer.phase, BufferPhase::PreRun | BufferPhase::Revoked) {
                buffer.environment = moved.environment.clone();
            }
            // More may be given than was asked for; less is no news.
            let more = moved.real_bytes.saturating_sub(buffer.bytes());
            if let Some(space) = buffer.spaces.last_mut() {
                space.bytes += more;
            }
        }
        (StageResult::Failed(failure), _) => buffer.places[at].failure = words(failure),
    }
}

fn add(sum: &mut Moved, moved: &Moved, rules: u32) {
    if rules >= 2 {
        sum.n_skipped += moved.n_skipped;
    }
    sum.n_files += moved.n_files;
    sum.n_bytes += moved.n_bytes;
    sum.took = sum.took.max(moved.took);
}

fn words(failure: &StageFailure) -> String {
    let why = if failure.why.is_empty() { "unknown error" } else { &failure.why };
    match failure.n_more {
        0 => why.to_owned(),
        more => format!("{why} ({more} more)"),
    }
}

/// An operator gives up on directories that cannot be reached. They are removed when their agents come back.
pub(crate) fn drop_buffer(cluster: &mut Cluster, by: Caller, buffer: &Owner) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    match buffer {
        Owner::Buffer(id) => {
            if !cluster.buffers.contains_key(id) {
                return Err(Reject::NoSuchBuffer(id.to_string()));
            }
            let job = &cluster.jobs[id];
            if !matches!(job.phase, Phase::Finishing | Phase::Done | Phase::Pending) {
                return Err(Reject::JobRunning);
            }
            life::remove(cluster, *id);
        }
        Owner::Persistent(name) => {
            let known = cluster.persistent.contains_key(name);
            if !known {
                return Err(Reject::NoSuchBuffer(name.clone()));
            }
            let is_used = cluster.buffers.values().any(|other| other.uses.contains(name));
            if is_used {
                return Err(Reject::JobRunning);
            }
            persistent::remove(cluster, name);
        }
        Owner::Job(_) | Owner::Step(..) | Owner::Node(_) => return Err(Reject::NotSupported),
    }
    Ok(Reply::Ok)
}

/// What an agent says of its pools is what can be given out.
pub(crate) fn pools_seen(cluster: &mut Cluster, node: &NodeName, pools: &[PoolReport]) -> Answer {
    if !cluster.nodes.contains_key(node) {
        return Err(Reject::NoSuchNode(node.to_string()));
    }
    cluster.node_mut(node.as_str()).machine.pools = pools.to_vec();
    let config = cluster.config.clone();
    let shared = config.burst_buffer.iter().flat_map(|config| &config.pools);
    for pool in shared.filter(|pool| pool.kind == PoolKind::Shared) {
        if let Some(report) = pools.iter().find(|report| report.pool == pool.name && report.problem.is_empty()) {
            cluster.usable.insert(pool.name.clone(), report.usable_bytes());
        }
    }
    Ok(Reply::Ok)
}

/// What a plugin tells of its pools. One that it does not name any more stays, with nothing in it.
pub(crate) fn pools_reported(cluster: &mut Cluster, plugin: Plugin, pools: &[Pool]) -> Answer {
    let current = cluster.config.burst_buffer.as_ref().is_some_and(|config| config.plugin == plugin);
    if !current || !plugin.is_external() {
        return Err(Reject::Stale);
    }
    let config = Arc::make_mut(&mut cluster.config).burst_buffer.as_mut().expect("just seen");
    let mut told: Vec<Pool> = pools.to_vec();
    for known in &config.pools {
        if !told.iter().any(|pool| pool.name == known.name) {
            told.push(Pool { total_bytes: Some(0), unfree_bytes: 0, ..known.clone() });
        }
    }
    config.pools = told;
    config.is_loaded = true;
    Ok(Reply::Ok)
}
