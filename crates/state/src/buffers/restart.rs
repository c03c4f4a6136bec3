//! What becomes of plugins' buffers when the controller starts: hooks that were running died with it, and nobody knows how
//! far they came. Our own agents go on by themselves, so native buffers are left alone.
use model::{BufferPhase, JobId};

use super::life::{self, Step};
use crate::Cluster;

pub(crate) fn restarted(cluster: &mut Cluster) {
    let external = cluster.buffers.values().filter(|buffer| buffer.plugin.is_external());
    let external: Vec<(JobId, BufferPhase)> = external.map(|buffer| (buffer.job, buffer.phase)).collect();
    for (id, phase) in external {
        match phase {
            BufferPhase::StagingIn | BufferPhase::StagedIn | BufferPhase::Revoked => {
                let delay = cluster.config.burst_buffer.as_ref().map(|config| config.restart_delay);
                let earliest = cluster.now + delay.unwrap_or_default();
                let spec = std::sync::Arc::make_mut(&mut cluster.job_mut(id).spec);
                spec.begin = spec.begin.max(Some(earliest));
                life::take(cluster, id, Step::Discard);
            }
            BufferPhase::PostRun | BufferPhase::StagingOut => life::post_run_again(cluster, id),
            BufferPhase::TearingDown => {
                let attempt = life::next_order(cluster, id);
                let buffer = life::buffer_mut(cluster, id);
                (buffer.hurry, buffer.attempt) = (false, attempt);
                life::moved(cluster, id);
            }
            // Its hooks simply run again, or there are none.
            BufferPhase::PreRun | BufferPhase::Allocating | BufferPhase::Deleting | BufferPhase::InUse => (),
        }
    }
}
