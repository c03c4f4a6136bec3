//! What the recorder of history says.
use std::sync::Arc;

use model::history::{Amendment, RunName};
use model::job::Remark;
use model::{Job, JobId, Reject, Reply, Wake};

use super::Answer;
use super::job::touched;
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

/// What was said of a run goes with the job while there is one, so that writing its row again does not undo it.
pub(crate) fn amend(cluster: &mut Cluster, run: &RunName, amendment: &Amendment) -> Answer {
    let is_it = |job: &&Arc<Job>| (job.submitted, job.attempt) == (run.submitted, run.attempt);
    if cluster.jobs.get(&run.job).filter(is_it).is_none() {
        return Err(Reject::NoSuchJob);
    }
    let at = cluster.now;
    let Amendment { comment, admin_comment, system_comment, wckey, derived_exit } = amendment.clone();
    let job = cluster.job_mut(run.job);
    let spec = Arc::make_mut(&mut job.spec);
    spec.comment = comment.unwrap_or_else(|| std::mem::take(&mut spec.comment));
    spec.wckey = wckey.unwrap_or_else(|| std::mem::take(&mut spec.wckey));
    if let Some(text) = admin_comment {
        job.admin_comment = text;
    }
    if let Some(text) = system_comment {
        job.remarks = vec![Remark { at, text }];
    }
    job.derived_exit = derived_exit.unwrap_or(job.derived_exit);
    touched(cluster, run.job);
    Ok(Reply::Ok)
}
