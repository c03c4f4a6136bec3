//! `--signal`: a warning before the time limit, when the program can be expected to listen.
use model::Timestamp as Moment;
use model::time::Span;

use super::*;

/// So long a program may take to be ready; a Slurm looks every so often whether somebody is to be warned.
const READY_AFTER: Span = Span::from_secs(30);

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    let (Phase::Running, Some(warning), false) = (job.phase, &job.spec.warning, job.warned) else { return Hold::Free };
    let Some(end) = job.end_time() else { return Hold::Free };
    let asked = Moment(end.0.saturating_sub(warning.before.0));
    let at = if cluster.rules() >= 3 { asked.max(earliest(job, end)) } else { asked };
    if cluster.now < at {
        return Hold::FreeUntil(at);
    }
    Hold::Do(Task::Warn)
}

/// Programs that have not set up their handler would be killed by the warning; short jobs keep three quarters of their time.
fn earliest(job: &Job, end: Moment) -> Moment {
    let started = job.started.unwrap_or(end);
    started + Span(((end - started).0 / 4).min(READY_AFTER.0))
}
