//! The configuration is state: all replicas judge alike, and a reconfiguration is one entry.
use std::sync::Arc;

use model::update::PartitionChanges;
use model::{Caller, Config, Event, JobId, Phase, Reject, Reply, Wake};

use super::{Answer, node};
use crate::Cluster;
use crate::network::Derived;
use crate::settle::{forget_wait, wake};

pub(crate) fn reconfigure(cluster: &mut Cluster, config: &Config) -> Answer {
    if *cluster.config == *config {
        return Ok(Reply::Ok);
    }
    adopt(cluster, config.clone());
    node::configure(cluster);
    Ok(Reply::Ok)
}

pub(crate) fn update_partition(cluster: &mut Cluster, by: Caller, name: &str, changes: &PartitionChanges) -> Answer {
    if !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    let mut config = (*cluster.config).clone();
    let partition = config.partitions.iter_mut().find(|partition| partition.name == name);
    let partition = partition.ok_or(Reject::NoSuchPartition)?;
    if let Some(state) = changes.state {
        partition.state = state;
    }
    if let Some(topology) = &changes.topology {
        let is_known = topology.is_empty() || cluster.config.topologies.iter().any(|known| known.name == *topology);
        if !is_known {
            return Err(Reject::NoSuchTopology);
        }
        partition.topology = topology.clone();
    }
    adopt(cluster, config);
    Ok(Reply::Ok)
}

/// Partition rules decide the queue's order, so queued jobs leave it under the old rules and come back under the new.
fn adopt(cluster: &mut Cluster, config: Config) {
    let queued: Vec<JobId> = cluster.queue.iter().map(|key| key.job).collect();
    for id in queued {
        forget_wait(cluster, id);
        cluster.unsettled.insert(id);
    }
    let done = cluster.jobs().filter(|job| job.phase == Phase::Done).map(|job| job.id);
    let done: Vec<JobId> = done.collect();
    cluster.unsettled.extend(done);
    cluster.config = Arc::new(config);
    cluster.network = Derived::default();
    wake(cluster, Wake::Partitions);
    let at = cluster.now;
    cluster.tell(Event::Reconfigured { at });
}
