//! Limits of accounts and qualities of service, with what this pass has started counted already.
use std::collections::BTreeMap;
use std::sync::Arc;

use model::plan::{Grant, Start};
use model::spec::TimeLimit;
use model::{Job, Partition, Reason};
use state::Cluster;
use state::limits::{self, Charge, Demand, Rules, Tally};

/// Who shares rules: association, QOS, user and account (for those without an association), and partition QOS.
type Key<'a> = (u32, &'a str, &'a str, &'a str, &'a str);

pub(crate) struct Allowance<'a> {
    cluster: &'a Cluster,
    tally: Tally,
    rules: BTreeMap<Key<'a>, Arc<Rules>>,
}

impl<'a> Allowance<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Allowance { cluster, tally: cluster.tally().clone(), rules: BTreeMap::new() }
    }

    fn rules(&mut self, job: &'a Job, partition: &'a Partition) -> Arc<Rules> {
        let spec = &job.spec;
        let (user, account) = match job.association {
            // Its user and account go with the association.
            0 => (spec.user.as_str(), spec.account.as_str()),
            _ => ("", ""),
        };
        let key = (job.association, spec.qos.as_str(), user, account, partition.qos.as_str());
        let cluster = self.cluster;
        let resolve = || Arc::new(cluster.rules_for(spec, job.association, Some(partition)));
        self.rules.entry(key).or_insert_with(resolve).clone()
    }

    /// What keeps the job from starting in the partition, whatever nodes it would get.
    pub fn refusal(&mut self, job: &'a Job, partition: &'a Partition) -> Option<Reason> {
        if !limits::binds(self.cluster, job) {
            return None;
        }
        if let Some(reason) = self.cluster.below_threshold(job) {
            return Some(reason);
        }
        let rules = self.rules(job, partition);
        if rules.are_none() {
            return None;
        }
        self.ask(&rules, &Demand::asked(self.cluster, &job.spec))
    }

    /// What keeps it from starting with these nodes.
    pub fn refusal_of(
        &mut self,
        job: &'a Job,
        partition: &'a Partition,
        grants: &[Grant],
        limit: Option<TimeLimit>,
    ) -> Option<Reason> {
        if !limits::binds(self.cluster, job) {
            return None;
        }
        let rules = self.rules(job, partition);
        if rules.are_none() {
            return None;
        }
        self.ask(&rules, &Demand::of_grants(self.cluster, job, &partition.name, grants, limit))
    }

    fn ask(&self, rules: &Rules, demand: &Demand) -> Option<Reason> {
        rules.start(&self.tally, self.cluster.decay(), self.cluster.now(), demand)
    }

    /// Whether the job is important enough to have a place kept for it.
    pub fn may_be_promised(&mut self, job: &'a Job, partition: Option<&'a Partition>) -> bool {
        let Some(partition) = partition.filter(|_| limits::binds(self.cluster, job)) else { return true };
        let rules = self.rules(job, partition);
        if !rules.may_be_promised() {
            return false;
        }
        let least = rules.min_priority();
        least == 0 || model::priority::shown(self.cluster.config(), job, self.cluster.now()) >= least
    }

    /// Counts what the plan starts.
    pub fn started(&mut self, job: &Job, start: &Start) {
        if !limits::binds(self.cluster, job) {
            return;
        }
        let cluster = self.cluster;
        let demand = Demand::granted(cluster, job, start);
        if let Some(charge) = Charge::of_start(cluster, job, start, &demand) {
            self.tally.add(cluster.accounts(), cluster.decay(), cluster.now(), &charge);
        }
    }

    pub fn snapshot(&self) -> Tally {
        self.tally.clone()
    }

    pub fn restore(&mut self, tally: Tally) {
        self.tally = tally;
    }
}
