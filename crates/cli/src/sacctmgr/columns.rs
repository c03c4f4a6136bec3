//! Every column of `sacctmgr list`: name, title, width, and what it shows of a row.
use std::collections::BTreeSet;

use model::accounts::{Account, Accounts, Association, Limits, Qos, Shares, Tres, User};
use model::duration;

use super::Entity;
use crate::accounting::{begins, words_of_format};
use crate::table::Column;

/// One line: as much of it as the entity has.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub all: &'a Accounts,
    pub cluster: &'a super::show::ClusterFacts,
    pub account: Option<&'a Account>,
    pub user: Option<&'a User>,
    pub association: Option<&'a Association>,
    pub qos: Option<&'a Qos>,
    /// A coordinator, a TRES, a wckey: a name with something behind it.
    pub name: &'a str,
    pub other: &'a str,
    pub number: u32,
    /// How deep in the tree, when it is shown as one.
    pub depth: usize,
    /// Of something that is not an association: the cluster, as associations name it.
    pub place: &'a str,
    /// With what is the parents'.
    pub inherits: bool,
    /// Where the association begins and ends in the tree.
    pub span: (u32, u32),
    /// Whose places a user's default account is shown for.
    pub default_in: Option<&'a str>,
    pub is_cluster: bool,
}

impl Row<'_> {
    /// The cluster, as associations name it.
    fn cluster_id(&self) -> &str {
        self.association.map_or(self.place, |one| &one.cluster)
    }
}

pub struct Field {
    name: &'static str,
    title: &'static str,
    width: i32,
    show: fn(&Row) -> String,
}

const fn field(name: &'static str, title: &'static str, width: i32, show: fn(&Row) -> String) -> Field {
    Field { name, title, width, show }
}

impl Field {
    pub fn text(&self, row: &Row) -> String {
        (self.show)(row)
    }
}

fn of_association(row: &Row, show: impl Fn(&Association) -> String) -> String {
    row.association.map(show).unwrap_or_default()
}

/// The value of a QOS, or of the association alone.
fn own<T>(row: &Row, of_association: impl Fn(&Limits) -> T, of_qos: impl Fn(&Qos) -> T) -> Option<T> {
    match row.qos {
        Some(qos) => Some(of_qos(qos)),
        None => row.association.map(|one| of_association(&one.limits)),
    }
}

/// The value of a QOS, or the nearest from the association up.
pub(super) fn nearest<T>(
    row: &Row,
    of_association: impl Fn(&Limits) -> Option<T>,
    of_qos: impl Fn(&Qos) -> Option<T>,
) -> Option<T> {
    match (row.qos, row.association) {
        (Some(qos), _) => of_qos(qos),
        (None, Some(one)) if row.inherits => row.all.lineage(one.id).find_map(|one| of_association(&one.limits)),
        (None, Some(one)) => of_association(&one.limits),
        (None, None) => None,
    }
}

/// Each amount is the nearest from the association up.
pub(super) fn nearest_amounts(
    row: &Row,
    of_association: impl Fn(&Limits) -> Option<&Tres>,
    of_qos: impl Fn(&Qos) -> &Tres,
) -> Tres {
    let mut all = Tres::default();
    match (row.qos, row.association) {
        (Some(qos), _) => all = of_qos(qos).clone(),
        (None, Some(one)) => {
            let lineage = row.all.lineage(one.id).take(if row.inherits { usize::MAX } else { 1 });
            for limits in lineage.map(|one| &one.limits) {
                for (name, amount) in of_association(limits).iter().flat_map(|tres| &tres.0) {
                    all.0.entry(name.clone()).or_insert(*amount);
                }
            }
        }
        (None, None) => (),
    }
    all
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn grp(row: &Row, of_association: fn(&Limits) -> Option<u32>, of_qos: fn(&Qos) -> Option<u32>) -> String {
    shown(own(row, of_association, of_qos).flatten())
}

fn grp_amounts(row: &Row, of_association: fn(&Limits) -> &Tres, of_qos: fn(&Qos) -> &Tres) -> String {
    shown(own(row, |limits| of_association(limits).clone(), |qos| of_qos(qos).clone()))
}

fn grp_one(row: &Row, name: &str, of_association: fn(&Limits) -> &Tres, of_qos: fn(&Qos) -> &Tres) -> String {
    shown(own(row, |limits| of_association(limits).get(name), |qos| of_qos(qos).get(name)).flatten())
}

fn max(row: &Row, of_association: fn(&Limits) -> Option<u32>, of_qos: fn(&Qos) -> Option<u32>) -> String {
    shown(nearest(row, of_association, of_qos))
}

fn max_amounts(row: &Row, of_association: fn(&Limits) -> Option<&Tres>, of_qos: fn(&Qos) -> &Tres) -> String {
    nearest_amounts(row, of_association, of_qos).to_string()
}

fn max_one(row: &Row, name: &str, of_association: fn(&Limits) -> Option<&Tres>, of_qos: fn(&Qos) -> &Tres) -> String {
    shown(nearest_amounts(row, of_association, of_qos).get(name))
}

fn minutes(value: Option<u32>) -> String {
    value.map(|minutes| duration::show(u64::from(minutes) * 60)).unwrap_or_default()
}

fn factor(thousandths: Option<u32>) -> String {
    thousandths.map(|value| format!("{:.6}", f64::from(value) / 1000.0)).unwrap_or_default()
}

fn account_name(row: &Row) -> String {
    let name = match (row.association, row.account) {
        (Some(one), _) => one.account.as_str(),
        (None, Some(account)) => account.name.as_str(),
        (None, None) => row.other,
    };
    format!("{}{name}", " ".repeat(row.depth))
}

fn allowed_qos(row: &Row) -> String {
    names_of_qos(row).into_iter().collect::<Vec<_>>().join(",")
}

fn allowed_qos_numbers(row: &Row) -> String {
    let names = names_of_qos(row);
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| row.all.qos.get(name)).map(|qos| qos.id).collect();
    numbers.sort();
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn names_of_qos(row: &Row) -> BTreeSet<String> {
    let Some(one) = row.association else { return BTreeSet::new() };
    match (row.inherits || one.parent == 0, &one.qos) {
        (true, _) => row.all.allowed_qos(one.id),
        (false, own) => own.clone().unwrap_or_default(),
    }
}

/// What is said of clusters only: they are in no federation.
fn of_cluster(row: &Row, here: &str, elsewhere: &str) -> String {
    match (row.is_cluster, row.cluster_id()) {
        (false, _) => String::new(),
        (true, "") => here.into(),
        (true, _) => elsewhere.into(),
    }
}

fn parent_name(row: &Row) -> String {
    let parent = row.association.filter(|one| one.is_account()).and_then(|one| row.all.associations.get(&one.parent));
    parent.map(|parent| parent.account.clone()).unwrap_or_default()
}

fn coordinators(row: &Row) -> String {
    if let Some(account) = row.account {
        // Those of the accounts above it too.
        let all: BTreeSet<&String> = row.all.accounts.values().flat_map(|one| &one.coordinators).collect();
        let own = all.into_iter().filter(|user| row.all.coordinates(user, &account.name));
        return own.cloned().collect::<Vec<_>>().join(",");
    }
    let Some(user) = row.user else { return String::new() };
    let of = |account: &&Account| row.all.coordinates(&user.name, &account.name);
    row.all.accounts.values().filter(of).map(|account| account.name.clone()).collect::<Vec<_>>().join(",")
}

/// In the order in which a name that was cut short is looked for.
#[rustfmt::skip]
pub static FIELDS: &[Field] = &[
    field("Account", "Account", 10, account_name),
    field("Acct", "Account", 10, account_name),
    field("AdminLevel", "Admin", 9, |row| row.user.map(|user| user.admin_level.name().into()).unwrap_or_default()),
    field("Cluster", "Cluster", 10, |row| row.cluster.shown(row.cluster_id()).into()),
    field("Classification", "Class", 9, |row| row.all.clusters.get(row.cluster_id()).map(|other| other.classification.clone()).unwrap_or_default()),
    field("ClusterNodes", "Cluster Nodes", 20, |row| if row.cluster_id().is_empty() { row.cluster.nodes.clone() } else { String::new() }),
    field("Comment", "Comment", 20, |row| of_association(row, |one| one.comment.clone())),
    field("ControlHost", "ControlHost", 15, |row| if row.cluster_id().is_empty() { row.cluster.host.clone() } else { String::new() }),
    field("ControlPort", "ControlPort", 12, |_| "0".into()),
    field("Coordinators", "Coord Accounts", 20, coordinators),
    field("DefaultAccount", "Def Acct", 10, |row| row.user.map(|user| user.default_account_in(row.default_in.unwrap_or(row.cluster_id())).to_string()).unwrap_or_default()),
    field("DefaultQOS", "Def QOS", 9, |row| row.association.map(|one| if row.inherits { row.all.default_qos(one.id) } else { one.default_qos.clone() }).unwrap_or_default()),
    field("DefaultWCKey", "Def WCKey", 10, |row| row.user.map(|user| user.default_wckey.clone()).unwrap_or_default()),
    field("Description", "Descr", 20, |row| match (row.account, row.qos) {
        (Some(account), _) => account.description.clone(),
        (None, Some(qos)) => qos.description.clone(),
        (None, None) => String::new(),
    }),
    field("Fairshare", "Share", 9, |row| of_association(row, |one| match one.shares {
        Shares::Number(number) => number.to_string(),
        Shares::Parent => "parent".into(),
    })),
    field("Shares", "Share", 9, |row| of_association(row, |one| match one.shares {
        Shares::Number(number) => number.to_string(),
        Shares::Parent => "parent".into(),
    })),
    field("Flags", "Flags", 20, |row| match (row.qos, row.association) {
        (Some(qos), _) => qos.flags.iter().cloned().collect::<Vec<_>>().join(","),
        (None, Some(_)) => "None".into(),
        (None, None) => String::new(),
    }),
    field("GraceTime", "GraceTime", 10, |row| row.qos.map(|qos| duration::show(qos.grace_secs.into())).unwrap_or_default()),
    field("GrpCPUs", "GrpCPUs", 8, |row| grp_one(row, "cpu", |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpCPUMins", "GrpCPUMins", 11, |row| grp_one(row, "cpu", |limits| &limits.grp_tres_mins, |qos| &qos.limits.grp_tres_mins)),
    field("GrpCPURunMins", "GrpCPURunMins", 13, |row| grp_one(row, "cpu", |limits| &limits.grp_tres_run_mins, |qos| &qos.limits.grp_tres_run_mins)),
    field("GrpJobs", "GrpJobs", 7, |row| grp(row, |limits| limits.grp_jobs, |qos| qos.limits.grp_jobs)),
    field("GrpJobsAccrue", "GrpJobsAccrue", 13, |row| grp(row, |limits| limits.grp_jobs_accrue, |qos| qos.limits.grp_jobs_accrue)),
    field("GrpMemory", "GrpMem", 7, |row| grp_one(row, "mem", |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpNodes", "GrpNodes", 8, |row| grp_one(row, "node", |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpSubmitJobs", "GrpSubmit", 9, |row| grp(row, |limits| limits.grp_submit, |qos| qos.limits.grp_submit)),
    field("GrpTRES", "GrpTRES", 13, |row| grp_amounts(row, |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpTRESMins", "GrpTRESMins", 13, |row| grp_amounts(row, |limits| &limits.grp_tres_mins, |qos| &qos.limits.grp_tres_mins)),
    field("GrpTRESRunMins", "GrpTRESRunMins", 13, |row| grp_amounts(row, |limits| &limits.grp_tres_run_mins, |qos| &qos.limits.grp_tres_run_mins)),
    field("GrpWall", "GrpWall", 11, |row| minutes(own(row, |limits| limits.grp_wall, |qos| qos.limits.grp_wall).flatten())),
    // Of a cluster: its number in a federation.
    field("ID", "ID", 6, |row| if row.is_cluster { "0".into() } else { match (row.association, row.qos) {
        (Some(one), _) => one.id.to_string(),
        (None, Some(qos)) => qos.id.to_string(),
        (None, None) => row.number.to_string(),
    } }),
    field("LFT", "LFT", 6, |row| row.span.0.to_string()),
    field("LimitFactor", "LimitFactor", 11, |row| row.qos.map(|qos| factor(qos.limit_factor_thousandths)).unwrap_or_default()),
    field("MaxCPUMinsPerJob", "MaxCPUMins", 11, |row| max_one(row, "cpu", |limits| Some(&limits.max_tres_mins), |qos| &qos.limits.max_tres_mins_per_job)),
    field("MaxCPUsPerJob", "MaxCPUs", 8, |row| max_one(row, "cpu", |limits| Some(&limits.max_tres), |qos| &qos.limits.max_tres_per_job)),
    field("MaxCPUsPerUser", "MaxCPUsPU", 9, |row| max_one(row, "cpu", |limits| Some(&limits.max_tres), |qos| &qos.limits.max_tres_per_user)),
    field("MaxJobs", "MaxJobs", 7, |row| max(row, |limits| limits.max_jobs, |qos| qos.limits.max_jobs_per_user)),
    field("MaxJobsAccrue", "MaxJobsAccrue", 13, |row| max(row, |limits| limits.max_jobs_accrue, |qos| qos.limits.max_jobs_accrue_per_user)),
    field("MaxJobsAccruePerUser", "MaxJobsAccruePU", 15, |row| max(row, |_| None, |qos| qos.limits.max_jobs_accrue_per_user)),
    field("MaxJobsAccruePerAccount", "MaxJobsAccruePA", 15, |row| max(row, |_| None, |qos| qos.limits.max_jobs_accrue_per_account)),
    field("MaxJobsPerUser", "MaxJobsPU", 9, |row| max(row, |limits| limits.max_jobs, |qos| qos.limits.max_jobs_per_user)),
    field("MaxJobsPU", "MaxJobsPU", 9, |row| max(row, |limits| limits.max_jobs, |qos| qos.limits.max_jobs_per_user)),
    field("MaxJobsPerAccount", "MaxJobsPA", 9, |row| max(row, |_| None, |qos| qos.limits.max_jobs_per_account)),
    field("MaxJobsPA", "MaxJobsPA", 9, |row| max(row, |_| None, |qos| qos.limits.max_jobs_per_account)),
    field("MaxNodesPerJob", "MaxNodes", 8, |row| max_one(row, "node", |limits| Some(&limits.max_tres), |qos| &qos.limits.max_tres_per_job)),
    field("MaxNodesPerUser", "MaxNodesPU", 10, |row| max_one(row, "node", |limits| Some(&limits.max_tres), |qos| &qos.limits.max_tres_per_user)),
    field("MaxSubmitJobs", "MaxSubmit", 9, |row| max(row, |limits| limits.max_submit, |qos| qos.limits.max_submit_per_user)),
    field("MaxSubmitJobsPerUser", "MaxSubmitPU", 11, |row| max(row, |limits| limits.max_submit, |qos| qos.limits.max_submit_per_user)),
    field("MaxSubmitPU", "MaxSubmitPU", 11, |row| max(row, |limits| limits.max_submit, |qos| qos.limits.max_submit_per_user)),
    field("MaxSubmitJobsPerAccount", "MaxSubmitPA", 11, |row| max(row, |_| None, |qos| qos.limits.max_submit_per_account)),
    field("MaxSubmitPA", "MaxSubmitPA", 11, |row| max(row, |_| None, |qos| qos.limits.max_submit_per_account)),
    field("MaxTRES", "MaxTRES", 13, |row| max_amounts(row, |limits| Some(&limits.max_tres), |qos| &qos.limits.max_tres_per_job)),
    field("MaxTRESPerJob", "MaxTRES", 13, |row| max_amounts(row, |limits| Some(&limits.max_tres), |qos| &qos.limits.max_tres_per_job)),
    field("MaxTRESPerNode", "MaxTRESPerNode", 14, |row| max_amounts(row, |limits| Some(&limits.max_tres_per_node), |qos| &qos.limits.max_tres_per_node)),
    field("MaxTRESMins", "MaxTRESMins", 13, |row| max_amounts(row, |limits| Some(&limits.max_tres_mins), |qos| &qos.limits.max_tres_mins_per_job)),
    field("MaxTRESPerUser", "MaxTRESPU", 13, |row| max_amounts(row, |_| None, |qos| &qos.limits.max_tres_per_user)),
    field("MaxTRESPU", "MaxTRESPU", 13, |row| max_amounts(row, |_| None, |qos| &qos.limits.max_tres_per_user)),
    field("MaxTRESPerAccount", "MaxTRESPA", 13, |row| max_amounts(row, |_| None, |qos| &qos.limits.max_tres_per_account)),
    field("MaxTRESPA", "MaxTRESPA", 13, |row| max_amounts(row, |_| None, |qos| &qos.limits.max_tres_per_account)),
    field("MaxTRESRunMinsPU", "MaxTRESRunMinsPU", 15, |row| max_amounts(row, |limits| Some(&limits.max_tres_run_mins), |qos| &qos.limits.max_tres_run_mins_per_user)),
    field("MaxTRESRunMinsPA", "MaxTRESRunMinsPA", 15, |row| max_amounts(row, |_| None, |qos| &qos.limits.max_tres_run_mins_per_account)),
    field("MaxWall", "MaxWall", 11, |row| minutes(nearest(row, |limits| limits.max_wall, |qos| qos.limits.max_wall))),
    field("MaxWallDurationPerJob", "MaxWall", 11, |row| minutes(nearest(row, |limits| limits.max_wall, |qos| qos.limits.max_wall))),
    field("MinPrioThresh", "MinPrioThres", 12, |row| max(row, |limits| limits.min_priority, |qos| qos.limits.min_priority)),
    field("MinTRESPerJob", "MinTRES", 13, |row| max_amounts(row, |_| None, |qos| &qos.limits.min_tres_per_job)),
    field("MinCPUsPerJob", "MinCPUs", 8, |row| max_one(row, "cpu", |limits| Some(&limits.max_tres), |qos| &qos.limits.min_tres_per_job)),
    field("Name", "Name", 10, |row| match (row.qos, row.user, row.account) {
        (Some(qos), ..) => qos.name.clone(),
        (None, Some(user), _) => user.name.clone(),
        (None, None, Some(account)) => account.name.clone(),
        (None, None, None) => row.name.into(),
    }),
    field("Organization", "Org", 20, |row| row.account.map(|account| account.organization.clone()).unwrap_or_default()),
    field("ParentID", "ParentID", 8, |row| of_association(row, |one| if one.is_account() { one.parent.to_string() } else { String::new() })),
    field("ParentName", "ParentName", 10, parent_name),
    field("Partition", "Partition", 10, |row| of_association(row, |one| one.partition.clone())),
    field("Preempt", "Preempt", 10, |row| row.qos.map(|qos| qos.preempt.iter().cloned().collect::<Vec<_>>().join(",")).unwrap_or_default()),
    field("PreemptExemptTime", "PreemptExemptTime", 19, |row| row.qos.and_then(|qos| qos.preempt_exempt_secs).map(|secs| duration::show(secs.into())).unwrap_or_default()),
    field("PreemptMode", "PreemptMode", 11, |row| row.qos.map(|qos| if qos.preempt_mode.is_empty() { "cluster".into() } else { qos.preempt_mode.clone() }).unwrap_or_default()),
    field("Priority", "Priority", 10, |row| match row.qos {
        Some(qos) => qos.priority.to_string(),
        None => shown(nearest(row, |limits| limits.priority, |_| None)),
    }),
    field("QOS", "QOS", 20, allowed_qos),
    field("QOSLevel", "QOS", 20, allowed_qos),
    field("QOSRAWLevel", "QOS_RAW", 10, allowed_qos_numbers),
    field("NodeNames", "NodeName", -15, |_| String::new()),
    field("NodeCount", "NodeCount", 9, |row| if row.cluster_id().is_empty() { row.cluster.n_nodes.to_string() } else { "0".into() }),
    field("RGT", "RGT", 6, |row| row.span.1.to_string()),
    field("RPC", "RPC", 5, |row| if row.cluster_id().is_empty() { "9728".into() } else { "0".into() }),
    field("TRES", "TRES", 20, |row| if row.cluster_id().is_empty() { row.cluster.tres.clone() } else { String::new() }),
    field("Type", "Type", 8, |row| row.other.into()),
    field("UsageFactor", "UsageFactor", 11, |row| row.qos.map(|qos| factor(Some(qos.usage_factor_thousandths.unwrap_or(1000)))).unwrap_or_default()),
    field("UsageThreshold", "UsageThres", 10, |row| row.qos.map(|qos| factor(qos.usage_threshold_thousandths)).unwrap_or_default()),
    field("User", "User", 10, |row| match (row.association, row.user) {
        (Some(one), _) => one.user.clone(),
        (None, Some(user)) => user.name.clone(),
        (None, None) => row.name.into(),
    }),
    field("WCKey", "WCKey", 10, |row| row.other.into()),
    field("Federation", "Federation", 10, |row| of_cluster(row, "", "")),
    field("Features", "Features", 20, |row| of_cluster(row, "", "")),
    field("FedState", "FedState", 12, |row| of_cluster(row, "NA", "NA")),
    field("FedStateRaw", "FedStateRaw", 11, |row| of_cluster(row, "0", "0")),
    // The number of the plugin that gives out CPUs one by one.
    field("PluginIDSelect", "PluginIDSelect", 14, |row| of_cluster(row, "109", "0")),
];

const ASSOCIATION: &str = "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins";

/// What is shown when no format is asked for.
pub fn usual(entity: Entity, with_associations: bool, without_limits: bool) -> &'static str {
    match (entity, with_associations) {
        (Entity::Account, false) => "Account,Description,Organization",
        (Entity::Account, true) => {
            "Account,Description,Organization,Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMemory,GrpSubmit,GrpWall,GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
        }
        (Entity::User, false) => "User,DefaultAccount,AdminLevel",
        (Entity::User, true) => {
            "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
        }
        (Entity::Association, _) if without_limits => "Cluster,Account,User,Partition",
        (Entity::Association, _) => ASSOCIATION,
        (Entity::Cluster, _) if without_limits => "Cluster,ControlHost,ControlPort,RPC",
        (Entity::Cluster, _) => {
            "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS"
        }
        (Entity::Qos, _) => {
            "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRESPerJob"
        }
        (Entity::Coordinator, _) => "User,Account",
        (Entity::Tres, _) => "Type,Name%15,ID",
        (Entity::Wckey, _) => "WCKey,Cluster,User",
    }
}

/// Reads `account%256,user`; the error is the field that means nothing. A tree has room for its accounts.
pub fn chosen(format: &str, is_tree: bool) -> Result<Vec<(&'static Field, Column)>, String> {
    let field = |(name, width): (&str, Option<i32>)| {
        let field = find(name).ok_or_else(|| name.to_string())?;
        let usual = if is_tree && field.title == "Account" { -20 } else { field.width };
        Ok((field, Column::new(field.title, width.unwrap_or(usual))))
    };
    words_of_format(format).map(field).collect()
}

/// Other spellings of columns.
const SPELLINGS: &[(&str, &str)] = &[
    ("Clusters", "Cluster"),
    ("MaxJobsAccruePerAcct", "MaxJobsAccruePerAccount"),
    ("MaxJobsPerAcct", "MaxJobsPA"),
    ("MaxSubmitJobsPerAcct", "MaxSubmitPA"),
    ("MaxSubmitJobsPA", "MaxSubmitPA"),
    ("MaxSubmitJobsPU", "MaxSubmitPU"),
    ("MaxTRESMinsPerJob", "MaxTRESMins"),
    ("MaxTRESPerAcct", "MaxTRESPA"),
    ("MaxTRESRunMinsPerAccount", "MaxTRESRunMinsPA"),
    ("MaxTRESRunMinsPerAcct", "MaxTRESRunMinsPA"),
    ("MaxTRESRunMinsPerUser", "MaxTRESRunMinsPU"),
    ("MinPrioThreshold", "MinPrioThresh"),
    ("WCKeys", "WCKey"),
];

fn find(name: &str) -> Option<&'static Field> {
    let spelled = |name: &str| FIELDS.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let by_beginning = || FIELDS.iter().find(|field| begins(field.name, name) || begins(field.title, name));
    let other = || SPELLINGS.iter().find(|(other, _)| begins(other, name)).and_then(|(_, usual)| spelled(usual));
    spelled(name).or_else(by_beginning).or_else(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_all_their_names() {
        for (name, title) in [
            ("clusters", "Cluster"),
            ("cluster", "Cluster"),
            ("MaxSubmitJobsPU", "MaxSubmitPU"),
            ("maxsubmitjobsperuser", "MaxSubmitPU"),
            ("MaxJobsPerAcct", "MaxJobsPA"),
            ("maxtresminsperj", "MaxTRESMins"),
            ("MinPrio", "MinPrioThres"),
            ("qosraw", "QOS_RAW"),
            ("qos", "QOS"),
            ("fed", "Federation"),
            ("fea", "Features"),
            ("fai", "Share"),
            ("pl", "PluginIDSelect"),
        ] {
            assert_eq!(find(name).map(|field| field.title), Some(title), "{name}");
        }
        assert!(find("colour").is_none());
        assert!(SPELLINGS.iter().all(|(other, _)| find(other).is_some()));
    }
}
