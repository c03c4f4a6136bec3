//! Mails about jobs (`--mail-type`): listens to what happens, and calls the site's mail program.
//! A mail is best effort: one that is under way when the controller dies is lost.
use std::sync::Arc;

use model::spec::{Mail, MailKind};
use model::staging::Direction;
use model::{Event, HetPlace, Job, Outcome, Phase, Reason, Timestamp};
use state::Cluster;
use tokio::sync::broadcast::error::RecvError;

use super::mail_arrays::ArrayMails;
use super::mail_queue::{Letter, MailQueue};
use super::mail_words::{self, MailScope};
use crate::machine::Published;

pub async fn run(published: Published) {
    let mut batches = published.events();
    let mut queue = MailQueue::start(published.statistics.mails.clone());
    let mut arrays = ArrayMails::default();
    loop {
        match batches.recv().await {
            Ok(events) => {
                let cluster = published.now();
                if !events.iter().any(|event| concerned(&cluster, event).is_some()) {
                    continue;
                }
                // How an array has ended is asked of all its tasks: other threads answer callers meanwhile.
                let mut known = std::mem::take(&mut arrays);
                let written = tokio::task::spawn_blocking(move || {
                    let write = |event: &Event| letters(&cluster, event, &mut known);
                    let letters: Vec<Letter> = events.iter().flat_map(write).collect();
                    known.forget_gone(&cluster);
                    (letters, known)
                });
                let Ok((letters, known)) = written.await else { continue };
                arrays = known;
                letters.into_iter().for_each(|letter| queue.post(letter));
            }
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "mails about some events were not sent"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// The job that somebody wants mails about, and when this happened to it.
fn concerned<'a>(cluster: &'a Cluster, event: &Event) -> Option<(&'a Arc<Job>, &'a Mail, Timestamp)> {
    let (job, at) = match event {
        Event::JobChanged { job, at, .. }
        | Event::TimeUsed { job, at, .. }
        | Event::BufferChanged { job, to: None, at } => (job, at),
        _ => return None,
    };
    let job = cluster.job(*job)?;
    // The first component speaks for a heterogeneous job.
    let speaks = job.het.as_ref().is_none_or(HetPlace::is_leader);
    Some((job, job.spec.mail.as_ref().filter(|_| speaks)?, *at))
}

fn letters(cluster: &Cluster, event: &Event, arrays: &mut ArrayMails) -> Vec<Letter> {
    let Some((job, mail, at)) = concerned(cluster, event) else { return Vec::new() };
    let kinds = match event {
        Event::JobChanged { from, to, .. } => kinds(job, *from, *to),
        Event::TimeUsed { percent, .. } => vec![of_time_used(*percent)],
        _ if job.is_over() && stages_out(job) => vec![MailKind::StageOut],
        _ => Vec::new(),
    };
    let to = || match mail.to.as_str() {
        "" => cluster.config().jobs.address(&job.spec.user),
        to => to.to_string(),
    };
    let mut letters = Vec::new();
    for kind in kinds {
        let about = match job.array_id() {
            Some(array) if !mail.for_each_task => arrays.news(cluster, array, job, kind),
            _ => Some((MailScope::Job, kind)),
        };
        if let Some((about, kind)) = about
            && mail.kinds.contains(&kind)
            && mail.has_plain_address()
        {
            letters.push(Letter {
                uid: job.spec.uid,
                program: cluster.config().controller.mail_program.clone(),
                subject: mail_words::subject(job, &about, kind, at),
                to: to(),
                told: mail_words::told(cluster, job, &about, kind, at),
            });
        }
    }
    letters
}

fn of_time_used(percent: u32) -> MailKind {
    match percent {
        ..80 => MailKind::TimeLimit50,
        80..90 => MailKind::TimeLimit80,
        90.. => MailKind::TimeLimit90,
    }
}

/// Something was to be brought back, so that there is something to tell.
fn stages_out(job: &Job) -> bool {
    let request = job.spec.buffer.as_ref();
    request.is_some_and(|request| {
        request.stages_out || request.transfers.iter().any(|one| one.direction == Direction::Out)
    })
}

/// What there is to tell of a change of phase.
fn kinds(job: &Job, from: Phase, to: Phase) -> Vec<MailKind> {
    let had_ended = matches!(from, Phase::Ending | Phase::Finishing | Phase::Done);
    let has_ended = matches!(to, Phase::Ending | Phase::Finishing | Phase::Done);
    match (from, to) {
        (Phase::Pending, Phase::Starting) => vec![MailKind::Begin],
        (_, Phase::Pending) => vec![MailKind::Requeue],
        _ if has_ended && !had_ended && !job.requeue => {
            // One mail tells of an end; of one in failure, rather that it failed.
            let asked = |kind: &MailKind| job.spec.mail.as_ref().is_some_and(|mail| mail.kinds.contains(kind));
            let failed = if asked(&MailKind::Fail) { MailKind::Fail } else { MailKind::End };
            match job.outcome {
                Some(_) if job.reason == Some(Reason::DependencyNeverSatisfied) => vec![MailKind::InvalidDependency],
                Some(Outcome::Completed | Outcome::Cancelled) | None => vec![MailKind::End],
                Some(Outcome::Timeout) => vec![MailKind::TimeLimit, failed],
                Some(_) => vec![failed],
            }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_once_however_much_was_asked_for() {
        let kinds_of = |asked: &[MailKind], outcome| {
            let mail = Mail { kinds: asked.to_vec(), ..Default::default() };
            let spec = model::JobSpec { mail: Some(mail), ..Default::default() };
            let job = Job { spec: spec.into(), outcome: Some(outcome), ..Default::default() };
            let mut kinds = kinds(&job, Phase::Running, Phase::Ending);
            kinds.retain(|kind| asked.contains(kind));
            kinds
        };
        use MailKind::{End, Fail, TimeLimit};
        assert_eq!(kinds_of(&[End, Fail], Outcome::Failed), [Fail]);
        assert_eq!(kinds_of(&[End], Outcome::Failed), [End]);
        assert_eq!(kinds_of(&[End, Fail], Outcome::Cancelled), [End]);
        assert_eq!(kinds_of(&[Fail], Outcome::Failed), [Fail]);
        assert_eq!(kinds_of(&[Fail], Outcome::Completed), []);
        assert_eq!(kinds_of(&[TimeLimit], Outcome::Timeout), [TimeLimit]);
    }
}
