//! Who may use a partition: asked when a job is submitted or moved, and again before it starts.
use model::{Caller, JobSpec, Partition, Reason, Reject};

/// Why the partition is not for this job, whatever is free and whatever its state.
pub(crate) fn refused(partition: &Partition, by: Caller, spec: &JobSpec) -> Result<(), Reject> {
    let (rules, is_root) = (partition, spec.uid == 0);
    if rules.root_only && !by.is_admin {
        return Err(Reject::NotPermitted);
    }
    if rules.disable_root_jobs && is_root {
        return Err(Reject::NotPermitted);
    }
    let in_group = |group: &String| *group == spec.group || spec.groups.contains(group);
    // An administrator who moves somebody's job knows what it may.
    let is_moved_by_admin = by.is_admin && by.uid != spec.uid;
    let asks_groups = !rules.allow_groups.is_empty() && !is_root && !is_moved_by_admin;
    if asks_groups && !rules.allow_groups.iter().any(in_group) {
        return Err(Reject::GroupNotAllowed);
    }
    if !rules.alloc_nodes.is_empty() && !rules.alloc_nodes.contains(&spec.submit_host) {
        return Err(Reject::NotPermitted);
    }
    if rules.requires_reservation && spec.reservations.is_empty() {
        return Err(Reject::NotPermitted);
    }
    match by_account(partition, spec) {
        Some(Reason::InvalidQOS) => Err(Reject::InvalidQos),
        Some(_) => Err(Reject::InvalidAccount),
        None => Ok(()),
    }
}

/// Accounts and qualities of service may lose a partition while the job waits; a list of the allowed goes before one of the denied.
pub(crate) fn by_account(partition: &Partition, spec: &JobSpec) -> Option<Reason> {
    let is_let = |allowed: &[String], denied: &[String], name: &String| match allowed.is_empty() {
        true => !denied.contains(name),
        false => allowed.contains(name),
    };
    if !is_let(&partition.allow_accounts, &partition.deny_accounts, &spec.account) {
        return Some(Reason::InvalidAccount);
    }
    (!is_let(&partition.allow_qos, &partition.deny_qos, &spec.qos)).then_some(Reason::InvalidQOS)
}
