//! `scontrol show assoc_mgr`: users, associations and QOS with their limits and what is in use.
use model::accounts::{Accounts, Amounts, Association, Limits, Place, Qos, QosUse, Shares, Standing, Tres, Use};

use super::Reply;
use super::record::Style;

/// Which records, and of whom.
#[derive(Default)]
struct Wanted {
    users: Vec<String>,
    accounts: Vec<String>,
    qos: Vec<String>,
    flags: Vec<String>,
}

impl Wanted {
    fn shows(&self, what: &str) -> bool {
        self.flags.is_empty() || self.flags.iter().any(|flag| what.starts_with(flag.as_str()))
    }
}

pub fn show(words: &[&str], all: &Accounts, standing: &Standing, cluster: &str, style: Style) -> Reply {
    let mut wanted = Wanted::default();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let key = key.to_lowercase();
        let values = value.split(',').filter(|value| !value.is_empty()).map(str::to_lowercase);
        match key.as_str() {
            _ if !key.is_empty() && "accounts".starts_with(&key) => wanted.accounts.extend(values),
            _ if !key.is_empty() && "flags".starts_with(&key) => wanted.flags.extend(values),
            _ if !key.is_empty() && "qos".starts_with(&key) => wanted.qos.extend(values),
            _ if !key.is_empty() && "users".starts_with(&key) => wanted.users.extend(values),
            _ => return Reply::failed(&format!("invalid option: {word}")),
        }
    }
    let is_known = |flag: &&String| ["assoc", "qos", "users"].iter().any(|known| known.starts_with(flag.as_str()));
    if let Some(unknown) = wanted.flags.iter().find(|flag| !is_known(flag)) {
        // As Slurm, which calls it no failure.
        let err = format!("invalid flag '{unknown}', valid options are 'Assoc, QOS, and/or Users'\n");
        return Reply { err, ..Reply::default() };
    }
    let gap = if style.one_line { "" } else { "\n" };
    let mut out = format!("Current Association Manager state\n{gap}");
    if wanted.shows("users") {
        out.push_str(&format!("User Records\n{gap}"));
        for user in all.users.values().filter(|user| passes(&wanted.users, &user.name)) {
            let uid = uid(&user.name);
            out.push_str(&format!(
                "UserName={}({uid}) DefAccount={} DefWckey={} AdminLevel={}\n",
                user.name,
                user.default_account,
                user.default_wckey,
                user.admin_level.name()
            ));
        }
        out.push_str(gap);
    }
    if wanted.shows("assoc") {
        out.push_str(&format!("Association Records\n{gap}"));
        for (id, _) in crate::sacctmgr::tree(all) {
            let one = &all.associations[&id];
            let is_meant =
                passes(&wanted.accounts, &one.account) && (one.is_account() || passes(&wanted.users, &one.user));
            if is_meant {
                let place = standing.associations.get(&id).cloned().unwrap_or_default();
                write(&association(all, one, &place, cluster), style, &mut out);
            }
        }
        out.push_str(gap);
    }
    if wanted.shows("qos") {
        out.push_str(&format!("QOS Records\n{gap}"));
        let mut list: Vec<&Qos> = all.qos.values().filter(|qos| passes(&wanted.qos, &qos.name)).collect();
        list.sort_by_key(|qos| qos.id);
        for qos in list {
            let used = standing.qos.get(&qos.name).cloned().unwrap_or_default();
            write(&quality(qos, &used), style, &mut out);
        }
        out.push_str(gap);
    }
    // Sections are set apart by a blank line; the last is not followed by one.
    let out = if style.one_line { out } else { format!("{}\n", out.trim_end_matches('\n')) };
    Reply::text(out)
}

fn passes(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| one == name)
}

/// Slurm's word for nobody where the system does not know the name.
fn uid(user: &str) -> u32 {
    wire::accounts::uid_of(user).unwrap_or(u32::MAX - 1)
}

fn write(lines: &[String], style: Style, out: &mut String) {
    match style.one_line {
        true => out.push_str(&lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join(" ")),
        false => out.push_str(&lines.join("\n")),
    }
    out.push('\n');
}

/// `5(2)`: the limit, `N` for none, and what is in use.
fn bound(limit: Option<u32>, used: impl std::fmt::Display) -> String {
    limit.map_or_else(|| format!("N({used})"), |limit| format!("{limit}({used})"))
}

const FIXED: [&str; 8] = ["cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"];

/// `cpu=6(8),mem=N(800),…`
fn bounds(limits: &Tres, used: &Amounts) -> String {
    let more = limits.0.keys().chain(used.others.keys()).filter(|name| !FIXED.contains(&name.as_str()));
    let more: std::collections::BTreeSet<&str> = more.map(String::as_str).collect();
    let all = FIXED.into_iter().chain(more);
    let one = |name: &str| match limits.get(name) {
        Some(limit) => format!("{name}={limit}({})", used.get(name)),
        None => format!("{name}=N({})", used.get(name)),
    };
    all.map(one).collect::<Vec<_>>().join(",")
}

/// Of those that are limited only.
fn bounds_of(limits: &Tres, used: &Amounts) -> String {
    let one = |(name, limit): (&String, &u64)| format!("{name}={limit}({})", used.get(name));
    limits.0.iter().map(one).collect::<Vec<_>>().join(",")
}

fn in_minutes(used: &Use) -> (Amounts, Amounts, String) {
    let mins = used.used.map(|secs| (secs / 60.0) as u64);
    (mins, used.run_secs.map(|secs| secs / 60), format!("{:.2}", used.wall_secs / 60.0))
}

fn count(value: Option<u32>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The association's limits; those of each job and user are the nearest from it up.
fn with_inherited(all: &Accounts, one: &Association) -> Limits {
    let mut limits = one.limits.clone();
    for above in all.lineage(one.id).skip(1).map(|above| &above.limits) {
        limits.priority = limits.priority.or(above.priority);
        limits.max_jobs = limits.max_jobs.or(above.max_jobs);
        limits.max_jobs_accrue = limits.max_jobs_accrue.or(above.max_jobs_accrue);
        limits.max_submit = limits.max_submit.or(above.max_submit);
        limits.max_wall = limits.max_wall.or(above.max_wall);
        limits.min_priority = limits.min_priority.or(above.min_priority);
        let pairs = [
            (&mut limits.max_tres, &above.max_tres),
            (&mut limits.max_tres_per_node, &above.max_tres_per_node),
            (&mut limits.max_tres_mins, &above.max_tres_mins),
            (&mut limits.max_tres_run_mins, &above.max_tres_run_mins),
        ];
        for (own, inherited) in pairs {
            for (name, most) in &inherited.0 {
                own.0.entry(name.clone()).or_insert(*most);
            }
        }
    }
    limits
}

fn association(all: &Accounts, one: &Association, place: &Place, cluster: &str) -> Vec<String> {
    let limits = &with_inherited(all, one);
    let (mins, run_mins, wall) = in_minutes(&place.now);
    let user = if one.is_account() { String::new() } else { format!("{}({})", one.user, uid(&one.user)) };
    let parent = all.associations.get(&one.parent).filter(|_| one.is_account());
    let parent = parent.map(|parent| format!("{}({})", parent.account, parent.id)).unwrap_or_default();
    let shares = match one.shares {
        Shares::Number(number) => number.to_string(),
        Shares::Parent => "parent".into(),
    };
    let is_default = all.users.get(&one.user).is_some_and(|user| user.default_account == one.account);
    let with_use = |limit: Option<u32>, used: u64| limit.map(|limit| format!("{limit}({used})")).unwrap_or_default();
    let mut lines = vec![
        format!(
            "ClusterName={cluster} Account={} UserName={user} Partition={} Priority={} ID={}",
            one.account,
            one.partition,
            limits.priority.unwrap_or(0),
            one.id
        ),
        format!(
            "    SharesRaw/Norm/Level/Factor={shares}/{:.2}/{}/{:.2}",
            place.shares_norm,
            place.level_shares,
            place.fair_share.unwrap_or(0.0)
        ),
        format!(
            "    UsageRaw/Norm/Efctv={:.2}/{:.2}/{:.2}",
            place.now.used.billing, place.usage_norm, place.usage_effective
        ),
        format!("    ParentAccount={parent} DefAssoc={}", if is_default { "Yes" } else { "No" }),
        format!(
            "    GrpJobs={} GrpJobsAccrue={}",
            bound(limits.grp_jobs, place.now.jobs),
            bound(limits.grp_jobs_accrue, place.now.accruing)
        ),
        format!(
            "    GrpSubmitJobs={} GrpWall={}",
            bound(limits.grp_submit, place.now.submitted),
            bound(limits.grp_wall, wall)
        ),
        format!("    GrpTRES={}", bounds(&limits.grp_tres, &place.now.held)),
        format!("    GrpTRESMins={}", bounds(&limits.grp_tres_mins, &mins)),
        format!("    GrpTRESRunMins={}", bounds(&limits.grp_tres_run_mins, &run_mins)),
        format!(
            "    MaxJobs={} MaxJobsAccrue={} MaxSubmitJobs={} MaxWallPJ={}",
            with_use(limits.max_jobs, place.now.jobs),
            with_use(limits.max_jobs_accrue, place.now.accruing),
            with_use(limits.max_submit, place.now.submitted),
            count(limits.max_wall)
        ),
        format!("    MaxTRESPJ={}", limits.max_tres),
        format!("    MaxTRESPN={}", limits.max_tres_per_node),
        format!("    MaxTRESMinsPJ={}", limits.max_tres_mins),
        format!("    MinPrioThresh={}", count(limits.min_priority)),
    ];
    // Slurm never looks at it and has no line for it.
    if !limits.max_tres_run_mins.is_empty() {
        lines.push(format!("    MaxTRESRunMins={}", bounds_of(&limits.max_tres_run_mins, &run_mins)));
    }
    lines
}

fn quality(qos: &Qos, used: &QosUse) -> Vec<String> {
    let limits = &qos.limits;
    let (mins, run_mins, wall) = in_minutes(&used.all);
    let mode = if qos.preempt_mode.is_empty() { "OFF".into() } else { qos.preempt_mode.to_uppercase() };
    let mut lines = vec![
        format!("QOS={}({})", qos.name, qos.id),
        format!("    UsageRaw={:.6}", used.all.used.billing),
        format!(
            "    GrpJobs={} GrpJobsAccrue={} GrpSubmitJobs={} GrpWall={}",
            bound(limits.grp_jobs, used.all.jobs),
            bound(limits.grp_jobs_accrue, used.all.accruing),
            bound(limits.grp_submit, used.all.submitted),
            bound(limits.grp_wall, wall)
        ),
        format!("    GrpTRES={}", bounds(&limits.grp_tres, &used.all.held)),
        format!("    GrpTRESMins={}", bounds(&limits.grp_tres_mins, &mins)),
        format!("    GrpTRESRunMins={}", bounds(&limits.grp_tres_run_mins, &run_mins)),
        format!("    MaxWallPJ={}", count(limits.max_wall)),
        format!("    MaxTRESPJ={}", limits.max_tres_per_job),
        format!("    MaxTRESPN={}", limits.max_tres_per_node),
        format!("    MaxTRESMinsPJ={}", limits.max_tres_mins_per_job),
        format!("    MinPrioThresh={} ", count(limits.min_priority)),
        format!("    MinTRESPJ={}", limits.min_tres_per_job),
        format!("    PreemptMode={mode}"),
        format!("    Priority={}", qos.priority),
        "    Account Limits".to_string(),
    ];
    if used.accounts.is_empty() {
        lines.push("        No Accounts".into());
    }
    for (name, one) in &used.accounts {
        lines.push(format!("      {name}"));
        lines.push(format!(
            "        MaxJobsPA={} MaxJobsAccruePA={} MaxSubmitJobsPA={}",
            bound(limits.max_jobs_per_account, one.jobs),
            bound(limits.max_jobs_accrue_per_account, one.accruing),
            bound(limits.max_submit_per_account, one.submitted)
        ));
        lines.push(format!("        MaxTRESPA={}", bounds(&limits.max_tres_per_account, &one.held)));
    }
    lines.push("    User Limits".into());
    if used.users.is_empty() {
        lines.push("        No Users".into());
    }
    for (name, one) in &used.users {
        lines.push(format!("      {}", uid(name)));
        lines.push(format!(
            "        MaxJobsPU={} MaxJobsAccruePU={} MaxSubmitJobsPU={}",
            bound(limits.max_jobs_per_user, one.jobs),
            bound(limits.max_jobs_accrue_per_user, one.accruing),
            bound(limits.max_submit_per_user, one.submitted)
        ));
        lines.push(format!("        MaxTRESPU={}", bounds(&limits.max_tres_per_user, &one.held)));
    }
    lines
}
