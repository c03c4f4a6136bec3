//! Who may use how much: what is counted for accounts and qualities of service, and what their limits allow.
//!
//! ```text
//! job ──charge──▶ tally (counts of each party, kept as jobs come and go)
//! accounts ──resolve──▶ rules (what binds this job, in the order of precedence) ──refusal(tally, demand)──▶ Reason
//! ```
//! The same rules are asked at submission, by the scheduler, and when a plan is adopted.
mod charge;
mod count;
mod counts;
mod decay;
mod demand;
pub mod each;
mod gists;
mod headroom;
pub(crate) mod minutes;
mod quality;
mod resolve;
mod rules;
mod tally;
mod want;
mod whole;
mod words;

pub use charge::{Charge, Party, Whom, has_node_limit};
pub use count::Count;
pub use decay::Decay;
pub use demand::Demand;
pub use gists::Gist;
pub use headroom::{Headroom, Verdict};
pub use quality::{LeftInQos, Quality, leaves_it_to_associations};
pub use resolve::Who;
pub use rules::{Ceiling, Outlook, Rules};
pub use tally::Tally;
pub(crate) use tally::{
    adapt, check, forget_use, forget_use_in, forget_use_of, keep, keep_all, keep_standing, move_use, number_anew,
    settle_meters,
};
pub use want::Want;
pub use whole::whole;

use model::accounts::Amounts;
use model::plan::Start;
use model::{Job, JobSpec, Partition, Reason, Reject};

use crate::Cluster;

impl Cluster {
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What binds the job in this partition.
    pub fn rules_for<'a>(&'a self, spec: &'a JobSpec, association: u32, partition: Option<&'a Partition>) -> Rules<'a> {
        self.rules_with(spec, association, partition, &mut |of| whole(self, of))
    }

    /// As `rules_for`, with what the caller knows of the cluster's or a partition's resources in all.
    pub fn rules_with<'a>(
        &'a self,
        spec: &'a JobSpec,
        association: u32,
        partition: Option<&'a Partition>,
        whole: &mut dyn FnMut(Option<&'a Partition>) -> Amounts,
    ) -> Rules<'a> {
        let partition_qos = partition.map_or("", |partition| partition.qos.as_str());
        let who = Who { association, user: &spec.user, account: &spec.account, qos: &spec.qos, partition_qos };
        let mut of = |is_partition: bool| whole(partition.filter(|_| is_partition));
        Rules::resolve(&self.accounts, self.config.accounting.enforce, &who, &mut of)
    }

    /// A QOS may be only for those who have not used too much: below its threshold of fair-share a job waits.
    pub fn below_threshold(&self, job: &Job) -> Option<Reason> {
        let qos = self.accounts.qos.get(&job.spec.qos).filter(|qos| qos.has_flag("EnforceUsageThreshold"))?;
        let least = f64::from(qos.usage_threshold_thousandths?) / 1000.0;
        let factor = self.fair_share.known_factor(job.association)?;
        (factor < least).then_some(Reason::QOSUsageThreshold)
    }

    pub fn decay(&self) -> Decay<'_> {
        Decay::new(&self.config, &self.accounts)
    }
}

/// Refuses a job that would be one too many, or, where a QOS denies what cannot be, one that could never start.
pub(crate) fn admit(cluster: &Cluster, spec: &JobSpec, association: u32) -> Result<(), Reject> {
    let rules = cluster.rules_for(spec, association, first_partition(cluster, spec));
    let demand = Demand::asked(cluster, spec);
    let refusal = rules.submission(&cluster.tally, &demand).or_else(|| rules.alone(&demand));
    refusal.map_or(Ok(()), |reason| Err(Reject::Limit(reason)))
}

/// As `admit`, for a job that is there and counted already.
pub(crate) fn still_admits(cluster: &Cluster, spec: &JobSpec, association: u32) -> Result<(), Reject> {
    let rules = cluster.rules_for(spec, association, first_partition(cluster, spec));
    let refusal = rules.alone(&Demand::asked(cluster, spec));
    refusal.map_or(Ok(()), |reason| Err(Reject::Limit(reason)))
}

/// How many more of the jobs it counts among may grow older while they wait; None: all.
pub(crate) fn places_to_accrue(cluster: &Cluster, job: &Job) -> Option<u64> {
    let partition = cluster.config.partition(&job.partition);
    cluster.rules_for(&job.spec, job.association, partition).places_to_accrue(&cluster.tally)
}

/// The time that a job gets which names none.
pub(crate) fn max_wall_mins(cluster: &Cluster, spec: &JobSpec, association: u32) -> Option<u32> {
    let rules = cluster.rules_for(spec, association, first_partition(cluster, spec));
    rules.max_wall_mins(&Demand::asked(cluster, spec))
}

fn first_partition<'a>(cluster: &'a Cluster, spec: &JobSpec) -> Option<&'a Partition> {
    spec.partitions.first().and_then(|name| cluster.config.partition(name))
}

/// What keeps the job from starting as the plan has it.
pub(crate) fn refusal(cluster: &Cluster, job: &Job, start: &Start) -> Option<Reason> {
    if !binds(cluster, job) {
        return None;
    }
    if let Some(reason) = cluster.below_threshold(job) {
        return Some(reason);
    }
    let rules = cluster.rules_for(&job.spec, job.association, cluster.config.partition(&start.partition));
    rules.start(&cluster.tally, cluster.decay(), cluster.now, &Demand::granted(cluster, job, start))
}

/// What keeps the job from starting in the partition on whatever nodes: asked before anything is done for its start.
pub fn asked_refusal(cluster: &Cluster, job: &Job, partition: &Partition) -> Option<Reason> {
    if !binds(cluster, job) {
        return None;
    }
    if let Some(reason) = cluster.below_threshold(job) {
        return Some(reason);
    }
    let rules = cluster.rules_for(&job.spec, job.association, Some(partition));
    rules.start(&cluster.tally, cluster.decay(), cluster.now, &Demand::asked(cluster, &job.spec))
}

/// Whether any limit could concern the job.
pub fn binds(cluster: &Cluster, job: &Job) -> bool {
    cluster.config.accounting.enforce.limits && (job.association != 0 || !cluster.accounts.qos.is_empty())
}
