//! The configuration is state: all replicas judge alike, and a reconfiguration is one entry.
use std::sync::Arc;

use model::{Caller, Config, Event, Job, JobId, Phase, Plugin, Reject, Reply, Wake, codec};

use super::{Answer, node, trust};
use crate::derived::Derived;
use crate::settle::{forget_wait, wake};
use crate::{Cluster, blobs, buffers, fair_share, history, limits};

/// The file decides: what was changed at run time is as the file has it again.
pub(crate) fn reconfigure(cluster: &mut Cluster, config: &Config) -> Answer {
    let mut effective = with_pools_of_plugin(cluster, config);
    // Hooks of one plugin know nothing of what another has begun.
    if plugin(&cluster.config) != plugin(config) && (is_external(&cluster.config) || is_external(config)) {
        effective.burst_buffer = cluster.config.burst_buffer.clone();
    }
    adopt_file(cluster, config, effective)?;
    node::forget_changes(cluster);
    Ok(Reply::Ok)
}

fn adopt_file(cluster: &mut Cluster, config: &Config, effective: Config) -> Answer {
    let effective = trust::with_joined(cluster, effective);
    if *cluster.config == effective && *cluster.file_config == *config {
        return Ok(Reply::Ok);
    }
    cluster.file_config = Arc::new(config.clone());
    adopt(cluster, effective);
    node::configure(cluster);
    Ok(Reply::Ok)
}

/// The controller has started. As long as the file is as it was, nothing that was changed since is lost.
pub(crate) fn begin(cluster: &mut Cluster, config: &Config) -> Answer {
    if *cluster.file_config != *config || plugin(&cluster.config) != plugin(config) {
        let effective = with_pools_of_plugin(cluster, config);
        adopt_file(cluster, config, effective)?;
    }
    buffers::restart::restarted(cluster);
    Ok(Reply::Ok)
}

fn plugin(config: &Config) -> Option<Plugin> {
    config.burst_buffer.as_ref().map(|burst| burst.plugin)
}

fn is_external(config: &Config) -> bool {
    plugin(config).is_some_and(Plugin::is_external)
}

/// What a plugin has told stays known until it tells something else.
fn with_pools_of_plugin(cluster: &Cluster, config: &Config) -> Config {
    let mut config = config.clone();
    if let (Some(old), Some(new)) = (&cluster.config.burst_buffer, &mut config.burst_buffer)
        && old.plugin == new.plugin
        && new.plugin.is_external()
    {
        new.pools = old.pools.clone();
        new.is_loaded = old.is_loaded;
    }
    config
}

/// Partition rules decide the queue's order, so queued jobs leave it under the old rules and come back under the new.
pub(crate) fn adopt(cluster: &mut Cluster, config: Config) {
    let queued: Vec<JobId> = cluster.queue.iter().map(|key| key.job).collect();
    for id in queued {
        forget_wait(cluster, id);
        cluster.unsettled.insert(id);
    }
    let done = cluster.jobs().filter(|job| job.phase == Phase::Done).map(|job| job.id);
    let done: Vec<JobId> = done.collect();
    cluster.unsettled.extend(done);
    if cluster.config.hooks != config.hooks {
        let is_between = |job: &&Arc<Job>| !matches!(job.phase, Phase::Pending | Phase::Suspended | Phase::Done);
        let between: Vec<JobId> = cluster.jobs().filter(is_between).map(|job| job.id).collect();
        cluster.unsettled.extend(between);
    }
    limits::settle_meters(cluster);
    let recorded_before = cluster.config.accounting.records;
    cluster.config = Arc::new(config);
    cluster.measures = Derived::default();
    history::configured(cluster, recorded_before);
    limits::keep_all(cluster);
    limits::minutes::watch(cluster);
    fair_share::refresh(cluster);
    cluster.network = Derived::default();
    wake(cluster, Wake::Partitions);
    // Who goes before whom may be another matter now.
    cluster.sharing_changed = true;
    let at = cluster.now;
    cluster.tell(Event::Reconfigured { at });
}

/// How much use over share counts, where there is no fair tree.
pub(crate) fn set_dampening(cluster: &mut Cluster, by: Caller, factor: u32) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    if factor == 0 {
        return Err(Reject::InvalidValue("invalid dampening factor: 0".into()));
    }
    let mut config = (*cluster.config).clone();
    config.scheduler.priority.dampening = factor;
    cluster.config = Arc::new(config);
    fair_share::refresh(cluster);
    Ok(Reply::Ok)
}

/// Everything is as the backup has it. A cluster that has had jobs keeps what it has.
pub(crate) fn restore(cluster: &mut Cluster, by: Caller, state: &[u8]) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    if cluster.last_job != JobId::default() || !cluster.jobs.is_empty() {
        return Err(Reject::NotSupported);
    }
    let restored: Cluster =
        codec::decode(state).map_err(|error| Reject::InvalidValue(format!("the backup: {error}")))?;
    let now = cluster.now.max(restored.now);
    let looks_at_content = cluster.rules() >= 3;
    let has_standings = restored.rules() >= 3;
    *cluster = Cluster { now, ..restored };
    if has_standings {
        trust::be_lenient(cluster);
    }
    if looks_at_content {
        blobs::discard_forged(cluster);
    }
    Ok(Reply::Ok)
}
