//! What mails say: the subject line and the mail program's variables, in Slurm's words.
use model::job_state::JobState;
use model::spec::MailKind;
use model::{Job, JobId, Outcome, Timestamp, duration, hostlist, plain_text};
use state::Cluster;

use super::mail_arrays::ArrayEnds;

/// Who a mail speaks of.
pub enum MailScope {
    /// A job, or one task of an array.
    Job,
    /// An array as a whole, and how its tasks have ended so far.
    Array(JobId, ArrayEnds),
}

pub fn subject(job: &Job, about: &MailScope, kind: MailKind, at: Timestamp) -> String {
    let name = &job.spec.name;
    let array = match about {
        MailScope::Array(array, ends) => {
            return format!("Slurm Array Summary Job_id={array}_* ({array}) Name={name} {}", summary(kind, ends));
        }
        MailScope::Job => job.array_id().zip(job.array_task()),
    };
    let head = match array {
        Some((array, task)) => format!("Slurm Array Task Job_id={array}_{task} ({}) Name={name}", job.id),
        None => format!("Slurm Job_id={} Name={name}", job.id),
    };
    let word = word(kind);
    let details = match kind {
        MailKind::Begin => format!(", Queued time {}", duration::show((at - job.submitted).secs())),
        MailKind::End | MailKind::Fail => {
            let state = job.outcome.map_or("COMPLETED", |outcome| JobState::from(outcome).name());
            // A script that a signal has ended has no code.
            let code = exit_code(job).map_or(String::new(), |code| format!(", ExitCode {code}"));
            format!(", Run time {}, {state}{code}", ran(job, at))
        }
        MailKind::InvalidDependency => String::new(),
        MailKind::StageOut => format!(" time {}", duration::show((at - job.ended.unwrap_or(at)).secs())),
        MailKind::Requeue
        | MailKind::TimeLimit
        | MailKind::TimeLimit50
        | MailKind::TimeLimit80
        | MailKind::TimeLimit90 => format!(", Run time {}", ran(job, at)),
    };
    format!("{head} {word}{details}")
}

/// An array has neither run nor waited as a whole, so no times are told.
fn summary(kind: MailKind, ends: &ArrayEnds) -> String {
    let word = word(kind);
    match kind {
        MailKind::End | MailKind::Fail => format!("{word}, {ends}"),
        _ => word.to_string(),
    }
}

/// One that was ended from outside counts as 0; none where a signal ended it.
fn exit_code(job: &Job) -> Option<u8> {
    match job.outcome {
        Some(Outcome::Cancelled | Outcome::Timeout | Outcome::Deadline | Outcome::Preempted) => Some(0),
        _ => (job.exit.signal == 0).then_some(job.exit.code),
    }
}

fn ran(job: &Job, at: Timestamp) -> String {
    duration::show(job.run_time(at).secs())
}

/// What the mail program finds in its environment.
pub fn told(
    cluster: &Cluster,
    job: &Job,
    about: &MailScope,
    kind: MailKind,
    at: Timestamp,
) -> Vec<(&'static str, String)> {
    let id = match about {
        MailScope::Job => job.id,
        MailScope::Array(array, _) => *array,
    };
    let mut told = vec![
        ("SLURM_CLUSTER_NAME", cluster.config().cluster_name.clone()),
        ("SLURM_JOBID", id.to_string()),
        ("SLURM_JOB_ID", id.to_string()),
        ("SLURM_JOB_NAME", job.spec.name.replace(plain_text::is_hostile, " ")),
        ("SLURM_JOB_USER", job.spec.user.clone()),
        ("SLURM_JOB_UID", job.spec.uid.to_string()),
        ("SLURM_JOB_GROUP", job.spec.group.clone()),
        ("SLURM_JOB_GID", job.spec.gid.to_string()),
        ("SLURM_JOB_PARTITION", job.partition.clone()),
        ("SLURM_JOB_ACCOUNT", job.spec.account.clone()),
        ("SLURM_JOB_WORK_DIR", job.spec.work_dir.clone()),
        ("SLURM_JOB_RESTART_COUNT", job.restarts.to_string()),
        ("SLURM_JOB_STATE", job.base_state().name().to_string()),
        ("SLURM_JOB_MAIL_TYPE", word(kind).to_string()),
    ];
    let nodes: Vec<&str> = job.allocation.names().map(|name| name.as_str()).collect();
    if !nodes.is_empty() {
        told.push(("SLURM_JOB_NODELIST", hostlist::compress_in_order(nodes.iter().copied())));
        told.push(("SLURM_JOB_NUM_NODES", nodes.len().to_string()));
    }
    told.push(match kind {
        MailKind::Begin => ("SLURM_JOB_QUEUED_TIME", duration::show((at - job.submitted).secs())),
        _ => ("SLURM_JOB_RUN_TIME", ran(job, at)),
    });
    if matches!(kind, MailKind::End | MailKind::Fail) {
        told.push(("SLURM_JOB_EXIT_CODE", job.exit.to_wait_status().to_string()));
        told.push(("SLURM_JOB_EXIT_CODE2", job.exit.to_string()));
        told.push(("SLURM_JOB_DERIVED_EC", job.derived_exit.to_wait_status().to_string()));
        match about {
            MailScope::Job => told.push(("SLURM_JOB_EXIT_CODE_MAX", exit_code(job).unwrap_or(0).to_string())),
            MailScope::Array(_, ends) => told.extend(ends.variables()),
        }
    }
    if let Some(array) = job.array_id().and_then(|id| cluster.array(id)) {
        told.push(("SLURM_ARRAY_JOB_ID", array.id.to_string()));
        told.push(("SLURM_ARRAY_TASK_COUNT", array.count.to_string()));
        told.push(("SLURM_ARRAY_TASK_MIN", array.min.to_string()));
        told.push(("SLURM_ARRAY_TASK_MAX", array.max.to_string()));
        told.push(("SLURM_ARRAY_TASK_STEP", array.stride.to_string()));
        told.extend(job.array_task().map(|task| ("SLURM_ARRAY_TASK_ID", task.to_string())));
    }
    if let Some(het) = &job.het {
        let parts = het.ids.iter().filter_map(|id| cluster.job(*id));
        let names: Vec<&str> = parts.flat_map(|part| part.allocation.names()).map(|name| name.as_str()).collect();
        told.push(("SLURM_HET_JOB_ID", het.leader.to_string()));
        told.push(("SLURM_HET_JOB_OFFSET", het.offset.to_string()));
        told.push(("SLURM_HET_JOB_NODELIST", hostlist::compress(names.iter().copied())));
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
    use model::ExitStatus;

    fn subject_of(outcome: Outcome, exit: ExitStatus, kind: MailKind) -> String {
        let mut job = Job { id: model::JobId(7), outcome: Some(outcome), exit, ..Default::default() };
        job.spec = model::JobSpec { name: "x".into(), ..Default::default() }.into();
        job.started = Some(Timestamp::from_secs(100));
        job.ended = Some(Timestamp::from_secs(105));
        subject(&job, &MailScope::Job, kind, Timestamp::from_secs(105))
    }

    #[test]
    fn a_subject_says_what_slurm_says() {
        use MailKind::{End, Fail, TimeLimit};
        let ok = ExitStatus::SUCCESS;
        let said = subject_of(Outcome::Completed, ok, End);
        assert_eq!(said, "Slurm Job_id=7 Name=x Ended, Run time 00:00:05, COMPLETED, ExitCode 0");
        let said = subject_of(Outcome::Failed, ExitStatus::exited(5), Fail);
        assert_eq!(said, "Slurm Job_id=7 Name=x Failed, Run time 00:00:05, FAILED, ExitCode 5");
        let said = subject_of(Outcome::Failed, ExitStatus::signaled(9), Fail);
        assert_eq!(said, "Slurm Job_id=7 Name=x Failed, Run time 00:00:05, FAILED");
        let said = subject_of(Outcome::Timeout, ok, TimeLimit);
        assert_eq!(said, "Slurm Job_id=7 Name=x Reached time limit, Run time 00:00:05");
    }
}
