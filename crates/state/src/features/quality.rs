//! A job whose association has lost the job's quality of service waits until it has it again, or until the job has another.
use super::*;

pub(super) fn hold(cluster: &Cluster, job: &Job) -> Hold {
    match is_pending(job) && cluster.config.accounting.enforce.qos && !may_have(&cluster.accounts, job) {
        true => Hold::Wait(Some(Reason::InvalidQOS), vec![Wake::Partitions]),
        false => Hold::Free,
    }
}

fn may_have(accounts: &Accounts, job: &Job) -> bool {
    let is_bound = job.association != 0 && !job.has_given_qos && !job.spec.qos.is_empty();
    !is_bound || accounts.allows_qos(job.association, &job.spec.qos)
}

/// The waiting jobs that may have their quality of service now and might not before, or the other way round.
pub(crate) fn changed(cluster: &Cluster, before: &Accounts) -> Vec<JobId> {
    let after = &*cluster.accounts;
    let lists = |accounts: &Accounts| -> Vec<_> {
        accounts.associations.values().map(|one| (one.id, one.parent, one.qos.clone())).collect()
    };
    if !cluster.config.accounting.enforce.qos || lists(before) == lists(after) {
        return Vec::new();
    }
    let pending = cluster.jobs().filter(|job| is_pending(job));
    pending.filter(|job| may_have(before, job) != may_have(after, job)).map(|job| job.id).collect()
}
