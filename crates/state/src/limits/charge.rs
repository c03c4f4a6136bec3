//! What one job counts for, and for whom.
use model::accounts::{Accounts, Amounts, AssociationId, QosLimits, Tres};
use model::amount::Amount;
use model::plan::Start;
use model::time::Span;
use model::{Job, NodeName, PersistentBuffer, Phase, record};
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
        /// Of these: whose age counts.
        pub accruing: u64,
        pub runs: bool,
        /// It is no job: a persistent buffer holds what it holds until it is destroyed.
        pub stands: bool,
        pub held: Amounts,
        /// Its nodes, where somebody it counts for has a limit on nodes.
        pub nodes: Vec<NodeName>,
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
        let charge = Charge::of_waiting(cluster, job, &job.partition)?;
        let runs = matches!(job.phase, Phase::Starting | Phase::Running | Phase::Suspended);
        if !runs {
            return Some(charge);
        }
        let held = demand::held(cluster, job);
        let limit = job.spec.time_limit.and_then(|limit| limit.span()).unwrap_or(ENDLESS);
        let ends = job.end_time().or(job.started.map(|started| started + ENDLESS)).map(|end| end.secs());
        let (ends_secs, left_secs) = match job.phase {
            Phase::Suspended => (None, (limit - job.run_before_suspend).secs()),
            _ => (ends, 0),
        };
        let nodes = charge.nodes_counted(&cluster.accounts, job.allocation.nodes.iter().map(|share| &share.node));
        Some(Charge { runs, held, nodes, ends_secs, left_secs, accruing: 0, ..charge })
    }

    fn nodes_counted<'n>(&self, accounts: &Accounts, nodes: impl Iterator<Item = &'n NodeName>) -> Vec<NodeName> {
        let is_counted = self.parties(accounts).any(|party| has_node_limit(accounts, &party));
        if is_counted { nodes.cloned().collect() } else { Vec::new() }
    }

    /// While it holds nothing.
    fn of_waiting(cluster: &Cluster, job: &Job, partition: &str) -> Option<Charge> {
        let spec = &job.spec;
        let partition = cluster.config.partition(partition);
        let partition_qos = partition.map_or("", |partition| partition.qos.as_str());
        let is_known = |name: &str| cluster.accounts.qos.contains_key(name);
        let (qos, partition_qos) = (Some(spec.qos.as_str()), Some(partition_qos));
        let named = |qos: Option<&str>| qos.filter(|qos| is_known(qos)).unwrap_or_default().to_string();
        let (qos, partition_qos) = (named(qos), named(partition_qos));
        if job.association == 0 && qos.is_empty() && partition_qos.is_empty() {
            return None;
        }
        Some(Charge {
            association: job.association,
            user: spec.user.clone(),
            account: spec.account.clone(),
            submitted: job.n_tasks_waiting(),
            accruing: if job.accrues_age() { job.n_tasks_waiting() } else { 0 },
            usage_factor: usage_factor(&cluster.accounts, &qos),
            partition_qos: if partition_qos == qos { String::new() } else { partition_qos },
            qos,
            ..Charge::default()
        })
    }

    pub fn of_persistent(cluster: &Cluster, buffer: &PersistentBuffer) -> Option<Charge> {
        let qos = Some(&buffer.qos).filter(|qos| cluster.accounts.qos.contains_key(*qos)).cloned().unwrap_or_default();
        if buffer.tres_mb == 0 || (buffer.association == 0 && qos.is_empty()) {
            return None;
        }
        let buffers = vec![(buffer.plugin.word().to_owned(), buffer.tres_mb)];
        Some(Charge {
            association: buffer.association,
            user: buffer.user.clone(),
            account: buffer.account.clone(),
            qos,
            stands: true,
            held: Amounts::new(&Amount { buffers, ..Amount::default() }, &[]),
            ..Charge::default()
        })
    }

    /// What a waiting job, or one task of it, would count for from its start on, besides what it counts for already.
    pub fn of_start(cluster: &Cluster, job: &Job, start: &Start, demand: &Demand) -> Option<Charge> {
        let waiting = Charge::of_waiting(cluster, job, &start.partition)?;
        let ends_secs = Some(cluster.now.secs() + demand.limit_secs);
        let nodes = waiting.nodes_counted(&cluster.accounts, start.nodes.iter().map(|grant| &grant.node));
        let held = demand.amounts.clone();
        Some(Charge { submitted: 0, accruing: 0, runs: true, held, nodes, ends_secs, ..waiting })
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

/// Whether nodes are counted for the party, each once.
pub fn has_node_limit(accounts: &Accounts, party: &Party) -> bool {
    let of_qos = |qos: &str, pick: fn(&QosLimits) -> &Tres| {
        accounts.qos.get(qos).is_some_and(|qos| pick(&qos.limits).get("node").is_some())
    };
    match party {
        Party::Association(id) => {
            accounts.associations.get(id).is_some_and(|one| one.limits.grp_tres.get("node").is_some())
        }
        Party::Qos(qos) => of_qos(qos, |limits| &limits.grp_tres),
        Party::QosUser(qos, _) => of_qos(qos, |limits| &limits.max_tres_per_user),
        Party::QosAccount(qos, _) => of_qos(qos, |limits| &limits.max_tres_per_account),
    }
}

fn usage_factor(accounts: &Accounts, qos: &str) -> u64 {
    accounts.qos.get(qos).and_then(|qos| qos.usage_factor_thousandths).unwrap_or(1000).into()
}
