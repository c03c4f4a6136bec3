//! From a snapshot to the rows that are missing in history.
use std::sync::Arc;

use accounting::{Batch, record};
use model::history::Subject;
use model::{BlobId, Job};
use state::Cluster;

/// Everything that is not recorded, as it is now.
pub fn collect(cluster: &Cluster) -> Batch {
    let mut batch = Batch::default();
    for subject in cluster.history().unrecorded() {
        match subject {
            Subject::Job(id) => {
                if let Some(job) = cluster.job(id) {
                    add_job(cluster, job, &mut batch);
                }
            }
            Subject::Step(id, step) => {
                if let (Some(job), Some(step)) = (cluster.job(id), cluster.step(id, step)) {
                    batch.steps.push(record::step(job, step));
                }
            }
            Subject::Past(id, attempt) => {
                if let Some(past) = cluster.history().past_run(id, attempt) {
                    add_job(cluster, &past.job, &mut batch);
                    batch.steps.extend(past.steps.iter().map(|step| record::step(&past.job, step)));
                }
            }
        }
    }
    if cluster.config().accounting.enforce.no_steps {
        batch.steps.clear();
    }
    batch
}

fn add_job(cluster: &Cluster, job: &Job, batch: &mut Batch) {
    let row = record::job(cluster.config(), job);
    let mut add = |id: Option<BlobId>| {
        let found = id.and_then(|id| cluster.blob(id).map(|content| (id, Arc::clone(content))));
        if let Some((id, content)) = found
            && !batch.blobs.iter().any(|(known, _)| *known == id)
        {
            batch.blobs.push((id, content));
        }
    };
    add(row.script);
    add(row.environment);
    batch.jobs.push(row);
    batch.steps.extend(record::batch_step(job));
}
