//! The limits that bind a job, in the order in which they are asked: those of qualities of service first, then those of the
//! association and of the accounts above it. A limit that a QOS sets is not asked of associations again.
use std::collections::BTreeSet;

use model::accounts::{Accounts, Association, Qos, QosLimits, Tres};
use model::config::Enforce;
use model::{Reason, Timestamp};

use super::words::{Form, reason};
use super::{Count, Decay, Demand, Party, Tally};

/// As whom a job would run.
pub struct Who<'a> {
    pub association: u32,
    pub user: &'a str,
    pub account: &'a str,
    pub qos: &'a str,
    pub partition_qos: &'a str,
}

/// What is compared with a limit.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    Jobs,
    Submitted,
    /// Minutes that jobs of the party have run, or that this one asks for.
    Wall,
    Held(String),
    UsedMinutes(String),
    RunMinutes(String),
    // Of the job alone.
    EachWall,
    Each(String),
    EachNode(String),
    EachMinutes(String),
    EachLeast(String),
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    /// Whose counts matter; None: only the job does.
    party: Option<Party>,
    bound: Bound,
    most: u64,
    reason: Reason,
}

/// Everything that binds jobs of one association in one QOS and partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    submission: Vec<Rule>,
    start: Vec<Rule>,
    max_wall_mins: Option<u32>,
    min_priority: Option<u32>,
    /// What could never start is refused at once.
    denies: bool,
    is_safe: bool,
    /// Where a QOS has its usage factor count beforehand too.
    safe_factor: Option<u32>,
    /// No place is kept for such jobs in the future.
    no_reserve: bool,
}

impl Rules {
    pub fn resolve(accounts: &Accounts, enforce: Enforce, who: &Who) -> Rules {
        if !enforce.limits {
            return Rules::default();
        }
        let mut resolution = Resolution::new(accounts, who);
        resolution.rules.is_safe = enforce.safe;
        resolution.of_qos();
        resolution.of_associations();
        resolution.rules
    }

    pub fn are_none(&self) -> bool {
        self.start.is_empty()
    }

    pub fn max_wall_mins(&self) -> Option<u32> {
        self.max_wall_mins
    }

    /// Whether a place may be kept for such jobs in the future.
    pub fn may_be_promised(&self) -> bool {
        !self.no_reserve
    }

    /// Jobs of less priority have no place kept for them in the future.
    pub fn min_priority(&self) -> u32 {
        self.min_priority.unwrap_or(0)
    }

    /// What keeps more jobs from being submitted.
    pub fn submission(&self, tally: &Tally, demand: &Demand) -> Option<Reason> {
        let refuses = |rule: &&Rule| {
            let count = rule.party.as_ref().and_then(|party| tally.count(party));
            count.map_or(0, |count| count.submitted) + demand.n_jobs > rule.most
        };
        self.submission.iter().find(refuses).map(|rule| rule.reason)
    }

    /// What would keep the job from starting even if it were alone, where a QOS denies such jobs.
    pub fn alone(&self, decay: Decay, demand: &Demand) -> Option<Reason> {
        if !self.denies {
            return None;
        }
        let safe = Rules { is_safe: true, ..Rules::default() };
        let refuses = |rule: &&Rule| safe.refuses(rule, &Tally::default(), decay, Timestamp(0), demand);
        self.start.iter().find(refuses).map(|rule| rule.reason)
    }

    /// What keeps the job from starting now.
    pub fn start(&self, tally: &Tally, decay: Decay, now: Timestamp, demand: &Demand) -> Option<Reason> {
        self.start.iter().find(|rule| self.refuses(rule, tally, decay, now, demand)).map(|rule| rule.reason)
    }

    /// Whether minutes of somebody that the job counts for are used up: it may not go on.
    pub fn are_used_up(&self, tally: &Tally, decay: Decay, now: Timestamp) -> bool {
        let nothing = Demand::default();
        let is_meter = |rule: &&Rule| matches!(rule.bound, Bound::Wall | Bound::UsedMinutes(_));
        self.start.iter().filter(is_meter).any(|rule| self.refuses(rule, tally, decay, now, &nothing))
    }

    /// Whether time alone may lift a limit that refuses.
    pub fn may_pass(&self) -> bool {
        let passes = |rule: &Rule| matches!(rule.bound, Bound::Wall | Bound::UsedMinutes(_) | Bound::RunMinutes(_));
        self.start.iter().any(passes)
    }

    fn refuses(&self, rule: &Rule, tally: &Tally, decay: Decay, now: Timestamp, demand: &Demand) -> bool {
        static NOTHING: std::sync::LazyLock<Count> = std::sync::LazyLock::new(Count::default);
        let count = rule.party.as_ref().and_then(|party| tally.count(party)).unwrap_or(&NOTHING);
        let half_life = || rule.party.as_ref().and_then(|party| decay.of(party));
        let most = rule.most;
        let minutes = |name: &str| demand.amounts.get(name).saturating_mul(demand.limit_secs) / 60;
        let weighed = |minutes: u64| match self.safe_factor {
            Some(thousandths) => (u128::from(minutes) * u128::from(thousandths) / 1000) as u64,
            None => minutes,
        };
        match &rule.bound {
            Bound::Jobs => count.jobs >= most,
            Bound::Submitted => count.submitted >= most,
            Bound::Wall => demand.limit_secs / 60 > most || (count.wall_at(now, half_life()) / 60.0) as u64 >= most,
            Bound::Held(name) => {
                let wanted = demand.amounts.get(name);
                wanted > 0 && count.held.get(name).saturating_add(wanted) > most
            }
            Bound::UsedMinutes(name) => {
                let used = (count.used_at(now, half_life()).get(name) / 60.0) as u64;
                match self.is_safe {
                    true => {
                        used.saturating_add(count.run_secs(name, now) / 60).saturating_add(weighed(minutes(name)))
                            > most
                    }
                    false => used >= most,
                }
            }
            Bound::RunMinutes(name) => (count.run_secs(name, now) / 60).saturating_add(minutes(name)) > most,
            Bound::EachWall => demand.limit_secs > most.saturating_mul(60),
            Bound::Each(name) => demand.amounts.get(name) > most,
            Bound::EachNode(name) => demand.on_a_node.get(name) > most,
            Bound::EachMinutes(name) => minutes(name) > most,
            Bound::EachLeast(name) => demand.amounts.get(name) < most,
        }
    }
}

/// Which resources a QOS has decided about, for each kind of limit.
#[derive(Default)]
struct Decided {
    jobs: bool,
    submitted: bool,
    wall: bool,
    user_jobs: bool,
    user_submitted: bool,
    each_wall: bool,
    held: BTreeSet<String>,
    used: BTreeSet<String>,
    running: BTreeSet<String>,
    each: BTreeSet<String>,
    node: BTreeSet<String>,
    each_minutes: BTreeSet<String>,
}

struct Resolution<'a> {
    accounts: &'a Accounts,
    who: &'a Who<'a>,
    /// The first to set a limit wins: the partition's, unless the job's own goes over it.
    qos: Vec<&'a Qos>,
    lineage: Vec<&'a Association>,
    decided: Decided,
    rules: Rules,
}

impl<'a> Resolution<'a> {
    fn new(accounts: &'a Accounts, who: &'a Who<'a>) -> Self {
        let own = accounts.qos.get(who.qos);
        let partition = accounts.qos.get(who.partition_qos);
        let goes_over = own.is_some_and(|qos| qos.has_flag("OverPartQOS"));
        let mut qos: Vec<&Qos> = partition.into_iter().chain(own).collect();
        if goes_over {
            qos.reverse();
        }
        qos.dedup_by_key(|qos| qos.id);
        let lineage = accounts.lineage(who.association).collect();
        let denies = qos.iter().any(|qos| qos.has_flag("DenyOnLimit"));
        let safe_factor =
            own.filter(|qos| qos.has_flag("UsageFactorSafe")).and_then(|qos| qos.usage_factor_thousandths);
        let no_reserve = own.is_some_and(|qos| qos.has_flag("NoReserve"));
        let rules = Rules { denies, safe_factor, no_reserve, ..Rules::default() };
        Resolution { accounts, who, qos, lineage, decided: Decided::default(), rules }
    }

    fn of_qos(&mut self) {
        let user = |qos: &Qos, who: &Who| Party::QosUser(qos.name.clone(), who.user.into());
        let account = |qos: &Qos, who: &Who| Party::QosAccount(qos.name.clone(), who.account.into());
        let all = |qos: &Qos, _: &Who| Party::Qos(qos.name.clone());
        self.decided.submitted = self.submit_rule(|limits| limits.grp_submit, all, Reason::QOSGrpSubmitJobsLimit);
        self.submit_rule(|limits| limits.max_submit_per_account, account, Reason::MaxSubmitJobsPerAccount);
        self.decided.user_submitted =
            self.submit_rule(|limits| limits.max_submit_per_user, user, Reason::QOSMaxSubmitJobPerUserLimit);

        self.decided.jobs = self.count_rule(|limits| limits.grp_jobs, all, Bound::Jobs, Reason::QOSGrpJobsLimit);
        self.decided.wall = self.count_rule(|limits| limits.grp_wall, all, Bound::Wall, Reason::QOSGrpWallLimit);
        self.count_rule(|limits| limits.max_jobs_per_account, account, Bound::Jobs, Reason::MaxJobsPerAccount);
        self.decided.user_jobs =
            self.count_rule(|limits| limits.max_jobs_per_user, user, Bound::Jobs, Reason::QOSMaxJobsPerUserLimit);
        if let Some((_, most)) = self.first(|limits| limits.max_wall) {
            self.decided.each_wall = true;
            self.rules.max_wall_mins = Some(most);
            self.alone(Bound::EachWall, most.into(), Reason::QOSMaxWallDurationPerJobLimit);
        }
        self.rules.min_priority = self.first(|limits| limits.min_priority).map(|(_, least)| least);

        let party = |pick: fn(&Qos, &Who) -> Party| Some(pick);
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
        let run_mins = Form::QosRunMinutes;
        self.tres_rules(run_mins, |limits| &limits.max_tres_run_mins_per_account, party(account), Bound::RunMinutes);
        self.tres_rules(run_mins, |limits| &limits.max_tres_run_mins_per_user, party(user), Bound::RunMinutes);
    }

    fn of_associations(&mut self) {
        for one in self.lineage.clone() {
            let (party, limits) = (Party::Association(one.id), &one.limits);
            if let Some(most) = limits.grp_submit.filter(|_| !self.decided.submitted) {
                self.submission(party.clone(), most, Reason::AssocGrpSubmitJobsLimit);
            }
            if let Some(most) = limits.grp_jobs.filter(|_| !self.decided.jobs) {
                self.counted(party.clone(), Bound::Jobs, most, Reason::AssocGrpJobsLimit);
            }
            if let Some(most) = limits.grp_wall.filter(|_| !self.decided.wall) {
                self.counted(party.clone(), Bound::Wall, most, Reason::AssocGrpWallLimit);
            }
            let group = |form, of: &Tres, decided: &BTreeSet<String>, bound: fn(String) -> Bound| -> Vec<Rule> {
                let open = of.0.iter().filter(|(name, _)| !decided.contains(*name));
                let rule = |(name, most): (&String, &u64)| Rule {
                    party: Some(party.clone()),
                    bound: bound(name.clone()),
                    most: self.scaled(*most),
                    reason: reason(form, name),
                };
                open.map(rule).collect()
            };
            let mut more = group(Form::GroupMinutes, &limits.grp_tres_mins, &self.decided.used, Bound::UsedMinutes);
            more.extend(group(Form::Group, &limits.grp_tres, &self.decided.held, Bound::Held));
            let running = &self.decided.running;
            more.extend(group(Form::GroupRunMinutes, &limits.grp_tres_run_mins, running, Bound::RunMinutes));
            self.rules.start.extend(more);
        }
        self.of_each_job();
    }

    /// What an association does not say of its own jobs, the accounts above it say.
    fn of_each_job(&mut self) {
        let lineage = self.lineage.clone();
        let Some(own) = lineage.first() else { return };
        let party = Party::Association(own.id);
        let nearest = |pick: fn(&Association) -> Option<u32>| lineage.iter().find_map(|one| pick(one));
        if let Some(most) = nearest(|one| one.limits.max_submit).filter(|_| !self.decided.user_submitted) {
            self.submission(party.clone(), most, Reason::AssocMaxSubmitJobLimit);
        }
        if let Some(most) = nearest(|one| one.limits.max_jobs).filter(|_| !self.decided.user_jobs) {
            self.counted(party, Bound::Jobs, most, Reason::AssocMaxJobsLimit);
        }
        if let Some(most) = nearest(|one| one.limits.max_wall).filter(|_| !self.decided.each_wall) {
            self.rules.max_wall_mins = Some(most);
            self.alone(Bound::EachWall, most.into(), Reason::AssocMaxWallDurationPerJobLimit);
        }
        let least = nearest(|one| one.limits.min_priority);
        self.rules.min_priority = self.rules.min_priority.or(least);
        let mut decided = std::mem::take(&mut self.decided.each_minutes);
        self.inherited(Form::JobMinutes, |one| &one.limits.max_tres_mins, &mut decided, Bound::EachMinutes);
        decided = std::mem::take(&mut self.decided.each);
        self.inherited(Form::Job, |one| &one.limits.max_tres, &mut decided, Bound::Each);
        decided = std::mem::take(&mut self.decided.node);
        self.inherited(Form::Node, |one| &one.limits.max_tres_per_node, &mut decided, Bound::EachNode);
    }

    fn inherited(
        &mut self,
        form: Form,
        pick: fn(&Association) -> &Tres,
        decided: &mut BTreeSet<String>,
        bound: fn(String) -> Bound,
    ) {
        for one in self.lineage.clone() {
            for (name, most) in &pick(one).0 {
                if decided.insert(name.clone()) {
                    let most = self.scaled(*most);
                    self.alone(bound(name.clone()), most, reason(form, name));
                }
            }
        }
    }

    /// A QOS may give its jobs more, or less, of what associations allow.
    fn scaled(&self, most: u64) -> u64 {
        let factor = self.accounts.qos.get(self.who.qos).and_then(|qos| qos.limit_factor_thousandths);
        factor.map_or(most, |thousandths| (u128::from(most) * u128::from(thousandths) / 1000) as u64)
    }

    fn first(&self, pick: fn(&QosLimits) -> Option<u32>) -> Option<(&'a Qos, u32)> {
        self.qos.iter().find_map(|qos| pick(&qos.limits).map(|most| (*qos, most)))
    }

    fn submit_rule(
        &mut self,
        pick: fn(&QosLimits) -> Option<u32>,
        party: fn(&Qos, &Who) -> Party,
        reason: Reason,
    ) -> bool {
        let Some((qos, most)) = self.first(pick) else { return false };
        let party = party(qos, self.who);
        self.submission(party, most, reason);
        true
    }

    fn count_rule(
        &mut self,
        pick: fn(&QosLimits) -> Option<u32>,
        party: fn(&Qos, &Who) -> Party,
        bound: Bound,
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
        party: Option<fn(&Qos, &Who) -> Party>,
        bound: fn(String) -> Bound,
    ) -> BTreeSet<String> {
        let mut decided = BTreeSet::new();
        for qos in self.qos.clone() {
            for (name, most) in &pick(&qos.limits).0 {
                if decided.insert(name.clone()) {
                    let party = party.map(|party| party(qos, self.who));
                    let rule = Rule { party, bound: bound(name.clone()), most: *most, reason: reason(form, name) };
                    self.rules.start.push(rule);
                }
            }
        }
        decided
    }

    fn submission(&mut self, party: Party, most: u32, reason: Reason) {
        let rule = Rule { party: Some(party), bound: Bound::Submitted, most: most.into(), reason };
        self.rules.submission.push(rule);
    }

    fn counted(&mut self, party: Party, bound: Bound, most: u32, reason: Reason) {
        self.rules.start.push(Rule { party: Some(party), bound, most: most.into(), reason });
    }

    fn alone(&mut self, bound: Bound, most: u64, reason: Reason) {
        self.rules.start.push(Rule { party: None, bound, most, reason });
    }
}
