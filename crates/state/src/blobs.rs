//! Scripts and environments, stored once by content and shared by all jobs that use them.
use std::fmt;
use std::sync::Arc;

use model::command::Blob;
use model::{BlobId, Caller, Command, HeldBy, JobId, JobKind, JobSpec, Reject, StepSpec};
use serde::{Deserialize, Serialize};

use crate::Cluster;

/// Told to the administrator who finds such a job held.
const FORGED: &str =
    "its script or environment was not what its id says, and was discarded: cancel the job and submit it anew";

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredBlob {
    pub content: Arc<[u8]>,
    pub n_users: u32,
}

impl fmt::Debug for StoredBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes for {}", self.content.len(), self.n_users)
    }
}

/// What a command carries is what its ids say, and the caller brings, or has, what it names.
///
/// Asked before a command goes to the log, which holds content only once: an entry cannot show who knew it.
pub fn judge_content(cluster: &Cluster, by: Caller, command: &Command) -> Result<(), Reject> {
    match command {
        Command::Submit { spec, blobs } => is_callers(cluster, by, of_job(spec), blobs),
        Command::SubmitTogether { specs, blobs } => is_callers(cluster, by, specs.iter().flat_map(of_job), blobs),
        Command::CreateStep { spec, blobs, .. } => is_callers(cluster, by, of_step(spec), blobs),
        Command::CreateStepTogether { parts, blobs } => {
            is_callers(cluster, by, parts.iter().flat_map(|(_, spec)| of_step(spec)), blobs)
        }
        Command::Once { command, .. } => judge_content(cluster, by, command),
        _ => Ok(()),
    }
}

/// As [`judge_content`], for a submission that is not a command yet.
pub fn judge_submission(cluster: &Cluster, by: Caller, specs: &[JobSpec], blobs: &[Blob]) -> Result<(), Reject> {
    is_callers(cluster, by, specs.iter().flat_map(of_job), blobs)
}

fn is_callers(
    cluster: &Cluster,
    by: Caller,
    wanted: impl IntoIterator<Item = BlobId>,
    brought: &[Blob],
) -> Result<(), Reject> {
    if !brought.iter().all(Blob::is_genuine) {
        return Err(Reject::ForgedBlob);
    }
    let is_at_hand = |id: &BlobId| brought.iter().any(|blob| blob.id == *id) || user_has(cluster, by.uid, *id);
    // Whether others have it must not be seen.
    if wanted.into_iter().all(|id| is_at_hand(&id)) { Ok(()) } else { Err(Reject::MissingBlob) }
}

/// A job of the user's that is not over, or a step of it, uses this content.
fn user_has(cluster: &Cluster, uid: u32, id: BlobId) -> bool {
    let first = (uid, String::new(), JobId(0));
    let own = cluster.live_names.range(first..).take_while(|(owner, ..)| *owner == uid);
    own.filter_map(|(_, _, job)| cluster.job(*job)).any(|job| {
        of_job(&job.spec).contains(&id) || cluster.steps_of(job.id).any(|step| of_step(&step.spec).contains(&id))
    })
}

/// Content that an earlier release took without looking is looked at: what is not what its id says goes, and waiting jobs that
/// need it are held.
pub(crate) fn discard_forged(cluster: &mut Cluster) {
    let is_forged = |(id, stored): &(&BlobId, &StoredBlob)| BlobId::of(&stored.content) != **id;
    let forged: Vec<BlobId> = cluster.blobs.iter().filter(is_forged).map(|(id, _)| *id).collect();
    if forged.is_empty() {
        return;
    }
    for id in &forged {
        cluster.blobs.get_mut(id).expect("it was just found").content = Arc::default();
    }
    let uses_forged = |spec: &JobSpec| of_job(spec).iter().any(|id| forged.contains(id));
    let jobs = cluster.jobs.values().filter(|job| !job.is_over() && uses_forged(&job.spec));
    let jobs: Vec<JobId> = jobs.map(|job| job.id).collect();
    for id in jobs {
        let job = cluster.job_mut(id);
        job.held = Some(HeldBy::Admin);
        job.admin_comment = FORGED.to_owned();
        cluster.unsettled.insert(id);
    }
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
