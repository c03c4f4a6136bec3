//! What a submission asks for, read from its options and its script, and whether this user may.
use std::sync::Arc;

use model::buffer::{BufferRequest, Space};
use model::command::Blob;
use model::directive::{self, Problem, ProblemKind, Sources};
use model::pool::{BurstBufferConfig, PoolKind};
use model::{Caller, JobKind, JobSpec, Plugin, Reject};

use crate::Cluster;

/// Fills in `spec.buffer`.
pub(crate) fn complete(cluster: &Cluster, by: Caller, spec: &mut JobSpec, brought: &[Blob]) -> Result<(), Reject> {
    spec.buffer = None;
    let Some(config) = &cluster.config.burst_buffer else {
        let asked = [&spec.burst_buffer, &spec.burst_buffer_file].into_iter().find(|text| !text.is_empty());
        let Some(text) = asked else { return without(spec) };
        let problem = directive::about(text, "this cluster has no burst buffers", |_| false);
        return Err(Reject::BadBuffer(format!("burst_buffer: {problem}")));
    };
    let script = match spec.component {
        // What such a component wants is all in its own option.
        Some(1..) if !spec.burst_buffer.is_empty() => String::new(),
        offset => directive::component(config, &script(cluster, spec, brought), offset),
    };
    let sources = Sources { script: &script, option: &spec.burst_buffer, file: &spec.burst_buffer_file };
    let prefix = format!("burst_buffer/{}: ", config.plugin.word());
    let read = directive::request(config, sources, &|name| cluster.nodes.contains_key(name));
    let twice = directive::said_twice(config, &spec.burst_buffer).filter(|_| cluster.rules() >= 2);
    let request = read.and_then(|request| twice.map_or(Ok(request), Err)).map_err(|problem| {
        let details = format!("{prefix}{problem}");
        match problem.kind {
            ProblemKind::Invalid => Reject::BadBuffer(details),
            ProblemKind::NotPermitted => Reject::BufferNotPermitted(details),
        }
    })?;
    let Some(mut request) = request else { return without(spec) };
    request.by_admin = by.is_admin;
    let text = request.text.clone();
    let invalid = |problem: Problem| Reject::BadBuffer(format!("{prefix}{problem}"));
    charge_swap(config, spec, &mut request)
        .map_err(|why| invalid(directive::about(&text, why, |name| name == "swap")))?;
    if config.counts {
        request.count_megabytes();
    }
    may(config, by, spec, &request).map_err(Reject::BufferNotPermitted)?;
    let is_part = spec.array.is_some() || (spec.component.is_some() && cluster.rules() >= 1);
    if runs_nothing(spec) && is_part {
        return Err(Reject::TooManyNodes);
    }
    sense(config, spec, &request).map_err(invalid)?;
    if cluster.rules() >= 3 {
        destroys_nothing_it_uses(&request).map_err(invalid)?;
    }
    spec.buffer = Some(Arc::new(request));
    Ok(())
}

/// What a submission would ask for, before anything else of it is looked at.
pub fn preview(
    cluster: &Cluster,
    by: Caller,
    spec: &JobSpec,
    brought: &[Blob],
) -> Result<Option<Arc<BufferRequest>>, Reject> {
    let mut spec = spec.clone();
    complete(cluster, by, &mut spec, brought)?;
    Ok(spec.buffer)
}

/// Swap is asked for on each node, and given as one.
fn charge_swap(
    config: &BurstBufferConfig,
    spec: &mut JobSpec,
    request: &mut BufferRequest,
) -> Result<(), &'static str> {
    let Some(swap) = &request.swap else { return Ok(()) };
    let n_nodes = *spec.size.max_nodes.get_or_insert(spec.size.min_nodes.max(1));
    let bytes = swap.bytes.checked_mul(u64::from(n_nodes)).ok_or("more swap than can be counted")?;
    let pool = config.pool(&swap.pool);
    let bytes = pool.map_or(Some(bytes), |pool| pool.rounded(bytes)).ok_or("more swap than can be counted")?;
    match request.spaces.iter_mut().find(|space| space.pool == swap.pool) {
        Some(space) => space.bytes = space.bytes.checked_add(bytes).ok_or("more than can be counted")?,
        None => request.spaces.push(Space { bytes, ..swap.clone() }),
    }
    Ok(())
}

fn without(spec: &JobSpec) -> Result<(), Reject> {
    if runs_nothing(spec) { Err(Reject::TooManyNodes) } else { Ok(()) }
}

/// What a job uses is there while it runs; what it destroys is gone before. It would wait for itself.
fn destroys_nothing_it_uses(request: &BufferRequest) -> Result<(), Problem> {
    let is_used = |name: &String| request.uses.contains(name);
    match request.destroys.iter().find(|destruction| is_used(&destruction.name)) {
        None => Ok(()),
        Some(destruction) => {
            let why = format!("the job uses persistent buffer {} itself", destruction.name);
            Err(directive::about(&request.text, &why, |name| name == "destroy_persistent"))
        }
    }
}

fn runs_nothing(spec: &JobSpec) -> bool {
    spec.size.max_nodes == Some(0)
}

/// Directives are text; a script that is none has none.
fn script(cluster: &Cluster, spec: &JobSpec, brought: &[Blob]) -> String {
    let JobKind::Batch { script } = &spec.kind else { return String::new() };
    let sent = brought.iter().find(|blob| blob.id == *script).map(|blob| blob.content.as_slice());
    let content = sent.or_else(|| cluster.blob(*script).map(|content| &**content)).unwrap_or_default();
    // Only the comments at the head count, so a long payload need not be looked at.
    const HEAD: usize = 64 << 10;
    String::from_utf8_lossy(&content[..content.len().min(HEAD)]).into_owned()
}

fn may(config: &BurstBufferConfig, by: Caller, spec: &JobSpec, request: &BufferRequest) -> Result<(), String> {
    let is_user = |listed: &String| *listed == spec.user || *listed == spec.uid.to_string();
    if !config.allow_users.is_empty() && !config.allow_users.iter().any(is_user) {
        return Err("User not found in AllowUsers".into());
    }
    if config.deny_users.iter().any(is_user) {
        return Err("User found in DenyUsers".into());
    }
    if spec.uid == 0 && config.plugin.is_external() && !config.allows_root {
        return Err("User root can not allocate burst buffers".into());
    }
    let may_persist = by.is_admin || config.enables_persistent;
    for (is_asked, verb, word) in [
        (!request.creates.is_empty(), "creating", "create_persistent"),
        (!request.destroys.is_empty(), "destroying", "destroy_persistent"),
    ] {
        if is_asked && !may_persist {
            let why = format!("User {} disabled from {verb} persistent burst buffer", spec.uid);
            return Err(directive::about(&request.text, &why, |name| name == word).to_string());
        }
    }
    Ok(())
}

/// What each word allows, but all of it together does not.
fn sense(config: &BurstBufferConfig, spec: &JobSpec, request: &BufferRequest) -> Result<(), Problem> {
    let complain = |why, is_such: fn(&str) -> bool| Err(directive::about(&request.text, why, is_such));
    if runs_nothing(spec) && config.plugin == Plugin::Lua {
        return complain("a job without nodes has no buffer", |_| false);
    }
    let is_used = !request.spaces.is_empty() || !request.transfers.is_empty() || !request.uses.is_empty();
    if runs_nothing(spec) && is_used {
        let why = "a job without nodes only creates and destroys persistent buffers";
        return complain(why, |name| !matches!(name, "create_persistent" | "destroy_persistent"));
    }
    let has_shared_pool = config.pools.iter().any(|pool| pool.kind == PoolKind::Shared);
    if !config.plugin.is_external() && request.has_shared_place() && !has_shared_pool {
        return complain("no pool has striped space", |name| name == "persistentdw");
    }
    Ok(())
}
