//! What `sacctmgr` asks for: entities to add, to change and to delete, and the values to set.
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    Account, Accounts, Association, AssociationId, Limits, Qos, QosLimits, ResourceEdit, ResourceFilter, Shares, Tres,
    User,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    AddAccounts {
        names: Vec<String>,
        parent: String,
        edits: Vec<Edit>,
        /// Where; none: in all clusters.
        #[serde(default)]
        clusters: Vec<String>,
    },
    /// Each user in each account, and in each partition if any are named.
    AddUsers {
        names: Vec<String>,
        accounts: Vec<String>,
        partitions: Vec<String>,
        edits: Vec<Edit>,
        /// Where; none: in all clusters.
        #[serde(default)]
        clusters: Vec<String>,
    },
    AddQos {
        names: Vec<String>,
        edits: Vec<Edit>,
    },
    AddWckeys {
        names: Vec<String>,
        users: Vec<String>,
        /// Where; none: in all clusters.
        #[serde(default)]
        clusters: Vec<String>,
    },
    AddCoordinators {
        accounts: Vec<String>,
        users: Vec<String>,
    },
    ModifyAccounts {
        filter: EntityFilter,
        edits: Vec<Edit>,
    },
    ModifyUsers {
        filter: EntityFilter,
        edits: Vec<Edit>,
    },
    ModifyQos {
        filter: EntityFilter,
        edits: Vec<Edit>,
    },
    AddClusters {
        names: Vec<String>,
        edits: Vec<Edit>,
    },
    DeleteClusters {
        names: Vec<String>,
    },
    /// The root of the tree: what everybody inherits.
    ModifyCluster {
        edits: Vec<Edit>,
        /// Where; none: in all clusters.
        #[serde(default)]
        clusters: Vec<String>,
    },
    DeleteAccounts {
        filter: EntityFilter,
    },
    /// The users themselves, or with accounts named only their places there.
    DeleteUsers {
        filter: EntityFilter,
    },
    DeleteQos {
        names: Vec<String>,
    },
    DeleteWckeys {
        names: Vec<String>,
        users: Vec<String>,
        /// Where; none: in all clusters.
        #[serde(default)]
        clusters: Vec<String>,
    },
    DeleteCoordinators {
        accounts: Vec<String>,
        users: Vec<String>,
    },
    /// Licences of a server, new ones or parts of known ones for more clusters.
    AddResources {
        names: Vec<String>,
        server: String,
        edit: ResourceEdit,
        /// Who may use them; none: nobody yet.
        clusters: Vec<String>,
    },
    ModifyResources {
        filter: ResourceFilter,
        edit: ResourceEdit,
    },
    /// The resources themselves, or with clusters or percents named only those parts.
    DeleteResources {
        filter: ResourceFilter,
    },
    /// One after the other, all of them or none.
    Several(Vec<Change>),
}

impl Change {
    /// The changes that it consists of.
    pub fn each(&self) -> Box<dyn Iterator<Item = &Change> + '_> {
        match self {
            Change::Several(changes) => Box::new(changes.iter().flat_map(Change::each)),
            one => Box::new(std::iter::once(one)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edit {
    pub field: Field,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// None takes the limit away.
    Count(Option<u32>),
    Tres(Vec<(String, Option<u64>)>),
    Text(String),
    Shares(Shares),
    Names(NamedValue),
}

/// A list of names: instead of what was, added to it, or taken out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NamedValue {
    Set(BTreeSet<String>),
    /// In order: true adds, false takes out.
    Changes(Vec<(bool, String)>),
}

impl NamedValue {
    pub fn apply(&self, to: &mut BTreeSet<String>) {
        match self {
            NamedValue::Set(names) => to.clone_from(names),
            NamedValue::Changes(changes) => {
                for (is_added, name) in changes {
                    match is_added {
                        true => drop(to.insert(name.clone())),
                        false => drop(to.remove(name)),
                    }
                }
            }
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        let (set, changes) = match self {
            NamedValue::Set(names) => (Some(names), None),
            NamedValue::Changes(changes) => (None, Some(changes)),
        };
        set.into_iter().flatten().chain(changes.into_iter().flatten().filter(|(added, _)| *added).map(|(_, name)| name))
    }
}

/// The enum, and all of its values.
macro_rules! fields {
    ($($(#[$note:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Field {
            $($(#[$note])* $name,)*
        }

        impl Field {
            pub const ALL: &[Field] = &[$(Field::$name,)*];
        }
    };
}

fields! {
    Description,
    Organization,
    Parent,
    DefaultAccount,
    DefaultWckey,
    AdminLevel,
    NewName,
    Comment,
    Classification,
    Shares,
    Qos,
    DefaultQos,
    Priority,
    MinPriority,
    /// What was used: only 0 can be set.
    RawUsage,
    GrpJobs,
    GrpJobsAccrue,
    GrpSubmit,
    GrpWall,
    GrpTres,
    GrpTresMins,
    GrpTresRunMins,
    MaxJobs,
    MaxJobsAccrue,
    MaxSubmit,
    MaxWall,
    MaxTres,
    MaxTresPerNode,
    MaxTresMins,
    MaxTresRunMins,
    // Of a QOS only.
    Flags,
    Preempt,
    PreemptMode,
    GraceTime,
    PreemptExemptTime,
    UsageFactor,
    UsageThreshold,
    LimitFactor,
    MaxJobsAccount,
    MaxJobsAccrueAccount,
    MaxSubmitAccount,
    MaxTresUser,
    MaxTresRunMinsUser,
    MaxTresAccount,
    MaxTresRunMinsAccount,
    MinTres,
}

record! {
    /// Which entities; empty lists let everything pass.
    pub struct EntityFilter {
        pub names: BTreeSet<String>,
        pub accounts: BTreeSet<String>,
        pub users: BTreeSet<String>,
        pub partitions: BTreeSet<String>,
        pub parents: BTreeSet<String>,
        pub descriptions: BTreeSet<String>,
        pub organizations: BTreeSet<String>,
        pub default_accounts: BTreeSet<String>,
        pub admin_levels: BTreeSet<String>,
        pub qos: BTreeSet<String>,
        pub clusters: BTreeSet<String>,
        /// Numbers of associations, or of qualities of service.
        pub ids: BTreeSet<u32>,
        pub default_qos: BTreeSet<String>,
        pub default_wckeys: BTreeSet<String>,
        pub preempt_modes: BTreeSet<String>,
    }
}

/// What people write is compared without regard to case.
fn passes_text(wanted: &BTreeSet<String>, value: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| one.eq_ignore_ascii_case(value))
}

fn passes(wanted: &BTreeSet<String>, value: &str) -> bool {
    wanted.is_empty() || wanted.contains(value)
}

impl EntityFilter {
    pub fn is_empty(&self) -> bool {
        *self == EntityFilter::default()
    }

    /// With this cluster named as associations name it.
    pub fn seen_from(mut self, own_name: &str) -> EntityFilter {
        let own = self.clusters.iter().find(|name| name.eq_ignore_ascii_case(own_name)).cloned();
        if let Some(own) = own {
            self.clusters.remove(&own);
            self.clusters.insert(String::new());
        }
        self
    }

    pub fn passes_account(&self, account: &Account) -> bool {
        passes(&self.names, &account.name)
            && passes(&self.accounts, &account.name)
            && passes_text(&self.descriptions, &account.description)
            && passes_text(&self.organizations, &account.organization)
    }

    pub fn passes_user(&self, user: &User) -> bool {
        passes(&self.names, &user.name)
            && passes(&self.users, &user.name)
            && passes(&self.default_accounts, &user.default_account)
            && passes(&self.admin_levels, user.admin_level.name())
            && passes_text(&self.default_wckeys, &user.default_wckey)
    }

    /// Whether it asks for more than who somebody is: only those who have a place can pass then.
    pub fn asks_for_places(&self) -> bool {
        let EntityFilter { accounts, partitions, parents, qos, default_qos, clusters, .. } = self;
        !self.ids.is_empty()
            || [accounts, partitions, parents, qos, default_qos, clusters].iter().any(|asked| !asked.is_empty())
    }

    pub fn passes_qos(&self, qos: &Qos) -> bool {
        let mode = if qos.preempt_mode.is_empty() { "cluster" } else { &qos.preempt_mode };
        passes(&self.names, &qos.name)
            && passes_text(&self.descriptions, &qos.description)
            // They are this cluster's.
            && passes(&self.clusters, "")
            && passes(&self.preempt_modes, mode)
            && (self.ids.is_empty() || self.ids.contains(&qos.id))
    }

    pub fn passes_association(&self, all: &Accounts, one: &Association) -> bool {
        // Users have an account, and no parent.
        let parent = all.associations.get(&one.parent).filter(|_| one.is_account());
        let parent = parent.map_or("", |parent| parent.account.as_str());
        passes(&self.accounts, &one.account)
            && passes(&self.clusters, &one.cluster)
            && passes(&self.users, &one.user)
            && passes(&self.partitions, &one.partition)
            && passes(&self.parents, parent)
            && (self.ids.is_empty() || self.ids.contains(&one.id))
            && (self.default_qos.is_empty() || self.default_qos.contains(&all.default_qos(one.id)))
            && (self.qos.is_empty() || all.allowed_qos(one.id).iter().any(|name| self.qos.contains(name)))
    }
}

impl Accounts {
    /// The accounts' own associations that the filter names.
    pub fn chosen_accounts(&self, filter: &EntityFilter) -> Vec<AssociationId> {
        let passes = |one: &&Association| {
            let account = self.accounts.get(&one.account);
            one.is_account()
                && account.is_some_and(|account| filter.passes_account(account))
                && EntityFilter { accounts: BTreeSet::new(), users: BTreeSet::new(), ..filter.clone() }
                    .passes_association(self, one)
        };
        self.associations.values().filter(passes).map(|one| one.id).collect()
    }

    /// The qualities of service that the filter names.
    pub fn chosen_qos(&self, filter: &EntityFilter) -> Vec<String> {
        self.qos.values().filter(|qos| filter.passes_qos(qos)).map(|qos| qos.name.clone()).collect()
    }

    /// The users' associations that the filter names.
    pub fn chosen_users(&self, filter: &EntityFilter) -> Vec<AssociationId> {
        let passes = |one: &&Association| {
            !one.is_account()
                && self.users.get(&one.user).is_some_and(|user| filter.passes_user(user))
                && filter.passes_association(self, one)
        };
        self.associations.values().filter(passes).map(|one| one.id).collect()
    }
}

impl Limits {
    /// Whether the field is one of these limits, which then has the value.
    pub fn set(&mut self, field: Field, value: &Value) -> bool {
        match self.count(field) {
            Some(count) => set_count(count, value),
            None => set_tres(self.tres(field), value),
        }
    }

    /// The limit as users see it; empty: there is none.
    pub fn shown(&self, field: Field) -> String {
        let mut own = self.clone();
        if let Some(count) = own.count(field) {
            return count.map(|count| count.to_string()).unwrap_or_default();
        }
        own.tres(field).map(|tres| tres.to_string()).unwrap_or_default()
    }

    fn count(&mut self, field: Field) -> Option<&mut Option<u32>> {
        Some(match field {
            Field::GrpJobs => &mut self.grp_jobs,
            Field::GrpJobsAccrue => &mut self.grp_jobs_accrue,
            Field::GrpSubmit => &mut self.grp_submit,
            Field::GrpWall => &mut self.grp_wall,
            Field::MaxJobs => &mut self.max_jobs,
            Field::MaxJobsAccrue => &mut self.max_jobs_accrue,
            Field::MaxSubmit => &mut self.max_submit,
            Field::MaxWall => &mut self.max_wall,
            Field::MinPriority => &mut self.min_priority,
            Field::Priority => &mut self.priority,
            _ => return None,
        })
    }

    fn tres(&mut self, field: Field) -> Option<&mut Tres> {
        Some(match field {
            Field::GrpTres => &mut self.grp_tres,
            Field::GrpTresMins => &mut self.grp_tres_mins,
            Field::GrpTresRunMins => &mut self.grp_tres_run_mins,
            Field::MaxTres => &mut self.max_tres,
            Field::MaxTresPerNode => &mut self.max_tres_per_node,
            Field::MaxTresMins => &mut self.max_tres_mins,
            Field::MaxTresRunMins => &mut self.max_tres_run_mins,
            _ => return None,
        })
    }
}

impl QosLimits {
    /// Whether the field is one of these limits, which then has the value.
    pub fn set(&mut self, field: Field, value: &Value) -> bool {
        let count = match field {
            Field::GrpJobs => &mut self.grp_jobs,
            Field::GrpJobsAccrue => &mut self.grp_jobs_accrue,
            Field::GrpSubmit => &mut self.grp_submit,
            Field::GrpWall => &mut self.grp_wall,
            Field::MaxWall => &mut self.max_wall,
            // Of an association's words for "each user" and "each job" those of a QOS mean the same.
            Field::MaxJobs => &mut self.max_jobs_per_user,
            Field::MaxJobsAccrue => &mut self.max_jobs_accrue_per_user,
            Field::MaxSubmit => &mut self.max_submit_per_user,
            Field::MaxJobsAccount => &mut self.max_jobs_per_account,
            Field::MaxJobsAccrueAccount => &mut self.max_jobs_accrue_per_account,
            Field::MaxSubmitAccount => &mut self.max_submit_per_account,
            Field::MinPriority => &mut self.min_priority,
            _ => return set_tres(self.tres(field), value),
        };
        set_count(count, value)
    }

    fn tres(&mut self, field: Field) -> Option<&mut Tres> {
        Some(match field {
            Field::GrpTres => &mut self.grp_tres,
            Field::GrpTresMins => &mut self.grp_tres_mins,
            Field::GrpTresRunMins => &mut self.grp_tres_run_mins,
            Field::MaxTres => &mut self.max_tres_per_job,
            Field::MaxTresPerNode => &mut self.max_tres_per_node,
            Field::MaxTresMins => &mut self.max_tres_mins_per_job,
            Field::MaxTresUser => &mut self.max_tres_per_user,
            Field::MaxTresRunMinsUser => &mut self.max_tres_run_mins_per_user,
            Field::MaxTresAccount => &mut self.max_tres_per_account,
            Field::MaxTresRunMinsAccount => &mut self.max_tres_run_mins_per_account,
            Field::MinTres => &mut self.min_tres_per_job,
            _ => return None,
        })
    }
}

impl Qos {
    /// Whether a QOS has such a field, which then has the value.
    pub fn set(&mut self, edit: &Edit) -> bool {
        match (edit.field, &edit.value) {
            (Field::Description, Value::Text(text)) => self.description.clone_from(text),
            (Field::Priority, Value::Count(count)) => self.priority = count.unwrap_or(0),
            (Field::Flags, Value::Names(names)) => names.apply(&mut self.flags),
            (Field::Preempt, Value::Names(names)) => names.apply(&mut self.preempt),
            (Field::PreemptMode, Value::Text(text)) => self.preempt_mode.clone_from(text),
            (Field::GraceTime, Value::Count(secs)) => self.grace_secs = secs.unwrap_or(0),
            (Field::PreemptExemptTime, Value::Count(secs)) => self.preempt_exempt_secs = *secs,
            (Field::UsageFactor, Value::Count(thousandths)) => self.usage_factor_thousandths = *thousandths,
            (Field::UsageThreshold, Value::Count(thousandths)) => self.usage_threshold_thousandths = *thousandths,
            (Field::LimitFactor, Value::Count(thousandths)) => self.limit_factor_thousandths = *thousandths,
            (field, value) => return self.limits.set(field, value),
        }
        true
    }
}

fn set_count(target: &mut Option<u32>, value: &Value) -> bool {
    let Value::Count(count) = value else { return false };
    *target = *count;
    true
}

fn set_tres(target: Option<&mut Tres>, value: &Value) -> bool {
    let (Some(target), Value::Tres(edits)) = (target, value) else { return false };
    target.set(edits);
    true
}
