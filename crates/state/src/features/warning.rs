//! `--signal`: a warning before the time limit.
use model::Timestamp as Moment;

use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Running, Some(warning), false) = (job.phase, &job.spec.warning, job.warned) else { return Hold::Free };
    let Some(end) = job.end_time() else { return Hold::Free };
    let at = Moment(end.0.saturating_sub(warning.before.0));
    if cluster.now < at {
        return Hold::FreeUntil(at);
    }
    Hold::Do(Task::Warn)
}
