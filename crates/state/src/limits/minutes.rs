//! Without `safe`, jobs start while there are minutes left, and are ended when those are used up. Looked at once a minute, and only
//! where somebody has such a limit.
use model::accounts::Accounts;
use model::{JobId, Outcome, Phase, Reason, Timestamp};

use crate::{Cluster, job_life};

const EACH_SECS: u64 = 60;

fn next(now: Timestamp) -> Timestamp {
    Timestamp::from_secs((now.secs() / EACH_SECS + 1) * EACH_SECS)
}

fn are_limited(accounts: &Accounts) -> bool {
    let of_qos = |qos: &model::accounts::Qos| !qos.limits.grp_tres_mins.is_empty() || qos.limits.grp_wall.is_some();
    let of_place = |one: &model::accounts::Association| {
        one.is_here() && (!one.limits.grp_tres_mins.is_empty() || one.limits.grp_wall.is_some())
    };
    accounts.qos.values().any(of_qos) || accounts.associations.values().any(of_place)
}

/// Accounts or the configuration have changed.
pub(crate) fn watch(cluster: &mut Cluster) {
    let enforce = cluster.config.accounting.enforce;
    let is_needed = enforce.limits && !enforce.safe && are_limited(&cluster.accounts);
    cluster.minutes_due = is_needed.then(|| next(cluster.now));
}

pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Timestamp> {
    cluster.minutes_due.filter(|_| !cluster.jobs.is_empty())
}

pub(crate) fn tick(cluster: &mut Cluster) {
    if cluster.minutes_due.is_none_or(|due| cluster.now < due) {
        return;
    }
    cluster.minutes_due = Some(next(cluster.now));
    let is_over = |job: &model::Job| {
        let rules = cluster.rules_for(&job.spec, job.association, cluster.config.partition(&job.partition));
        rules.are_used_up(&cluster.tally, cluster.decay(), cluster.now)
    };
    let running = cluster.jobs().filter(|job| job.phase == Phase::Running && super::binds(cluster, job));
    let over: Vec<JobId> = running.filter(|job| is_over(job)).map(|job| job.id).collect();
    for id in over {
        job_life::end(cluster, id, Outcome::Timeout, Some(Reason::TimeLimit));
        cluster.unsettled.insert(id);
    }
}
