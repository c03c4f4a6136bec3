//! The configuration is state: all replicas judge alike, and a reconfiguration is one entry.
use std::sync::Arc;

use model::{Config, Event, JobId, Phase, Reply, Wake};

use super::{Answer, node};
use crate::network::Derived;
use crate::settle::{forget_wait, wake};
use crate::{Cluster, history};

/// The file decides: what was changed at run time is as the file has it again.
pub(crate) fn reconfigure(cluster: &mut Cluster, config: &Config) -> Answer {
    if *cluster.config == *config && *cluster.file_config == *config {
        return Ok(Reply::Ok);
    }
    cluster.file_config = Arc::new(config.clone());
    adopt(cluster, config.clone());
    node::configure(cluster);
    Ok(Reply::Ok)
}

/// The controller has started. As long as the file is as it was, nothing that was changed since is lost.
pub(crate) fn begin(cluster: &mut Cluster, config: &Config) -> Answer {
    if *cluster.file_config == *config {
        return Ok(Reply::Ok);
    }
    reconfigure(cluster, config)
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
    let recorded_before = cluster.config.accounting.records;
    cluster.config = Arc::new(config);
    history::configured(cluster, recorded_before);
    cluster.network = Derived::default();
    wake(cluster, Wake::Partitions);
    let at = cluster.now;
    cluster.tell(Event::Reconfigured { at });
}
