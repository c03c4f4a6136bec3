//! Which limits bind whom: those of qualities of service first, then those of the association and of the accounts above it. A limit
//! that a QOS sets is not asked of associations again.
use model::Reason;
use model::accounts::{Accounts, Amounts, Association, Qos, QosLimits, Tres};
use model::config::Enforce;

use super::rules::{Bound, Rule, Rules, Why};
use super::whole::part;
use super::words::Form;
use super::{Party, Whom};

/// As whom a job would run.
pub struct Who<'w> {
    pub association: u32,
    pub user: &'w str,
    pub account: &'w str,
    pub qos: &'w str,
    pub partition_qos: &'w str,
}

impl<'a> Rules<'a> {
    /// `whole` is asked for the cluster's resources in all, or for the partition's, where a limit is a part of them.
    pub fn resolve(
        accounts: &'a Accounts,
        enforce: Enforce,
        who: &Who<'a>,
        whole: &mut dyn FnMut(bool) -> Amounts,
    ) -> Rules<'a> {
        if !enforce.limits {
            return Rules::default();
        }
        let mut resolution = Resolution::new(accounts, who, whole);
        resolution.rules.is_safe = enforce.safe;
        resolution.of_qos();
        resolution.of_associations();
        resolution.rules
    }
}

/// Which resources a QOS has decided about, for each kind of limit.
#[derive(Default)]
struct Decided<'a> {
    jobs: bool,
    submitted: bool,
    wall: bool,
    user_jobs: bool,
    accruing: bool,
    user_accruing: bool,
    user_submitted: bool,
    each_wall: bool,
    held: Vec<&'a str>,
    used: Vec<&'a str>,
    running: Vec<&'a str>,
    user_running: Vec<&'a str>,
    each: Vec<&'a str>,
    node: Vec<&'a str>,
    each_minutes: Vec<&'a str>,
}

/// Of those a QOS counts for, one.
type Pick<'a> = fn(&'a Qos, &Who<'a>) -> Whom<'a>;

struct Resolution<'a, 'w> {
    who: &'w Who<'a>,
    /// Of the job's QOS, in thousandths.
    limit_factor: Option<u32>,
    /// The first to set a limit wins: the partition's, unless the job's own goes over it.
    qos: Vec<&'a Qos>,
    /// What the limits of each of them are parts of; None: of nothing.
    wholes: Vec<Option<Amounts>>,
    lineage: Vec<&'a Association>,
    decided: Decided<'a>,
    rules: Rules<'a>,
}

impl<'a, 'w> Resolution<'a, 'w> {
    fn new(accounts: &'a Accounts, who: &'w Who<'a>, whole: &mut dyn FnMut(bool) -> Amounts) -> Self {
        let own = accounts.qos.get(who.qos);
        let partition = accounts.qos.get(who.partition_qos);
        let goes_over = own.is_some_and(|qos| qos.has_flag("OverPartQOS"));
        let mut qos: Vec<&Qos> = partition.into_iter().chain(own).collect();
        if goes_over {
            qos.reverse();
        }
        qos.dedup_by_key(|qos| qos.id);
        let is_partitions = |qos: &Qos| partition.is_some_and(|other| other.id == qos.id);
        let of = |qos: &&Qos| qos.has_flag("Relative").then(|| whole(is_partitions(qos)));
        let wholes = qos.iter().map(of).collect();
        let lineage = accounts.lineage(who.association).collect();
        let denies = qos.iter().any(|qos| qos.has_flag("DenyOnLimit"));
        let safe_factor =
            own.filter(|qos| qos.has_flag("UsageFactorSafe")).and_then(|qos| qos.usage_factor_thousandths);
        let no_reserve = own.is_some_and(|qos| qos.has_flag("NoReserve"));
        let rules = Rules { denies, safe_factor, no_reserve, ..Rules::default() };
        Resolution {
            who,
            limit_factor: own.and_then(|qos| qos.limit_factor_thousandths),
            qos,
            wholes,
            lineage,
            decided: Decided::default(),
            rules,
        }
    }

    fn of_qos(&mut self) {
        let user: Pick<'a> = |qos, who| Party::QosUser(&qos.name, who.user);
        let account: Pick<'a> = |qos, who| Party::QosAccount(&qos.name, who.account);
        let all: Pick<'a> = |qos, _| Party::Qos(&qos.name);
        self.decided.submitted = self.submit_rule(|limits| limits.grp_submit, all, Reason::QOSGrpSubmitJobsLimit);
        self.submit_rule(|limits| limits.max_submit_per_account, account, Reason::MaxSubmitJobsPerAccount);
        self.decided.user_submitted =
            self.submit_rule(|limits| limits.max_submit_per_user, user, Reason::QOSMaxSubmitJobPerUserLimit);

        self.decided.accruing = self.accrual_rule(|limits| limits.grp_jobs_accrue, all);
        self.accrual_rule(|limits| limits.max_jobs_accrue_per_account, account);
        self.decided.user_accruing = self.accrual_rule(|limits| limits.max_jobs_accrue_per_user, user);

        self.decided.jobs = self.count_rule(|limits| limits.grp_jobs, all, Bound::Jobs, Reason::QOSGrpJobsLimit);
        self.decided.wall = self.count_rule(|limits| limits.grp_wall, all, Bound::Wall, Reason::QOSGrpWallLimit);
        self.count_rule(|limits| limits.max_jobs_per_account, account, Bound::Jobs, Reason::MaxJobsPerAccount);
        self.decided.user_jobs =
            self.count_rule(|limits| limits.max_jobs_per_user, user, Bound::Jobs, Reason::QOSMaxJobsPerUserLimit);
        if let Some((_, most)) = self.first(|limits| limits.max_wall) {
            self.decided.each_wall = true;
            self.rules.max_wall_mins = Some(most);
            self.alone(Bound::EachWall, most.into(), Why::Is(Reason::QOSMaxWallDurationPerJobLimit));
        }
        self.rules.min_priority = self.first(|limits| limits.min_priority).map(|(_, least)| least);

        let party = |pick: Pick<'a>| Some(pick);
        self.decided.used =
            self.tres_rules(Form::QosGroupMinutes, |limits| &limits.grp_tres_mins, party(all), Bound::UsedMinutes);
        self.decided.each_minutes =
            self.tres_rules(Form::QosJobMinutes, |limits| &limits.max_tres_mins_per_job, None, Bound::EachMinutes);
        self.decided.held = self.tres_rules(Form::QosGroup, |limits| &limits.grp_tres, party(all), Bound::Held);
        self.decided.running = self.tres_rules(
            Form::QosGroupRunMinutes,
            |limits| &limits.grp_tres_run_mins,
            party(all),
            Bound::RunMinutes,
        );
        self.decided.each = self.tres_rules(Form::QosJob, |limits| &limits.max_tres_per_job, None, Bound::Each);
        self.decided.node = self.tres_rules(Form::QosNode, |limits| &limits.max_tres_per_node, None, Bound::EachNode);
        self.tres_rules(Form::QosLeast, |limits| &limits.min_tres_per_job, None, Bound::EachLeast);
        self.tres_rules(Form::QosAccount, |limits| &limits.max_tres_per_account, party(account), Bound::Held);
        self.tres_rules(Form::QosUser, |limits| &limits.max_tres_per_user, party(user), Bound::Held);
        self.tres_rules(
            Form::QosAccountRunMinutes,
            |limits| &limits.max_tres_run_mins_per_account,
            party(account),
            Bound::RunMinutes,
        );
        let of_user = Form::QosUserRunMinutes;
        self.decided.user_running =
            self.tres_rules(of_user, |limits| &limits.max_tres_run_mins_per_user, party(user), Bound::RunMinutes);
    }

    fn of_associations(&mut self) {
        for at in 0..self.lineage.len() {
            let one = self.lineage[at];
            let (party, limits) = (Party::Association(one.id), &one.limits);
            if let Some(most) = limits.grp_submit.filter(|_| !self.decided.submitted) {
                self.submission(party, most, Reason::AssocGrpSubmitJobsLimit);
            }
            if let Some(most) = limits.grp_jobs_accrue.filter(|_| !self.decided.accruing) {
                self.rules.accrual.push((party, most));
            }
            if let Some(most) = limits.grp_jobs.filter(|_| !self.decided.jobs) {
                self.counted(party, Bound::Jobs, most, Reason::AssocGrpJobsLimit);
            }
            if let Some(most) = limits.grp_wall.filter(|_| !self.decided.wall) {
                self.counted(party, Bound::Wall, most, Reason::AssocGrpWallLimit);
            }
            self.group(party, Form::GroupMinutes, &limits.grp_tres_mins);
            self.group(party, Form::Group, &limits.grp_tres);
            self.group(party, Form::GroupRunMinutes, &limits.grp_tres_run_mins);
        }
        self.of_each_job();
    }

    fn group(&mut self, party: Whom<'a>, form: Form, of: &'a Tres) {
        let (decided, bound): (&[&str], fn(&'a str) -> Bound<'a>) = match form {
            Form::GroupMinutes => (&self.decided.used, Bound::UsedMinutes),
            Form::GroupRunMinutes => (&self.decided.running, Bound::RunMinutes),
            _ => (&self.decided.held, Bound::Held),
        };
        let open = of.0.iter().filter(|(name, _)| !decided.contains(&name.as_str()));
        let factor = self.limit_factor;
        let rule = |(name, most): (&'a String, &u64)| Rule {
            party: Some(party),
            bound: bound(name),
            most: scaled(*most, factor),
            why: Why::Of(form),
        };
        self.rules.start.extend(open.map(rule));
    }

    /// What an association does not say of its own jobs, the accounts above it say.
    fn of_each_job(&mut self) {
        let Some(own) = self.lineage.first() else { return };
        let party = Party::Association(own.id);
        if let Some(most) = self.nearest(|one| one.limits.max_submit).filter(|_| !self.decided.user_submitted) {
            self.submission(party, most, Reason::AssocMaxSubmitJobLimit);
        }
        if let Some(most) = self.nearest(|one| one.limits.max_jobs_accrue).filter(|_| !self.decided.user_accruing) {
            self.rules.accrual.push((party, most));
        }
        if let Some(most) = self.nearest(|one| one.limits.max_jobs).filter(|_| !self.decided.user_jobs) {
            self.counted(party, Bound::Jobs, most, Reason::AssocMaxJobsLimit);
        }
        if let Some(most) = self.nearest(|one| one.limits.max_wall).filter(|_| !self.decided.each_wall) {
            self.rules.max_wall_mins = Some(most);
            self.alone(Bound::EachWall, most.into(), Why::Is(Reason::AssocMaxWallDurationPerJobLimit));
        }
        let least = self.nearest(|one| one.limits.min_priority);
        self.rules.min_priority = self.rules.min_priority.or(least);
        let Decided { each_minutes, user_running, each, node, .. } = std::mem::take(&mut self.decided);
        self.inherited(Form::JobMinutes, |one| &one.limits.max_tres_mins, each_minutes, (None, Bound::EachMinutes));
        let running = (Some(party), Bound::RunMinutes as fn(&'a str) -> Bound<'a>);
        self.inherited(Form::RunMinutes, |one| &one.limits.max_tres_run_mins, user_running, running);
        self.inherited(Form::Job, |one| &one.limits.max_tres, each, (None, Bound::Each));
        self.inherited(Form::Node, |one| &one.limits.max_tres_per_node, node, (None, Bound::EachNode));
    }

    fn nearest(&self, pick: fn(&Association) -> Option<u32>) -> Option<u32> {
        self.lineage.iter().find_map(|one| pick(one))
    }

    fn inherited(
        &mut self,
        form: Form,
        pick: fn(&Association) -> &Tres,
        mut decided: Vec<&'a str>,
        (party, bound): (Option<Whom<'a>>, fn(&'a str) -> Bound<'a>),
    ) {
        for at in 0..self.lineage.len() {
            for (name, most) in &pick(self.lineage[at]).0 {
                if !decided.contains(&name.as_str()) {
                    decided.push(name);
                    let most = scaled(*most, self.limit_factor);
                    self.rules.start.push(Rule { party, bound: bound(name), most, why: Why::Of(form) });
                }
            }
        }
    }

    fn first(&self, pick: fn(&QosLimits) -> Option<u32>) -> Option<(&'a Qos, u32)> {
        self.qos.iter().find_map(|qos| pick(&qos.limits).map(|most| (*qos, most)))
    }

    fn submit_rule(&mut self, pick: fn(&QosLimits) -> Option<u32>, party: Pick<'a>, reason: Reason) -> bool {
        let Some((qos, most)) = self.first(pick) else { return false };
        let party = party(qos, self.who);
        self.submission(party, most, reason);
        true
    }

    fn accrual_rule(&mut self, pick: fn(&QosLimits) -> Option<u32>, party: Pick<'a>) -> bool {
        let Some((qos, most)) = self.first(pick) else { return false };
        self.rules.accrual.push((party(qos, self.who), most));
        true
    }

    fn count_rule(
        &mut self,
        pick: fn(&QosLimits) -> Option<u32>,
        party: Pick<'a>,
        bound: Bound<'a>,
        reason: Reason,
    ) -> bool {
        let Some((qos, most)) = self.first(pick) else { return false };
        let party = party(qos, self.who);
        self.counted(party, bound, most, reason);
        true
    }

    /// The resources that it decides about.
    fn tres_rules(
        &mut self,
        form: Form,
        pick: fn(&QosLimits) -> &Tres,
        party: Option<Pick<'a>>,
        bound: fn(&'a str) -> Bound<'a>,
    ) -> Vec<&'a str> {
        let mut decided: Vec<&'a str> = Vec::new();
        for at in 0..self.qos.len() {
            let qos = self.qos[at];
            for (name, most) in &pick(&qos.limits).0 {
                if !decided.contains(&name.as_str()) {
                    decided.push(name);
                    let party = party.map(|party| party(qos, self.who));
                    let is_time =
                        matches!(bound(name), Bound::UsedMinutes(_) | Bound::RunMinutes(_) | Bound::EachMinutes(_));
                    let whole = self.wholes[at].as_ref().filter(|_| !is_time);
                    let most = whole.map_or(*most, |whole| part(whole, name, *most));
                    self.rules.start.push(Rule { party, bound: bound(name), most, why: Why::Of(form) });
                }
            }
        }
        decided
    }

    fn submission(&mut self, party: Whom<'a>, most: u32, reason: Reason) {
        let rule = Rule { party: Some(party), bound: Bound::Submitted, most: most.into(), why: Why::Is(reason) };
        self.rules.submission.push(rule);
    }

    fn counted(&mut self, party: Whom<'a>, bound: Bound<'a>, most: u32, reason: Reason) {
        self.rules.start.push(Rule { party: Some(party), bound, most: most.into(), why: Why::Is(reason) });
    }

    fn alone(&mut self, bound: Bound<'a>, most: u64, why: Why) {
        self.rules.start.push(Rule { party: None, bound, most, why });
    }
}

/// A QOS may give its jobs more, or less, of what associations allow.
fn scaled(most: u64, factor_thousandths: Option<u32>) -> u64 {
    factor_thousandths.map_or(most, |thousandths| (u128::from(most) * u128::from(thousandths) / 1000) as u64)
}
