//! What a job's processes are told of its buffers.
use model::staging::{Access, Home};
use model::{Job, NodeName};

use crate::Cluster;

/// `NAME=value`, as seen on one of the job's nodes.
pub fn environment(cluster: &Cluster, job: &Job, node: &NodeName) -> Vec<String> {
    let Some(buffer) = cluster.buffer(job.id) else { return Vec::new() };
    if buffer.plugin.is_external() {
        return buffer.environment.clone();
    }
    let mut variables = Vec::new();
    let mut paths: Vec<String> = Vec::new();
    for (access, names) in [
        (Access::Shared, ["DW_JOB_STRIPED", "SPUR_BB_SHARED"]),
        (Access::Private, ["DW_JOB_PRIVATE", "SPUR_BB_PRIVATE"]),
    ] {
        let has_space = buffer.spaces.iter().any(|space| space.access == access);
        let is_here =
            |place: &&model::buffer::Place| place.access == access && (access == Access::Shared || place.node == *node);
        let Some(place) = buffer.places.iter().find(is_here).filter(|_| has_space) else { continue };
        let home = Home::Job { job: buffer.job, epoch: buffer.epoch, access };
        let path = home.directory(&place.root);
        variables.extend(names.iter().map(|name| format!("{name}={path}")));
        paths.push(path);
    }
    for name in &buffer.uses {
        let Some(persistent) = cluster.persistent(name) else { continue };
        let path = Home::Persistent { name: name.clone() }.directory(&persistent.root);
        variables.push(format!("DW_PERSISTENT_STRIPED_{name}={path}"));
        variables.push(format!("SPUR_BB_PERSISTENT_{name}={path}"));
    }
    if let Some(path) = paths.first() {
        variables.push(format!("SPUR_BB_PATH={path}"));
    }
    let capacity: u64 = buffer.spaces.iter().map(|space| space.bytes).sum();
    if capacity > 0 {
        variables.push(format!("SPUR_BB_CAPACITY={capacity}"));
    }
    variables
}
