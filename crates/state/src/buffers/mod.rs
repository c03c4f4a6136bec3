//! Burst buffers: entities beside the jobs, each with a life, places and duties of its own.
pub(crate) mod admission;
pub mod capacity;
pub(crate) mod check;
mod environment;
pub(crate) mod life;
pub(crate) mod limit;
mod movers;
pub(crate) mod persistent;
pub(crate) mod restart;
pub mod sessions;
pub(crate) mod settle;
mod words;

pub use admission::preview;
pub use environment::environment;
pub use life::is_left_behind;
use model::{Job, JobSpec};
pub use persistent::uses_are_ready;

use crate::Cluster;

/// Whether something must be done for the job's buffer before it has nodes. Private space alone may be made where the job
/// starts.
pub fn is_staged_ahead(spec: &JobSpec) -> bool {
    spec.buffer.as_ref().is_some_and(|request| {
        request.has_shared_place() || !request.creates.is_empty() || !request.destroys.is_empty()
    })
}

/// Somebody could work for the job's buffer now.
pub fn has_agent(cluster: &Cluster, job: &Job) -> bool {
    let Some(request) = &job.spec.buffer else { return false };
    if request.plugin.is_external() {
        let config = cluster.config.burst_buffer.as_ref();
        return config.is_some_and(|config| config.is_loaded && config.plugin == request.plugin);
    }
    let pools = request.creates.iter().map(|creation| creation.pool.as_str());
    (!request.has_shared_place() || movers::shared_place(cluster, request, job.id).is_some())
        && pools.into_iter().all(|pool| movers::has_mover(cluster, pool))
}

/// `sbatch -N0`: persistent buffers are made or destroyed, nothing runs.
pub(crate) fn runs_nothing(job: &Job) -> bool {
    job.spec.buffer.is_some() && job.spec.size.max_nodes == Some(0)
}
