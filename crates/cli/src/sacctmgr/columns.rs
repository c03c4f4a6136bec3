//! Every column of `sacctmgr list`: name, title, width, and what it shows of a row.
use model::accounts::{Account, Accounts, Association, Limits, Qos, Shares, Tres, User};
use model::duration;

use super::Entity;
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

fn limit(row: &Row, of_association: impl Fn(&Limits) -> Option<u32>, of_qos: impl Fn(&Qos) -> Option<u32>) -> String {
    let value = match row.qos {
        Some(qos) => of_qos(qos),
        None => row.association.and_then(|one| of_association(&one.limits)),
    };
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn amount(
    row: &Row,
    of_association: impl Fn(&Limits) -> Option<&Tres>,
    of_qos: impl Fn(&Qos) -> Option<&Tres>,
) -> String {
    let value = match row.qos {
        Some(qos) => of_qos(qos),
        None => row.association.and_then(|one| of_association(&one.limits)),
    };
    value.map(Tres::to_string).unwrap_or_default()
}

fn single(row: &Row, name: &str, of_association: impl Fn(&Limits) -> &Tres, of_qos: impl Fn(&Qos) -> &Tres) -> String {
    let value = match row.qos {
        Some(qos) => of_qos(qos).get(name),
        None => row.association.and_then(|one| of_association(&one.limits).get(name)),
    };
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn minutes(value: Option<u32>) -> String {
    value.map(|minutes| duration::show(u64::from(minutes) * 60)).unwrap_or_default()
}

fn wall(row: &Row, of_association: impl Fn(&Limits) -> Option<u32>, of_qos: impl Fn(&Qos) -> Option<u32>) -> String {
    minutes(match row.qos {
        Some(qos) => of_qos(qos),
        None => row.association.and_then(|one| of_association(&one.limits)),
    })
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
    let Some(one) = row.association else { return String::new() };
    row.all.allowed_qos(one.id).into_iter().collect::<Vec<_>>().join(",")
}

fn parent_name(row: &Row) -> String {
    let parent = row.association.filter(|one| one.is_account()).and_then(|one| row.all.associations.get(&one.parent));
    parent.map(|parent| parent.account.clone()).unwrap_or_default()
}

fn coordinators(row: &Row) -> String {
    if let Some(account) = row.account {
        return account.coordinators.iter().cloned().collect::<Vec<_>>().join(",");
    }
    let Some(user) = row.user else { return String::new() };
    let of = |account: &&Account| account.coordinators.contains(&user.name);
    row.all.accounts.values().filter(of).map(|account| account.name.clone()).collect::<Vec<_>>().join(",")
}

/// In the order in which a name that was cut short is looked for.
#[rustfmt::skip]
pub static FIELDS: &[Field] = &[
    field("Account", "Account", 10, account_name),
    field("AdminLevel", "Admin", 9, |row| row.user.map(|user| user.admin_level.name().into()).unwrap_or_default()),
    field("Cluster", "Cluster", 10, |row| row.cluster.name.clone()),
    field("Comment", "Comment", 20, |row| of_association(row, |one| one.comment.clone())),
    field("ControlHost", "ControlHost", 15, |row| row.cluster.host.clone()),
    field("ControlPort", "ControlPort", 12, |_| "0".into()),
    field("Coordinators", "Coord Accounts", 20, coordinators),
    field("DefaultAccount", "Def Acct", 10, |row| row.user.map(|user| user.default_account.clone()).unwrap_or_default()),
    field("DefaultQOS", "Def QOS", 9, |row| row.association.map(|one| row.all.default_qos(one.id)).unwrap_or_default()),
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
    field("Flags", "Flags", 40, |row| row.qos.map(|qos| qos.flags.iter().cloned().collect::<Vec<_>>().join(",")).unwrap_or_default()),
    field("GraceTime", "GraceTime", 10, |row| row.qos.map(|qos| duration::show(qos.grace_secs.into())).unwrap_or_default()),
    field("GrpCPUs", "GrpCPUs", 8, |row| single(row, "cpu", |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpCPUMins", "GrpCPUMins", 11, |row| single(row, "cpu", |limits| &limits.grp_tres_mins, |qos| &qos.limits.grp_tres_mins)),
    field("GrpCPURunMins", "GrpCPURunMins", 13, |row| single(row, "cpu", |limits| &limits.grp_tres_run_mins, |qos| &qos.limits.grp_tres_run_mins)),
    field("GrpJobs", "GrpJobs", 7, |row| limit(row, |limits| limits.grp_jobs, |qos| qos.limits.grp_jobs)),
    field("GrpJobsAccrue", "GrpJobsAccrue", 13, |row| limit(row, |limits| limits.grp_jobs_accrue, |qos| qos.limits.grp_jobs_accrue)),
    field("GrpMemory", "GrpMem", 7, |row| single(row, "mem", |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpNodes", "GrpNodes", 8, |row| single(row, "node", |limits| &limits.grp_tres, |qos| &qos.limits.grp_tres)),
    field("GrpSubmitJobs", "GrpSubmit", 9, |row| limit(row, |limits| limits.grp_submit, |qos| qos.limits.grp_submit)),
    field("GrpTRES", "GrpTRES", 13, |row| amount(row, |limits| Some(&limits.grp_tres), |qos| Some(&qos.limits.grp_tres))),
    field("GrpTRESMins", "GrpTRESMins", 13, |row| amount(row, |limits| Some(&limits.grp_tres_mins), |qos| Some(&qos.limits.grp_tres_mins))),
    field("GrpTRESRunMins", "GrpTRESRunMin", 13, |row| amount(row, |limits| Some(&limits.grp_tres_run_mins), |qos| Some(&qos.limits.grp_tres_run_mins))),
    field("GrpWall", "GrpWall", 11, |row| wall(row, |limits| limits.grp_wall, |qos| qos.limits.grp_wall)),
    field("ID", "ID", 6, |row| match (row.association, row.qos) {
        (Some(one), _) => one.id.to_string(),
        (None, Some(qos)) => qos.id.to_string(),
        (None, None) => row.number.to_string(),
    }),
    field("LimitFactor", "LimitFactor", 11, |row| row.qos.map(|qos| factor(qos.limit_factor_thousandths)).unwrap_or_default()),
    field("MaxCPUMinsPerJob", "MaxCPUMins", 11, |row| single(row, "cpu", |limits| &limits.max_tres_mins, |qos| &qos.limits.max_tres_mins_per_job)),
    field("MaxCPUsPerJob", "MaxCPUs", 8, |row| single(row, "cpu", |limits| &limits.max_tres, |qos| &qos.limits.max_tres_per_job)),
    field("MaxCPUsPerUser", "MaxCPUsPU", 9, |row| single(row, "cpu", |limits| &limits.max_tres, |qos| &qos.limits.max_tres_per_user)),
    field("MaxJobs", "MaxJobs", 7, |row| limit(row, |limits| limits.max_jobs, |qos| qos.limits.max_jobs_per_user)),
    field("MaxJobsAccrue", "MaxJobsAccrue", 13, |row| limit(row, |limits| limits.max_jobs_accrue, |qos| qos.limits.max_jobs_accrue_per_user)),
    field("MaxJobsPerUser", "MaxJobsPU", 9, |row| limit(row, |limits| limits.max_jobs, |qos| qos.limits.max_jobs_per_user)),
    field("MaxJobsPU", "MaxJobsPU", 9, |row| limit(row, |limits| limits.max_jobs, |qos| qos.limits.max_jobs_per_user)),
    field("MaxJobsPerAccount", "MaxJobsPA", 9, |row| limit(row, |_| None, |qos| qos.limits.max_jobs_per_account)),
    field("MaxJobsPA", "MaxJobsPA", 9, |row| limit(row, |_| None, |qos| qos.limits.max_jobs_per_account)),
    field("MaxNodesPerJob", "MaxNodes", 8, |row| single(row, "node", |limits| &limits.max_tres, |qos| &qos.limits.max_tres_per_job)),
    field("MaxNodesPerUser", "MaxNodesPU", 10, |row| single(row, "node", |limits| &limits.max_tres, |qos| &qos.limits.max_tres_per_user)),
    field("MaxSubmitJobs", "MaxSubmit", 9, |row| limit(row, |limits| limits.max_submit, |qos| qos.limits.max_submit_per_user)),
    field("MaxSubmitJobsPerUser", "MaxSubmitPU", 11, |row| limit(row, |limits| limits.max_submit, |qos| qos.limits.max_submit_per_user)),
    field("MaxSubmitPU", "MaxSubmitPU", 11, |row| limit(row, |limits| limits.max_submit, |qos| qos.limits.max_submit_per_user)),
    field("MaxSubmitJobsPerAccount", "MaxSubmitPA", 11, |row| limit(row, |_| None, |qos| qos.limits.max_submit_per_account)),
    field("MaxSubmitPA", "MaxSubmitPA", 11, |row| limit(row, |_| None, |qos| qos.limits.max_submit_per_account)),
    field("MaxTRES", "MaxTRES", 13, |row| amount(row, |limits| Some(&limits.max_tres), |qos| Some(&qos.limits.max_tres_per_job))),
    field("MaxTRESPerJob", "MaxTRES", 13, |row| amount(row, |limits| Some(&limits.max_tres), |qos| Some(&qos.limits.max_tres_per_job))),
    field("MaxTRESPerNode", "MaxTRESPerNode", 14, |row| amount(row, |limits| Some(&limits.max_tres_per_node), |qos| Some(&qos.limits.max_tres_per_node))),
    field("MaxTRESMins", "MaxTRESMins", 13, |row| amount(row, |limits| Some(&limits.max_tres_mins), |qos| Some(&qos.limits.max_tres_mins_per_job))),
    field("MaxTRESPerUser", "MaxTRESPU", 13, |row| amount(row, |_| None, |qos| Some(&qos.limits.max_tres_per_user))),
    field("MaxTRESPU", "MaxTRESPU", 13, |row| amount(row, |_| None, |qos| Some(&qos.limits.max_tres_per_user))),
    field("MaxTRESPerAccount", "MaxTRESPA", 13, |row| amount(row, |_| None, |qos| Some(&qos.limits.max_tres_per_account))),
    field("MaxTRESPA", "MaxTRESPA", 13, |row| amount(row, |_| None, |qos| Some(&qos.limits.max_tres_per_account))),
    field("MaxTRESRunMinsPU", "MaxTRESRunMinsPU", 15, |row| amount(row, |limits| Some(&limits.max_tres_run_mins), |qos| Some(&qos.limits.max_tres_run_mins_per_user))),
    field("MaxTRESRunMinsPA", "MaxTRESRunMinsPA", 15, |row| amount(row, |_| None, |qos| Some(&qos.limits.max_tres_run_mins_per_account))),
    field("MaxWall", "MaxWall", 11, |row| wall(row, |limits| limits.max_wall, |qos| qos.limits.max_wall)),
    field("MaxWallDurationPerJob", "MaxWall", 11, |row| wall(row, |limits| limits.max_wall, |qos| qos.limits.max_wall)),
    field("MinPrioThresh", "MinPrioThresh", 13, |row| limit(row, |limits| limits.min_priority, |qos| qos.limits.min_priority)),
    field("MinTRESPerJob", "MinTRES", 13, |row| amount(row, |_| None, |qos| Some(&qos.limits.min_tres_per_job))),
    field("MinCPUsPerJob", "MinCPUs", 8, |row| single(row, "cpu", |limits| &limits.max_tres, |qos| &qos.limits.min_tres_per_job)),
    field("Name", "Name", 10, |row| match (row.qos, row.user, row.account) {
        (Some(qos), ..) => qos.name.clone(),
        (None, Some(user), _) => user.name.clone(),
        (None, None, Some(account)) => account.name.clone(),
        (None, None, None) => row.name.into(),
    }),
    field("Organization", "Org", 20, |row| row.account.map(|account| account.organization.clone()).unwrap_or_default()),
    field("ParentID", "Par ID", 6, |row| of_association(row, |one| if one.is_account() { one.parent.to_string() } else { String::new() })),
    field("ParentName", "Par Name", 10, parent_name),
    field("Partition", "Partition", 10, |row| of_association(row, |one| one.partition.clone())),
    field("Preempt", "Preempt", 10, |row| row.qos.map(|qos| qos.preempt.iter().cloned().collect::<Vec<_>>().join(",")).unwrap_or_default()),
    field("PreemptExemptTime", "PreemptExemptTime", 19, |row| row.qos.and_then(|qos| qos.preempt_exempt_secs).map(|secs| duration::show(secs.into())).unwrap_or_default()),
    field("PreemptMode", "PreemptMode", 11, |row| row.qos.map(|qos| if qos.preempt_mode.is_empty() { "cluster".into() } else { qos.preempt_mode.clone() }).unwrap_or_default()),
    field("Priority", "Priority", 10, |row| match row.qos {
        Some(qos) => qos.priority.to_string(),
        None => of_association(row, |one| one.limits.priority.map(|priority| priority.to_string()).unwrap_or_default()),
    }),
    field("QOS", "QOS", 20, allowed_qos),
    field("QOSLevel", "QOS", 20, allowed_qos),
    field("RPC", "RPC", 5, |_| "9728".into()),
    field("Type", "Type", 8, |row| row.other.into()),
    field("UsageFactor", "UsageFactor", 11, |row| row.qos.map(|qos| factor(Some(qos.usage_factor_thousandths.unwrap_or(1000)))).unwrap_or_default()),
    field("UsageThreshold", "UsageThres", 10, |row| row.qos.map(|qos| factor(qos.usage_threshold_thousandths)).unwrap_or_default()),
    field("User", "User", 10, |row| match (row.association, row.user) {
        (Some(one), _) => one.user.clone(),
        (None, Some(user)) => user.name.clone(),
        (None, None) => row.name.into(),
    }),
    field("WCKey", "WCKey", 10, |row| row.other.into()),
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
        (Entity::Cluster, _) => {
            "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS"
        }
        (Entity::Qos, _) => {
            "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThres,UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRESPerJob"
        }
        (Entity::Coordinator, _) => "User,Account",
        (Entity::Tres, _) => "Type,Name,ID",
        (Entity::Wckey, _) => "WCKey,Cluster,User",
    }
}

/// Reads `account%256,user`; the error is the field that means nothing.
pub fn chosen(format: &str) -> Result<Vec<(&'static Field, Column)>, String> {
    let words = format.split(|sign: char| sign == ',' || sign.is_whitespace()).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (name, width) = match word.split_once('%') {
                Some((name, width)) => (name, width.parse::<i32>().ok()),
                None => (word, None),
            };
            let field = find(name).ok_or_else(|| name.to_string())?;
            Ok((field, Column::new(field.title, width.filter(|width| *width != 0).unwrap_or(field.width))))
        })
        .collect()
}

fn find(name: &str) -> Option<&'static Field> {
    let begins = |field: &&Field| {
        let of = |text: &str| text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        of(field.name) || of(field.title)
    };
    FIELDS.iter().find(|field| field.name.eq_ignore_ascii_case(name)).or_else(|| FIELDS.iter().find(begins))
}
