//! Who may use how much: accounts in a tree, users, the associations between them, and qualities of service.
//!
//! An *association* joins an account with a user (and perhaps a partition), or is the account's own place in the tree. Limits and shares
//! hang on associations; a limit that is not set is the parent's.
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

mod amounts;
mod brief;
mod change;
mod clusters;
mod index;
mod limits;
mod qos;
mod resource;
mod standing;
pub mod tres;

pub use amounts::Amounts;
pub use brief::{EachJob, Others, PerName, Together};
pub use change::{Change, Edit, EntityFilter, Field, NamedValue, Value};
pub use clusters::OtherCluster;
pub use index::{Index, Terse};
pub use limits::Limits;
pub use qos::{Qos, QosLimits};
pub use resource::{Resource, ResourceEdit, ResourceFilter, WHOLE};
pub use standing::{Classic, Place, QosUse, Standing, Use};
pub use tres::Tres;

/// The account at the top of the tree. It is always there.
pub const ROOT: &str = "root";
/// The quality of service that everybody has to begin with.
pub const NORMAL: &str = "normal";

/// Names an association; ids are never used again.
pub type AssociationId = u32;

record! {
    /// Everything, as readers get it.
    pub struct Accounts {
        pub accounts: BTreeMap<String, Account>,
        pub users: BTreeMap<String, User>,
        pub associations: BTreeMap<AssociationId, Association>,
        pub qos: BTreeMap<String, Qos>,
        pub wckeys: BTreeSet<Wckey>,
        /// Other clusters whose accounts are kept here too, by name. This one is not among them.
        pub clusters: BTreeMap<String, OtherCluster>,
        pub last_association: AssociationId,
        pub last_qos: u32,
        /// Licences of licence servers, by their numbers.
        pub resources: BTreeMap<u32, Resource>,
        pub last_resource: u32,
        #[serde(skip)]
        pub index: Index,
    }

    pub struct Account {
        pub name: String,
        pub description: String,
        pub organization: String,
        /// Users who may manage the account and what is below it.
        pub coordinators: BTreeSet<String>,
    }

    pub struct User {
        pub name: String,
        pub default_account: String,
        /// The default accounts in other clusters.
        pub elsewhere: BTreeMap<String, String>,
        pub default_wckey: String,
        pub admin_level: AdminLevel,
    }

    pub struct Association {
        pub id: AssociationId,
        /// Empty: this cluster.
        pub cluster: String,
        /// The account's own association; 0 for that of the root account.
        pub parent: AssociationId,
        pub account: String,
        /// Empty: the account itself.
        pub user: String,
        /// Empty: any.
        pub partition: String,
        pub shares: Shares,
        pub limits: Limits,
        /// None: the parent's.
        pub qos: Option<BTreeSet<String>>,
        pub default_qos: String,
        pub comment: String,
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wckey {
    pub name: String,
    pub user: String,
    /// Empty: this cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster: String,
}

/// How much of its parent's resources an association may use compared with its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shares {
    Number(u32),
    /// As if the users were the parent's own.
    Parent,
}

impl Default for Shares {
    fn default() -> Self {
        Shares::Number(1)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AdminLevel {
    #[default]
    None,
    Operator,
    Administrator,
}

impl AdminLevel {
    pub fn name(self) -> &'static str {
        match self {
            AdminLevel::None => "None",
            AdminLevel::Operator => "Operator",
            AdminLevel::Administrator => "Administrator",
        }
    }

    /// As Slurm: any beginning of the word, in any case.
    pub fn parse(text: &str) -> Option<AdminLevel> {
        let text = text.to_lowercase();
        let levels = [AdminLevel::None, AdminLevel::Operator, AdminLevel::Administrator];
        levels.into_iter().find(|level| !text.is_empty() && level.name().to_lowercase().starts_with(&text))
    }
}

impl Association {
    pub fn is_account(&self) -> bool {
        self.user.is_empty()
    }

    /// Of this cluster: only these concern its jobs.
    pub fn is_here(&self) -> bool {
        self.cluster.is_empty()
    }
}

impl Accounts {
    /// Nobody has ever configured anything: every user is welcome.
    pub fn are_unused(&self) -> bool {
        self.users.is_empty() && self.accounts.is_empty()
    }

    /// The account's own association in this cluster.
    pub fn account_association(&self, account: &str) -> Option<&Association> {
        self.account_association_in("", account)
    }

    /// The account's own association in that cluster; without a name, in this one.
    pub fn account_association_in(&self, cluster: &str, account: &str) -> Option<&Association> {
        self.associations.values().find(|one| one.is_account() && one.account == account && one.cluster == cluster)
    }

    /// The association for a job: the one for its partition if there is one, else the one for all.
    pub fn association(&self, account: &str, user: &str, partition: &str) -> Option<&Association> {
        let mut found = self.places_of(account, user).iter().map(|id| &self.associations[id]);
        let mut general = None;
        found
            .by_ref()
            .find(|one| {
                if one.partition.is_empty() {
                    general = Some(*one);
                }
                !partition.is_empty() && one.partition == partition
            })
            .or(general)
    }

    /// From the association up to the root.
    pub fn lineage(&self, id: AssociationId) -> impl Iterator<Item = &Association> {
        std::iter::successors(self.associations.get(&id), |one| self.associations.get(&one.parent))
    }

    /// The names of the QOS that jobs of this association may ask for.
    pub fn allowed_qos(&self, id: AssociationId) -> BTreeSet<String> {
        self.lineage(id).find_map(|one| one.qos.clone()).unwrap_or_else(|| [NORMAL.to_string()].into())
    }

    /// Whether jobs of this association may ask for it.
    pub fn allows_qos(&self, id: AssociationId, name: &str) -> bool {
        self.lineage(id).find_map(|one| one.qos.as_ref()).map_or(name == NORMAL, |list| list.contains(name))
    }

    /// The QOS of a job that does not ask for one.
    pub fn default_qos(&self, id: AssociationId) -> String {
        let said = self.lineage(id).map(|one| &one.default_qos).find(|name| !name.is_empty());
        said.cloned().unwrap_or_default()
    }

    /// The QOS that a job gets which asks for none: the only one allowed, the one said, or the oldest that is allowed.
    pub fn qos_unasked(&self, id: AssociationId) -> String {
        let allowed = self.allowed_qos(id);
        if let (1, Some(only)) = (allowed.len(), allowed.first()) {
            return only.clone();
        }
        let said = self.default_qos(id);
        if !said.is_empty() {
            return said;
        }
        let oldest = allowed.iter().filter_map(|name| self.qos.get(name)).min_by_key(|qos| qos.id);
        oldest.map(|qos| qos.name.clone()).unwrap_or_default()
    }

    /// Whether the user looks after the account, or one above it.
    pub fn coordinates(&self, user: &str, account: &str) -> bool {
        let looks_after = |one: &Association| {
            self.accounts.get(&one.account).is_some_and(|account| account.coordinators.contains(user))
        };
        let places = self.associations.values().filter(|one| one.is_account() && one.account == account);
        places.into_iter().any(|own| self.lineage(own.id).any(looks_after))
    }

    /// The association and everything that hangs below it.
    pub fn with_all_below(&self, id: AssociationId) -> BTreeSet<AssociationId> {
        let is_below = |one: &&Association| self.lineage(one.id).any(|above| above.id == id);
        self.associations.values().filter(is_below).map(|one| one.id).collect()
    }
}
