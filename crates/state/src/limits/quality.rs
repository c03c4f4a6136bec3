//! What a quality of service says, as numbers, and what is left of it to those who run jobs in it.
use model::Reason;
use model::accounts::{EachJob, PerName, Qos, QosLimits, Together};

use super::Party;
use super::each::{self, Speaker};
use super::headroom::{Headroom, Verdict};
use super::want::Want;
use crate::Cluster;

/// What it says of all its jobs, of those of each account and user, and of each job.
pub struct Quality<'a> {
    pub qos: &'a Qos,
    pub all: Together,
    pub account: Together,
    pub user: Together,
    pub each: EachJob,
}

impl<'a> Quality<'a> {
    pub fn of(qos: &'a Qos) -> Quality<'a> {
        let limits = &qos.limits;
        let is_metered = limits.grp_wall.is_some() || !limits.grp_tres_mins.is_empty();
        Quality {
            qos,
            all: Together { is_metered, ..Together::new(limits.grp_jobs, &limits.grp_tres, &limits.grp_tres_run_mins) },
            account: Together::new(
                limits.max_jobs_per_account,
                &limits.max_tres_per_account,
                &limits.max_tres_run_mins_per_account,
            ),
            user: Together::new(
                limits.max_jobs_per_user,
                &limits.max_tres_per_user,
                &limits.max_tres_run_mins_per_user,
            ),
            each: EachJob {
                max_jobs: None,
                max_wall: limits.max_wall,
                min_priority: limits.min_priority,
                job: PerName::of(&limits.max_tres_per_job),
                node: PerName::of(&limits.max_tres_per_node),
                minutes: PerName::of(&limits.max_tres_mins_per_job),
                has_run_minutes: false,
            },
        }
    }

    /// Only the rules know what it means for a job that asks for it.
    pub fn is_special(&self) -> bool {
        let flags = ["NoReserve", "EnforceUsageThreshold", "UsageFactorSafe", "Relative"];
        !self.qos.limits.min_tres_per_job.is_empty()
            || self.qos.limit_factor_thousandths.is_some()
            || flags.iter().any(|flag| self.qos.has_flag(flag))
    }

    /// Minutes count more, or less, than they are.
    pub fn is_weighed(&self) -> bool {
        self.qos.usage_factor_thousandths.is_some_and(|thousandths| thousandths != 1000)
    }

    pub fn left_to_all(&self, cluster: &Cluster) -> Headroom {
        let whom = Party::Qos(self.qos.name.as_str());
        let mut headroom = Headroom::left_to(cluster, whom, &self.all);
        if self.all.is_metered {
            let QosLimits { grp_wall, grp_tres_mins, .. } = &self.qos.limits;
            headroom.lower_by_meters(cluster, whom, (*grp_wall, grp_tres_mins));
        }
        headroom
    }

    pub fn left_to_account(&self, cluster: &Cluster, account: &str) -> Headroom {
        let whom = Party::QosAccount(self.qos.name.as_str(), account);
        Headroom::left_to(cluster, whom, &self.account)
    }

    /// To users who have nothing in it.
    pub fn left_to_others(&self) -> Headroom {
        Headroom::untouched(&self.user)
    }

    /// To those who have something, by name.
    pub fn left_to_users<'c>(&self, cluster: &'c Cluster) -> impl Iterator<Item = (&'c str, Headroom)> {
        let all = self.left_to_others();
        cluster.tally.users_in(&self.qos.name).map(move |(user, count)| (user, all.without(count, cluster.now)))
    }
}

/// What is left to one job's user, account and all in the qualities of service that speak of these.
pub struct LeftInQos<'h> {
    pub all: &'h Headroom,
    pub account: &'h Headroom,
    pub user: &'h Headroom,
    pub each: &'h EachJob,
}

impl LeftInQos<'_> {
    /// In the order of the rules.
    pub fn verdict(&self, want: &Want) -> Verdict {
        let LeftInQos { all, account, user, each } = *self;
        let passes = |room: &Headroom| room.verdict(want) == Verdict::Passes;
        if passes(all) && passes(account) && passes(user) && each::verdict(each, want) == Verdict::Passes {
            return Verdict::Passes;
        }
        let by_wall = all.closed() == Some(Reason::QOSGrpWallLimit);
        let refusals = [
            (!all.has_jobs_left(), Reason::QOSGrpJobsLimit),
            (by_wall || all.is_too_long(want), Reason::QOSGrpWallLimit),
            (!account.has_jobs_left(), Reason::MaxJobsPerAccount),
            (!user.has_jobs_left(), Reason::QOSMaxJobsPerUserLimit),
            (each::is_too_long(each, want), Reason::QOSMaxWallDurationPerJobLimit),
        ];
        if let Some((_, reason)) = refusals.into_iter().find(|(refuses, _)| *refuses) {
            return Verdict::Refused(reason);
        }
        if let Some(reason) = all.closed() {
            return Verdict::Refused(reason);
        }
        // Minutes of all may be asked before those of each job.
        if all.needs_a_closer_look(want) {
            return Verdict::Unsaid;
        }
        let of_all = [Reason::QOSGrpCpuLimit, Reason::QOSGrpMemLimit];
        let of_account = [Reason::MaxCpuPerAccount, Reason::MaxMemoryPerAccount];
        let of_user = [Reason::QOSMaxCpuPerUserLimit, Reason::QOSMaxMemoryPerUser];
        let mut verdict = each::of_minutes(each, want, Speaker::Qos);
        for next in 0..4 {
            if verdict != Verdict::Passes {
                return verdict;
            }
            verdict = match next {
                0 => all.of_resources(want, of_all),
                1 => each::of_size(each, want, Speaker::Qos),
                2 => account.of_resources(want, of_account),
                _ => user.of_resources(want, of_user),
            };
        }
        verdict
    }
}

/// Jobs in this quality of service are bound by their associations alone, as those are written.
pub fn leaves_it_to_associations(qos: &Qos) -> bool {
    let quality = Quality::of(qos);
    qos.limits == QosLimits::default() && !quality.is_weighed() && !quality.is_special()
}

/// It says something of the jobs of each user together.
pub(super) fn limits_users(qos: &Qos) -> bool {
    !Quality::of(qos).user.is_none()
}
