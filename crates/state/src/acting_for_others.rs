//! Which commands choose what runs, or what files are touched, in another user's name. Root, SlurmUser and administrators may give
//! them; operators and coordinators look after jobs of others, but never become their owners.
use model::update::JobChanges;
use model::{Command, JobId, JobSpec};

use crate::Cluster;

/// Whether a command of this user's would act in the name of another. Every command is thought about here.
pub fn acts_as_another(cluster: &Cluster, uid: u32, command: &Command) -> bool {
    let is_anothers = |job: &JobId| cluster.job(*job).is_some_and(|job| job.spec.uid != uid);
    match command {
        Command::Submit { spec, .. } => spec.uid != uid,
        Command::SubmitTogether { specs, .. } => submits_as_another(uid, specs),
        Command::CreateStep { job, .. } => is_anothers(job),
        Command::CreateStepTogether { parts, .. } => parts.iter().any(|(job, _)| is_anothers(job)),
        Command::UpdateJob { job, changes } => {
            touches_files(changes) && cluster.named(job).is_some_and(|jobs| jobs.iter().any(is_anothers))
        }
        Command::SetTrigger { trigger } => trigger.uid != uid,
        Command::Once { command, .. } => acts_as_another(cluster, uid, command),
        // What becomes of jobs, not what they do.
        Command::Cancel { .. }
        | Command::Complete { .. }
        | Command::Hold { .. }
        | Command::Release { .. }
        | Command::Requeue { .. }
        | Command::Suspend { .. }
        | Command::Resume { .. }
        | Command::NoteStopped { .. }
        | Command::CancelStep { .. }
        | Command::AmendRun { .. }
        | Command::DropBuffer { .. }
        | Command::ClearTriggers { .. }
        // Those that the cluster itself gives, and those about what belongs to nobody.
        | Command::AdoptPlan(_)
        | Command::DutyDone { .. }
        | Command::Staged { .. }
        | Command::SessionsSeen { .. }
        | Command::BufferMeasured { .. }
        | Command::PoolsSeen { .. }
        | Command::PoolsReported { .. }
        | Command::Exited(_)
        | Command::RegisterNode { .. }
        | Command::Recorded { .. }
        | Command::ContinueIds { .. }
        | Command::NodeLost { .. }
        | Command::UpdateNodes { .. }
        | Command::UpdatePartition { .. }
        | Command::ChangeAccounts { .. }
        | Command::Reconfigure { .. }
        | Command::Begin { .. }
        | Command::AdoptRules { .. }
        | Command::CreatePartition { .. }
        | Command::DeletePartition { .. }
        | Command::CreateReservation { .. }
        | Command::UpdateReservation { .. }
        | Command::DeleteReservation { .. }
        | Command::Tick
        | Command::SetDampening { .. }
        | Command::TriggerRan { .. }
        | Command::Happened { .. }
        | Command::Trust(_)
        | Command::Restore { .. } => false,
    }
}

/// Whether the rights over others' jobs do not carry this far: it is done by the jobs' owners, root and administrators alone.
/// The state judges it again when the entry is applied, since a job may come into being between a look and the log.
pub fn is_owners_alone(command: &Command) -> bool {
    match command {
        Command::UpdateJob { changes, .. } => touches_files(changes),
        Command::Once { command, .. } => is_owners_alone(command),
        _ => false,
    }
}

/// As [`acts_as_another`], for a submission that is not a command yet.
pub fn submits_as_another(uid: u32, specs: &[JobSpec]) -> bool {
    specs.iter().any(|spec| spec.uid != uid)
}

/// Files that are read or written as the job's user.
fn touches_files(changes: &JobChanges) -> bool {
    let JobChanges { stdin, stdout, stderr, work_dir, burst_buffer, name, .. } = changes;
    let paths = [stdin, stdout, stderr, work_dir, burst_buffer];
    paths.into_iter().any(Option::is_some) || name.as_deref().is_some_and(is_way_elsewhere)
}

/// A job's name goes into names of files (`%x`): there a slash, or nothing but dots, leads to other directories.
fn is_way_elsewhere(name: &str) -> bool {
    name.contains('/') || name.bytes().all(|byte| byte == b'.')
}
