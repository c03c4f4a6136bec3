//! Who a caller is to this cluster.
use model::accounts::AdminLevel;
use model::{Caller, Command, JobId, JobRef};
use state::Cluster;
use wire::accounts;
use wire::peer::Peer;

use crate::names::Names;

/// How much a user may do to what is not the user's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    User,
    /// Jobs, reservations and accounts of all.
    Operator,
    /// Everything.
    Administrator,
}

/// Root, or whoever this controller runs as.
pub fn is_daemons(peer: Peer) -> bool {
    // SAFETY: geteuid cannot fail.
    peer.uid == 0 || peer.uid == unsafe { libc::geteuid() }
}

/// Root, the user the controller runs as and the configured administrators are administrators; others what accounts say.
pub fn level(cluster: &Cluster, peer: Peer, names: &Names) -> Level {
    let admins = &cluster.config().controller.admins;
    let is_listed = || admins.iter().any(|admin| accounts::uid_of(admin) == Some(peer.uid));
    if is_daemons(peer) || is_listed() {
        return Level::Administrator;
    }
    let users = &cluster.accounts().users;
    if users.is_empty() {
        return Level::User;
    }
    match users.get(&names.user(peer.uid)).map_or(AdminLevel::None, |user| user.admin_level) {
        AdminLevel::None => Level::User,
        AdminLevel::Operator => Level::Operator,
        AdminLevel::Administrator => Level::Administrator,
    }
}

pub fn caller(cluster: &Cluster, peer: Peer, names: &Names) -> Caller {
    Caller { uid: peer.uid, gid: peer.gid, is_admin: level(cluster, peer, names) >= Level::Operator }
}

/// As in Slurm, root, SlurmUser and administrators only: an operator who could run programs as root would be root.
pub fn may_act_as_another(cluster: &Cluster, by: Caller, names: &Names) -> bool {
    let peer = Peer { uid: by.uid, gid: by.gid, pid: None };
    by.is_admin && level(cluster, peer, names) == Level::Administrator
}

/// Who the state believes to act when it applies the command: of what is its owner's alone, an operator is the owner or nobody.
pub fn as_applied(cluster: &Cluster, by: Caller, names: &Names, command: &Command) -> Caller {
    let is_demoted = by.is_admin && state::is_owners_alone(command) && !may_act_as_another(cluster, by, names);
    Caller { is_admin: by.is_admin && !is_demoted, ..by }
}

/// As Slurm has it, coordinators of an account are as operators to its jobs: so is `by`, if all that are named are such.
pub fn among_jobs<'a>(
    cluster: &Cluster,
    by: Caller,
    names: &Names,
    jobs: impl IntoIterator<Item = &'a JobRef>,
) -> Caller {
    let accounts = cluster.accounts();
    if by.is_admin || accounts.accounts.values().all(|account| account.coordinators.is_empty()) {
        return by;
    }
    let name = names.user(by.uid);
    let is_coordinated = |id: &JobId| {
        let job = cluster.job(*id);
        job.is_some_and(|job| job.spec.uid == by.uid || accounts.coordinates(&name, &job.spec.account))
    };
    let is_fine = |job: &JobRef| cluster.named(job).is_none_or(|ids| ids.iter().all(is_coordinated));
    // Somebody's own jobs need nothing of this.
    let is_own = |id: &JobId| cluster.job(*id).is_some_and(|job| job.spec.uid == by.uid);
    let jobs: Vec<&JobRef> = jobs.into_iter().collect();
    let all_own = jobs.iter().all(|job| cluster.named(job).is_none_or(|ids| ids.iter().all(is_own)));
    Caller { is_admin: !all_own && jobs.iter().all(|job| is_fine(job)), ..by }
}

/// Takes out what there is not: a coordinator's rights are judged by what is there, and a job of that number may come into being
/// before the command is applied.
pub fn take_unknown(cluster: &Cluster, command: &mut Command) -> Vec<JobRef> {
    match command {
        Command::Cancel { jobs, .. }
        | Command::Hold { jobs, .. }
        | Command::Release { jobs }
        | Command::Requeue { jobs, .. }
        | Command::Suspend { jobs }
        | Command::Resume { jobs } => jobs.extract_if(.., |job| cluster.named(job).is_none()).collect(),
        _ => Vec::new(),
    }
}

/// The jobs that a user's command is about.
pub fn jobs_of(command: &Command) -> Vec<JobRef> {
    match command {
        Command::Cancel { jobs, .. }
        | Command::Hold { jobs, .. }
        | Command::Release { jobs }
        | Command::Requeue { jobs, .. }
        | Command::Suspend { jobs }
        | Command::Resume { jobs } => jobs.clone(),
        Command::UpdateJob { job, .. } => vec![job.clone()],
        Command::CancelStep { job, .. } => vec![(*job).into()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use model::update::JobChanges;
    use model::{Entry, JobKind, JobSpec, Timestamp};

    use super::*;

    /// A number that no user of this machine has.
    const SOMEBODY: u32 = 54_321;

    #[test]
    fn operator_is_no_owner_of_jobs_to_come() {
        let (cluster, names) = (Cluster::default(), Names::default());
        let operator = Caller { uid: SOMEBODY, gid: SOMEBODY, is_admin: true };
        let update = |changes| Command::UpdateJob { job: JobId(7).into(), changes: Box::new(changes) };
        let files = [
            JobChanges { stdout: Some("/etc/x".into()), ..JobChanges::default() },
            JobChanges { work_dir: Some("/root".into()), ..JobChanges::default() },
            JobChanges { name: Some("..".into()), ..JobChanges::default() },
        ];
        for changes in files {
            let update = update(changes);
            assert!(!as_applied(&cluster, operator, &names, &update).is_admin, "no such job now, root's in a moment");
            let once = Command::Once { request: Default::default(), command: Box::new(update.clone()) };
            assert!(!as_applied(&cluster, operator, &names, &once).is_admin);
            assert!(as_applied(&cluster, Caller::SYSTEM, &names, &update).is_admin);
        }
        let renamed = update(JobChanges { name: Some("plain".into()), ..JobChanges::default() });
        assert!(as_applied(&cluster, operator, &names, &renamed).is_admin);
    }

    #[test]
    fn rights_of_coordinators_end_with_the_jobs_that_there_are() {
        let mut cluster = Cluster::default();
        let spec = JobSpec { kind: JobKind::Allocation, name: "one".into(), ..JobSpec::default() };
        let submit = Command::Submit { spec: Box::new(spec), blobs: Vec::new() };
        let config = model::Config {
            partitions: vec![model::Partition { name: "main".into(), is_default: true, ..Default::default() }],
            ..Default::default()
        };
        for command in [Command::Reconfigure { config: config.into() }, submit] {
            let entry = Entry { at: Timestamp::from_secs(1000), by: Caller::SYSTEM, command };
            state::apply(&mut cluster, &entry).reply.unwrap();
        }
        let known = cluster.next_job().0 - 1;
        let jobs = vec![JobId(known).into(), JobId(known + 1).into()];
        let mut cancel = Command::Cancel { jobs, hurry: false };
        assert_eq!(take_unknown(&cluster, &mut cancel), [JobRef::from(JobId(known + 1))]);
        assert_eq!(jobs_of(&cancel), [JobRef::from(JobId(known))]);
    }
}
