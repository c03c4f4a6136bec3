//! Mails at half, four fifths and nine tenths of the time limit: how far the job has come is part of its record.
use model::spec::MailKind;
use model::{Event, JobId};

use super::*;

/// How much of its time a job must have used, in percent, for the mail of that kind.
const MARKS: [(u32, MailKind); 3] =
    [(50, MailKind::TimeLimit50), (80, MailKind::TimeLimit80), (90, MailKind::TimeLimit90)];

/// When the mark is reached; none without a limit.
fn reached_at(job: &Job, percent: u32) -> Option<Timestamp> {
    let limit = job.spec.time_limit?.span()?;
    let end = job.end_by_limit()?;
    let left = limit.0 / 100 * u64::from(100 - percent);
    Some(Timestamp(end.0.saturating_sub(left)))
}

/// The marks that somebody wants to hear of and that have not been passed.
fn ahead(job: &Job) -> impl Iterator<Item = u32> + '_ {
    let kinds = job.spec.mail.iter().flat_map(|mail| &mail.kinds);
    let marks = kinds.filter_map(|kind| MARKS.iter().find(|(_, mark)| mark == kind)).map(|(percent, _)| *percent);
    marks.filter(|percent| job.phase == Phase::Running && *percent > job.time_used_percent)
}

pub(super) fn hold(_: &Cluster, job: &Job) -> Hold {
    match ahead(job).filter_map(|percent| reached_at(job, percent)).min() {
        Some(next) => Hold::FreeUntil(next),
        None => Hold::Free,
    }
}

/// Notes what has been passed.
pub(crate) fn note(cluster: &mut Cluster, id: JobId) {
    let now = cluster.now;
    let job = &cluster.jobs[&id];
    let is_passed = |percent: &u32| reached_at(job, *percent).is_some_and(|at| at <= now);
    let Some(percent) = ahead(job).filter(is_passed).max() else { return };
    cluster.job_mut(id).time_used_percent = percent;
    cluster.tell(Event::TimeUsed { job: id, percent, at: now });
}
