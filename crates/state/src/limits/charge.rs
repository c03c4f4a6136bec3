//! What one job counts for, and for whom.
use model::accounts::{Accounts, Amounts, AssociationId, PerName, QosLimits, Tres};
use model::amount::Amount;
use model::plan::Start;
use model::time::Span;
use model::{Job, NodeName, PersistentBuffer, Phase, record};
use serde::{Deserialize, Serialize};

use super::{Demand, demand};
use crate::Cluster;

/// For whom there are counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Party<Name = String> {
    Association(AssociationId),
    Qos(Name),
    /// A user's jobs in a QOS.
    QosUser(Name, Name),
    /// An account's jobs in a QOS.
    QosAccount(Name, Name),
}

/// A party by names that belong to somebody else.
pub type Whom<'a> = Party<&'a str>;

impl Party {
    pub fn whom(&self) -> Whom<'_> {
        match self {
            Party::Association(id) => Party::Association(*id),
            Party::Qos(qos) => Party::Qos(qos),
            Party::QosUser(qos, user) => Party::QosUser(qos, user),
            Party::QosAccount(qos, account) => Party::QosAccount(qos, account),
        }
    }
}

impl Whom<'_> {
    pub fn to_party(self) -> Party {
        match self {
            Party::Association(id) => Party::Association(id),
            Party::Qos(qos) => Party::Qos(qos.into()),
            Party::QosUser(qos, user) => Party::QosUser(qos.into(), user.into()),
            Party::QosAccount(qos, account) => Party::QosAccount(qos.into(), account.into()),
        }
    }
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
        let is_counted = self.parties(accounts).any(|whom| has_node_limit(accounts, whom));
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
    pub fn parties<'a>(&'a self, accounts: &'a Accounts) -> impl Iterator<Item = Whom<'a>> {
        let known = |id: AssociationId| accounts.terse(id).map(|terse| (id, terse.parent));
        let lineage = std::iter::successors(known(self.association), move |(_, parent)| known(*parent));
        let lineage = lineage.map(|(id, _)| Party::Association(id));
        let each = [self.qos.as_str(), self.partition_qos.as_str()].into_iter().filter(|name| !name.is_empty());
        let of_qos = each.flat_map(|qos| {
            [Party::Qos(qos), Party::QosUser(qos, self.user.as_str()), Party::QosAccount(qos, self.account.as_str())]
        });
        lineage.chain(of_qos)
    }

    /// Both count for the same.
    pub(super) fn counts_for_the_same(&self, other: &Charge) -> bool {
        self.association == other.association
            && self.user == other.user
            && self.account == other.account
            && self.qos == other.qos
            && self.partition_qos == other.partition_qos
    }
}

/// Whether nodes are counted for the party, each once.
pub fn has_node_limit(accounts: &Accounts, whom: Whom) -> bool {
    let of_qos = |qos: &str, pick: fn(&QosLimits) -> &Tres| {
        accounts.qos.get(qos).is_some_and(|qos| pick(&qos.limits).get("node").is_some())
    };
    match whom {
        Party::Association(id) => {
            let counts = |together: u32| accounts.togethers()[together as usize].held.node != PerName::NO_LIMIT;
            accounts.terse(id).is_some_and(|terse| counts(terse.together))
        }
        Party::Qos(qos) => of_qos(qos, |limits| &limits.grp_tres),
        Party::QosUser(qos, _) => of_qos(qos, |limits| &limits.max_tres_per_user),
        Party::QosAccount(qos, _) => of_qos(qos, |limits| &limits.max_tres_per_account),
    }
}

fn usage_factor(accounts: &Accounts, qos: &str) -> u64 {
    accounts.qos.get(qos).and_then(|qos| qos.usage_factor_thousandths).unwrap_or(1000).into()
}
