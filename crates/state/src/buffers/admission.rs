//! What a submission asks for, read from its options and its script, and whether this user may.
use std::sync::Arc;

use model::buffer::BufferRequest;
use model::command::Blob;
use model::directive::{self, ProblemKind, Sources};
use model::pool::{BurstBufferConfig, PoolKind};
use model::{Caller, JobKind, JobSpec, Reject};

use crate::Cluster;

/// Fills in `spec.buffer`.
pub(crate) fn complete(cluster: &Cluster, by: Caller, spec: &mut JobSpec, brought: &[Blob]) -> Result<(), Reject> {
    spec.buffer = None;
    let Some(config) = &cluster.config.burst_buffer else {
        let asks = !spec.burst_buffer.is_empty() || !spec.burst_buffer_file.is_empty();
        return match asks {
            true => Err(Reject::BadBuffer("burst_buffer: this cluster has no burst buffers".into())),
            false => without(spec),
        };
    };
    let script = script(cluster, spec, brought);
    let sources = Sources { script: &script, option: &spec.burst_buffer, file: &spec.burst_buffer_file };
    let prefix = format!("burst_buffer/{}: ", config.plugin.word());
    let request = directive::request(config, sources).map_err(|problem| {
        let details = format!("{prefix}{problem}");
        match problem.kind {
            ProblemKind::Invalid => Reject::BadBuffer(details),
            ProblemKind::NotPermitted => Reject::BufferNotPermitted(details),
        }
    })?;
    let Some(mut request) = request else { return without(spec) };
    request.plugin = config.plugin;
    request.by_admin = by.is_admin;
    may(config, by, spec, &request).map_err(|why| Reject::BufferNotPermitted(format!("{prefix}{why}")))?;
    sense(config, spec, &request).map_err(|why| Reject::BadBuffer(format!("{prefix}{why}")))?;
    spec.buffer = Some(Arc::new(request));
    if runs_nothing(spec) {
        let request = spec.buffer.as_ref().expect("just set");
        if spec.array.is_some() {
            return Err(Reject::TooManyNodes);
        }
        if !request.spaces.is_empty() || !request.transfers.is_empty() || !request.uses.is_empty() {
            let why = "a job without nodes only creates and destroys persistent buffers";
            return Err(Reject::BadBuffer(format!("{prefix}{why}")));
        }
    }
    Ok(())
}

fn without(spec: &JobSpec) -> Result<(), Reject> {
    if runs_nothing(spec) { Err(Reject::TooManyNodes) } else { Ok(()) }
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
    let may_persist = by.is_admin || config.enables_persistent;
    if !request.creates.is_empty() && !may_persist {
        return Err(format!("User {} disabled from creating persistent burst buffer", spec.uid));
    }
    if !request.destroys.is_empty() && !may_persist {
        return Err(format!("User {} disabled from destroying persistent burst buffer", spec.uid));
    }
    Ok(())
}

fn sense(config: &BurstBufferConfig, spec: &JobSpec, request: &BufferRequest) -> Result<(), String> {
    let has_shared_pool = config.pools.iter().any(|pool| pool.kind == PoolKind::Shared);
    if request.has_shared_place() && !has_shared_pool {
        return Err("no pool has striped space".into());
    }
    if request.has_private_space() && runs_nothing(spec) {
        return Err("private space needs nodes".into());
    }
    Ok(())
}
