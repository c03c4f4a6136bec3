//! Buffers that hold more than was asked for: told to the job's owner, and ended where the site wants that.
use model::staging::Access;
use model::{JobId, NodeName, Outcome, Phase, Reason, Reject, Reply, size};

use super::life;
use crate::on::Answer;
use crate::{Cluster, job_life};

pub(crate) struct Measured<'a> {
    pub access: Access,
    pub node: &'a NodeName,
    pub used_bytes: u64,
    pub is_over: bool,
}

pub(crate) fn measured(cluster: &mut Cluster, id: JobId, epoch: u32, measured: &Measured) -> Answer {
    let buffer = cluster.buffers.get(&id).filter(|buffer| buffer.epoch == epoch).ok_or(Reject::Stale)?;
    let is_it = |place: &model::buffer::Place| place.access == measured.access && place.node == *measured.node;
    let at = buffer.places.iter().position(is_it).ok_or(Reject::Stale)?;
    if buffer.places[at].is_over_limit == measured.is_over {
        return Err(Reject::Stale);
    }
    let spaces = buffer.spaces.iter().filter(|space| space.access == measured.access);
    let may: u64 = spaces.map(|space| space.bytes).sum();
    life::buffer_mut(cluster, id).places[at].is_over_limit = measured.is_over;
    if measured.is_over {
        let (holds, may) = (size::show_rounded_bytes(measured.used_bytes), size::show_bytes(may));
        let place = match measured.access {
            Access::Private => format!(" on {}", measured.node),
            Access::Shared => String::new(),
        };
        life::remark(cluster, id, format!("burst_buffer/native: overlimit: holds {holds} of {may}{place}"));
        let ends = cluster.config.burst_buffer.as_ref().is_some_and(|config| config.ends_over_limit);
        if ends && matches!(cluster.jobs[&id].phase, Phase::Running | Phase::Suspended) {
            job_life::end(cluster, id, Outcome::Failed, Some(Reason::BurstBufferOperation));
        }
    }
    life::moved(cluster, id);
    Ok(Reply::Ok)
}
