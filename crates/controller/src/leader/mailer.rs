//! Mails about jobs (`--mail-type`): listens to what happens, and calls the site's mail program.
//! A mail is best effort: one that is under way when the controller dies is lost.
use std::sync::Arc;

use model::job_state::JobState;
use model::spec::{Mail, MailKind};
use model::staging::Direction;
use model::{Event, Job, Outcome, Phase, Reason, Timestamp, duration, plain_text};
use state::Cluster;
use tokio::sync::broadcast::error::RecvError;

use super::mail_queue::{Letter, MailQueue};
use crate::machine::Published;

pub async fn run(published: Published) {
    let mut batches = published.events();
    let mut queue = MailQueue::start(published.statistics.mails.clone());
    loop {
        match batches.recv().await {
            Ok(events) => {
                let cluster = published.now();
                if !events.iter().any(|event| concerned(&cluster, event).is_some()) {
                    continue;
                }
                // Whether an array has ended is asked of all its tasks: other threads answer callers meanwhile.
                let letters = move || events.iter().flat_map(|event| letters(&cluster, event)).collect::<Vec<_>>();
                let Ok(letters) = tokio::task::spawn_blocking(letters).await else { continue };
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
    Some((job, job.spec.mail.as_ref()?, *at))
}

fn letters(cluster: &Cluster, event: &Event) -> Vec<Letter> {
    let mut letters = Vec::new();
    let Some((job, mail, at)) = concerned(cluster, event) else { return letters };
    let kinds = match event {
        Event::JobChanged { from, to, .. } => kinds(job, *from, *to),
        Event::TimeUsed { percent, .. } => vec![of_time_used(*percent)],
        _ if job.is_over() && stages_out(job) => vec![MailKind::StageOut],
        _ => Vec::new(),
    };
    for kind in kinds {
        if mail.kinds.contains(&kind)
            && mail.has_plain_address()
            && let Some(subject) = subject(cluster, job, mail, kind, at)
        {
            let to = match mail.to.as_str() {
                "" => cluster.config().jobs.address(&job.spec.user),
                to => to.to_string(),
            };
            letters.push(Letter {
                uid: job.spec.uid,
                program: cluster.config().controller.mail_program.clone(),
                subject,
                to,
                told: told(cluster, job, kind, at),
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

/// None for a task of an array that has mails only as a whole, unless this is the whole's first or last news.
fn subject(cluster: &Cluster, job: &Job, mail: &Mail, kind: MailKind, at: Timestamp) -> Option<String> {
    let name = &job.spec.name;
    let head = match (job.array_id(), job.array_task()) {
        (Some(array), Some(task)) if mail.for_each_task => {
            format!("Slurm Array Task Job_id={array}_{task} ({}) Name={name}", job.id)
        }
        (Some(array), _) => {
            let tasks = cluster.named(&array.into())?;
            let tasks: Vec<&Job> = tasks.iter().filter_map(|id| cluster.job(*id)).map(|task| &**task).collect();
            let is_news = match kind {
                MailKind::Begin => tasks.iter().filter(|task| task.started.is_some()).count() == 1,
                MailKind::TimeLimit50 | MailKind::TimeLimit80 | MailKind::TimeLimit90 => true,
                _ => tasks.iter().all(|task| task.is_over()),
            };
            if !is_news {
                return None;
            }
            format!("Slurm Array Summary Job_id={array}_* ({array}) Name={name}")
        }
        (None, _) => format!("Slurm Job_id={} Name={name}", job.id),
    };
    let end = || {
        let state = job.outcome.map_or("COMPLETED", |outcome| JobState::from(outcome).name());
        format!(", Run time {}, {state}, ExitCode {}", duration::show(job.run_time(at).secs()), exit_code(job))
    };
    Some(match kind {
        MailKind::Begin => format!("{head} Began, Queued time {}", duration::show((at - job.submitted).secs())),
        MailKind::End => format!("{head} Ended{}", end()),
        MailKind::Fail => format!("{head} Failed{}", end()),
        MailKind::Requeue => format!("{head} Requeued, Run time {}", ran(job, at)),
        MailKind::InvalidDependency => format!("{head} Invalid dependency"),
        MailKind::StageOut => {
            let took = at - job.ended.unwrap_or(at);
            format!("{head} StageOut/Teardown time {}", duration::show(took.secs()))
        }
        MailKind::TimeLimit50 => format!("{head} Reached 50% of time limit, Run time {}", ran(job, at)),
        MailKind::TimeLimit80 => format!("{head} Reached 80% of time limit, Run time {}", ran(job, at)),
        MailKind::TimeLimit90 => format!("{head} Reached 90% of time limit, Run time {}", ran(job, at)),
        MailKind::TimeLimit => {
            format!("{head} Reached time limit, Run time {}", ran(job, at))
        }
    })
}

/// One that was ended from outside has none of its own.
fn exit_code(job: &Job) -> u32 {
    match job.outcome {
        Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Deadline | Outcome::Preempted) => 0,
        _ => u32::from(job.exit.wait_code()),
    }
}

fn ran(job: &Job, at: Timestamp) -> String {
    duration::show(job.run_time(at).secs())
}

/// What the mail program finds in its environment.
fn told(cluster: &Cluster, job: &Job, kind: MailKind, at: Timestamp) -> Vec<(&'static str, String)> {
    let mut told = vec![
        ("SLURM_CLUSTER_NAME", cluster.config().cluster_name.clone()),
        ("SLURM_JOB_ID", job.id.to_string()),
        ("SLURM_JOB_NAME", job.spec.name.replace(plain_text::is_hostile, " ")),
        ("SLURM_JOB_USER", job.spec.user.clone()),
        ("SLURM_JOB_PARTITION", job.partition.clone()),
        ("SLURM_JOB_ACCOUNT", job.spec.account.clone()),
        ("SLURM_JOB_WORK_DIR", job.spec.work_dir.clone()),
        ("SLURM_JOB_STATE", job.base_state().name().to_string()),
        ("SLURM_JOB_MAIL_TYPE", word(kind).to_string()),
    ];
    told.push(match kind {
        MailKind::Begin => ("SLURM_JOB_QUEUED_TIME", duration::show((at - job.submitted).secs())),
        _ => ("SLURM_JOB_RUN_TIME", ran(job, at)),
    });
    if matches!(kind, MailKind::End | MailKind::Fail) {
        told.push(("SLURM_JOB_EXIT_CODE_MAX", exit_code(job).to_string()));
    }
    if let (Some(array), Some(task)) = (job.array_id(), job.array_task()) {
        told.push(("SLURM_ARRAY_JOB_ID", array.to_string()));
        told.push(("SLURM_ARRAY_TASK_ID", task.to_string()));
    }
    if kind == MailKind::StageOut {
        told.push(("SLURM_JOB_STAGE_OUT_TIME", (at - job.ended.unwrap_or(at)).secs().to_string()));
    }
    told
}

/// As Slurm calls it.
fn word(kind: MailKind) -> &'static str {
    match kind {
        MailKind::Begin => "Began",
        MailKind::End => "Ended",
        MailKind::Fail => "Failed",
        MailKind::Requeue => "Requeued",
        MailKind::InvalidDependency => "Invalid dependency",
        MailKind::TimeLimit => "Reached time limit",
        MailKind::StageOut => "StageOut/Teardown",
        MailKind::TimeLimit50 => "Reached 50% of time limit",
        MailKind::TimeLimit80 => "Reached 80% of time limit",
        MailKind::TimeLimit90 => "Reached 90% of time limit",
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

    #[test]
    fn a_subject_says_what_slurm_says() {
        let mut job = Job { id: model::JobId(7), outcome: Some(Outcome::Completed), ..Default::default() };
        job.spec = model::JobSpec { name: "x".into(), ..Default::default() }.into();
        job.started = Some(Timestamp::from_secs(100));
        job.ended = Some(Timestamp::from_secs(105));
        let subject = subject(&Cluster::default(), &job, &Mail::default(), MailKind::End, Timestamp::from_secs(105));
        assert_eq!(subject.as_deref(), Some("Slurm Job_id=7 Name=x Ended, Run time 00:00:05, COMPLETED, ExitCode 0"));
    }
}
