//! What a caller may see of others, where the site keeps such things private. Operators and administrators see everything;
//! coordinators see what is in their accounts.
use std::collections::BTreeSet;

use model::accounts::{Accounts, Association, AssociationId, Standing};
use model::history::HistoryQuery;
use model::private::PrivateData;
use model::{Caller, Config, Job, Reservation};
use state::Cluster;
use tonic::Status;
use wire::refusal::to_status;

/// A reader, as far as privacy is concerned.
#[derive(Clone)]
pub struct Reader {
    by: Caller,
    name: String,
    rules: PrivateData,
    /// A coordinator sees the jobs of the account.
    coordinates: bool,
}

impl Reader {
    pub fn new(cluster: &Cluster, by: Caller, name: impl FnOnce() -> String) -> Reader {
        let rules = cluster.config().accounting.private;
        let is_bound = !by.is_admin && rules != PrivateData::default();
        match is_bound {
            true => Reader { by, name: name(), rules, coordinates: true },
            false => Reader { by, name: String::new(), rules: PrivateData::default(), coordinates: true },
        }
    }

    /// Who speaks through a node that vouches because of a job is no coordinator there.
    pub fn without_accounts(self) -> Reader {
        Reader { coordinates: false, ..self }
    }

    pub fn may_see_job(&self, cluster: &Cluster, job: &Job) -> bool {
        !self.rules.jobs || self.by.may_act_for(job.spec.uid) || self.coordinates(cluster.accounts(), &job.spec.account)
    }

    /// Rows of one's own, or of the accounts that one looks after.
    pub fn history(&self, cluster: &Cluster, query: HistoryQuery) -> HistoryQuery {
        let is_private = self.rules.jobs || (self.rules.usage && query.for_usage);
        if !is_private {
            return query;
        }
        let looked_after: Vec<String> = cluster
            .accounts()
            .accounts
            .keys()
            .filter(|name| self.coordinates(cluster.accounts(), name))
            .cloned()
            .collect();
        let asks_own_accounts =
            !query.accounts.is_empty() && query.accounts.iter().all(|account| looked_after.contains(account));
        match asks_own_accounts {
            true => query,
            false => HistoryQuery { uids: vec![self.by.uid], ..query },
        }
    }

    pub fn nodes(&self) -> Result<(), Status> {
        if self.rules.nodes { Err(to_status(&model::Reject::NotPermitted)) } else { Ok(()) }
    }

    pub fn events(&self) -> Result<(), Status> {
        if self.rules.events { Err(to_status(&model::Reject::NotPermitted)) } else { Ok(()) }
    }

    /// The configuration without partitions, where those are private.
    pub fn hidden_from(&self, config: &Config) -> Option<Config> {
        self.rules.partitions.then(|| Config { partitions: Vec::new(), ..config.clone() })
    }

    /// Only what the caller could use.
    pub fn may_see_reservation(&self, cluster: &Cluster, one: &Reservation) -> bool {
        if !self.rules.reservations {
            return true;
        }
        let own_accounts = || {
            let own = |place: &&Association| place.user == self.name && place.is_here();
            cluster.accounts().associations.values().filter(own).map(|place| place.account.as_str()).collect::<Vec<_>>()
        };
        one.users.names.contains(&self.name)
            || own_accounts().iter().any(|account| one.accounts.names.iter().any(|name| name == account))
    }

    fn coordinates(&self, accounts: &Accounts, account: &str) -> bool {
        self.coordinates && accounts.coordinates(&self.name, account)
    }

    /// Associations of the caller, of the accounts that the caller looks after, and everything above them.
    fn visible(&self, accounts: &Accounts) -> BTreeSet<AssociationId> {
        let own = |one: &&Association| one.user == self.name || self.coordinates(accounts, &one.account);
        let near = accounts.associations.values().filter(own);
        near.flat_map(|one| accounts.lineage(one.id).map(|above| above.id)).collect()
    }

    pub fn accounts(&self, accounts: &Accounts) -> Accounts {
        let mut seen = accounts.clone();
        if !self.rules.accounts && !self.rules.users {
            return seen;
        }
        let visible = self.visible(accounts);
        let is_theirs = |one: &Association| visible.contains(&one.id);
        if self.rules.accounts {
            seen.associations.retain(|_, one| !one.is_account() || is_theirs(one));
            let left: BTreeSet<String> =
                seen.associations.values().filter(|one| one.is_account()).map(|one| one.account.clone()).collect();
            seen.associations.retain(|_, one| left.contains(&one.account));
            seen.accounts.retain(|name, _| left.contains(name));
        }
        if self.rules.users {
            seen.associations.retain(|_, one| one.is_account() || is_theirs(one));
            let left: BTreeSet<String> = seen.associations.values().map(|one| one.user.clone()).collect();
            seen.users.retain(|name, _| left.contains(name));
            seen.wckeys.retain(|key| left.contains(&key.user));
        }
        seen
    }

    pub fn standing(&self, accounts: &Accounts, mut standing: Standing) -> Standing {
        if self.rules.usage {
            let visible = self.visible(accounts);
            standing.associations.retain(|id, _| visible.contains(id));
            for used in standing.qos.values_mut() {
                used.users.retain(|user, _| *user == self.name);
                used.accounts.retain(|account, _| self.coordinates(accounts, account));
            }
        }
        standing
    }
}
