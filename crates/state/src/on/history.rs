//! What the recorder of history says.
use model::{JobId, Reply, Wake};

use super::Answer;
use crate::settle::wake;
use crate::{Cluster, history};

/// Everything up to change `up_to` is in the database; ended jobs that waited for that may be forgotten.
pub(crate) fn recorded(cluster: &mut Cluster, up_to: u64) -> Answer {
    for job in history::recorded(cluster, up_to) {
        wake(cluster, Wake::Recorded(job));
    }
    Ok(Reply::Ok)
}

/// The database knows later jobs than the state does: their ids are not given again.
pub(crate) fn continue_ids(cluster: &mut Cluster, after: JobId) -> Answer {
    cluster.last_job = cluster.last_job.max(after);
    Ok(Reply::Ok)
}
