//! Scripts and environments, stored once by content and shared by all jobs that use them.
use std::sync::Arc;

use model::command::Blob;
use model::{BlobId, JobKind, JobSpec, Reject, StepSpec};
use serde::{Deserialize, Serialize};

use crate::Cluster;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredBlob {
    pub content: Arc<[u8]>,
    pub n_users: u32,
}

/// Every blob that the spec refers to is at hand, here or in `brought`.
pub(crate) fn are_at_hand(cluster: &Cluster, wanted: &[BlobId], brought: &[Blob]) -> Result<(), Reject> {
    let at_hand = |id: &BlobId| cluster.blobs.contains_key(id) || brought.iter().any(|blob| blob.id == *id);
    if wanted.iter().all(at_hand) { Ok(()) } else { Err(Reject::MissingBlob) }
}

pub(crate) fn take(cluster: &mut Cluster, wanted: &[BlobId], brought: &[Blob]) {
    for id in wanted {
        match cluster.blobs.get_mut(id) {
            Some(stored) => stored.n_users += 1,
            None => {
                let blob = brought.iter().find(|blob| blob.id == *id).expect("are_at_hand was asked first");
                cluster.blobs.insert(*id, StoredBlob { content: blob.content.clone().into(), n_users: 1 });
            }
        }
    }
}

pub(crate) fn release(cluster: &mut Cluster, used: &[BlobId]) {
    for id in used {
        let stored = cluster.blobs.get_mut(id).expect("a blob in use is stored");
        stored.n_users -= 1;
        if stored.n_users == 0 {
            cluster.blobs.remove(id);
        }
    }
}

pub(crate) fn of_job(spec: &JobSpec) -> Vec<BlobId> {
    let mut blobs = vec![spec.environment];
    match &spec.kind {
        JobKind::Batch { script } => blobs.push(*script),
        JobKind::Allocation => (),
        JobKind::Run(step) => blobs.extend(of_step(step)),
    }
    blobs.retain(|id| *id != BlobId::default());
    blobs
}

pub(crate) fn of_step(spec: &StepSpec) -> Vec<BlobId> {
    if spec.environment == BlobId::default() { Vec::new() } else { vec![spec.environment] }
}
