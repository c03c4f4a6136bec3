//! What one job counts for, and for whom.
use model::accounts::{Accounts, Amounts, AssociationId};
use model::plan::Start;
use model::time::Span;
use model::{Job, Phase, record};
use serde::{Deserialize, Serialize};

use super::{Demand, demand};
use crate::Cluster;

/// For whom there are counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Party {
    Association(AssociationId),
    Qos(String),
    /// A user's jobs in a QOS.
    QosUser(String, String),
    /// An account's jobs in a QOS.
    QosAccount(String, String),
}

record! {
    pub struct Charge {
        pub association: AssociationId,
        pub user: String,
        pub account: String,
        pub qos: String,
        /// Of the partition it runs in, or waits for.
        pub partition_qos: String,
        /// Jobs that are there: of an array all tasks that wait.
        pub submitted: u64,
        pub runs: bool,
        pub held: Amounts,
        /// Thousandths.
        pub usage_factor: u64,
        /// While its clock runs: when its limit ends it, in seconds.
        pub ends_secs: Option<u64>,
        /// While it is suspended: what is left of its limit.
        pub left_secs: u64,
    }
}

/// What a job without a limit is taken to need.
pub(super) const ENDLESS: Span = Span::from_secs(365 * 24 * 3600);

impl Charge {
    /// None: the job counts for nobody.
    pub fn of(cluster: &Cluster, job: &Job) -> Option<Charge> {
        if job.is_over() {
            return None;
        }
        let spec = &job.spec;
        let partition = cluster.config.partition(&job.partition);
        let partition_qos = partition.map_or("", |partition| partition.qos.as_str());
        let is_known = |name: &str| cluster.accounts.qos.contains_key(name);
        let (qos, partition_qos) = (Some(spec.qos.as_str()), Some(partition_qos));
        let named = |qos: Option<&str>| qos.filter(|qos| is_known(qos)).unwrap_or_default().to_string();
        let (qos, partition_qos) = (named(qos), named(partition_qos));
        if job.association == 0 && qos.is_empty() && partition_qos.is_empty() {
            return None;
        }
        let charge = Charge {
            association: job.association,
            user: spec.user.clone(),
            account: spec.account.clone(),
            submitted: job.n_tasks_waiting(),
            usage_factor: usage_factor(&cluster.accounts, &qos),
            partition_qos: if partition_qos == qos { String::new() } else { partition_qos },
            qos,
            ..Charge::default()
        };
        let runs = matches!(job.phase, Phase::Starting | Phase::Running | Phase::Suspended);
        if !runs {
            return Some(charge);
        }
        let held = demand::held(cluster, job);
        let limit = spec.time_limit.and_then(|limit| limit.span()).unwrap_or(ENDLESS);
        let ends = job.end_time().or(job.started.map(|started| started + ENDLESS)).map(|end| end.secs());
        let (ends_secs, left_secs) = match job.phase {
            Phase::Suspended => (None, (limit - job.run_before_suspend).secs()),
            _ => (ends, 0),
        };
        Some(Charge { runs, held, ends_secs, left_secs, ..charge })
    }

    /// What a waiting job, or one task of it, would count for from its start on, besides what it counts for already.
    pub fn of_start(cluster: &Cluster, job: &Job, start: &Start, demand: &Demand) -> Option<Charge> {
        let moved = Job { partition: start.partition.clone(), ..Job::clone(job) };
        let waiting = Charge::of(cluster, &moved)?;
        let ends_secs = Some(cluster.now.secs() + demand.limit_secs);
        Some(Charge { submitted: 0, runs: true, held: demand.amounts.clone(), ends_secs, ..waiting })
    }

    /// Everybody the job counts for.
    pub fn parties<'a>(&'a self, accounts: &'a Accounts) -> impl Iterator<Item = Party> + 'a {
        let lineage = accounts.lineage(self.association).map(|one| Party::Association(one.id));
        let each = [self.qos.as_str(), self.partition_qos.as_str()].into_iter().filter(|name| !name.is_empty());
        let of_qos = each.flat_map(|qos| {
            [
                Party::Qos(qos.into()),
                Party::QosUser(qos.into(), self.user.clone()),
                Party::QosAccount(qos.into(), self.account.clone()),
            ]
        });
        lineage.chain(of_qos)
    }
}

fn usage_factor(accounts: &Accounts, qos: &str) -> u64 {
    accounts.qos.get(qos).and_then(|qos| qos.usage_factor_thousandths).unwrap_or(1000).into()
}
